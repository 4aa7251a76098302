use serde::{Deserialize, Serialize};

use crate::histogram::LatencySummary;
use crate::run::Results;

/// What a load was asked to be.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadParams {
    /// The server, as a URI.
    pub target: String,
    /// Shares of the operations by name, adding up to 1; those without a share are left out.
    pub mix: Vec<LoadShare>,
    /// `uniform`, `zipfian` or `latest`.
    pub distribution: String,
    /// Skew of the last two.
    pub theta: f64,
    /// Records before the first request.
    pub record_count: u64,
    /// Bytes of a key, where it was asked to have so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_bytes: Option<u64>,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Bytes that an update appends to a value, where it does not replace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_bytes: Option<u64>,
    /// An update that would make a value longer than this replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_limit_bytes: Option<u64>,
    /// Most records of a scan.
    pub scan_records_max: u64,
    /// Whether every record was stored first.
    pub fill: bool,
    /// Requests per second of an open loop; `None` for a closed one.
    pub rate_per_s: Option<f64>,
    /// `poisson` or `even`: how requests of an open loop follow one another.
    pub spacing: Option<String>,
    /// Threads.
    pub thread_count: u64,
    /// Connections of all threads.
    pub connection_count: u64,
    /// Requests on their way on one connection at most.
    pub depth: u64,
    /// Time in which requests were sent, after the warm-up.
    pub duration_ns: Option<u64>,
    /// Requests at most.
    pub request_count_max: Option<u64>,
    /// Requests before this were not counted.
    pub warmup_ns: u64,
    /// A request that took longer was given up.
    pub timeout_ns: u64,
    /// Answers were looked for without sleeping until none had come for this long.
    pub busy_poll_ns: u64,
    /// Whether values were checked.
    pub verify: bool,
    /// Whether one more connection, with one request at a time, was timed apart.
    #[serde(default)]
    pub probe: bool,
}

/// One operation's share of a mix.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadShare {
    /// `read`, `update`, `insert`, `scan` or `read-modify-write`.
    pub operation: String,
    /// Its share, from 0 to 1.
    pub share: f64,
}

/// What came of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadResults {
    /// From the end of the warm-up to the last answer.
    pub elapsed_ns: u64,
    /// Requests answered as asked.
    pub request_count: u64,
    /// The same per second.
    pub requests_per_s: f64,
    /// Requests answered as asked in each second; the last is not a whole one.
    pub request_count_by_second: Vec<u64>,
    /// Operation by operation.
    pub operations: Vec<LoadOperation>,
    /// Requests whose connection failed or that took too long.
    pub lost_count: u64,
    /// Connections that failed.
    pub failed_connection_count: u64,
    /// The first thing that went wrong.
    pub first_trouble: Option<String>,
    /// Whether it was ended before its time.
    pub interrupted: bool,
    /// What one connection beside the load felt that sent one request at a time; none of its
    /// requests is in the other figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<LoadProbe>,
    /// How the highest rate was looked for whose latency stays within a bound. Every other figure
    /// is then of one try at the rate that was found; of the last try where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<LoadSearch>,
}

/// A search for the highest rate whose latency stays within a bound.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadSearch {
    /// `mean`, `p50`, `p90`, `p95`, `p99` or `p99.9`: what is bounded, of all requests.
    pub quantity: String,
    /// The bound.
    pub bound_ns: u64,
    /// The least and the most that it was allowed to ask for, per second.
    pub limits_per_s: [f64; 2],
    /// The highest rate that held, per second.
    pub found_per_s: Option<f64>,
    /// Up to its low end every try held, from its high end on none did.
    pub interval_per_s: Option<[f64; 2]>,
    /// Every try, in order.
    pub tries: Vec<LoadTry>,
    /// Why nothing was found.
    pub invalid: Option<String>,
}

/// A load at one rate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadTry {
    /// Requests that arrived per second.
    pub rate_per_s: f64,
    /// Whether the latency stayed within the bound and the server kept up.
    pub holds: bool,
    /// What is bounded.
    pub latency_ns: u64,
    /// The same of the client beside the load, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_latency_ns: Option<u64>,
    /// Requests that were answered per second.
    pub answered_per_s: f64,
    /// Requests that were answered.
    pub request_count: u64,
}

/// What came of the requests of one client that sends the next when it has an answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadProbe {
    /// Requests answered as asked.
    pub request_count: u64,
    /// Operation by operation.
    pub operations: Vec<LoadOperation>,
    /// Requests whose connection failed or that took too long.
    pub lost_count: u64,
    /// The first thing that went wrong.
    pub first_trouble: Option<String>,
}

/// What came of the requests for one operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadOperation {
    /// As in [`LoadShare::operation`].
    pub operation: String,
    /// Times from when a request was meant to be sent to its answer.
    pub latency: LatencySummary,
    /// Records that were not there.
    pub missing_count: u64,
    /// Requests that the server refused.
    pub refused_count: u64,
    /// Values that are not what was stored.
    pub wrong_count: u64,
}

impl Results for LoadResults {
    const SCHEMA: &'static str = "afar.load/1";
    type Params = LoadParams;
}
