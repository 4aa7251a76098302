//! The benchmark `fabric`: how many packets the simulator delivers per second of processor time.

use measure::{BitsPerSec, Duration};
use netsim::traffic::Poisson;
use netsim::{
    Fabric, Flow, FlowRecord, LeafSpine, Protocol, SimError, Switching, Topology, Transport,
    simulate,
};
use serde_json::json;
use workload::{Sizes, SizesName};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::{Spread, float};

pub(crate) const GBPS: u64 = 40;
pub(crate) const LOAD_PERCENT: u64 = 60;
pub(crate) const SEED: u64 = 1;

/// One simulation.
#[derive(Debug, Clone, Copy)]
struct Sample {
    packets_per_sec: f64,
    events_per_packet: f64,
    packets: u64,
}

/// Runs the benchmark.
///
/// # Errors
/// When a flow does not finish.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let flow_count = context.size(10_000, 1_000);
    let variants = variants().map_err(Failure::Simulation)?;
    let flows = Poisson {
        hosts: variants[0].1.topology.host_count(),
        rate: BitsPerSec::from_gbps(GBPS),
        load_percent: LOAD_PERCENT,
        sizes: &Sizes::named(SizesName::Imc10),
        count: flow_count,
        seed: SEED,
    };
    let flows = flows.flows(variants[0].1.frame).map_err(Failure::Simulation)?;
    let runs = context.alternate("fabric", &variants, |(_, fabric, protocol)| {
        let before = sys::clock::thread_ns();
        let outcome = simulate(fabric, *protocol, &flows).map_err(Failure::Simulation)?;
        let seconds = float(sys::clock::thread_ns() - before) / 1e9;
        let packets = float(outcome.delivered_packets);
        Ok(Sample {
            packets_per_sec: packets / seconds,
            events_per_packet: float(outcome.event_count) / packets,
            packets: outcome.delivered_packets,
        })
    })?;
    let mut table = Table::new(&["transport", "packets", "packets/CPU-s", "events/packet"]);
    let mut results = Vec::new();
    for ((name, _, _), samples) in variants.iter().zip(&runs) {
        let rate = Spread::of(samples.iter().map(|sample| sample.packets_per_sec));
        let events = Spread::of(samples.iter().map(|sample| sample.events_per_packet));
        let packets = samples.first().map_or(0, |sample| sample.packets);
        results.push(json!({
            "transport": name,
            "delivered_packets": packets,
            "packets_per_cpu_sec": rate.json(),
            "events_per_packet": events.json(),
        }));
        table.row(vec![
            (*name).to_owned(),
            packets.to_string(),
            rate.show(0),
            format!("{:.2}", events.median),
        ]);
    }
    Ok(Report {
        name: "fabric",
        settings: json!({
            "flow_count": flow_count,
            "sizes": SizesName::Imc10.to_string(),
            "load_percent": LOAD_PERCENT,
            "gbps": GBPS,
            "hosts": variants[0].1.topology.host_count(),
            "seed": SEED,
        }),
        results: json!(results),
        text: table.text(),
        verdicts: verdicts(&runs[0]),
    })
}

/// The verdicts, which are only about pFabric.
fn verdicts(pfabric: &[Sample]) -> Vec<Verdict> {
    let rate = Spread::of(pfabric.iter().map(|sample| sample.packets_per_sec));
    let events = Spread::of(pfabric.iter().map(|sample| sample.events_per_packet));
    // The memory of a finished flow: its entry, its record, and the index of its state.
    let kept = size_of::<Flow>() + size_of::<FlowRecord>() + size_of::<u32>();
    let verdict =
        |what: &str, value, bound, unit| Verdict { what: what.to_owned(), value, bound, unit };
    let least = Bound::AtLeast(1.2e6);
    vec![
        verdict("data packets delivered per second of processor time", rate.median, least, ""),
        verdict("events for a data packet and its ACK", events.median, Bound::AtMost(12.0), ""),
        verdict("kept of a finished flow", kept as f64, Bound::AtMost(200.0), "B"),
    ]
}

/// Every transport, on the network of Gao et al. §4 with the queues that it needs.
fn variants() -> Result<Vec<(&'static str, Fabric, Protocol)>, SimError> {
    let variant = |&transport: &Transport| {
        let (fabric, protocol) = variant(transport)?;
        Ok((transport.describe().name, fabric, protocol))
    };
    Transport::ALL.iter().map(variant).collect()
}

/// The network and the protocol of pFabric.
pub(crate) fn pfabric() -> Result<(Fabric, Protocol), SimError> {
    variant(Transport::PFabric)
}

/// The network and the protocol of one transport.
fn variant(transport: Transport) -> Result<(Fabric, Protocol), SimError> {
    let shape = LeafSpine::paper(BitsPerSec::from_gbps(GBPS), [Duration::from_ns(200); 4]);
    let fabric = transport.fabric(Topology::leaf_spine(&shape)?, Switching::CutThrough)?;
    let protocol = transport.protocol(&fabric);
    Ok((fabric, protocol))
}
