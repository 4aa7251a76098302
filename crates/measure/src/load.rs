use serde::{Deserialize, Serialize};

use crate::histogram::LatencySummary;
use crate::run::Results;

/// The resolved configuration of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadParams {
    /// Address of the server, as a URI.
    pub target: String,
    /// Share of each operation in the load, adding up to 1; operations without a share are left
    /// out.
    pub mix: Vec<LoadShare>,
    /// Distribution of the requested keys: `uniform`, `zipfian` or `latest`.
    pub distribution: String,
    /// Skew of the distribution of keys, if it is `zipfian` or `latest`.
    pub theta: f64,
    /// Number of records before the first request.
    pub record_count: u64,
    /// Bytes of a key; `None` for keys as long as those of YCSB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_bytes: Option<u64>,
    /// Bytes of a value, before any update appends to it.
    pub value_bytes: u64,
    /// Bytes that an update appends to a value; `None` if updates replace values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_bytes: Option<u64>,
    /// Longest value after an append; an update that would exceed this replaces the value; `None`
    /// if updates replace values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_limit_bytes: Option<u64>,
    /// Most records of a scan.
    pub scan_records_max: u64,
    /// Whether all records were stored before the load.
    pub fill: bool,
    /// Requests per second of an open loop; `None` for a closed loop.
    pub rate_per_s: Option<f64>,
    /// Spacing of the requests of an open loop: `poisson` or `even`; `None` for a closed loop.
    pub spacing: Option<String>,
    /// Number of threads of the client.
    pub thread_count: u64,
    /// Number of connections of all threads together.
    pub connection_count: u64,
    /// Most requests on their way at once on one connection.
    pub depth: u64,
    /// Time in which requests were sent after the warm-up, in nanoseconds; `None` if unlimited.
    pub duration_ns: Option<u64>,
    /// Most requests of the load; `None` if unlimited.
    pub request_count_max: Option<u64>,
    /// Length of the warm-up in nanoseconds, whose requests are not counted.
    pub warmup_ns: u64,
    /// Time after which a request without an answer was given up, in nanoseconds.
    pub timeout_ns: u64,
    /// Time for which a thread polled for answers before it slept, in nanoseconds.
    pub busy_poll_ns: u64,
    /// Whether the values of answers were checked.
    pub verify: bool,
    /// Whether a probe ran beside the load: one more connection, with one request at a time, timed
    /// apart.
    #[serde(default)]
    pub probe: bool,
}

/// One operation's share of a mix.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadShare {
    /// Name of the operation: `read`, `update`, `insert`, `scan` or `read-modify-write`.
    pub operation: String,
    /// Share of the operation in the load, 0 to 1.
    pub share: f64,
}

/// The outcome of a load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadResults {
    /// Time from the end of the warm-up to the last answer, in nanoseconds.
    pub elapsed_ns: u64,
    /// Requests that got the answer they should get.
    pub request_count: u64,
    /// Requests per second that got the answer they should get.
    pub requests_per_s: f64,
    /// Requests that got the answer they should get in each second; the last second is not a whole
    /// one.
    pub request_count_by_second: Vec<u64>,
    /// Outcome of each operation.
    pub operations: Vec<LoadOperation>,
    /// Requests whose connection failed or that took too long.
    pub lost_count: u64,
    /// Connections that failed.
    pub failed_connection_count: u64,
    /// First thing that went wrong, as a text; `None` if nothing did.
    pub first_trouble: Option<String>,
    /// Whether the load was interrupted before its end.
    pub interrupted: bool,
    /// Outcome of the probe: one request at a time on a connection beside the load, not in the
    /// other figures; `None` without a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<LoadProbe>,
    /// Search for the highest rate within a bound on latency; other figures are of a try at this
    /// rate, else of the last try. `None` without a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<LoadSearch>,
}

/// A search for the highest rate whose latency stays within a bound.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadSearch {
    /// Latency that is bounded, over all requests: `mean`, `p50`, `p90`, `p95`, `p99` or `p99.9`.
    pub quantity: String,
    /// Bound on the latency, in nanoseconds.
    pub bound_ns: u64,
    /// Lowest and highest rate that the search may try, in requests per second.
    pub limits_per_s: [f64; 2],
    /// Highest rate that held, in requests per second; `None` if none was found.
    pub found_per_s: Option<f64>,
    /// Interval of the found rate: every try up to its low end held, none from its high end on did;
    /// `None` if none was found.
    pub interval_per_s: Option<[f64; 2]>,
    /// Tries, in order.
    pub tries: Vec<LoadTry>,
    /// Why no rate was found; `None` if one was.
    pub invalid: Option<String>,
}

/// A load at one rate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadTry {
    /// Rate of the try, in requests per second.
    pub rate_per_s: f64,
    /// Whether the latency stayed within the bound and the server kept up with the rate.
    pub holds: bool,
    /// Bounded latency of the try, in nanoseconds.
    pub latency_ns: u64,
    /// Latency of the probe, in nanoseconds, by the same quantity as the bound; `None` without a
    /// probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_latency_ns: Option<u64>,
    /// Requests answered per second.
    pub answered_per_s: f64,
    /// Requests answered in the try.
    pub request_count: u64,
}

/// The outcome of a probe, which sends each request when the one before is answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadProbe {
    /// Requests of the probe that got the answer they should get.
    pub request_count: u64,
    /// Outcome of each operation of the probe.
    pub operations: Vec<LoadOperation>,
    /// Requests of the probe whose connection failed or that took too long.
    pub lost_count: u64,
    /// First thing that went wrong with the probe, as a text; `None` if nothing did.
    pub first_trouble: Option<String>,
}

/// The outcome of one operation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadOperation {
    /// Name of the operation: `read`, `update`, `insert`, `scan` or `read-modify-write`.
    pub operation: String,
    /// Latency from when a request was to be sent until its answer.
    pub latency: LatencySummary,
    /// Requested records that the server did not have.
    pub missing_count: u64,
    /// Requests that the server refused.
    pub refused_count: u64,
    /// Returned values that differ from the stored ones.
    pub wrong_count: u64,
}

impl Results for LoadResults {
    const SCHEMA: &'static str = "afar.load/1";
    type Params = LoadParams;
}
