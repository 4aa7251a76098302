//! The figures of a run, in numbers that are the same wherever they are written and read.

use measure::Instant;
use netsim::{End, Fabric, Flow, FlowRecord, Ideal, Node, Outcome, Slowdown, Span, Summary};
use records::{FlowRow, FlowStart};
use results::{BinFigures, Busiest, Deepest, Figures, Measured, Spread};

use super::link_name::link_name;
pub(crate) use super::rounded::rounded;
use super::setup::Setup;
use super::steady;

/// The figures of a run, from the flows that have finished; slowdowns are of flows that started in
/// the measured time.
pub fn figures(setup: &Setup, outcome: &Outcome) -> Figures {
    let Setup { fabric, flows, end, observe, asked, .. } = setup;
    let whole = of_those(setup, outcome, |flow, record| end.took(flow, record).is_some());
    let summary = match observe.span {
        Some([from, to]) => of_those(setup, outcome, |flow, _| (from..to).contains(&flow.start)),
        None => whole.clone(),
    };
    let bins: Vec<BinFigures> = summary.bins.iter().map(bin).collect();
    let slowdown = spread(&summary.slowdown);
    let is_by_chance = *asked > 0.0;
    let links = fabric.topology.links();
    let start = flows.iter().map(|flow| flow.start).min().unwrap_or_default();
    let seconds = outcome.end.saturating_since(start).as_ps() as f64 / 1e12;
    let share = |index: usize| {
        let bits = outcome.ports[index].sent_bytes as f64 * 8.0;
        bits / links[index].rate.get() as f64 / seconds.max(f64::MIN_POSITIVE)
    };
    let hosts = fabric.topology.host_count() as usize;
    let busiest = (0..links.len()).max_by(|one, other| share(*one).total_cmp(&share(*other)));
    let deepest = (0..links.len())
        .max_by_key(|index| (outcome.ports[*index].queued_bytes_max, std::cmp::Reverse(*index)));
    let name =
        |index: Option<usize>| index.map_or_else(String::new, |index| link_name(fabric, index));
    let is_host = |index: usize| matches!(links[index].from, Node::Host(_));
    let dropped = |at_hosts: bool| {
        let ports = outcome.ports.iter().enumerate();
        let ours = ports.filter(|(index, _)| is_host(*index) == at_hosts);
        ours.map(|(_, port)| port.dropped_packets).sum()
    };
    Figures {
        steady: is_by_chance.then(|| steady::of_run(slowdown, &bins, growth(setup, outcome))),
        slowdown,
        bins,
        goodput_bits_per_sec: whole.goodput.round(),
        utilisation: rounded((0..hosts).map(share).sum::<f64>() / hosts as f64),
        busiest: Busiest { link: name(busiest), utilisation: rounded(busiest.map_or(0.0, share)) },
        dropped_at_hosts: dropped(true),
        dropped_at_switches: dropped(false),
        deepest: Deepest {
            link: name(deepest),
            bytes: deepest.map_or(0, |index| outcome.ports[index].queued_bytes_max),
        },
        inflation: rounded(whole.inflation),
        delivered_packets: outcome.delivered_packets,
        event_count: outcome.event_count,
        end_ps: outcome.end.saturating_since(start).as_ps(),
        measured: outcome.span.as_ref().map(|span| measured(fabric, span, start, *asked)),
    }
}

/// The summary of the flows for which `are_those` holds.
fn of_those(
    setup: &Setup,
    outcome: &Outcome,
    are_those: impl Fn(&Flow, &FlowRecord) -> bool,
) -> Summary {
    let both = setup.flows.iter().zip(&outcome.records);
    let those = both.filter(|(flow, record)| are_those(flow, record));
    let (flows, records): (Vec<Flow>, Vec<FlowRecord>) =
        those.map(|(flow, record)| (*flow, *record)).unzip();
    let Outcome { end, event_count, delivered_packets, .. } = *outcome;
    let ports = outcome.ports.clone();
    let some = Outcome { records, ports, end, span: None, event_count, delivered_packets };
    Summary::new(&setup.fabric, &flows, &some, setup.end)
}

/// By how much the bytes of flows under way grew in the measured time, as a share of the bytes of
/// flows that started in it.
fn growth(setup: &Setup, outcome: &Outcome) -> f64 {
    let Setup { flows, end, observe, .. } = setup;
    let (Some(first), Some(last)) = (flows.first(), flows.last()) else { return 0.0 };
    let [from, to] = observe.span.unwrap_or([first.start, last.start]);
    let under_way = |at: Instant| {
        let both = flows.iter().zip(&outcome.records).filter(|(flow, _)| flow.start < at);
        let those = both.filter(|(flow, record)| {
            end.took(flow, record).is_none_or(|took| flow.start + took > at)
        });
        those.map(|(flow, _)| flow.bytes).sum::<u64>() as f64
    };
    let started = flows.iter().filter(|flow| (from..to).contains(&flow.start));
    let bytes = started.map(|flow| flow.bytes).sum::<u64>() as f64;
    rounded((under_way(to) - under_way(from)) / bytes.max(1.0))
}

/// The measured time, with the load that was set and the utilisation of hosts' links.
fn measured(fabric: &Fabric, span: &Span, start: Instant, asked: f64) -> Measured {
    let seconds = span.to.saturating_since(span.from).as_ps() as f64 / 1e12;
    let hosts = fabric.topology.host_count() as usize;
    let links = fabric.topology.links()[..hosts].iter().zip(&span.sent_bytes);
    let shares = links.map(|(link, &bytes)| bytes as f64 * 8.0 / link.rate.get() as f64 / seconds);
    Measured {
        from_ps: span.from.saturating_since(start).as_ps(),
        to_ps: span.to.saturating_since(start).as_ps(),
        asked,
        utilisation: rounded(shares.sum::<f64>() / hosts as f64),
    }
}

/// A row for each flow that has finished: its completion time, slowdown and packets.
pub fn rows(fabric: &Fabric, flows: &[Flow], outcome: &Outcome, end: End) -> Vec<FlowRow> {
    let ideal = Ideal::new(fabric);
    let row = |(flow, record): (&Flow, &FlowRecord)| {
        let (took, alone) = (end.took(flow, record)?, end.alone(flow, &ideal));
        Some(FlowRow {
            flow: FlowStart {
                start_ps: flow.start.as_ps(),
                src: flow.src,
                dst: flow.dst,
                bytes: flow.bytes,
                exchange: Some(super::exchange::recorded(flow.exchange)),
            },
            completion_ps: took.as_ps(),
            ideal_ps: alone.as_ps(),
            slowdown: rounded(took.as_ps() as f64 / alone.as_ps() as f64),
            sent_packets: record.sent,
            dropped_packets: record.data_drops + record.control_drops,
        })
    };
    flows.iter().zip(&outcome.records).filter_map(row).collect()
}

/// Mean and quantiles of slowdown, rounded as printed.
fn spread(slowdown: &Slowdown) -> Spread {
    let Slowdown { count, mean, p50, p99, p999 } = *slowdown;
    let [mean, p50, p99, p999] = [mean, p50, p99, p999].map(rounded);
    Spread { count, mean, p50, p99, p999 }
}

/// The slowdown of flows of one range of sizes, rounded as printed.
fn bin(bin: &netsim::Bin) -> BinFigures {
    let slowdown = spread(&bin.slowdown);
    BinFigures { over_bytes: bin.over_bytes, to_bytes: bin.to_bytes, slowdown }
}
