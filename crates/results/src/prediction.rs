//! What a program is expected to do with less local memory, from one run with all of it.

use measure::Host;
use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar predict --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// Version of the afar that wrote it.
    pub version: String,
    /// The run that it was made from.
    pub profile: Facts,
    /// How long the program takes when nobody watches it, in nanoseconds.
    pub alone_ns: u64,
    /// What shares of local memory are shares of: `peak`, the most that was in use, `live`, what is
    /// in use at each moment, or `fixed`, another size; nothing where no local memory is a share,
    /// and in records of an afar that knew only `live`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// How much that is; nothing if it changes all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bytes: Option<u64>,
    /// The eviction policy of the slowdowns.
    pub policy: String,
    /// How often pages are fetched: for each size of local memory, under several policies.
    pub curve: Vec<Fetches>,
    /// How slow that makes the program, for each size of local memory over each network.
    pub points: Vec<Slowdown>,
}

/// What is known of a run with all memory local, besides the touches of the sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Version of the afar that watched it.
    pub version: String,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// When it began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The machine.
    pub host: Host,
    /// How faults were noticed.
    pub trap: String,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// How long it takes when nobody watches, in nanoseconds, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_ns: Option<u64>,
    /// The most memory it had under management.
    pub managed_peak_bytes: u64,
    /// Pages that were touched for the first time, sampled or not.
    pub first_touch_count: u64,
    /// The share of pages that was sampled at the end, 0 to 1.
    pub sampled_share: f64,
    /// What decided which.
    pub sample_seed: u64,
    /// Before, more were: up to an event, a share of pages, of which each stood for so many.
    pub earlier: Vec<(usize, f64, f64)>,
    /// Less local memory than this share, 0 to 1, is not seen whole.
    pub blind_share: f64,
    /// Faults that watching cost.
    pub soft_count: u64,
    /// Reasons against the run that the user allowed.
    pub allowed: Vec<String>,
    /// The shortest fetch, in nanoseconds.
    pub floor_ns: u64,
    /// What it takes beyond the delays.
    pub software: Software,
}

/// Nanoseconds beyond the delays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Software {
    /// Of each fetch, by the nanoseconds that the program computes between two: in ascending order.
    pub fetch_ns: Vec<(u64, u64)>,
    /// The same, of a program that reads its memory in order.
    pub fetch_in_order_ns: Vec<(u64, u64)>,
    /// Of each batch of pages that are evicted together.
    pub batch_ns: u64,
    /// Of each touch that is seen of a page which is watched.
    pub touch_ns: u64,
}

/// How often pages are fetched with so much local memory under a policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fetches {
    /// The share or size of its memory that is local.
    pub local: String,
    /// The eviction policy.
    pub policy: String,
    /// Fetches as a share of the touches that were seen, 0 to 1.
    pub miss_ratio: f64,
    /// Pages fetched, as the sample has it.
    pub fetch_count: f64,
    /// The standard deviation of that.
    pub fetch_deviation: f64,
    /// Fetches that wait for one another.
    pub fetches_in_turn: f64,
    /// Fetches of pages that come in order.
    pub fetches_in_order: f64,
    /// Faults on pages that had been unmapped and stayed.
    pub soft_count: f64,
    /// Pages evicted.
    pub eviction_count: f64,
    /// Those of them that were written back.
    pub write_back_count: f64,
    /// Whether all touches were seen; at least so many fetches if not.
    pub seen_whole: bool,
}

/// How slow the program is with so much local memory over a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// The share or size of its memory that is local.
    pub local: String,
    /// The round trip of the network, in nanoseconds.
    pub rtt_ns: u64,
    /// Bits per second; nothing if it is unlimited.
    pub bandwidth_bps: Option<u64>,
    /// How many times as long the program takes.
    pub slowdown: f64,
    /// At least so many times.
    pub slowdown_low: f64,
    /// At most so many times.
    pub slowdown_high: f64,
    /// Whether all touches were seen; it is at least so slow if not.
    pub seen_whole: bool,
}

impl Record for Prediction {
    const SCHEMA: &'static str = "afar.prediction/1";
}
