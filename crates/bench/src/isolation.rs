//! The benchmark `isolation`: Redis and memcached side by side under separate budgets fetch as many
//! pages as each alone.

use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::report::{Bound, Report, Table, Verdict};
use crate::server::{Kind, Server};
use crate::stats::{Spread, float};
use crate::store::{VALUE_BYTES, read, uniform};

const KEYS: u64 = 200_000;
const FLAGS: [&str; 6] = ["--local", "50%", "--rtt", "5us", "--bandwidth", "40Gbps"];
const SEED: u64 = 1;
const DEVIATION_MAX: f64 = 0.02;

/// The servers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    Redis,
    Memcached,
    Both,
}

const COMPANIES: [Company; 3] = [Company::Redis, Company::Memcached, Company::Both];

/// The results of one server in one run.
#[derive(Debug, Clone, Copy)]
struct Sample {
    fetches: f64,
    op_us: f64,
}

/// The results of one server alone and side by side, over rounds.
struct Compared {
    name: &'static str,
    alone: [Spread; 2],
    together: [Spread; 2],
    fetch_ratio: Spread,
    time_ratio: Spread,
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let operations = context.size(200_000, 20_000);
    let runs = context.alternate("isolation", &COMPANIES, |company| {
        let kinds: &[Kind] = match company {
            Company::Redis => &[Kind::QuietRedis],
            Company::Memcached => &[Kind::QuietMemcached],
            Company::Both => &[Kind::QuietRedis, Kind::QuietMemcached],
        };
        measure(context, kinds, operations)
    })?;
    let place = |company: usize, server: usize| -> Vec<Sample> {
        runs[company].iter().map(|servers| servers[server]).collect()
    };
    let compared = [
        Compared::of("Redis", &place(0, 0), &place(2, 0)),
        Compared::of("memcached", &place(1, 0), &place(2, 1)),
    ];
    Ok(Report {
        name: "isolation",
        settings: json!({
            "key_count": KEYS,
            "value_bytes": VALUE_BYTES,
            "operation_count": operations,
            "operation": "GET, uniform keys, one connection to each server, one request at a time",
            "flags": FLAGS,
            "seed": SEED,
        }),
        results: Value::Array(compared.iter().map(Compared::json).collect()),
        text: text(&compared),
        verdicts: compared.iter().map(Compared::verdict).collect(),
    })
}

/// One run: fills all servers, then reads from all at once, the same keys in every run.
fn measure(context: &Context, kinds: &[Kind], operations: u64) -> Result<Vec<Sample>, Failure> {
    let place = Place::far(&FLAGS);
    let start = |&kind| Server::start(context, kind, &place);
    let mut servers: Vec<Server> = kinds.iter().map(start).collect::<Result<_, _>>()?;
    for server in &mut servers {
        server.store.fill(KEYS)?;
    }
    let times = std::thread::scope(|scope| {
        let stores = servers.iter_mut().map(|server| &mut *server.store);
        let readers: Vec<_> = stores
            .map(|store| scope.spawn(move || read(store, operations, 1, uniform(KEYS, SEED))))
            .collect();
        let join = |reader: std::thread::ScopedJoinHandle<'_, _>| {
            reader.join().expect("reading returns its errors and does not panic")
        };
        readers.into_iter().map(join).collect::<Result<Vec<_>, Failure>>()
    })?;
    let stop = |(server, took): (Server, std::time::Duration)| {
        let fetches = server.stop()?.map_or(0, |run| run.figures.faults.fetch_count);
        Ok(Sample { fetches: float(fetches), op_us: took.as_secs_f64() * 1e6 / float(operations) })
    };
    servers.into_iter().zip(times).map(stop).collect()
}

impl Compared {
    /// Compares the rounds of a server alone with those side by side.
    fn of(name: &'static str, alone: &[Sample], together: &[Sample]) -> Self {
        let fetches = |runs: &[Sample]| runs.iter().map(|run| run.fetches).collect::<Vec<_>>();
        let times = |runs: &[Sample]| runs.iter().map(|run| run.op_us).collect::<Vec<_>>();
        let spreads = |runs: &[Sample]| [fetches(runs), times(runs)].map(Spread::of);
        Self {
            name,
            alone: spreads(alone),
            together: spreads(together),
            fetch_ratio: Spread::ratio(&fetches(together), &fetches(alone)),
            time_ratio: Spread::ratio(&times(together), &times(alone)),
        }
    }

    /// The verdict on the ratio of fetches.
    fn verdict(&self) -> Verdict {
        Verdict {
            what: format!("{}: fetches side by side off those alone, as a share", self.name),
            value: (self.fetch_ratio.median - 1.0).abs(),
            bound: Bound::AtMost(DEVIATION_MAX),
            unit: "",
        }
    }

    /// The results of this server for the record.
    fn json(&self) -> Value {
        let placed = |spreads: &[Spread; 2]| {
            let [fetches, op_us] = spreads.map(|spread| spread.json());
            json!({"fetch_count": fetches, "op_us": op_us})
        };
        json!({
            "server": self.name,
            "alone": placed(&self.alone),
            "together": placed(&self.together),
            "fetch_ratio": self.fetch_ratio.json(),
            "time_ratio": self.time_ratio.json(),
        })
    }
}

/// The table as text.
fn text(compared: &[Compared]) -> String {
    let mut table = Table::new(&["", "alone", "side by side", "ratio"]);
    for server in compared {
        let (alone, together) = (&server.alone, &server.together);
        table.row(vec![
            format!("{}, fetches", server.name),
            alone[0].show(0),
            together[0].show(0),
            server.fetch_ratio.show(4),
        ]);
        table.row(vec![
            format!("{}, us per GET", server.name),
            alone[1].show(2),
            together[1].show(2),
            server.time_ratio.show(2),
        ]);
    }
    format!(
        "{}flags of each: {}; processors are shared, budgets are not\n",
        table.text(),
        FLAGS.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetches_may_be_off_by_two_percent_either_way() {
        let run = |fetches| vec![Sample { fetches, op_us: 30.0 }];
        let passes =
            |together| Compared::of("Redis", &run(1000.0), &run(together)).verdict().passes();
        assert!(passes(1019.0) && passes(981.0));
        assert!(!passes(1021.0) && !passes(979.0));
    }
}
