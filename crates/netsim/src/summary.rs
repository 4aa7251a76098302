//! Summary of a run's flows: slowdowns by size, goodput, drops.

use measure::Duration;

use crate::fabric::Fabric;
use crate::flow::{Exchange, Flow, FlowRecord};
use crate::ideal::Ideal;
use crate::sim::Outcome;

/// Completion times of flows over those of the same flows alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowdown {
    /// How many flows.
    pub count: usize,
    /// The mean.
    pub mean: f64,
    /// Half are below.
    pub p50: f64,
    /// 99 of a hundred are below.
    pub p99: f64,
    /// 999 of a thousand are below.
    pub p999: f64,
}

/// Slowdowns of the flows of a range of sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Flows of more bytes than this,
    pub over_bytes: u64,
    /// up to these.
    pub to_bytes: u64,
    /// Their slowdown.
    pub slowdown: Slowdown,
}

/// Summary of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Slowdown of all flows.
    pub slowdown: Slowdown,
    /// Slowdown by size; sizes without flows are left out.
    pub bins: Vec<Bin>,
    /// Payload in bits per second, from the first start to the last end.
    pub goodput: f64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Data packets sent per packet that was needed.
    pub inflation: f64,
}

/// Upper ends of the bins: a packet or two, pages, and powers of ten.
const BIN_ENDS: [u64; 7] = [4_096, 10_240, 102_400, 1 << 20, 10 << 20, 100 << 20, u64::MAX];

/// When a one-way flow counts as ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The receiver has every byte.
    Received,
    /// The sender has the last acknowledgement.
    Acknowledged,
}

impl End {
    /// The end of `flow`: that of its exchange, or `self` if it is one-way.
    #[must_use]
    pub const fn of(self, flow: &Flow) -> Self {
        match flow.exchange {
            Exchange::OneWay => self,
            Exchange::Read => Self::Received,
            Exchange::Write => Self::Acknowledged,
        }
    }

    /// The completion time of `flow`; `None` if it has not ended.
    #[must_use]
    pub fn took(self, flow: &Flow, record: &FlowRecord) -> Option<Duration> {
        let ended = match self.of(flow) {
            Self::Received => record.received,
            Self::Acknowledged => record.finished,
        };
        ended.map(|ended| ended.saturating_since(flow.start))
    }

    /// The completion time of `flow` alone in the network.
    ///
    /// # Panics
    /// If the flow names no hosts of the fabric.
    #[must_use]
    pub fn alone(self, flow: &Flow, ideal: &Ideal<'_>) -> Duration {
        match self.of(flow) {
            Self::Received => ideal.received(flow),
            Self::Acknowledged => ideal.acknowledged(flow),
        }
    }
}

impl Summary {
    /// Summarises an outcome; flows that did not end have no slowdown.
    #[must_use]
    pub fn new(fabric: &Fabric, flows: &[Flow], outcome: &Outcome, end: End) -> Self {
        let ideal = Ideal::new(fabric);
        let slowdown = |flow: &Flow, took: Duration| {
            took.as_ps() as f64 / end.alone(flow, &ideal).as_ps() as f64
        };
        let mut all = Vec::new();
        for (flow, record) in flows.iter().zip(&outcome.records) {
            if let Some(took) = end.took(flow, record) {
                all.push((flow.bytes, slowdown(flow, took)));
            }
        }
        let mut over_bytes = 0;
        let mut bins = Vec::new();
        for to_bytes in BIN_ENDS {
            let within =
                all.iter().filter(|(bytes, _)| (over_bytes + 1..=to_bytes).contains(bytes));
            let slowdowns: Vec<f64> = within.map(|(_, slowdown)| *slowdown).collect();
            if !slowdowns.is_empty() {
                bins.push(Bin { over_bytes, to_bytes, slowdown: Slowdown::of(slowdowns) });
            }
            over_bytes = to_bytes;
        }
        let start = flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        let seconds = outcome.end.saturating_since(start).as_ps() as f64 / 1e12;
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        let needed: u64 =
            flows.iter().map(|flow| u64::from(fabric.frame.packets(flow.bytes))).sum();
        let sent: u64 = outcome.records.iter().map(|record| u64::from(record.sent)).sum();
        Self {
            slowdown: Slowdown::of(all.into_iter().map(|(_, slowdown)| slowdown).collect()),
            bins,
            goodput: bytes as f64 * 8.0 / seconds.max(f64::MIN_POSITIVE),
            dropped_packets: outcome.ports.iter().map(|port| port.dropped_packets).sum(),
            inflation: sent as f64 / needed as f64,
        }
    }
}

impl Slowdown {
    /// Sorts the slowdowns of flows and takes their mean and quantiles; NaN of none.
    fn of(mut slowdowns: Vec<f64>) -> Self {
        slowdowns.sort_by(f64::total_cmp);
        let count = slowdowns.len();
        let quantile = |thousandths: usize| {
            let rank = (count * thousandths).div_ceil(1000).max(1) - 1;
            slowdowns.get(rank).copied().unwrap_or(f64::NAN)
        };
        let mean = slowdowns.iter().sum::<f64>() / count as f64;
        Self { count, mean, p50: quantile(500), p99: quantile(990), p999: quantile(999) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowdown_quantiles_are_nearest_ranks() {
        let slowdown = Slowdown::of((1..=1000).rev().map(f64::from).collect());
        let expected = Slowdown { count: 1000, mean: 500.5, p50: 500.0, p99: 990.0, p999: 999.0 };
        assert_eq!(slowdown, expected);
        let one = Slowdown::of(vec![3.0]);
        assert_eq!((one.p50, one.p999, one.mean), (3.0, 3.0, 3.0));
    }
}
