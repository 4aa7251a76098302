//! The benchmark `fabric --curve`: the cost of a simulated event by the length of the run.

use measure::BitsPerSec;
use netsim::traffic::Poisson;
use netsim::{Flow, SimError, simulate};
use serde_json::json;
use workload::Sizes;

use crate::context::Context;
use crate::fabric::{GBPS, LOAD_PERCENT, SEED, pfabric};
use crate::failure::Failure;
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::{Spread, float};

/// Approximate numbers of events of a run.
const EVENTS: [u64; 4] = [100_000, 1_000_000, 10_000_000, 100_000_000];
/// Bytes of a flow: three packets, so that a short run fills the network as a long one does.
const PAGE: u64 = 4096;
/// Approximate number of events of a flow.
const PAGE_EVENTS: u64 = 34;
/// A short run is repeated until its repetitions have this many events.
const EVENTS_MIN: u64 = 5_000_000;
/// Largest deviation of an event's cost from the mean over all lengths, as a share.
const OFF_MAX: f64 = 0.2;
/// Most processor time of the longest run, in seconds.
const SECONDS_MAX: f64 = 100.0;

/// Repeated runs of one length.
#[derive(Debug, Clone, Copy)]
struct Sample {
    events: u64,
    ns_per_event: f64,
    seconds: f64,
}

/// Runs the benchmark.
///
/// # Errors
/// When a flow does not finish.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let lengths = context.size(&EVENTS[..], &EVENTS[..3]);
    let (fabric, protocol) = pfabric().map_err(Failure::Simulation)?;
    let sizes = Sizes::fixed(PAGE);
    let flows = |events: &u64| {
        let poisson = Poisson {
            hosts: fabric.topology.host_count(),
            rate: BitsPerSec::from_gbps(GBPS),
            load_percent: LOAD_PERCENT,
            sizes: &sizes,
            count: u32::try_from(events / PAGE_EVENTS).unwrap_or(u32::MAX),
            seed: SEED,
        };
        poisson.flows(fabric.frame)
    };
    let cases: Result<Vec<Vec<Flow>>, SimError> = lengths.iter().map(flows).collect();
    let cases = cases.map_err(Failure::Simulation)?;
    let runs = context.alternate("fabric", &cases, |flows| {
        let (mut events, mut count) = (0, 0);
        let before = sys::clock::thread_ns();
        while events < EVENTS_MIN {
            events += simulate(&fabric, protocol, flows).map_err(Failure::Simulation)?.event_count;
            count += 1;
        }
        let ns = float(sys::clock::thread_ns() - before);
        Ok(Sample {
            events: events / count,
            ns_per_event: ns / float(events),
            seconds: ns / float(count) / 1e9,
        })
    })?;
    Ok(report(&cases, &runs))
}

/// The report from the runs of each length.
fn report(cases: &[Vec<Flow>], runs: &[Vec<Sample>]) -> Report {
    let mut table = Table::new(&["flows", "events", "ns/event"]);
    let mut results = Vec::new();
    let mut medians = Vec::new();
    for (flows, samples) in cases.iter().zip(runs) {
        let cost = Spread::of(samples.iter().map(|sample| sample.ns_per_event));
        let events = samples.first().map_or(0, |sample| sample.events);
        results.push(json!({
            "flow_count": flows.len(),
            "event_count": events,
            "ns_per_event": cost.json(),
        }));
        table.row(vec![flows.len().to_string(), events.to_string(), cost.show(1)]);
        medians.push(cost.median);
    }
    let mean = medians.iter().sum::<f64>() / float(medians.len() as u64);
    let off = medians.iter().map(|median| (median / mean - 1.0).abs()).fold(0.0, f64::max);
    let longest = runs.last().into_iter().flatten().map(|sample| sample.seconds);
    let verdict =
        |what: &str, value, bound, unit| Verdict { what: what.to_owned(), value, bound, unit };
    Report {
        name: "fabric --curve",
        settings: json!({
            "flow_bytes": PAGE,
            "load_percent": LOAD_PERCENT,
            "gbps": GBPS,
            "transport": "pfabric",
            "seed": SEED,
        }),
        results: json!(results),
        text: table.text(),
        verdicts: vec![
            verdict(
                "cost of an event, furthest from the mean of all lengths",
                off,
                Bound::AtMost(OFF_MAX),
                "",
            ),
            verdict(
                "processor time of the longest run",
                Spread::of(longest).median,
                Bound::AtMost(SECONDS_MAX),
                "s",
            ),
        ],
    }
}
