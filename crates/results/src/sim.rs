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
    /// Version of the afar that wrote it.
    pub version: String,
    /// Those that matter to the run, by name.
    pub settings: BTreeMap<String, String>,
    /// What it comes to.
    pub figures: Figures,
    /// How fast this machine simulated it.
    pub speed: Speed,
    /// What ports did over time; nothing unless somebody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Ports>,
    /// By size of flows; sizes that no flow has are left out.
    pub shares: Vec<Shares>,
}

/// How fast this machine simulated a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Speed {
    /// Processor time, in nanoseconds.
    pub cpu_ns: u64,
    /// Packets that arrived by seconds of processor time.
    pub packets_per_cpu_sec: f64,
}

/// The ports of switches and of hosts whose queues held most, in columns of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ports {
    /// Where the first column begins, in picoseconds since the start of the run.
    pub from_ps: u64,
    /// How long a column is, in picoseconds.
    pub every_ps: u64,
    /// How many there are.
    pub columns: usize,
    /// Ports of the network.
    pub port_count: usize,
    /// Those of them that ever had something wait.
    pub queued_count: usize,
    /// Those of switches first, then those of hosts; of each the fullest first.
    pub ports: Vec<Port>,
    /// When the run ended, in picoseconds since its start; nothing if the last column reaches until
    /// then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ps: Option<u64>,
    /// Of all ports, by column.
    pub dropped_packets: Vec<u64>,
    /// Packets of all ports that lost their payload, by column.
    pub trimmed_packets: Vec<u64>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Its number in the network, counted from 0.
    pub link: usize,
    /// From where to where.
    pub name: String,
    /// Whether it is a host's own; else it is a switch's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_host: bool,
    /// The most bytes that waited, by column.
    pub deepest_bytes: Vec<u32>,
    /// Bytes that left, by column.
    pub sent_bytes: Vec<u64>,
    /// Packets dropped, by column.
    pub dropped_packets: Vec<u32>,
}

/// Quantiles of the flows of one bin of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// Flows are larger than this.
    pub over_bytes: u64,
    /// Flows are no larger than this; `u64::MAX` is no limit.
    pub to_bytes: u64,
    /// Flows of these sizes.
    pub count: usize,
    /// In ascending order of shares.
    pub points: Vec<SharePoint>,
}

/// So large a share of flows takes at most this; each column has an order of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SharePoint {
    /// The share, 0 to 1.
    pub share: f64,
    /// How long such a flow takes, in picoseconds.
    pub completion_ps: u64,
    /// How many times longer than alone in the network.
    pub slowdown: f64,
}

/// What `afar sim --json` writes of a sweep; nothing in it depends on the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Simulations {
    /// Version of the afar that wrote it.
    pub version: String,
    /// In the order of the experiment.
    pub runs: Vec<SimRun>,
}

/// One run of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SimRun {
    /// What is varied, with its value.
    pub settings: BTreeMap<String, String>,
    /// What it comes to; nothing if it failed.
    pub figures: Option<Figures>,
    /// Why it failed.
    pub failure: Option<String>,
}

/// What `afar sim --sensitivity --json` writes; nothing in it depends on the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sensitivity {
    /// Version of the afar that wrote it.
    pub version: String,
    /// Those that matter to the run that is varied, by name.
    pub settings: BTreeMap<String, String>,
    /// Its slowdown.
    pub slowdown: Spread,
    /// Runs with one parameter changed, that with the largest change of the mean first; those
    /// without a result last.
    pub runs: Vec<SensitivityRun>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SensitivityRun {
    /// The parameter, as among the settings.
    pub parameter: String,
    /// What it is in the run that is varied.
    pub value: String,
    /// What it is instead; nothing where there is nothing to try.
    pub changed_to: Option<String>,
    /// The slowdown then; nothing without a result.
    pub slowdown: Option<Spread>,
    /// Why there is none.
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
