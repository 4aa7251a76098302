//! Which afar this is, how it was built, and which records it writes.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar version --json` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Version of the program.
    pub version: String,
    /// What it was built for, such as `x86_64-unknown-linux-gnu`.
    pub target: String,
    /// What it was built by, such as `rustc 1.91.0`.
    pub compiler: String,
    /// Whether it was optimized: figures of one that was not are not afar's.
    pub is_optimized: bool,
    /// Name and version of every record that its commands write, in order.
    pub records: Vec<String>,
}

impl Record for About {
    const SCHEMA: &'static str = "afar.version/1";
}
