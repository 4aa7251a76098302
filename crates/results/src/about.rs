//! Which afar this is, how it was built, and which records it writes.

use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar version --json` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Version of the afar program.
    pub version: String,
    /// Platform that afar was built for, such as `x86_64-unknown-linux-gnu`.
    pub target: String,
    /// Compiler that built afar, such as `rustc 1.91.0`.
    pub compiler: String,
    /// Whether afar was built with optimizations; figures of a build without them are not
    /// representative.
    pub is_optimized: bool,
    /// Name and version of every record that commands of afar write, sorted.
    pub records: Vec<String>,
}

impl Record for About {
    const SCHEMA: &'static str = "afar.version/1";
}
