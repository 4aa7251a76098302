//! What a fleet's tenants want, hour by hour.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar plan fleet --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FleetDemand {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Number of tenants.
    pub tenant_count: u64,
    /// Number of machines that tenants stay on.
    pub machine_count: u64,
    /// Number of stays of a tenant on a machine.
    pub stay_count: u64,
    /// Number of stays that are left out because they cover no full hour.
    pub short_stay_count: u64,
    /// Number of hours; every stay ends by the last.
    pub hour_count: u64,
    /// Hour of the highest demand, by the dimension that then needs the most machines, counted from
    /// 0.
    pub busiest_hour: u64,
    /// Demand of the fleet, one for each dimension.
    pub dimensions: Vec<Dimension>,
}

/// Demand of the fleet in one dimension. Amounts are bytes of capacity and memory, bits per second
/// of traffic and network, and requests per second of others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dimension {
    /// Name of the dimension; amounts are bytes (capacity, memory), bits per second (traffic,
    /// network) or requests per second.
    pub dimension: String,
    /// Amount that a machine has; missing if unlimited.
    pub machine: Option<u64>,
    /// Demand of all tenants in the hour of their highest demand.
    pub max: f64,
    /// Mean demand of all tenants over all hours.
    pub mean: f64,
    /// Share of the peak demands of all stays that the largest tenth of stays has, 0 to 1.
    pub largest_tenth: f64,
    /// Demand of all tenants, hour by hour.
    pub hours: Vec<f64>,
}

impl Record for FleetDemand {
    const SCHEMA: &'static str = "afar.plan.fleet/1";
}
