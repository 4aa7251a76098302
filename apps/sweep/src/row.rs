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
    /// The figure; `None` if the run failed or is invalid.
    pub value: Option<f64>,
    /// The numbers at `metric.further`; `None` where there is no number.
    pub further: Vec<Option<f64>>,
    /// Why the run failed; `None` if it did not.
    pub failure: Option<String>,
    /// Why the run is invalid, and so has no figures; `None` if it is valid.
    pub invalid: Option<String>,
    /// Whether the run is valid only because the user allows unmanaged memory.
    pub allowed: bool,
    /// When it began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// From start to end, the start of the program included, in nanoseconds.
    pub elapsed_ns: u64,
    /// What other programs and guests did during the run.
    pub noise: Noise,
    /// What disturbed the run; `None` if nothing did. Disturbed runs do not count beside others.
    pub disturbed: Option<String>,
    /// Earlier attempts that were discarded because they were more disturbed.
    pub repeated_count: u32,
    /// Pages fetched; `None` for a native run.
    pub fetch_count: Option<u64>,
    /// The median time of a fetch, in nanoseconds.
    pub fetch_p50_ns: Option<u64>,
    /// The most memory that was managed at a time.
    pub managed_peak_bytes: Option<u64>,
    /// The memory that its local memory is a share of; `None` if that varies over time.
    pub of_bytes: Option<u64>,
    /// Its local memory; `None` if that varies over time.
    pub local_bytes: Option<u64>,
    /// Memory that was not managed, and so stayed local.
    pub unmanaged_bytes: Option<u64>,
    /// Whether local memory stayed within its budget.
    pub budget_held: Option<bool>,
    /// The cost of a fault alone, by afar's calibration right before the run, in nanoseconds;
    /// `None` for a native run.
    #[serde(default)]
    pub floor_ns: Option<u64>,
    /// The class of the machine that ran it (`experiment::machine::class`); `None` in rows of an
    /// older afar.
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
