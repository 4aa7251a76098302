//! One run of a sweep that has ended.

use serde::{Deserialize, Serialize};

use results::Figures;

/// One run that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) cell: String,
    /// Nothing if it failed.
    pub(super) figures: Option<Figures>,
    /// Why it failed.
    pub(super) failure: Option<String>,
    pub(super) cpu_ns: u64,
}
