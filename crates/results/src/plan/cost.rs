//! A bill: servers with flash of their own beside pools of flash and of servers.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar plan cost --json` writes. Costs and prices are in the currency of the bill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bill {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Sign or name of the currency, as the file has it; may be empty.
    pub currency: String,
    /// What each tenant needs if it shares nothing, in the order of the file.
    pub tenants: Vec<Tenant>,
    /// Cost of servers with flash of their own for all tenants.
    pub direct_cost: f64,
    /// Cost of pools if each tenant has its own.
    pub apart_cost: f64,
    /// Pools that all tenants share.
    pub pooled: Pools,
    /// Cost of the pools that all tenants share.
    pub pooled_cost: f64,
    /// Share of the cost of servers with flash of their own that shared pools save; negative if
    /// pools cost more.
    pub saving: f64,
    /// Whether shared pools cost less than servers with flash of their own.
    pub disaggregate: bool,
    /// Share of what is bought that is used at the peak, by dimension.
    pub usage: Vec<Usage>,
    /// How the saving changes with each value of the file.
    pub sensitivity: Vec<Sensitivity>,
    /// Between which ratios of growth pools do not pay, for a deployment in balance.
    pub wedge: Wedge,
}

/// What one tenant needs if it shares nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Name of the tenant; may be empty if there is only one.
    pub name: String,
    /// Servers with flash of their own for this tenant.
    pub direct: Side,
    /// Pools of this tenant alone.
    pub apart: Pools,
}

/// A pool of flash, and servers without flash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pools {
    /// Machines of the pool of flash.
    pub flash: Side,
    /// Servers without flash, with what they need to reach the pool.
    pub compute: Side,
}

/// Machines of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Number of machines; a fraction unless only whole machines are bought.
    pub machines: f64,
    /// Name of the dimension that needs the most machines.
    pub binding: String,
    /// Period in which the most machines are needed, counted from 1.
    pub period: u64,
    /// Price of one machine, in the currency of the record.
    pub price: f64,
    /// Cost of all machines, in the currency of the record.
    pub cost: f64,
}

/// How much of what is bought is used at the peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Name of the dimension.
    pub dimension: String,
    /// Share of what servers with flash of their own have that is used at the peak, 0 to 1.
    pub direct: f64,
    /// Share of what pools have that is used at the peak, 0 to 1.
    pub pooled: f64,
}

/// How the saving changes with one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sensitivity {
    /// Key of the value in a file.
    pub key: String,
    /// The value: a price, a share, or an amount of a dimension.
    pub value: f64,
    /// Saving if the value were a tenth less; missing if that is impossible.
    pub saving_tenth_less: Option<f64>,
    /// Saving if the value were a tenth more; missing if that is impossible.
    pub saving_tenth_more: Option<f64>,
    /// Largest lower value that changes whether pools pay; missing if none does.
    pub verdict_changes_below: Option<f64>,
    /// Least higher value that changes whether pools pay; missing if none does.
    pub verdict_changes_above: Option<f64>,
}

/// Between which ratios of growth pools do not pay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Wedge {
    /// Growth of storage over growth of compute below which pools pay; missing if no growth of
    /// compute makes them pay.
    pub storage_per_compute_low: Option<f64>,
    /// Growth of storage over growth of compute above which pools pay; missing if no growth of
    /// storage makes them pay.
    pub storage_per_compute_high: Option<f64>,
}

impl Record for Bill {
    const SCHEMA: &'static str = "afar.plan.cost/1";
}
