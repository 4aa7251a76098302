//! One run of a sweep, as its journal keeps it.

use experiment::journal::Keyed;
use experiment::noise::Noise;
use serde::{Deserialize, Serialize};

/// One run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// Counted from 0.
    pub(crate) block: u32,
    pub(crate) cell: String,
    /// The figure; nothing if the run failed or is invalid.
    pub(crate) value: Option<f64>,
    /// What `metric.further` points to; nothing where it points to no number.
    pub(crate) further: Vec<Option<f64>>,
    /// Why it failed.
    pub(crate) failure: Option<String>,
    /// Why nothing is concluded from it; it has no numbers then.
    pub(crate) invalid: Option<String>,
    /// Whether it would be invalid, had the user not allowed memory that is not managed.
    pub(crate) allowed: bool,
    pub(crate) started_unix_ns: u64,
    pub(crate) elapsed_ns: u64,
    /// What it was measured beside.
    pub(crate) noise: Noise,
    /// What disturbed it: nothing is concluded from it beside undisturbed runs.
    pub(crate) disturbed: Option<String>,
    /// Runs before this one that were thrown away because they lost more.
    pub(crate) repeated_count: u32,
    pub(crate) fetch_count: Option<u64>,
    pub(crate) fetch_p50_ns: Option<u64>,
    pub(crate) managed_peak_bytes: Option<u64>,
    pub(crate) unmanaged_bytes: Option<u64>,
    pub(crate) budget_held: Option<bool>,
}

impl Row {
    /// Why it has no figure, if it has none.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.failure.as_deref().or(self.invalid.as_deref())
    }

    /// Nothing is concluded from the run: its numbers go, so that nobody can use them.
    pub(crate) fn invalidated(self, why: String) -> Self {
        let Self { block, cell, started_unix_ns, unmanaged_bytes, .. } = self;
        let invalid = Some(why);
        Self { block, cell, started_unix_ns, unmanaged_bytes, invalid, ..Self::default() }
    }
}

impl Keyed for Row {
    fn block(&self) -> u32 {
        self.block
    }

    fn cell(&self) -> &str {
        &self.cell
    }
}
