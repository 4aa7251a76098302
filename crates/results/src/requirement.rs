//! What a program needs, axis by axis.

use std::collections::BTreeMap;

use measure::{Bytes, Host, ShareOf};
use serde::{Deserialize, Serialize};

use crate::{Estimate, Record};

/// What `afar sweep --find --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Requirements {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// The command that ran the search.
    pub command: Vec<String>,
    /// Start of the sweep, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: u64,
    /// The machine that ran the search.
    pub host: Host,
    /// The program and its arguments.
    pub workload: Vec<String>,
    /// Seed of the order of runs.
    pub seed: u64,
    /// The largest slowdown that is good enough, a ratio.
    pub slowdown_max: f64,
    /// Value at which each axis is held while another is searched, by the name of the axis.
    pub held: BTreeMap<String, String>,
    /// Bytes that local memory is a share of; missing if they change all the time, or if no run had
    /// a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bytes: Option<u64>,
    /// Edges, one for each axis that was searched.
    pub requirements: Vec<Requirement>,
}

impl Requirements {
    /// The whole of which local memory is a share, as a text for people; `None` if the record does
    /// not name it.
    #[must_use]
    pub fn share_told(&self) -> Option<String> {
        let of: ShareOf = self.held.get("of")?.parse().ok()?;
        Some(of.told(self.of_bytes.map(Bytes::new)))
    }
}

/// The name of the record in the directory of a sweep.
pub const REQUIREMENTS_FILE: &str = "requirements.json";

/// The edge between good and bad steps of one axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Name of the axis that was searched.
    pub axis: String,
    /// Last step of the axis that is good enough; missing if no step is.
    pub last_good: Option<Side>,
    /// First step of the axis that is not good enough; missing if every step is.
    pub first_bad: Option<Side>,
    /// How sure the edge is: `undecided` if an interval holds the bound, `unsteady` if the edge
    /// moved each time its sides ran again.
    pub standing: Standing,
    /// Why the axis has no edge, with the step whose run is to blame; missing if the axis has one.
    pub invalid: Option<String>,
}

/// How sure an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Both sides ran again, and their whole intervals lie on either side of the bound.
    Confirmed,
    /// The interval of a side holds the bound even after more runs; the median decided.
    Undecided,
    /// The edge moved each time its sides ran again.
    Unsteady,
    /// A run is invalid.
    Invalid,
}

/// A step beside an edge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Value of the axis at this step.
    pub value: String,
    /// Slowdown of the runs of this step that confirm the edge; missing if the step could not be
    /// run.
    pub slowdown: Option<Estimate>,
}

impl Record for Requirements {
    const SCHEMA: &'static str = "afar.requirement/3";
}
