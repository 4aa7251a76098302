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
    /// Version of the afar that wrote it.
    pub version: String,
    /// The command that ran the search.
    pub command: Vec<String>,
    /// When the sweep began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The machine.
    pub host: Host,
    /// The program and its arguments.
    pub workload: Vec<String>,
    /// The order of runs follows from it.
    pub seed: u64,
    /// The largest slowdown that is good enough, a ratio.
    pub slowdown_max: f64,
    /// The value of each axis while another is searched.
    pub held: BTreeMap<String, String>,
    /// What shares of local memory are shares of, whatever `of` is among what is held; nothing if
    /// that changes all the time, or no run had a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bytes: Option<u64>,
    /// One for each axis that was searched.
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

/// The edge of one axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The axis that was searched.
    pub axis: String,
    /// The last step that is good enough; nothing if no step is.
    pub last_good: Option<Side>,
    /// The first step that is not; nothing if every step is good enough.
    pub first_bad: Option<Side>,
    /// How sure the edge is.
    pub standing: Standing,
    /// Why there is no edge, with the step whose run says so.
    pub invalid: Option<String>,
}

/// How sure an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Both sides ran again, and their whole intervals lie on either side of the bound.
    Confirmed,
    /// The interval of a side holds the bound even after more runs: its median decided.
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
    /// Value of the axis.
    pub value: String,
    /// Of the runs made to confirm the edge; nothing if it could not be run.
    pub slowdown: Option<Estimate>,
}

impl Record for Requirements {
    const SCHEMA: &'static str = "afar.requirement/3";
}
