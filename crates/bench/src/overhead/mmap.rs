//! Mapping and unmapping memory, which afar answers instead of the kernel.

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::python;
use crate::report::{Found, Table};
use crate::stats::{Spread, float};

const SIZES: [(u64, &str); 2] = [(64 << 10, "64 KiB"), (1 << 20, "1 MiB")];

pub(super) fn run(context: &Context) -> Result<Found, Failure> {
    let pairs = context.size(20_000, 1_000);
    let variants = SIZES
        .iter()
        .flat_map(|&(bytes, _)| [Place::Native, Place::far(&[])].map(|place| (bytes, place)));
    let variants: Vec<(u64, Place)> = variants.collect();
    let runs = context.alternate("overhead, mmap", &variants, |(bytes, place)| {
        Ok(float(python::map(context, place, *bytes, pairs)?))
    })?;
    let mut table = Table::new(&["mmap and munmap, ns per pair", "native", "afar", "ratio"]);
    let mut results = Map::new();
    for ((_, name), pair) in SIZES.iter().zip(runs.chunks_exact(2)) {
        let ratio = Spread::ratio(&pair[1], &pair[0]);
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        let (native, far) = (spread(&pair[0]), spread(&pair[1]));
        table.row(vec![(*name).to_owned(), native.show(0), far.show(0), ratio.show(1)]);
        let row = json!({"native_ns": native.json(), "afar_ns": far.json(), "ratio": ratio.json()});
        results.insert((*name).to_owned(), row);
    }
    Ok(Found {
        name: "mmap",
        settings: json!({"pair_count": pairs}),
        results: Value::Object(results),
        text: format!(
            "{}CPython's mmap module, its own cost included; untouched memory\n",
            table.text()
        ),
        verdicts: Vec::new(),
    })
}
