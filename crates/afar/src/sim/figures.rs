//! What a run comes to, in numbers that are written the same wherever they are read again.

use netsim::{End, Fabric, Flow, Ideal, Node, Outcome, Slowdown, Summary};
use records::{FlowRow, FlowStart};
use serde::{Deserialize, Serialize};

/// Everything that is told of a run and does not depend on who ran it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) slowdown: Spread,
    /// By size; sizes that no flow has are left out.
    pub(crate) bins: Vec<BinFigures>,
    pub(crate) goodput_bits_per_sec: f64,
    /// Share of the time that hosts' links were sending, on average.
    pub(crate) utilisation: f64,
    /// The same of the busiest link.
    pub(crate) busiest: Busiest,
    pub(crate) dropped_at_hosts: u64,
    pub(crate) dropped_at_switches: u64,
    pub(crate) deepest: Deepest,
    /// Data packets sent for each that was needed.
    pub(crate) inflation: f64,
    pub(crate) delivered_packets: u64,
    pub(crate) event_count: u64,
    pub(crate) end_ps: u64,
}

/// How long flows took by how long they take alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) count: usize,
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
}

/// Flows of more bytes than one number up to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct BinFigures {
    pub(crate) over_bytes: u64,
    pub(crate) to_bytes: u64,
    pub(crate) slowdown: Spread,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Busiest {
    pub(crate) link: String,
    pub(crate) utilisation: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Deepest {
    pub(crate) link: String,
    pub(crate) bytes: u64,
}

impl Figures {
    /// Of a run in which every flow has finished, or those that have.
    pub(crate) fn of(fabric: &Fabric, flows: &[Flow], outcome: &Outcome, end: End) -> Self {
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
        let deepest = (0..links.len()).max_by_key(|index| {
            (outcome.ports[*index].queued_bytes_max, std::cmp::Reverse(*index))
        });
        let name =
            |index: Option<usize>| index.map_or_else(String::new, |index| link_name(fabric, index));
        let is_host = |index: usize| matches!(links[index].from, Node::Host(_));
        let dropped = |at_hosts: bool| {
            let ports = outcome.ports.iter().enumerate();
            let ours = ports.filter(|(index, _)| is_host(*index) == at_hosts);
            ours.map(|(_, port)| port.dropped_packets).sum()
        };
        Self {
            slowdown: Spread::of(&summary.slowdown),
            bins: summary.bins.iter().map(BinFigures::of).collect(),
            goodput_bits_per_sec: summary.goodput.round(),
            utilisation: rounded((0..hosts).map(share).sum::<f64>() / hosts as f64),
            busiest: Busiest {
                link: name(busiest),
                utilisation: rounded(busiest.map_or(0.0, share)),
            },
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
}

/// What came of each flow that has finished.
pub(crate) fn rows(fabric: &Fabric, flows: &[Flow], outcome: &Outcome, end: End) -> Vec<FlowRow> {
    let ideal = Ideal::new(fabric);
    let row = |(flow, record): (&Flow, &netsim::FlowRecord)| {
        let (ended, alone) = match end {
            End::Received => (record.received?, ideal.received(flow)),
            End::Acknowledged => (record.finished?, ideal.acknowledged(flow)),
        };
        let took = ended.saturating_since(flow.start);
        Some(FlowRow {
            flow: FlowStart {
                start_ps: flow.start.as_ps(),
                src: flow.src,
                dst: flow.dst,
                bytes: flow.bytes,
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

impl Spread {
    fn of(slowdown: &Slowdown) -> Self {
        let Slowdown { count, mean, p50, p99, p999 } = *slowdown;
        let [mean, p50, p99, p999] = [mean, p50, p99, p999].map(rounded);
        Self { count, mean, p50, p99, p999 }
    }
}

impl BinFigures {
    fn of(bin: &netsim::Bin) -> Self {
        let slowdown = Spread::of(&bin.slowdown);
        Self { over_bytes: bin.over_bytes, to_bytes: bin.to_bytes, slowdown }
    }

    /// As a row of a table is called.
    pub(crate) fn name(&self) -> String {
        let size = |bytes| measure::Bytes::new(bytes).to_string();
        match self.to_bytes {
            u64::MAX => format!("over {}", size(self.over_bytes)),
            bytes => format!("up to {}", size(bytes)),
        }
    }
}

/// To six digits after the point: what is printed is then read back as the same number.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
