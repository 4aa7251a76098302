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
    /// Version of the afar that wrote the record.
    pub version: String,
    /// The command that ran the sweep.
    pub command: Vec<String>,
    /// Start of the sweep, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: u64,
    /// The machine that ran the sweep.
    pub host: Host,
    /// The program and its arguments.
    pub workload: Vec<String>,
    /// Figure of the native runs; missing if none is left, or if machines of several classes ran
    /// the sweep.
    pub native: Option<Native>,
    /// Cells, one for each combination of settings.
    pub cells: Vec<Finding>,
}

/// The figure of native runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Native {
    /// Figure of undisturbed native runs: seconds, or what `metric` reads.
    pub figure: Estimate,
    /// What the figure of a run is: `seconds`, or the pattern or pointer that reads the figure.
    pub metric: String,
    /// Whether a higher figure is better.
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
    /// Kind of run: `native`, `small` (native without transparent huge pages), `zero` (all memory
    /// local, no delay) or `far`.
    pub kind: CellKind,
    /// Settings of the cell: the value of each axis, by the name of the axis.
    pub settings: BTreeMap<String, String>,
    /// Bytes that local memory is a share of; missing if they change all the time, or if local
    /// memory is no share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bytes: Option<u64>,
    /// Local memory of the runs; missing if it changes all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_bytes: Option<u64>,
    /// Slowdown: figure of a run beside the native run of its block; missing without valid runs.
    pub slowdown: Option<Estimate>,
    /// Slowdown beside the `zero` run (all memory local, no delay) of the block; missing without
    /// valid runs or for another kind than `far`.
    pub slowdown_beside_zero: Option<Estimate>,
    /// `beyond`: slower than native; `implausible`: faster; `undecided`; `disturbed`: too few
    /// undisturbed runs; `invalid`: no valid run.
    pub verdict: Verdict,
    /// Runs whose slowdown is far from the others; they count all the same.
    pub outliers: Vec<Outlier>,
    /// Runs that failed.
    pub failed_count: u64,
    /// Why the first failed run failed; missing if no run failed.
    pub first_failure: Option<String>,
    /// Runs from which nothing may be concluded.
    pub invalid_count: u64,
    /// Why the first invalid run is invalid; missing if no run is.
    pub first_invalid: Option<String>,
    /// Runs that were disturbed, or whose native run was.
    pub disturbed_count: u64,
    /// What disturbed the first disturbed run or its native run; missing if no run was disturbed.
    pub first_disturbance: Option<String>,
    /// Runs that count only because the user allowed unmanaged memory.
    pub allowed_count: u64,
    /// Median number of pages fetched by a run; missing if no run counted fetches.
    pub fetch_count: Option<u64>,
    /// Runs that exceeded their budget of local memory.
    pub budget_exceeded_count: u64,
}

/// A run that stands out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Outlier {
    /// Block of the outlying run, counted from 0.
    pub block: u32,
    /// Slowdown of the outlying run beside the native run of its block.
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
