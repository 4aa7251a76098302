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
    /// Version of the afar that wrote it.
    pub version: String,
    /// The name of the figure, such as `guz-fig2`.
    pub figure: String,
    /// What it is, with its citation.
    pub title: String,
    /// The command that made it.
    pub command: Vec<String>,
    /// When it was made, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// The machine.
    pub host: Host,
    /// What it was measured on; each figure has fields of its own.
    pub bed: Value,
    /// What was measured; each figure has fields of its own.
    pub points: Value,
    /// The paper's numbers, as they were compared; each figure has fields of its own.
    pub paper: Value,
    /// What the paper claims, and whether it is so here.
    pub verdicts: Vec<Claim>,
    /// Whether it was ended before its time.
    pub interrupted: bool,
}

/// What a paper claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Whether it is so here; nothing where it is undecided.
    pub holds: Option<bool>,
    /// As a sentence.
    pub text: String,
}

impl Record for Reproduction {
    const SCHEMA: &'static str = "afar.reproduce/2";
}
