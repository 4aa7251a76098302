//! What round trips consist of, and which targets they meet.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar plan latency --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoundTrips {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Size of the fetched page.
    pub page_bytes: u64,
    /// Targets: round trips that something needs.
    pub targets: Vec<Target>,
    /// Ways to fetch a page, one for each design, scope and rate.
    pub paths: Vec<Path>,
}

/// A round trip that something needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name of the target: who needs the round trip.
    pub name: String,
    /// Longest round trip that meets the target, in nanoseconds.
    pub rtt_ns: f64,
}

/// A way to fetch a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Name of the design.
    pub design: String,
    /// Name of the scope: how far the path reaches.
    pub scope: String,
    /// Bandwidth of the path's links, in bits per second.
    pub rate_bps: u64,
    /// Time of software, switches and distance, in nanoseconds.
    pub fixed_ns: f64,
    /// Time to transmit the page, in nanoseconds.
    pub transmission_ns: f64,
    /// Mean wait for other traffic on a link, in nanoseconds.
    pub wait_ns: f64,
    /// Whole round trip, in nanoseconds.
    pub total_ns: f64,
    /// Names of the targets that the path meets.
    pub meets: Vec<String>,
}

impl Record for RoundTrips {
    const SCHEMA: &'static str = "afar.plan.latency/1";
}
