//! The order in which a program's pages were first fetched from a blade.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar run --remember` writes, and replays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PageOrder {
    /// Version of the afar that wrote it.
    pub version: String,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The file that was executed.
    pub executable: String,
    /// The FNV-1a hash of what that file holds, 64 bits in hexadecimal; nothing if it may be
    /// executed and not read.
    pub executable_hash: Option<String>,
    /// Pages in the order, in all.
    pub page_count: u64,
    /// The pages, as `PROCESS:PAGE+COUNT`: how many managed processes began before their process;
    /// the address of the first divided by 4096, in hexadecimal; how many follow one another from
    /// there on. No page is in it twice.
    pub runs: Vec<String>,
}

impl Record for PageOrder {
    const SCHEMA: &'static str = "afar.order/1";
}
