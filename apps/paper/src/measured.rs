//! A figure with what it was measured on.

use serde_json::Value;

use super::report::Report;

/// A figure with what it was measured on.
pub(super) struct Measured {
    pub(super) report: Report,
    /// What it was measured on, in lines, and for the record.
    pub(super) described: String,
    pub(super) bed: Value,
    pub(super) is_interrupted: bool,
}
