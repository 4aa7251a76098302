//! Who may share a flash device.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar plan admit --json` writes. A token is what a read costs the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// Version of the afar that wrote it.
    pub version: String,
    /// Tokens of a write, from 1.
    pub write_tokens: f64,
    /// Tenants that the processors beside the device can serve, if that is limited.
    pub tenant_count_max: Option<u64>,
    /// The tail of reads by load; neither falls.
    pub curve: Vec<Point>,
    /// In the order of the file.
    pub tenants: Vec<Tenant>,
    /// How those admitted meet on the device; nothing if it is not known how long a request keeps
    /// it busy.
    pub interference: Option<Interference>,
}

/// A load and its tail.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The load, in tokens per second.
    pub tokens_per_sec: f64,
    /// The 95th percentile of reads, in microseconds.
    pub p95_us: f64,
}

/// Who wants to share the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// The load that it is promised, in tokens per second.
    pub tokens_per_sec: f64,
    /// The 95th percentile of reads that it is promised, in microseconds; without one it takes
    /// what is left.
    pub p95_us: Option<f64>,
    /// Whether it may share the device.
    pub admitted: bool,
    /// Why, or why not.
    pub reason: String,
}

/// How requests meet on a device (M/G/1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interference {
    /// The share of the time that the device is busy, 0 to 1.
    pub load: f64,
    /// The mean wait of a request, in nanoseconds.
    pub wait_ns: f64,
    /// The mean wait if nobody wrote, in nanoseconds.
    pub wait_of_reads_ns: f64,
}

impl Record for Admission {
    const SCHEMA: &'static str = "afar.plan.admit/1";
}
