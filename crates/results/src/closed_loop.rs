//! What a program and its network do to one another.

use measure::{Bytes, LocalSize, ShareOf};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Estimate, Record, Verdict};

/// What `afar loop --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Local memory of the program: a share or a size.
    pub local: String,
    /// What `local` is a share of: `peak` (most in use), `live` (in use at each moment) or `fixed`;
    /// missing for a size, or for `live` in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Bytes that `local` is a share of; missing if `local` is a size, or a share of what is in use
    /// at each moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bytes: Option<u64>,
    /// Settings of the simulated network, by name.
    pub network: Map<String, Value>,
    /// Why nothing may be concluded, and there are no figures; missing if the loop is valid.
    pub invalid: Option<String>,
    /// Whether a run counts only because the user allowed unmanaged memory.
    pub allowed: bool,
    /// Median time of the program without delay, in seconds, over the runs made first; missing if
    /// invalid.
    pub zero_seconds: Option<f64>,
    /// Rounds in order: the first with delays of an idle network, each later one with delays that
    /// the traffic of the previous round makes.
    pub rounds: Vec<LoopRound>,
    /// Whether the delays of the last round are those that the traffic of that round makes.
    pub agreed: bool,
}

impl ClosedLoop {
    /// The local memory as a text for people: a size, or a share with its whole.
    #[must_use]
    pub fn local_told(&self) -> String {
        let Ok(local) = self.local.parse::<LocalSize>() else { return self.local.clone() };
        let bytes = self.of_bytes.map(Bytes::new);
        match (self.of.as_deref(), bytes) {
            (Some("fixed"), Some(bytes)) => local.told(ShareOf::Bytes(bytes), None),
            (Some("peak"), peak) => local.told(ShareOf::Peak, peak),
            _ => local.told(ShareOf::Live, None),
        }
    }
}

/// A round of the loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoopRound {
    /// Median time of the program in this round, in seconds.
    pub seconds: f64,
    /// Slowdown of this round: time of a run over that of the run without delay beside it.
    pub slowdown: Estimate,
    /// `beyond`: slower than without delay; `implausible`: faster; `undecided`; `disturbed`: fewer
    /// than five undisturbed pairs; missing in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Pairs of runs of which one was disturbed; they count only if fewer than five others are
    /// left.
    pub disturbed_count: u64,
    /// What disturbed the first disturbed pair of runs; missing if no pair was disturbed.
    pub first_disturbance: Option<String>,
    /// Pages fetched by the last run of this round.
    pub fetch_count: u64,
    /// Mean time to fetch a page under the delays of this round, in microseconds.
    pub page_mean_us: f64,
    /// Median time to fetch a page under the delays of this round, in microseconds.
    pub page_p50_us: f64,
    /// 99th percentile of the time to fetch a page under the delays of this round, in microseconds.
    pub page_p99_us: f64,
    /// Mean slowdown of the flows that this round's traffic makes: completion time over that of the
    /// flow alone.
    pub flow_slowdown: f64,
}

impl LoopRound {
    /// A text for people: whether the program is slower than without delay at all.
    #[must_use]
    pub fn told(&self) -> String {
        match (self.verdict, &self.first_disturbance) {
            (Some(Verdict::Disturbed), Some(why)) => {
                format!("disturbed: {why} (of {} pairs of runs)", self.disturbed_count)
            }
            _ => self.slowdown.told_beside_none().to_owned(),
        }
    }
}

impl Record for ClosedLoop {
    const SCHEMA: &'static str = "afar.loop/4";
}
