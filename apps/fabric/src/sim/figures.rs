//! What a run comes to, in numbers that are written the same wherever they are read again.

use netsim::{End, Fabric, Flow, Ideal, Node, Outcome, Slowdown, Summary};
use records::{FlowRow, FlowStart};
use results::{BinFigures, Busiest, Deepest, Figures, Spread};

/// Figures of a run in which every flow has finished, or those that have.
pub fn figures(fabric: &Fabric, flows: &[Flow], outcome: &Outcome, end: End) -> Figures {
    let summary = Summary::new(fabric, flows, outcome, end);
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
        slowdown: spread(&summary.slowdown),
        bins: summary.bins.iter().map(bin).collect(),
        goodput_bits_per_sec: summary.goodput.round(),
        utilisation: rounded((0..hosts).map(share).sum::<f64>() / hosts as f64),
        busiest: Busiest { link: name(busiest), utilisation: rounded(busiest.map_or(0.0, share)) },
        dropped_at_hosts: dropped(true),
        dropped_at_switches: dropped(false),
        deepest: Deepest {
            link: name(deepest),
            bytes: deepest.map_or(0, |index| outcome.ports[index].queued_bytes_max),
        },
        inflation: rounded(summary.inflation),
        delivered_packets: outcome.delivered_packets,
        event_count: outcome.event_count,
        end_ps: outcome.end.saturating_since(start).as_ps(),
    }
}

/// What came of each flow that has finished.
pub fn rows(fabric: &Fabric, flows: &[Flow], outcome: &Outcome, end: End) -> Vec<FlowRow> {
    let ideal = Ideal::new(fabric);
    let row = |(flow, record): (&Flow, &netsim::FlowRecord)| {
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

/// How a link is called.
pub(crate) fn link_name(fabric: &Fabric, index: usize) -> String {
    let link = &fabric.topology.links()[index];
    format!("{} to {}", node(link.from), node(link.to))
}

fn node(node: Node) -> String {
    match node {
        Node::Host(host) => format!("host {host}"),
        Node::Switch(switch) => format!("switch {switch}"),
    }
}

fn spread(slowdown: &Slowdown) -> Spread {
    let Slowdown { count, mean, p50, p99, p999 } = *slowdown;
    let [mean, p50, p99, p999] = [mean, p50, p99, p999].map(rounded);
    Spread { count, mean, p50, p99, p999 }
}

fn bin(bin: &netsim::Bin) -> BinFigures {
    let slowdown = spread(&bin.slowdown);
    BinFigures { over_bytes: bin.over_bytes, to_bytes: bin.to_bytes, slowdown }
}

/// To six digits after the point: what is printed is then read back as the same number.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
