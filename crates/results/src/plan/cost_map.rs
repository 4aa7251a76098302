//! Savings by how much storage and compute grow.

use serde::{Deserialize, Serialize};

use super::cost::Wedge;
use crate::Record;

/// What `afar plan cost --map --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CostMap {
    /// Version of the afar that wrote it.
    pub version: String,
    /// What growth makes of a deployment in balance.
    pub wedge: Wedge,
    /// One for each combination of growth.
    pub cells: Vec<Cell>,
}

/// A combination of growth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// How many times as much storage is wanted, from 1.
    pub storage_factor: u32,
    /// How many times as much compute is wanted, from 1.
    pub compute_factor: u32,
    /// The share of the cost that pools save; negative if they cost more.
    pub saving: f64,
}

impl Record for CostMap {
    const SCHEMA: &'static str = "afar.plan.cost.map/1";
}
