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
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Number of servers in use.
    pub server_count: u64,
    /// Lower bound on the number of servers of any placement.
    pub server_count_min: u64,
    /// Whether it is proven that no placement uses fewer servers.
    pub is_best: bool,
    /// Amount that a server has, by dimension (bytes, bits per second or requests per second);
    /// unlimited dimensions are left out.
    pub server_limits: Amounts,
    /// Servers in use, by their number.
    pub servers: Vec<Server>,
    /// Tenants, in the order of the file.
    pub tenants: Vec<Tenant>,
    /// How to get to this placement; missing unless the file says where tenants are now.
    pub migration: Option<Migration>,
}

/// A server in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Number of the server.
    pub server: u64,
    /// Number of the server's rack.
    pub rack: u64,
    /// Number of tenants that have a replica on the server.
    pub tenant_count: u64,
    /// Amount that tenants take of the server, by dimension (bytes, bits per second or requests per
    /// second).
    pub used: Amounts,
}

/// Where a tenant is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Name of the tenant.
    pub name: String,
    /// Number of the server of each of the tenant's replicas.
    pub servers: Vec<u64>,
}

/// How to get from where tenants are to a placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Migration {
    /// Replicas that change their server, in the order of tenants.
    pub moves: Vec<Move>,
    /// Bytes that all replicas together move.
    pub bytes: u64,
    /// Rate at which replicas may move, in bits per second.
    pub rate_bps: u64,
    /// Number of servers in use before the migration.
    pub server_count_before: u64,
    /// Servers in use before the migration, by their number.
    pub servers_before: Vec<Server>,
    /// Number of servers that the migration frees.
    pub server_count_freed: u64,
    /// Worth of the freed servers, in the currency of the file; missing if the file has no prices.
    pub benefit: Option<f64>,
    /// Cost of moving, in the currency of the file; missing if the file has no prices.
    pub cost: Option<f64>,
}

/// A replica that changes its server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// Name of the tenant whose replica moves.
    pub tenant: String,
    /// Number of the server that the replica leaves; missing if the replica is new or its server is
    /// lost.
    pub from: Option<u64>,
    /// Number of the server that the replica moves to.
    pub to: u64,
    /// Size of the replica that moves.
    pub bytes: u64,
}

impl Record for Placement {
    const SCHEMA: &'static str = "afar.plan.place/1";
}
