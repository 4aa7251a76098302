//! The results of a figure.

use serde_json::Value;

use super::report::Report;

/// A figure's report, with a description of how it was measured.
pub(super) struct Measured {
    pub(super) report: Report,
    /// How it was measured, in lines of text,
    pub(super) described: String,
    /// and for the record.
    pub(super) bed: Value,
    pub(super) is_interrupted: bool,
}
