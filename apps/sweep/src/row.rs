//! The journal's record of a run.

use experiment::Measured;
use experiment::journal::Keyed;
use experiment::noise::Noise;
use serde::{Deserialize, Serialize};

/// One run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Counted from 0.
    pub block: u32,
    /// Name of its [`Cell`](crate::Cell).
    pub cell: String,
    /// The figure; nothing if the run failed or is invalid.
    pub value: Option<f64>,
    /// What `metric.further` points to; nothing where it points to no number.
    pub further: Vec<Option<f64>>,
    /// Why it failed.
    pub failure: Option<String>,
    /// Why nothing is concluded from it; it has no numbers then.
    pub invalid: Option<String>,
    /// Whether it would be invalid, had the user not allowed memory that is not managed.
    pub allowed: bool,
    /// When it began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// From start to end, the start of the program included, in nanoseconds.
    pub elapsed_ns: u64,
    /// What it was measured beside.
    pub noise: Noise,
    /// What disturbed it: nothing is concluded from it beside undisturbed runs.
    pub disturbed: Option<String>,
    /// Runs before this one that were thrown away because they lost more.
    pub repeated_count: u32,
    /// Pages fetched; nothing for a native run.
    pub fetch_count: Option<u64>,
    /// The median time of a fetch, in nanoseconds.
    pub fetch_p50_ns: Option<u64>,
    /// The most memory that was managed at a time.
    pub managed_peak_bytes: Option<u64>,
    /// What a share of its local memory is a share of; nothing if that changes all the time.
    pub of_bytes: Option<u64>,
    /// Its local memory; nothing if that changes all the time.
    pub local_bytes: Option<u64>,
    /// Memory that stayed local although it should not.
    pub unmanaged_bytes: Option<u64>,
    /// Whether local memory stayed within its budget.
    pub budget_held: Option<bool>,
    /// What a fault cost by itself on the machine, as afar found right before the run, in
    /// nanoseconds; nothing for a native run.
    #[serde(default)]
    pub floor_ns: Option<u64>,
    /// The class of the machine that ran it (`experiment::machine::class`); nothing is known of
    /// runs of an earlier afar.
    #[serde(default)]
    pub host_class: Option<String>,
}

impl Row {
    /// Why the run has no figure; `None` if it has one.
    pub fn trouble(&self) -> Option<&str> {
        self.failure.as_deref().or(self.invalid.as_deref())
    }

    /// This run as an invalid one: drops its figures.
    pub fn invalidated(self, why: String) -> Self {
        let Self { block, cell, started_unix_ns, unmanaged_bytes, .. } = self;
        let invalid = Some(why);
        Self { block, cell, started_unix_ns, unmanaged_bytes, invalid, ..Self::default() }
    }
}

impl Measured for Row {
    fn noise(&self) -> &Noise {
        &self.noise
    }

    fn is_disturbed(&self) -> bool {
        self.disturbed.is_some()
    }

    fn has_figure(&self) -> bool {
        self.value.is_some()
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
