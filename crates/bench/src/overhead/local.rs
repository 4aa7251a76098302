//! Programs with all memory local, with and without afar.

use std::ffi::OsString;

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::process::{Job, LONG, find};
use crate::python;
use crate::report::{Bound, Found, Table, Verdict};
use crate::server::{Kind, Server};
use crate::stats::{Spread, float};
use crate::store::VALUE_BYTES;

const KEYS: u64 = 200_000;
const RATIO_MAX: f64 = 1.03;
const CLIENTS: u64 = 8;
/// Sorts after the first one; their median counts.
const SORTS: u64 = 5;

/// Times of one run, in nanoseconds: a GET, a SET, and CPython's making strings, sorting them, and
/// sorting them again.
struct Times {
    get: f64,
    set: f64,
    build: f64,
    sort: f64,
    again: f64,
    checksum: u64,
}

/// A row of the table: a time, and whether it has a bound.
struct Row {
    name: &'static str,
    value: fn(&Times) -> f64,
    bounded: bool,
}

const ROWS: [Row; 5] = [
    row("redis-benchmark GET, us per request", |times| times.get / 1e3, true),
    row("redis-benchmark SET, us per request", |times| times.set / 1e3, true),
    row("CPython sort, ms", |times| times.again / 1e6, true),
    // Start-up, without a bound: first touches of pages and mappings.
    row("  making the strings before, ms", |times| times.build / 1e6, false),
    row("  the first sort, ms", |times| times.sort / 1e6, false),
];

const fn row(name: &'static str, value: fn(&Times) -> f64, bounded: bool) -> Row {
    Row { name, value, bounded }
}

/// Runs this part.
pub(super) fn run(context: &Context) -> Result<Found, Failure> {
    let requests = context.size(200_000, 20_000);
    let strings = context.size(1_000_000, 100_000);
    let places = [Place::Native, Place::far(&[])];
    let runs = context.alternate("overhead, local", &places, |place| {
        let [get, set] = redis(context, place, requests)?;
        let sorted = python::sort(context, place, strings, SORTS)?;
        Ok(Times {
            get,
            set,
            build: float(sorted.build_ns),
            sort: float(sorted.sort_ns),
            again: float(sorted.again_ns),
            checksum: sorted.checksum,
        })
    })?;
    python::same_result(runs.iter().flatten().map(|times| times.checksum))?;
    let mut table = Table::new(&["all memory local", "native", "afar", "ratio"]);
    let (mut results, mut verdicts) = (Map::new(), Vec::new());
    for Row { name, value, bounded } in ROWS {
        let values = |runs: &[Times]| runs.iter().map(value).collect::<Vec<f64>>();
        let (native, far) = (values(&runs[0]), values(&runs[1]));
        let ratio = Spread::ratio(&far, &native);
        let (native, far) = (Spread::of(native), Spread::of(far));
        table.row(vec![name.to_owned(), native.show(2), far.show(2), ratio.show(3)]);
        let row = json!({"native": native.json(), "afar": far.json(), "ratio": ratio.json()});
        results.insert(name.trim().to_owned(), row);
        if bounded {
            let what = name.split(',').next().unwrap_or(name);
            verdicts.push(Verdict {
                what: format!("{what}, all local, time with afar over time without"),
                value: ratio.median,
                bound: Bound::AtMost(RATIO_MAX),
                unit: "",
            });
        }
    }
    Ok(Found {
        name: "local",
        settings: json!({
            "key_count": KEYS,
            "value_bytes": VALUE_BYTES,
            "request_count": requests,
            "client_count": CLIENTS,
            "pipeline": 1,
            "string_count": strings,
        }),
        results: Value::Object(results),
        text: format!("{}medians over rounds (extremes); start-up is not counted\n", table.text()),
        verdicts,
    })
}

/// Nanoseconds per GET and per SET, by redis-benchmark.
fn redis(context: &Context, place: &Place, requests: u64) -> Result<[f64; 2], Failure> {
    let mut server = Server::start(context, Kind::Redis, place)?;
    server.store.fill(KEYS)?;
    let mut command: Vec<OsString> = vec![find("redis-benchmark", "redis-tools")?];
    command.extend(["-t", "get,set", "--csv", "-s"].map(OsString::from));
    command.push(server.socket().into());
    let sizes = [("-n", requests), ("-r", KEYS), ("-c", CLIENTS), ("-d", VALUE_BYTES as u64)];
    for (flag, value) in sizes {
        command.extend([flag.into(), value.to_string().into()]);
    }
    let printed = Job::start(context, &command)?.finish(LONG)?;
    server.stop()?;
    let per_request = |name| {
        let rate = rate(&printed, name).ok_or_else(|| Failure::Unreadable {
            program: "redis-benchmark",
            wanted: name,
            said: printed.clone(),
        });
        rate.map(|rate| 1e9 / rate)
    };
    Ok([per_request("GET")?, per_request("SET")?])
}

/// Requests per second of `test` in the CSV of redis-benchmark, whose lines have name and rate in
/// quotes; `None` if there is none.
pub(crate) fn rate(csv: &str, test: &str) -> Option<f64> {
    let row = csv.lines().find_map(|line| {
        let mut cells = line.split(',').map(|cell| cell.trim().trim_matches('"'));
        (cells.next() == Some(test)).then(|| cells.next())?
    });
    row?.parse().ok().filter(|&rate| rate > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_the_second_column_of_its_test() {
        let csv = "\"test\",\"rps\",\"p50_latency_ms\"\n\
                   \"SET\",\"100.5\",\"0.2\"\n\"GET\",\"200\",\"0.1\"\n";
        assert_eq!(rate(csv, "SET"), Some(100.5));
        assert_eq!(rate(csv, "GET"), Some(200.0));
        assert_eq!(rate(csv, "LPUSH"), None);
        assert_eq!(rate("\"GET\",\"0\"", "GET"), None);
    }
}
