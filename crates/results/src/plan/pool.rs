//! How much memory servers need of their own, and how much a pool.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar plan pool --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PoolSizing {
    /// Version of the afar that wrote it.
    pub version: String,
    /// Its sign or name, as the file has it; may be empty.
    pub currency: String,
    /// How many servers there are.
    pub server_count: u64,
    /// How many periods their demand has.
    pub period_count: u64,
    /// What programs tolerate.
    pub programs: Vec<Program>,
    /// Who needs most local memory, and when.
    pub local_min: LocalMin,
    /// What all servers want together at the worst time, in bytes.
    pub peak_bytes: f64,
    /// What is bought without a pool.
    pub without: Bought,
    /// The cheapest with pools; nothing if servers can have no less memory than they have alone.
    pub with: Option<Bought>,
    /// Whether a pool pays.
    pub disaggregate: bool,
    /// Why it pays or does not.
    pub reason: String,
}

/// What a program tolerates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// How much slower it may become, a share: 0.05 is 5 % slower.
    pub bound: f64,
    /// The share of its memory that must be local for that, 0 to 1.
    pub local_min: f64,
}

/// Who needs most local memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LocalMin {
    /// Name of the server.
    pub server: String,
    /// The period, counted from 0.
    pub period: u64,
    /// What it needs, in bytes.
    pub bytes: u64,
}

/// Memory that is bought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bought {
    /// Of each server.
    pub server_bytes: u64,
    /// Of each pool.
    pub pool_bytes: Vec<u64>,
    /// In all.
    pub bytes: u64,
    /// In all, with ports, in the currency of the record; 0 without prices.
    pub cost: f64,
    /// The share that nobody uses when most is used, 0 to 1.
    pub unused_at_peak: f64,
    /// The share that nobody uses over all periods, 0 to 1.
    pub unused_mean: f64,
}

impl Record for PoolSizing {
    const SCHEMA: &'static str = "afar.plan.pool/1";
}
