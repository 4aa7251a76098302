//! What round trips consist of, and which targets they meet.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar plan latency --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoundTrips {
    /// Version of the afar that wrote it.
    pub version: String,
    /// Size of the page that is fetched.
    pub page_bytes: u64,
    /// What somebody needs.
    pub targets: Vec<Target>,
    /// One for each design, scope and rate.
    pub paths: Vec<Path>,
}

/// A round trip that something needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Who needs it.
    pub name: String,
    /// The longest round trip that is good enough, in nanoseconds.
    pub rtt_ns: f64,
}

/// A way to fetch a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// The design.
    pub design: String,
    /// How far it reaches.
    pub scope: String,
    /// Of its links, in bits per second.
    pub rate_bps: u64,
    /// Software, switches and distance, in nanoseconds.
    pub fixed_ns: f64,
    /// The page on the wire, in nanoseconds.
    pub transmission_ns: f64,
    /// The mean wait for others on a link, in nanoseconds.
    pub wait_ns: f64,
    /// All of these together, in nanoseconds.
    pub total_ns: f64,
    /// Names of the targets that it meets.
    pub meets: Vec<String>,
}

impl Record for RoundTrips {
    const SCHEMA: &'static str = "afar.plan.latency/1";
}
