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
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Command that ran the test.
    pub command: Vec<String>,
    /// Start of the test, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: u64,
    /// Seed of what the cases send at random.
    pub seed: u64,
    /// The machine that ran the test.
    pub host: Host,
    /// The resolved configuration.
    pub params: Params,
    /// The outcome.
    pub results: Results,
}

/// The resolved configuration of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Address of the target under test.
    pub target: String,
    /// Address of the disk that a well-behaved host, the neighbour, reads during the test.
    pub neighbour: String,
    /// Whether cases were shortened (`--quick`): fewer repetitions or values.
    pub is_quick: bool,
    /// Whether cases that write were allowed.
    pub allows_writes: bool,
    /// Longest time that the target may take to drop a peer, in nanoseconds.
    pub patience_ns: u64,
    /// Process ids of the target; empty if none is known on this machine.
    pub processes: Vec<u32>,
}

/// The outcome of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// What the neighbour measured before the first case.
    pub calm: Felt,
    /// Whether the test was interrupted before its end.
    pub interrupted: bool,
    /// Whether the target accepted no more connections after the last case.
    pub target_is_gone: bool,
    /// Cases, in the order in which they were tried.
    pub cases: Vec<Case>,
}

/// The outcome of one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name of the case, such as `N8`.
    pub name: String,
    /// What the case sends to the target.
    pub what: String,
    /// How the target should react to the case.
    pub expected: String,
    /// Whether the target reacted as it should.
    pub verdict: Verdict,
    /// Why the case was not tried, or what else went wrong.
    pub reasons: Vec<String>,
    /// How often each reaction of the target was seen, by reaction.
    pub seen: BTreeMap<String, u64>,
    /// Number of ways in which the case was tried.
    pub way_count: u64,
    /// Number of ways that the target answered otherwise than expected.
    pub wrong_count: u64,
    /// The first ways that were answered wrong, with what was expected.
    pub wrong: Vec<String>,
    /// What the neighbour measured during the case.
    pub neighbour: Felt,
    /// Resident memory of the target before the case; missing if unknown.
    pub resident_before_bytes: Option<u64>,
    /// Resident memory of the target after the case; missing if unknown.
    pub resident_after_bytes: Option<u64>,
    /// Time that the case took, in nanoseconds.
    pub elapsed_ns: u64,
}

/// Whether a target reacts as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Verdict {
    /// The target reacts as it should.
    #[serde(rename = "as stated")]
    AsStated,
    /// The target reacts otherwise.
    #[serde(rename = "not as stated")]
    Not,
    /// The target does not offer what the case is about.
    #[serde(rename = "not offered")]
    NotOffered,
    /// The case was not tried.
    #[serde(rename = "skipped")]
    Skipped,
}

/// What a well-behaved host, the neighbour, measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Felt {
    /// Reads of the neighbour.
    pub read_count: u64,
    /// Reads of the neighbour that failed, and connections that it lost.
    pub error_count: u64,
    /// 99th percentile of the latency of the neighbour's reads, in nanoseconds; 0 without reads.
    pub p99_ns: u64,
    /// Longest latency of the neighbour's reads, in nanoseconds; 0 without reads.
    pub max_ns: u64,
    /// Why the first failed read of the neighbour failed; missing if none did.
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
