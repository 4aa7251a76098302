//! A bill: servers with flash of their own beside pools of flash and of servers.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar plan cost --json` writes. Costs and prices are in the currency of the bill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bill {
    /// Version of the afar that wrote it.
    pub version: String,
    /// Its sign or name, as the file has it; may be empty.
    pub currency: String,
    /// One for each tenant, in the order of the file.
    pub tenants: Vec<Tenant>,
    /// What servers with flash of their own cost for all tenants.
    pub direct_cost: f64,
    /// What pools cost where each tenant has its own.
    pub apart_cost: f64,
    /// Pools that all tenants share.
    pub pooled: Pools,
    /// What those cost.
    pub pooled_cost: f64,
    /// The share of the direct cost that shared pools save; negative if they cost more.
    pub saving: f64,
    /// Whether pools cost less.
    pub disaggregate: bool,
    /// How much is used of what is bought, by dimension.
    pub usage: Vec<Usage>,
    /// What the saving depends on.
    pub sensitivity: Vec<Sensitivity>,
    /// What growth makes of a deployment in balance.
    pub wedge: Wedge,
}

/// What one tenant needs if it shares nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Its name; may be empty if there is only one.
    pub name: String,
    /// Servers with flash of their own.
    pub direct: Side,
    /// Pools of its own.
    pub apart: Pools,
}

/// A pool of flash, and servers without flash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Pools {
    /// The pool of flash.
    pub flash: Side,
    /// Servers, with what they need to reach the flash.
    pub compute: Side,
}

/// Machines of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// How many; a fraction unless only whole machines are bought.
    pub machines: f64,
    /// The dimension that needs most of them.
    pub binding: String,
    /// The period in which it does, counted from 1.
    pub period: u64,
    /// Of each machine.
    pub price: f64,
    /// Of all machines.
    pub cost: f64,
}

/// How much is used of what is bought, when most is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// The dimension.
    pub dimension: String,
    /// A share, 0 to 1, of what servers with flash of their own have.
    pub direct: f64,
    /// A share, 0 to 1, of what pools have.
    pub pooled: f64,
}

/// How the saving moves with one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Sensitivity {
    /// The key that the value has in a file.
    pub key: String,
    /// The value: a price, a share, or an amount of the dimension.
    pub value: f64,
    /// The saving if the value is a tenth less; nothing if that cannot be.
    pub saving_tenth_less: Option<f64>,
    /// The saving if the value is a tenth more; nothing if that cannot be.
    pub saving_tenth_more: Option<f64>,
    /// The largest lower value that turns the verdict, if one does.
    pub verdict_changes_below: Option<f64>,
    /// The least higher value that turns the verdict, if one does.
    pub verdict_changes_above: Option<f64>,
}

/// Between which ratios of growth pools do not pay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Wedge {
    /// Pools pay below this; nothing if no growth of compute makes them pay.
    pub storage_per_compute_low: Option<f64>,
    /// Pools pay above this; nothing if no growth of storage makes them pay.
    pub storage_per_compute_high: Option<f64>,
}

impl Record for Bill {
    const SCHEMA: &'static str = "afar.plan.cost/1";
}
