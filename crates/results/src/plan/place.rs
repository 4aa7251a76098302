//! Which tenant is on which server, and what moves to get there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Record;

/// Amounts by dimension: bytes of capacity and memory, bits per second of traffic and network, and
/// requests per second of others.
pub type Amounts = BTreeMap<String, f64>;

/// What `afar plan place --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Version of the afar that wrote it.
    pub version: String,
    /// Servers in use.
    pub server_count: u64,
    /// No placement can use fewer.
    pub server_count_min: u64,
    /// Whether it is proven that none uses fewer.
    pub is_best: bool,
    /// What a server has; dimensions that are not limited are left out.
    pub server_limits: Amounts,
    /// The servers in use, by their number.
    pub servers: Vec<Server>,
    /// In the order of the file.
    pub tenants: Vec<Tenant>,
    /// How to get there, if it was said where tenants are now.
    pub migration: Option<Migration>,
}

/// A server in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its number.
    pub server: u64,
    /// The number of its rack.
    pub rack: u64,
    /// Tenants that have a replica on it.
    pub tenant_count: u64,
    /// What these take of it, in every dimension.
    pub used: Amounts,
}

/// Where a tenant is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// The server of each of its replicas.
    pub servers: Vec<u64>,
}

/// From where tenants are to where they should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Migration {
    /// In the order of tenants.
    pub moves: Vec<Move>,
    /// What moves, in bytes.
    pub bytes: u64,
    /// The rate at which it may move, in bits per second.
    pub rate_bps: u64,
    /// Servers in use before.
    pub server_count_before: u64,
    /// Those servers, by their number.
    pub servers_before: Vec<Server>,
    /// Servers that are in use no longer.
    pub server_count_freed: u64,
    /// What these are worth, if the file has prices.
    pub benefit: Option<f64>,
    /// What moving costs, if the file has prices.
    pub cost: Option<f64>,
}

/// A replica that changes its server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// Name of its tenant.
    pub tenant: String,
    /// Where it was; nowhere if it is new or its server is lost.
    pub from: Option<u64>,
    /// Where it will be.
    pub to: u64,
    /// What moves, in bytes.
    pub bytes: u64,
}

impl Record for Placement {
    const SCHEMA: &'static str = "afar.plan.place/1";
}
