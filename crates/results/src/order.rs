//! The order in which a program's pages were first fetched from a blade.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar run --remember` writes, and replays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PageOrder {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Path of the executed file.
    pub executable: String,
    /// FNV-1a hash of the executed file, 64 bits in hexadecimal; missing if the file may not be
    /// read.
    pub executable_hash: Option<String>,
    /// Number of pages in the order.
    pub page_count: u64,
    /// Runs of adjacent pages, as `PROCESS:PAGE+COUNT`: processes begun before, first address over
    /// 4096 in hexadecimal, pages. No page occurs twice.
    pub runs: Vec<String>,
}

impl Record for PageOrder {
    const SCHEMA: &'static str = "afar.order/1";
}
