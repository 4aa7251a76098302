//! Mapping and unmapping memory: system calls that notify afar.
//!
//! Both calls of a pair wait for an answer of the supervisor. The time of such a notification alone
//! is measured in the same rounds with a supervisor that does nothing else.

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::python;
use crate::report::{Bound, Found, Table, Verdict};
use crate::stats::{Spread, float};

use super::asked;

const SIZES: [(u64, &str); 2] = [(64 << 10, "64 KiB"), (1 << 20, "1 MiB")];
/// Most time of a pair, in nanoseconds,
const PAIR_MAX_NS: f64 = 30_000.0;
/// and over the time of two bare notifications and a native pair.
const RATIO_MAX: f64 = 2.5;

/// What one run times.
#[derive(Debug, Clone)]
enum Variant {
    /// A call that notifies a bare supervisor.
    Asked,
    /// Pairs of mmap and munmap of this many bytes.
    Pairs(u64, Place),
}

/// Runs this part.
pub(super) fn run(context: &Context) -> Result<Found, Failure> {
    let pairs = context.size(20_000, 1_000);
    let pairs_of = |&(bytes, _): &(u64, &str)| {
        [Place::Native, Place::far(&[])].map(|place| Variant::Pairs(bytes, place))
    };
    let variants: Vec<Variant> =
        [Variant::Asked].into_iter().chain(SIZES.iter().flat_map(pairs_of)).collect();
    let runs = context.alternate("overhead, mmap", &variants, |variant| match variant {
        Variant::Asked => asked::round_trip(context, pairs),
        Variant::Pairs(bytes, place) => Ok(float(python::map(context, place, *bytes, pairs)?)),
    })?;
    let (asked, pairs_of) = (&runs[0], &runs[1..]);
    let header = ["mmap and munmap, ns per pair", "native", "afar", "over bare questions"];
    let mut table = Table::new(&header);
    let mut results = Map::new();
    let mut verdicts = Vec::new();
    for ((_, name), pair) in SIZES.iter().zip(pairs_of.chunks_exact(2)) {
        let least: Vec<f64> =
            asked.iter().zip(&pair[0]).map(|(asked, native)| 2.0 * asked + native).collect();
        let ratio = Spread::ratio(&pair[1], &least);
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        let (native, far) = (spread(&pair[0]), spread(&pair[1]));
        table.row(vec![(*name).to_owned(), native.show(0), far.show(0), ratio.show(2)]);
        let row = json!({"native_ns": native.json(), "afar_ns": far.json(), "ratio": ratio.json()});
        results.insert((*name).to_owned(), row);
        let verdict = |what: &str, value, most, unit| Verdict {
            what: format!("{name}: {what}"),
            value,
            bound: Bound::AtMost(most),
            unit,
        };
        verdicts.push(verdict("a pair", far.median, PAIR_MAX_NS, "ns"));
        let over = "a pair over two bare questions and a native pair";
        verdicts.push(verdict(over, ratio.median, RATIO_MAX, ""));
    }
    let asked = Spread::of(asked.iter().copied());
    results.insert("asked_ns".to_owned(), asked.json());
    Ok(Found {
        name: "mmap",
        settings: json!({"pair_count": pairs}),
        results: Value::Object(results),
        text: format!(
            "{}a call that a bare supervisor is asked about: {} ns\n\
             CPython's mmap module, its own cost included; untouched memory\n",
            table.text(),
            asked.show(0)
        ),
        verdicts,
    })
}
