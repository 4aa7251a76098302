//! Savings by how much storage and compute grow.

use serde::{Deserialize, Serialize};

use super::cost::Wedge;
use crate::Record;

/// What `afar plan cost --map --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CostMap {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Between which ratios of growth pools do not pay, for a deployment in balance.
    pub wedge: Wedge,
    /// Cells, one for each combination of growth.
    pub cells: Vec<Cell>,
}

/// A combination of growth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Growth of storage: how many times as much is wanted, from 1.
    pub storage_factor: u32,
    /// Growth of compute: how many times as much is wanted, from 1.
    pub compute_factor: u32,
    /// Share of the cost of servers with flash of their own that pools save; negative if pools cost
    /// more.
    pub saving: f64,
}

impl Record for CostMap {
    const SCHEMA: &'static str = "afar.plan.cost.map/1";
}
