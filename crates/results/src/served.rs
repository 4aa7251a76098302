//! What a key-value server for experiments has done.

use measure::{Host, LatencySummary};
use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar kv serve --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KvServed {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Command that ran the server.
    pub command: Vec<String>,
    /// Start of the server, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: u64,
    /// The machine that ran the server.
    pub host: Host,
    /// The resolved configuration.
    pub params: Params,
    /// The outcome.
    pub results: Results,
}

/// The resolved configuration of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Directory of the store.
    pub directory: String,
    /// Library that keeps the store.
    pub library: String,
    /// Address that clients connect to.
    pub address: String,
    /// Threads that execute reads.
    pub reader_count: u64,
    /// Threads that execute writes.
    pub writer_count: u64,
    /// Size of RocksDB's block cache; 0 for none.
    pub block_cache_bytes: u64,
    /// Whether tables were read and written with direct I/O, past the page cache.
    pub direct: bool,
    /// Size of the buffer of writes that are not flushed yet; missing if the library chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_buffer_bytes: Option<u64>,
    /// Whether each write was on the medium before its answer was sent.
    pub sync: bool,
    /// Processor time that a thread used before each command, in nanoseconds.
    pub work_ns: u64,
}

/// The outcome of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// Time that the server ran, in nanoseconds.
    pub elapsed_ns: u64,
    /// Processor time of the process, RocksDB's threads included, in nanoseconds.
    pub processor_ns: u64,
    /// Commands that were executed.
    pub command_count: u64,
    /// Commands executed per second.
    pub commands_per_s: f64,
    /// Commands by operation; operations without commands are left out.
    pub operations: Vec<Operation>,
    /// Connections that were accepted.
    pub connection_count: u64,
    /// Connections that were closed at once because too many were open.
    pub turned_away_count: u64,
    /// Requests that name no command of the server.
    pub refused_count: u64,
    /// Connections that were closed because the client violated the protocol.
    pub violation_count: u64,
    /// First violation of the protocol; missing if there was none.
    pub first_violation: Option<String>,
    /// First error of RocksDB; missing if there was none.
    pub first_error: Option<String>,
    /// Counters of RocksDB since the store was opened.
    pub store: Store,
}

/// Commands of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Name of the operation, such as `get`.
    pub operation: String,
    /// Time of commands from arrival until a thread took them.
    pub waited: LatencySummary,
    /// Time of commands from when a thread took them until the answer was ready.
    pub served: LatencySummary,
    /// Commands that RocksDB failed to execute.
    pub error_count: u64,
}

/// Counters of RocksDB since the store was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// Blocks found in the block cache.
    pub block_cache_hit_count: u64,
    /// Blocks not found in the block cache.
    pub block_cache_miss_count: u64,
    /// Bytes that flushes of memory to tables have written.
    pub flush_write_bytes: u64,
    /// Bytes that compactions have read.
    pub compaction_read_bytes: u64,
    /// Bytes that compactions have written.
    pub compaction_write_bytes: u64,
    /// Bytes written to the write-ahead log.
    pub log_bytes: u64,
    /// Times that the write-ahead log was synced to the medium.
    pub log_sync_count: u64,
    /// Time in which RocksDB held writers up for flushes or compactions to catch up, in
    /// nanoseconds.
    pub stall_ns: u64,
}

impl Record for KvServed {
    const SCHEMA: &'static str = "afar.kv.serve/1";
}
