//! How much memory servers need of their own, and how much a pool.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar plan pool --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PoolSizing {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Sign or name of the currency, as the file has it; may be empty.
    pub currency: String,
    /// Number of servers.
    pub server_count: u64,
    /// Number of periods for which the demand of servers is known.
    pub period_count: u64,
    /// How much slowdown each program tolerates.
    pub programs: Vec<Program>,
    /// The server and the period with the highest need of local memory.
    pub local_min: LocalMin,
    /// Demand of all servers together in the period of the highest demand, in bytes.
    pub peak_bytes: f64,
    /// Memory that is bought without a pool.
    pub without: Bought,
    /// Cheapest memory with pools; missing if servers can have no less memory than without a pool.
    pub with: Option<Bought>,
    /// Whether a pool pays.
    pub disaggregate: bool,
    /// Why a pool pays, or why not.
    pub reason: String,
}

/// How much slowdown a program tolerates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name of the program.
    pub name: String,
    /// How much slower the program may become, a share: 0.05 is 5 % slower.
    pub bound: f64,
    /// Share of the program's memory that must be local for the slowdown to stay within the bound,
    /// 0 to 1.
    pub local_min: f64,
}

/// The server with the highest need of local memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LocalMin {
    /// Name of the server.
    pub server: String,
    /// Period in which the server needs the most local memory, counted from 0.
    pub period: u64,
    /// Local memory that the server needs, in bytes.
    pub bytes: u64,
}

/// Memory that is bought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bought {
    /// Memory of each server.
    pub server_bytes: u64,
    /// Memory of each pool.
    pub pool_bytes: Vec<u64>,
    /// Memory of all servers and pools together.
    pub bytes: u64,
    /// Cost of all memory and ports, in the currency of the record; 0 without prices.
    pub cost: f64,
    /// Share of the memory that is unused at the peak of demand, 0 to 1.
    pub unused_at_peak: f64,
    /// Share of the memory that is unused on average over all periods, 0 to 1.
    pub unused_mean: f64,
}

impl Record for PoolSizing {
    const SCHEMA: &'static str = "afar.plan.pool/1";
}
