//! What a key-value server for experiments has done.

use measure::{Host, LatencySummary};
use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar kv serve --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KvServed {
    /// Version of the afar that wrote it.
    pub version: String,
    /// The command that served.
    pub command: Vec<String>,
    /// When it began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The machine.
    pub host: Host,
    /// What was asked for.
    pub params: Params,
    /// What was done.
    pub results: Results,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The directory of the store.
    pub directory: String,
    /// The library that kept it.
    pub library: String,
    /// Where clients connected.
    pub address: String,
    /// Threads that read.
    pub reader_count: u64,
    /// Threads that wrote.
    pub writer_count: u64,
    /// Bytes of the cache of blocks; 0 for none.
    pub block_cache_bytes: u64,
    /// Whether tables were read and written without the page cache.
    pub direct: bool,
    /// Bytes of writes in memory before they were flushed, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_buffer_bytes: Option<u64>,
    /// Whether a write was on the medium before it was answered.
    pub sync: bool,
    /// Processor time that a thread used before each command, in nanoseconds.
    pub work_ns: u64,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// How long it served, in nanoseconds.
    pub elapsed_ns: u64,
    /// Processor time of the process, RocksDB's threads included, in nanoseconds.
    pub processor_ns: u64,
    /// Commands that were done.
    pub command_count: u64,
    /// The same per second.
    pub commands_per_s: f64,
    /// Those of each kind that came.
    pub operations: Vec<Operation>,
    /// Connections that were taken.
    pub connection_count: u64,
    /// Connections that were turned away, because there were too many.
    pub turned_away_count: u64,
    /// Requests that are no command of the server.
    pub refused_count: u64,
    /// Connections that were ended for what they sent.
    pub violation_count: u64,
    /// What the first of them sent.
    pub first_violation: Option<String>,
    /// What RocksDB says first of what it has not done.
    pub first_error: Option<String>,
    /// What RocksDB has counted.
    pub store: Store,
}

/// What became of the commands of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Its name, such as `get`.
    pub operation: String,
    /// From when a command had arrived until a thread had it.
    pub waited: LatencySummary,
    /// From then until its answer was there.
    pub served: LatencySummary,
    /// Commands that RocksDB has not done.
    pub error_count: u64,
}

/// What RocksDB has counted since the store was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// Blocks found in the cache.
    pub block_cache_hit_count: u64,
    /// Blocks that had to be read.
    pub block_cache_miss_count: u64,
    /// Bytes that flushes have written.
    pub flush_write_bytes: u64,
    /// Bytes that compactions have read.
    pub compaction_read_bytes: u64,
    /// Bytes that compactions have written.
    pub compaction_write_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Times the log was synced to the medium.
    pub log_sync_count: u64,
    /// Time in which writers were held up for flushes or compactions to catch up, in nanoseconds.
    pub stall_ns: u64,
}

impl Record for KvServed {
    const SCHEMA: &'static str = "afar.kv.serve/1";
}
