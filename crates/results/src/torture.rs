//! What a target has done with hostile peers.

use std::collections::BTreeMap;

use measure::Host;
use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar torture --json` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Torture {
    /// Version of the afar that wrote it.
    pub version: String,
    /// The command that did it.
    pub command: Vec<String>,
    /// When it began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// What is sent at random follows from it.
    pub seed: u64,
    /// The machine that sent it.
    pub host: Host,
    /// What was asked for.
    pub params: Params,
    /// What was seen.
    pub results: Results,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The target's address.
    pub target: String,
    /// The address of the disk that a host reads which behaves well.
    pub neighbour: String,
    /// Whether there was a hundredth of the repetitions.
    pub is_quick: bool,
    /// Whether cases that write were tried.
    pub allows_writes: bool,
    /// How long the target may take to let a peer go, in nanoseconds.
    pub patience_ns: u64,
    /// The target's processes, where they are on this machine.
    pub processes: Vec<u32>,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// What the neighbour felt before the first case.
    pub calm: Felt,
    /// Whether it was ended before its time.
    pub interrupted: bool,
    /// Whether the target takes no connections since the last case.
    pub target_is_gone: bool,
    /// In the order in which they were tried.
    pub cases: Vec<Case>,
}

/// What one case has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name, such as `N8`.
    pub name: String,
    /// What is sent.
    pub what: String,
    /// How the target should react.
    pub expected: String,
    /// Whether it did.
    pub verdict: Verdict,
    /// Why it was not tried, or what is wrong beside what was seen.
    pub reasons: Vec<String>,
    /// How often each reaction was seen.
    pub seen: BTreeMap<String, u64>,
    /// Ways in which it was tried.
    pub way_count: u64,
    /// Those of them that were answered otherwise than expected.
    pub wrong_count: u64,
    /// The first of those, and what was expected of them.
    pub wrong: Vec<String>,
    /// What the neighbour felt meanwhile.
    pub neighbour: Felt,
    /// The target's memory before; nothing where it cannot be looked at.
    pub resident_before_bytes: Option<u64>,
    /// The same after.
    pub resident_after_bytes: Option<u64>,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
}

/// Whether a target reacts as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Verdict {
    /// It does.
    #[serde(rename = "as stated")]
    AsStated,
    /// It does not.
    #[serde(rename = "not as stated")]
    Not,
    /// It does not offer what the case is about.
    #[serde(rename = "not offered")]
    NotOffered,
    /// The case was not tried.
    #[serde(rename = "skipped")]
    Skipped,
}

/// What a host has felt that behaves well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Felt {
    /// Its reads.
    pub read_count: u64,
    /// Those of them that failed, and connections that were lost.
    pub error_count: u64,
    /// The 99th percentile of what a read took, in nanoseconds.
    pub p99_ns: u64,
    /// The most that a read took, in nanoseconds.
    pub max_ns: u64,
    /// Why the first read that failed did.
    pub first_failure: Option<String>,
}

impl Record for Torture {
    const SCHEMA: &'static str = "afar.torture/1";
}

impl Verdict {
    /// The verdict as a text, as in the record.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::AsStated => "as stated",
            Self::Not => "not as stated",
            Self::NotOffered => "not offered",
            Self::Skipped => "skipped",
        }
    }
}
