//! What a simulated run comes to, in numbers that do not depend on who ran it.

use measure::Bytes;
use serde::{Deserialize, Serialize};

use crate::Estimate;

/// Figures of a simulated run; nothing in it depends on the machine that simulated it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Slowdown of all measured flows.
    pub slowdown: Spread,
    /// Slowdown by size of flows; sizes without flows are left out.
    pub bins: Vec<BinFigures>,
    /// Payload delivered per second, in bits, each byte counted once.
    pub goodput_bits_per_sec: f64,
    /// Share of the time that a host's link was sending, 0 to 1; the mean of all hosts.
    pub utilisation: f64,
    /// The link that was sending for the largest share of the time.
    pub busiest: Busiest,
    /// Packets dropped where they were to leave a host, summed over independent runs.
    pub dropped_at_hosts: u64,
    /// Packets dropped at switches, summed over independent runs.
    pub dropped_at_switches: u64,
    /// The link before which the most bytes waited.
    pub deepest: Deepest,
    /// Data packets sent over those needed, a ratio.
    pub inflation: f64,
    /// Packets that arrived, of data and of control, summed over independent runs.
    pub delivered_packets: u64,
    /// Events that the simulator handled, summed over independent runs.
    pub event_count: u64,
    /// Time from the start of the first flow to the end of the last, in picoseconds; the longest of
    /// independent runs.
    pub end_ps: u64,
    /// Span of time in which measured flows start; missing if all flows are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Medians over independent runs, with intervals; missing unless flows arrive at random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
}

/// What independent runs of one simulation say, each of flows that start while its network is as
/// full as it stays. Each figure is the median of the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Number of independent runs.
    pub run_count: u64,
    /// Slowdown of all measured flows, over independent runs.
    pub slowdown: Slowdowns,
    /// Slowdown by size of flows, over independent runs, in the order of the `bins` of the figures.
    pub bins: Vec<Slowdowns>,
    /// Growth of unfinished bytes in the measured span, over the bytes of flows that start in it;
    /// about 0 if the network carries the load.
    pub growth: Estimate,
}

/// A [`Spread`] with how surely it is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slowdowns {
    /// Mean slowdown of the flows of a run.
    pub mean: Estimate,
    /// Median slowdown of the flows of a run.
    pub p50: Estimate,
    /// 99th percentile of the slowdown of the flows of a run.
    pub p99: Estimate,
    /// 99.9th percentile of the slowdown of the flows of a run.
    pub p999: Estimate,
}

/// The span of time in which measured flows start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Start of the measured span, in picoseconds since the start of the first flow.
    pub from_ps: u64,
    /// End of the measured span, in picoseconds since the start of the first flow.
    pub to_ps: u64,
    /// Load: the share of hosts' links that flows ask for; 0 if no load was set.
    pub asked: f64,
    /// Share of the measured span that a host's link was sending, 0 to 1; the mean of all hosts.
    pub utilisation: f64,
}

/// Slowdowns of flows: completion time over that of the same flow alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Number of flows.
    pub count: usize,
    /// Mean slowdown of the flows.
    pub mean: f64,
    /// Median slowdown of the flows.
    pub p50: f64,
    /// 99th percentile of the slowdown of the flows.
    pub p99: f64,
    /// 99.9th percentile of the slowdown of the flows.
    pub p999: f64,
}

/// Flows in a range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BinFigures {
    /// Lower end of the range of flow sizes, itself excluded.
    pub over_bytes: u64,
    /// Upper end of the range of flow sizes, itself included; 2^64 - 1 is no limit.
    pub to_bytes: u64,
    /// Slowdown of the flows in the range of sizes.
    pub slowdown: Spread,
}

/// The link that was sending for most of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Busiest {
    /// The busiest link, from where to where.
    pub link: String,
    /// Share of the time that the busiest link was sending, 0 to 1.
    pub utilisation: f64,
}

/// The link before which most bytes have waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Deepest {
    /// The link before which the most bytes waited, from where to where.
    pub link: String,
    /// The most bytes that waited before a link at once.
    pub bytes: u64,
}

impl BinFigures {
    /// The name of the row in a table.
    #[must_use]
    pub fn name(&self) -> String {
        size_name(self.over_bytes, self.to_bytes)
    }
}

/// The name for flows of more than `over_bytes` and at most `to_bytes`.
pub(crate) fn size_name(over_bytes: u64, to_bytes: u64) -> String {
    match to_bytes {
        u64::MAX => format!("over {}", Bytes::new(over_bytes)),
        bytes => format!("up to {}", Bytes::new(bytes)),
    }
}
