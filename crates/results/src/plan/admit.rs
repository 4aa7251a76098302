//! Who may share a flash device.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar plan admit --json` writes. A token is what a read costs the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Tokens that a write costs, at least 1; a read costs 1.
    pub write_tokens: f64,
    /// Most tenants that the processors beside the device can serve; missing if unlimited.
    pub tenant_count_max: Option<u64>,
    /// Tail latency of reads by load, both ascending.
    pub curve: Vec<Point>,
    /// Tenants, in the order of the file.
    pub tenants: Vec<Tenant>,
    /// How requests of the admitted tenants interfere; missing if it is unknown how long a request
    /// keeps the device busy.
    pub interference: Option<Interference>,
}

/// A load, and the tail latency of reads under it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Load of the device, in tokens per second.
    pub tokens_per_sec: f64,
    /// 95th percentile of the latency of reads at this load, in microseconds.
    pub p95_us: f64,
}

/// A tenant that wants to share the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Name of the tenant.
    pub name: String,
    /// Load that the tenant is promised, in tokens per second.
    pub tokens_per_sec: f64,
    /// Promised 95th percentile of the latency of the tenant's reads, in microseconds; missing for
    /// a tenant that takes what is left.
    pub p95_us: Option<f64>,
    /// Whether the tenant may share the device.
    pub admitted: bool,
    /// Why the tenant is admitted, or why not.
    pub reason: String,
}

/// How requests interfere on a device (M/G/1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interference {
    /// Share of the time that the device is busy, 0 to 1.
    pub load: f64,
    /// Mean wait of a request for the device, in nanoseconds.
    pub wait_ns: f64,
    /// Mean wait of a request for the device if no tenant wrote, in nanoseconds.
    pub wait_of_reads_ns: f64,
}

impl Record for Admission {
    const SCHEMA: &'static str = "afar.plan.admit/1";
}
