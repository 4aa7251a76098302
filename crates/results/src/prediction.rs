//! What a program is expected to do with less local memory, from one run with all of it.

use measure::Host;
use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar predict --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// The measured run that the prediction is made from.
    pub profile: Facts,
    /// Time of the program when nobody watches it, in nanoseconds.
    pub alone_ns: u64,
    /// What local memory is a share of: `peak` (most in use), `live` (in use at each moment) or
    /// `fixed`; missing for sizes, or for `live` in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Bytes that local memory is a share of; missing if they change all the time, or if local
    /// memory is no share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bytes: Option<u64>,
    /// Eviction policy of all predicted slowdowns.
    pub policy: String,
    /// Fetches for each size of local memory under each policy.
    pub curve: Vec<Fetches>,
    /// Slowdowns for each size of local memory over each network.
    pub points: Vec<Slowdown>,
}

/// What is known of a run with all memory local, besides the touches of the sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Version of the afar that measured the run.
    pub version: String,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Start of the measured run, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: u64,
    /// The machine of the measured run.
    pub host: Host,
    /// Trap of the measured run: `bpf` or `userfaultfd`.
    pub trap: String,
    /// Time of the measured run with the cost of watching, in nanoseconds.
    pub elapsed_ns: u64,
    /// Time of the program when nobody watches it, in nanoseconds, as the user gave it; missing if
    /// not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_ns: Option<u64>,
    /// The most memory under management at once.
    pub managed_peak_bytes: u64,
    /// Pages touched for the first time, sampled or not.
    pub first_touch_count: u64,
    /// Share of pages in the sample at the end of the run, 0 to 1.
    pub sampled_share: f64,
    /// Seed of the choice of sampled pages.
    pub sample_seed: u64,
    /// Earlier parts of the run: number of the first event after the part, share of pages in the
    /// sample, pages that a sampled page stands for.
    pub earlier: Vec<(usize, f64, f64)>,
    /// Average share of pages in use that were mapped, 0 to 1: with less local memory, not all
    /// touches were seen.
    pub blind_share: f64,
    /// Soft faults that the sample cost.
    pub soft_count: u64,
    /// Reasons against the measured run that the user allowed.
    pub allowed: Vec<String>,
    /// Shortest fetch that can be emulated on this machine, in nanoseconds.
    pub floor_ns: u64,
    /// What the software of far memory costs beyond the delays.
    pub software: Software,
}

/// What the software of far memory costs beyond the delays, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Software {
    /// Cost of a fetch in random order: pairs of nanoseconds computed between two fetches and
    /// nanoseconds of a fetch, ascending.
    pub fetch_ns: Vec<(u64, u64)>,
    /// Cost of a fetch of pages in order: pairs of nanoseconds computed between two fetches and
    /// nanoseconds of a fetch, ascending.
    pub fetch_in_order_ns: Vec<(u64, u64)>,
    /// Cost of evicting one batch of pages, in nanoseconds.
    pub batch_ns: u64,
    /// Cost of one seen touch of a watched page, in nanoseconds.
    pub touch_ns: u64,
}

/// How often pages are fetched with one size of local memory under one policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fetches {
    /// Local memory of the program: a share or a size.
    pub local: String,
    /// Eviction policy.
    pub policy: String,
    /// Fetches over touches that were seen, 0 to 1.
    pub miss_ratio: f64,
    /// Pages fetched, as estimated from the sample.
    pub fetch_count: f64,
    /// Standard deviation of the number of fetches, from sampling.
    pub fetch_deviation: f64,
    /// Fetches that wait one after another: all, unless threads fetch at the same time.
    pub fetches_in_turn: f64,
    /// Fetches of a page whose neighbour in the sample was touched just before.
    pub fetches_in_order: f64,
    /// Soft faults: touches of local pages that were unmapped to see whether they are used.
    pub soft_count: f64,
    /// Pages evicted.
    pub eviction_count: f64,
    /// Evicted pages that were written back, because they were dirty.
    pub write_back_count: f64,
    /// Whether all touches were seen; if not, the number of fetches is a lower bound.
    pub seen_whole: bool,
}

/// How slow the program is with one size of local memory over one network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// Local memory of the program: a share or a size.
    pub local: String,
    /// Round-trip time of the network, in nanoseconds.
    pub rtt_ns: u64,
    /// Bandwidth of the network, in bits per second; missing if unlimited.
    pub bandwidth_bps: Option<u64>,
    /// Predicted slowdown: time of the program over its time when nobody watches.
    pub slowdown: f64,
    /// Lower end of the range of the predicted slowdown.
    pub slowdown_low: f64,
    /// Upper end of the range of the predicted slowdown.
    pub slowdown_high: f64,
    /// Whether all touches were seen; if not, the slowdown is a lower bound.
    pub seen_whole: bool,
}

impl Record for Prediction {
    const SCHEMA: &'static str = "afar.prediction/1";
}
