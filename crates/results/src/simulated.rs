//! What a simulated run comes to, in numbers that do not depend on who ran it.

use measure::Bytes;
use serde::{Deserialize, Serialize};

use crate::Estimate;

/// What a simulated run comes to; nothing in it depends on the machine that simulated it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Of all flows.
    pub slowdown: Spread,
    /// By size; sizes that no flow has are left out.
    pub bins: Vec<BinFigures>,
    /// Bits of flows that were delivered, each once, in a second.
    pub goodput_bits_per_sec: f64,
    /// Share of the time that hosts' links were sending, on average.
    pub utilisation: f64,
    /// The same of the busiest link.
    pub busiest: Busiest,
    /// Packets dropped where they were to leave a host.
    pub dropped_at_hosts: u64,
    /// Packets dropped at switches.
    pub dropped_at_switches: u64,
    /// The longest queue.
    pub deepest: Deepest,
    /// Data packets sent for each that was needed.
    pub inflation: f64,
    /// Packets that arrived, of data and of control.
    pub delivered_packets: u64,
    /// Events that the simulator handled.
    pub event_count: u64,
    /// From the start of the first flow to the end of the last, in picoseconds.
    pub end_ps: u64,
    /// The time in which flows started that slowdowns are of; nothing where they are of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// How surely the slowdowns are known, of flows that arrive by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
}

/// What independent runs of one simulation say, each of flows that start while its network is as
/// full as it stays. Of each figure it is the middle of the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Independent runs.
    pub run_count: u64,
    /// Of all flows that were measured.
    pub slowdown: Slowdowns,
    /// By size, as the bins of [`Figures`].
    pub bins: Vec<Slowdowns>,
    /// By how much the bytes of flows that were under way grew while it was measured, by the bytes
    /// of those that started meanwhile: about 0 where the load is carried.
    pub growth: Estimate,
}

/// A [`Spread`] with how surely it is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slowdowns {
    /// The mean of a run.
    pub mean: Estimate,
    /// The median of a run.
    pub p50: Estimate,
    /// The 99th percentile of a run.
    pub p99: Estimate,
    /// The 99.9th percentile of a run.
    pub p999: Estimate,
}

/// The time in which the flows started that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Its beginning, in picoseconds since the start of the first flow.
    pub from_ps: u64,
    /// Its end.
    pub to_ps: u64,
    /// Share of hosts' links that was asked for.
    pub asked: f64,
    /// Share of that time that hosts' links were sending, on average.
    pub utilisation: f64,
}

/// How long flows took by how long they take alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Flows.
    pub count: usize,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
}

/// Flows of more bytes than one number up to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BinFigures {
    /// Flows are larger than this.
    pub over_bytes: u64,
    /// Flows are no larger than this; `u64::MAX` is no limit.
    pub to_bytes: u64,
    /// Of these flows.
    pub slowdown: Spread,
}

/// The link that was sending for most of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Busiest {
    /// From where to where.
    pub link: String,
    /// Share of the time that it was sending.
    pub utilisation: f64,
}

/// The link before which most bytes have waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Deepest {
    /// From where to where.
    pub link: String,
    /// Bytes that waited at once.
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
