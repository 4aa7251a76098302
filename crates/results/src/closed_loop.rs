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
    /// Version of the afar that wrote it.
    pub version: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The share or size of its memory that is local.
    pub local: String,
    /// What a share is a share of: `peak`, the most that was in use with all memory local, `live`,
    /// what is in use at each moment, or `fixed`, another size; nothing if `local` is a size, and
    /// in records of an afar that knew only `live`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// How much that is; nothing if it changes all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bytes: Option<u64>,
    /// Settings of the simulated network.
    pub network: Map<String, Value>,
    /// Why nothing is concluded; there are no figures then.
    pub invalid: Option<String>,
    /// Whether a run counts only because unmanaged memory was allowed.
    pub allowed: bool,
    /// What the program takes without delay, in seconds: the median of the runs made first.
    pub zero_seconds: Option<f64>,
    /// The first is under the delays of an idle network; each other one under those that the
    /// traffic of the round before makes.
    pub rounds: Vec<LoopRound>,
    /// Whether the last round ran under the delays that its own traffic makes.
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
    /// What the program took, in seconds: the median.
    pub seconds: f64,
    /// How many times slower than without delay, run by run beside one without.
    pub slowdown: Estimate,
    /// Whether it is slower than without delay at all (`beyond`): withheld (`undecided`) where the
    /// interval holds 1 or there is none, `implausible` where it is faster, and `disturbed` where
    /// there are fewer than five undisturbed pairs of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Pairs of runs of which one was disturbed; they do not count where there are five others.
    pub disturbed_count: u64,
    /// What disturbed the first of them.
    pub first_disturbance: Option<String>,
    /// Pages fetched by the last run.
    pub fetch_count: u64,
    /// What fetching a page takes under the round's delays: the mean, in microseconds.
    pub page_mean_us: f64,
    /// The median of that.
    pub page_p50_us: f64,
    /// The 99th percentile of that.
    pub page_p99_us: f64,
    /// The mean of how many times longer its flows take than alone in the network.
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
