//! What `afar sim` has simulated: one run, or the runs of a sweep.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::simulated::size_name;
use crate::{Figures, Record, Spread};

/// Of the directory in which a sweep of `afar sim` keeps its runs.
pub const SWEEP_SCHEMA: &str = "afar.sim.sweep/2";

/// What `afar sim --json` writes of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Settings that matter to the run, by name.
    pub settings: BTreeMap<String, String>,
    /// Figures of the run.
    pub figures: Figures,
    /// How fast this machine simulated the run.
    pub speed: Speed,
    /// Queues of ports over time; missing unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Ports>,
    /// Quantiles of completion times and slowdowns by size of flows; sizes without flows are left
    /// out.
    pub shares: Vec<Shares>,
}

/// How fast this machine simulated a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Speed {
    /// Processor time of the simulation, in nanoseconds.
    pub cpu_ns: u64,
    /// Packets that arrived per second of processor time.
    pub packets_per_cpu_sec: f64,
}

/// The ports of switches and of hosts whose queues held most, in columns of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ports {
    /// Start of the first column of time, in picoseconds since the start of the run.
    pub from_ps: u64,
    /// Length of a column of time, in picoseconds.
    pub every_ps: u64,
    /// Number of columns of time.
    pub columns: usize,
    /// Number of ports in the network.
    pub port_count: usize,
    /// Number of ports in which a packet waited in any column of time.
    pub queued_count: usize,
    /// The ports with the fullest queues: those of switches first, then those of hosts, each with
    /// the fullest first.
    pub ports: Vec<Port>,
    /// Time from the start of the first column to the end of the run, in picoseconds, rounded up;
    /// missing if the columns reach the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ps: Option<u64>,
    /// Packets dropped at all ports of the network, by column of time.
    pub dropped_packets: Vec<u64>,
    /// Packets that lost their payload at all ports of the network, by column of time.
    pub trimmed_packets: Vec<u64>,
}

/// A port, in columns of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Number of the port in the network, counted from 0.
    pub link: usize,
    /// Link of the port, from where to where.
    pub name: String,
    /// Whether the port is a host's (if true) or a switch's (if false or missing).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_host: bool,
    /// The most bytes that waited in the port, by column of time.
    pub deepest_bytes: Vec<u32>,
    /// Bytes that the port sent, by column of time.
    pub sent_bytes: Vec<u64>,
    /// Packets dropped at the port, by column of time.
    pub dropped_packets: Vec<u32>,
}

/// Quantiles of the flows of one bin of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// Lower end of the range of flow sizes, itself excluded.
    pub over_bytes: u64,
    /// Upper end of the range of flow sizes, itself included; 2^64 - 1 is no limit.
    pub to_bytes: u64,
    /// Number of flows in the range of sizes.
    pub count: usize,
    /// Quantiles, in ascending order of shares.
    pub points: Vec<SharePoint>,
}

/// So large a share of flows takes at most this; each column has an order of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SharePoint {
    /// Share of flows, 0 to 1.
    pub share: f64,
    /// Completion time that this share of flows does not exceed, in picoseconds.
    pub completion_ps: u64,
    /// Slowdown that this share of flows does not exceed: completion time over that of the same
    /// flow alone.
    pub slowdown: f64,
}

/// What `afar sim --json` writes of a sweep; nothing in it depends on the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Simulations {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Runs, in the order of the experiment.
    pub runs: Vec<SimRun>,
}

/// One run of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SimRun {
    /// Value of each setting that the experiment varies, by name.
    pub settings: BTreeMap<String, String>,
    /// Figures of the run; missing if the run failed.
    pub figures: Option<Figures>,
    /// Why the run failed; missing if it did not.
    pub failure: Option<String>,
}

/// What `afar sim --sensitivity --json` writes; nothing in it depends on the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sensitivity {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Settings that matter to the unchanged run, by name.
    pub settings: BTreeMap<String, String>,
    /// Slowdown of flows in the unchanged run.
    pub slowdown: Spread,
    /// Runs with one parameter changed, the largest change of the mean slowdown first, those
    /// without a result last.
    pub runs: Vec<SensitivityRun>,
}

/// A run with one parameter changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SensitivityRun {
    /// Name of the changed parameter, as in `settings`.
    pub parameter: String,
    /// Value of the parameter in the unchanged run.
    pub value: String,
    /// Value of the parameter in this run; missing if there is no other value to try.
    pub changed_to: Option<String>,
    /// Slowdown of flows in this run; missing if the run has no result.
    pub slowdown: Option<Spread>,
    /// Why the run has no result; missing if it has one.
    pub failure: Option<String>,
}

impl Record for Sensitivity {
    const SCHEMA: &'static str = "afar.sim.sensitivity/1";
}

impl Record for Simulation {
    const SCHEMA: &'static str = "afar.sim/1";
}

impl Record for Simulations {
    const SCHEMA: &'static str = "afar.sim.findings/1";
}

impl Shares {
    /// The name of the row in a table.
    #[must_use]
    pub fn name(&self) -> String {
        size_name(self.over_bytes, self.to_bytes)
    }
}
