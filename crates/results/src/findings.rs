//! What a sweep has found, cell by cell.

use std::collections::BTreeMap;

use measure::{Bytes, Host, LocalSize, ShareOf};
use serde::{Deserialize, Serialize};

use crate::{Estimate, Record, Verdict};

/// Of the directory in which a sweep keeps its runs.
pub const SWEEP_SCHEMA: &str = "afar.sweep/4";

/// What `afar sweep --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Findings {
    /// Version of the afar that wrote it.
    pub version: String,
    /// The command that ran the sweep.
    pub command: Vec<String>,
    /// When the sweep began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The machine.
    pub host: Host,
    /// The program and its arguments.
    pub workload: Vec<String>,
    /// The program's figure without afar; nothing if no such run is left, or machines of several
    /// classes ran it: `machine` among the settings of a cell is then that of its runs.
    pub native: Option<Native>,
    /// One for each combination of settings.
    pub cells: Vec<Finding>,
}

/// The program's own figure, without afar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Native {
    /// Seconds, or whatever the experiment's metric reads.
    pub figure: Estimate,
    /// What the figure is: `seconds`, or the pattern or pointer that reads it.
    pub metric: String,
    /// Whether more is better.
    pub higher_is_better: bool,
}

/// What kind of run a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// Without afar.
    Native,
    /// Without afar and without transparent huge pages, which memory under the arena engine has
    /// not either.
    Small,
    /// With all memory local and no delay.
    Zero,
    /// With far memory.
    Far,
}

/// What the runs of one cell say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What kind of run it is.
    pub kind: CellKind,
    /// Axis and value.
    pub settings: BTreeMap<String, String>,
    /// What the share of its local memory is a share of, whatever `of` is among the settings;
    /// nothing if that changes all the time, or its local memory is no share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bytes: Option<u64>,
    /// Its local memory; nothing if that changes all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_bytes: Option<u64>,
    /// How many times slower than the native run of the same block; nothing without valid runs.
    pub slowdown: Option<Estimate>,
    /// The same against the run of the same block with all memory local and no delay.
    pub slowdown_beside_zero: Option<Estimate>,
    /// Whether the slowdown is above 1.
    pub verdict: Verdict,
    /// Runs that stand out; they count all the same.
    pub outliers: Vec<Outlier>,
    /// Runs that failed.
    pub failed_count: u64,
    /// Why the first of them did.
    pub first_failure: Option<String>,
    /// Runs from which nothing is concluded.
    pub invalid_count: u64,
    /// Why not from the first of them.
    pub first_invalid: Option<String>,
    /// Runs during which the machine had other work, or whose native run had that.
    pub disturbed_count: u64,
    /// What the first of them was disturbed by.
    pub first_disturbance: Option<String>,
    /// Runs that count because unmanaged memory was allowed.
    pub allowed_count: u64,
    /// Pages fetched by a run, in the median; nothing if no run says.
    pub fetch_count: Option<u64>,
    /// Runs that held more local memory than their budget.
    pub budget_exceeded_count: u64,
}

/// A run that stands out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Outlier {
    /// Its block, counted from 0.
    pub block: u32,
    /// Its slowdown.
    pub slowdown: f64,
}

impl Record for Findings {
    const SCHEMA: &'static str = "afar.findings/3";
}

impl Finding {
    /// A cell without runs.
    #[must_use]
    pub const fn new(kind: CellKind, settings: BTreeMap<String, String>) -> Self {
        Self {
            kind,
            settings,
            of_bytes: None,
            local_bytes: None,
            slowdown: None,
            slowdown_beside_zero: None,
            verdict: Verdict::Undecided,
            outliers: Vec::new(),
            failed_count: 0,
            first_failure: None,
            invalid_count: 0,
            first_invalid: None,
            disturbed_count: 0,
            first_disturbance: None,
            allowed_count: 0,
            fetch_count: None,
            budget_exceeded_count: 0,
        }
    }

    /// The cell's value of `axis`; empty if it has none.
    #[must_use]
    pub fn value(&self, axis: &str) -> &str {
        self.settings.get(axis).map_or("", String::as_str)
    }

    /// The whole of which local memory is a share; `None` if local memory is no share.
    #[must_use]
    pub fn share_of(&self) -> Option<ShareOf> {
        let LocalSize::Fraction(_) = self.value("local").parse().ok()? else { return None };
        // Older records, of an afar that knew only `live`, have no `of`.
        Some(self.value("of").parse().unwrap_or(ShareOf::Live))
    }

    /// [`Self::share_of`] as a text for people.
    #[must_use]
    pub fn share_told(&self) -> Option<String> {
        Some(self.share_of()?.told(self.of_bytes.map(Bytes::new)))
    }

    /// The verdict on the slowdown beside `bound`, a ratio; a disturbance overrules every number.
    #[must_use]
    pub fn verdict_beside(&self, bound: f64) -> Verdict {
        match (self.verdict, &self.slowdown) {
            (Verdict::Disturbed, _) => Verdict::Disturbed,
            (_, Some(slowdown)) => slowdown.verdict(bound),
            (Verdict::Invalid, None) => Verdict::Invalid,
            (_, None) => Verdict::Undecided,
        }
    }
}
