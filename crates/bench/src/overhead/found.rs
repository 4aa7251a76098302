//! What a comparison with the native program found.

use serde_json::Value;

use crate::report::Verdict;

/// What one part found.
pub(super) struct Found {
    pub(super) name: &'static str,
    pub(super) settings: Value,
    pub(super) results: Value,
    pub(super) text: String,
    pub(super) verdicts: Vec<Verdict>,
}
