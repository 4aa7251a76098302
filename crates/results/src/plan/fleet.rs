//! What a fleet's tenants want, hour by hour.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar plan fleet --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FleetDemand {
    /// Version of the afar that wrote it.
    pub version: String,
    /// Tenants.
    pub tenant_count: u64,
    /// Machines that they are on.
    pub machine_count: u64,
    /// Stays of a tenant on a machine.
    pub stay_count: u64,
    /// Stays that are left out: so short that no full hour has seen them.
    pub short_stay_count: u64,
    /// Hours; every stay ends by then.
    pub hour_count: u64,
    /// The hour in which most is wanted, counted from 0.
    pub busiest_hour: u64,
    /// One for each dimension.
    pub dimensions: Vec<Dimension>,
}

/// What is wanted of one dimension. Amounts are bytes of capacity and memory, bits per second of
/// traffic and network, and requests per second of others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dimension {
    /// Its name.
    pub dimension: String,
    /// What a machine has, if that is limited.
    pub machine: Option<u64>,
    /// What all want together in the hour in which they want most.
    pub max: f64,
    /// The mean over all hours.
    pub mean: f64,
    /// The share of it that the largest tenth of stays has, 0 to 1.
    pub largest_tenth: f64,
    /// What all want together, hour by hour.
    pub hours: Vec<f64>,
}

impl Record for FleetDemand {
    const SCHEMA: &'static str = "afar.plan.fleet/1";
}
