//! Faults and run times of CPython and Redis under each policy.

use paging::PolicyKind;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::python;
use crate::random::{SplitMix64, Zipf};
use crate::report::{Found, Table};
use crate::server::{Kind, Server};
use crate::stats::{Spread, float};
use crate::store::{VALUE_BYTES, read};

const FLAGS: [&str; 6] = ["--local", "25%", "--rtt", "5us", "--bandwidth", "40Gbps"];
const KEYS: u64 = 200_000;
/// YCSB's default.
const ZIPF_EXPONENT: f64 = 0.99;
const SEED: u64 = 1;

/// The results of one run of both programs.
#[derive(Debug, Clone, Copy)]
struct Sample {
    python_ms: f64,
    python_fetches: f64,
    checksum: u64,
    op_us: f64,
    fetches_per_op: f64,
}

type Measure = fn(&Sample) -> f64;

/// Keys of the record and the figures that they stand for.
const COLUMNS: [(&str, Measure); 4] = [
    ("python_ms", |sample| sample.python_ms),
    ("python_fetch_count", |sample| sample.python_fetches),
    ("redis_op_us", |sample| sample.op_us),
    ("redis_fetches_per_op", |sample| sample.fetches_per_op),
];

/// Runs this part.
///
/// # Errors
/// When a run fails.
pub(super) fn run(context: &Context) -> Result<Found, Failure> {
    let strings = context.size(250_000, 50_000);
    let operations = context.size(100_000, 10_000);
    let zipf = Zipf::new(KEYS, ZIPF_EXPONENT, SEED);
    let far = |policy: &str| {
        let flags: Vec<&str> = FLAGS.into_iter().chain(["--policy", policy]).collect();
        Place::far(&flags)
    };
    let mut places = vec![("native", Place::Native)];
    places.extend(PolicyKind::ALL.map(|policy| (policy.name(), far(policy.name()))));
    let runs = context.alternate("policies", &places, |(_, place)| {
        let sorted = python::sort(context, place, strings, 0)?;
        let fetches = sorted.run.as_ref().map_or(0, |run| run.figures.faults.fetch_count);
        let [op_us, fetches_per_op] = redis(context, place, &zipf, operations)?;
        Ok(Sample {
            python_ms: float(sorted.whole_ns) / 1e6,
            python_fetches: float(fetches),
            checksum: sorted.checksum,
            op_us,
            fetches_per_op,
        })
    })?;
    python::same_result(runs.iter().flatten().map(|sample| sample.checksum))?;
    let names: Vec<&str> = places.iter().map(|(name, _)| *name).collect();
    Ok(Found {
        name: "programs",
        settings: json!({
            "flags": FLAGS,
            "string_count": strings,
            "key_count": KEYS,
            "value_bytes": VALUE_BYTES,
            "operation_count": operations,
            "zipf_exponent": ZIPF_EXPONENT,
            "seed": SEED,
        }),
        results: record(&names, &runs),
        text: text(&names, &runs),
        verdicts: Vec::new(),
    })
}

/// Microseconds and fetches per GET, after a warm-up that makes popular keys local.
fn redis(
    context: &Context,
    place: &Place,
    zipf: &Zipf,
    operations: u64,
) -> Result<[f64; 2], Failure> {
    let mut server = Server::start(context, Kind::QuietRedis, place)?;
    server.store.fill(KEYS)?;
    let mut random = SplitMix64::new(SEED);
    read(&mut *server.store, operations, 1, || zipf.draw(&mut random))?;
    let before = server.fetch_count(context)?;
    let took = read(&mut *server.store, operations, 1, || zipf.draw(&mut random))?;
    let after = server.fetch_count(context)?;
    server.stop()?;
    let fetches = float(after - before) / float(operations);
    Ok([took.as_secs_f64() * 1e6 / float(operations), fetches])
}

/// The spread of a figure over `runs`.
fn spread(runs: &[Sample], value: Measure) -> Spread {
    Spread::of(runs.iter().map(value))
}

/// The table as text.
fn text(names: &[&str], runs: &[Vec<Sample>]) -> String {
    let header = [
        "policy",
        "CPython sort, ms",
        "x native",
        "fetches",
        "Redis, us per GET",
        "x native",
        "fetches per GET",
    ];
    let mut table = Table::new(&header);
    let base = runs.first().map_or(&[][..], Vec::as_slice);
    let slowdown =
        |value, spread: &Spread| format!("{:.2}", spread.median / self::spread(base, value).median);
    for (name, runs) in names.iter().zip(runs) {
        let [python, fetches, redis, per_op] = COLUMNS.map(|(_, value)| spread(runs, value));
        table.row(vec![
            (*name).to_owned(),
            python.show(0),
            slowdown(COLUMNS[0].1, &python),
            format!("{:.0}", fetches.median),
            redis.show(2),
            slowdown(COLUMNS[2].1, &redis),
            format!("{:.3}", per_op.median),
        ]);
    }
    format!(
        "{}flags: {}; Zipf keys, exponent {ZIPF_EXPONENT}; CPython from start to end\n",
        table.text(),
        FLAGS.join(" ")
    )
}

/// The results of all policies for the record.
fn record(names: &[&str], runs: &[Vec<Sample>]) -> Value {
    let row = |(name, runs): (&&str, &Vec<Sample>)| {
        let mut row = json!({"policy": name});
        for (column, value) in COLUMNS {
            row[column] = spread(runs, value).json();
        }
        row
    };
    Value::Array(names.iter().zip(runs).map(row).collect())
}
