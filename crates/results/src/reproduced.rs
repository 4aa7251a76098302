//! A figure of a paper, measured or simulated here.

use measure::Host;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Record;

/// What `afar reproduce` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reproduction {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// The name of the figure, such as `guz-fig2`.
    pub figure: String,
    /// What the figure shows, with its citation.
    pub title: String,
    /// Command that made the reproduction.
    pub command: Vec<String>,
    /// When the record was made, in nanoseconds since 1970-01-01 UTC.
    pub unix_ns: u64,
    /// The machine that made the reproduction.
    pub host: Host,
    /// What the figure was measured on; each figure has fields of its own.
    pub bed: Value,
    /// Measured or simulated points; each figure has fields of its own.
    pub points: Value,
    /// The paper's numbers, as they were compared; each figure has fields of its own.
    pub paper: Value,
    /// Claims of the paper, and whether each holds here.
    pub verdicts: Vec<Claim>,
    /// Whether the reproduction was interrupted before its end.
    pub interrupted: bool,
}

/// A claim of a paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Whether the paper's claim holds here; missing if undecided.
    pub holds: Option<bool>,
    /// The paper's claim, as a sentence.
    pub text: String,
}

impl Record for Reproduction {
    const SCHEMA: &'static str = "afar.reproduce/2";
}
