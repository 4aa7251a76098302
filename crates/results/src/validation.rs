//! An emulated run beside one that is really far.

use serde::{Deserialize, Serialize};

use crate::{Estimate, Record};

/// What `afar run --validate --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The blades of the real runs, as `--far` takes them.
    pub far: String,
    /// Local memory of the program: a share or a size.
    pub local: String,
    /// What `local` is a share of: `live` (what is in use at each moment) or a size; missing if
    /// `local` is a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Eviction policy.
    pub policy: String,
    /// Prefetch policy.
    pub prefetch: String,
    /// Seed of every run that counts; runs that measure the profile or calibrate have the next
    /// seed.
    pub seed: u64,
    /// Largest relative difference of times between emulated and real runs that still agree, a
    /// share.
    pub within: f64,
    /// Largest relative difference of fetches and bytes moved between emulated and real runs that
    /// still agree, a share.
    pub counts_within: f64,
    /// Why nothing may be concluded, and there are no figures but perhaps the profile; missing if
    /// the validation is valid.
    pub invalid: Option<String>,
    /// Fetch times that plain emulated runs follow: of a real run made for this, or of a given
    /// profile; missing if invalid before the measurement.
    pub profile: Option<FetchTimes>,
    /// Time of native runs, in seconds; missing if invalid.
    pub native_seconds: Option<Estimate>,
    /// The runs whose pages were on a blade; missing if invalid.
    pub real: Option<ValidatedSide>,
    /// The emulated runs: plain ones first, then those with one thing changed.
    pub emulated: Vec<Emulated>,
}

/// What fetches took, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FetchTimes {
    /// Number of measured fetches; 0 for a given profile.
    pub count: u64,
    /// Mean time of a fetch, in microseconds.
    pub mean_us: f64,
    /// Median time of a fetch, in microseconds.
    pub p50_us: f64,
    /// 99th percentile of the time of a fetch, in microseconds.
    pub p99_us: f64,
}

/// Runs of one kind: real, or emulated in one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ValidatedSide {
    /// How a thread waited for a page: `spin` or `sleep`.
    pub wait: String,
    /// Time from start to exit of the program, in seconds.
    pub seconds: Estimate,
    /// Slowdown beside the native run of the same block.
    pub slowdown: Estimate,
    /// Median number of pages fetched by a run.
    pub fetch_count: f64,
    /// Median number of bytes fetched and written back by a run.
    pub moved_bytes: f64,
    /// Times of fetches in the last run, with the end of a fetch that a trap cannot see.
    pub fetch: FetchTimes,
}

/// Emulated runs beside real ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Emulated {
    /// `plain`, or what was changed (see `--ablate`).
    pub name: String,
    /// What the emulated runs measured.
    pub side: ValidatedSide,
    /// Time of an emulated run over that of the real run of the same block.
    pub ratio: Estimate,
    /// Pages fetched by emulated runs over those fetched by real runs (medians).
    pub fetch_ratio: f64,
    /// Bytes moved by emulated runs over those moved by real runs (medians).
    pub moved_ratio: f64,
    /// Whether emulated and real runs agree; `counts`: other pages were moved; `insensitive`: far
    /// memory slows the program too little to tell.
    pub agreement: Agreement,
    /// Pairs of runs of which one was disturbed; they count only if fewer than five others are
    /// left.
    pub disturbed_count: u64,
    /// What disturbed the first disturbed pair of runs; missing if no pair was disturbed.
    pub first_disturbance: Option<String>,
}

/// What an emulated run beside a real one comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    /// The whole interval of the ratio is within the bound, and so are the counts.
    Agrees,
    /// The whole interval of the ratio is beyond the bound.
    Differs,
    /// The times may agree, but other pages were fetched or written back.
    Counts,
    /// The interval holds an end of the bound, or there are too few runs for one.
    Undecided,
    /// The times agree, and far memory slows the program down so little that they would anyway.
    Insensitive,
    /// Other programs or other guests took processor time, and fewer than five pairs are left.
    Disturbed,
}

/// A program that far memory slows down by less says nothing of how far memory is emulated.
pub const SLOWDOWN_MIN: f64 = 1.3;

impl Agreement {
    /// The verdict on a program with this slowdown: one below `SLOWDOWN_MIN` agrees with nothing.
    #[must_use]
    pub fn with_slowdown(self, slowdown: f64) -> Self {
        match self {
            Self::Agrees if slowdown < SLOWDOWN_MIN => Self::Insensitive,
            other => other,
        }
    }

    /// The verdict on a ratio of times with the bound `within`, and on two ratios of counts with
    /// the bound `counts_within`; each should be 1.
    #[must_use]
    pub fn of(ratio: &Estimate, within: f64, counts: [f64; 2], counts_within: f64) -> Self {
        let is_near = |ratio: &f64, bound: f64| (ratio - 1.0).abs() <= bound;
        let (least, most) = (1.0 - within, 1.0 + within);
        match ratio.ends() {
            Some((low, high)) if high < least || low > most => Self::Differs,
            _ if !counts.iter().all(|count| is_near(count, counts_within)) => Self::Counts,
            Some((low, high)) if low >= least && high <= most => Self::Agrees,
            _ => Self::Undecided,
        }
    }

    /// The verdict as a text for tables and pages.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "DIFFERS",
            Self::Counts => "DIFFERS in what was moved",
            Self::Undecided => "undecided",
            Self::Insensitive => "slowed down too little to tell",
            Self::Disturbed => "disturbed",
        }
    }
}

impl Record for Validation {
    const SCHEMA: &'static str = "afar.validation/1";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;

    fn of(low: f64, high: f64, counts: [f64; 2]) -> Agreement {
        let interval = Some(Interval { low, high, level: 0.95 });
        let ratio = Estimate { median: f64::midpoint(low, high), interval, count: 7 };
        Agreement::of(&ratio, 0.05, counts, 0.02)
    }

    #[test]
    fn an_interval_agrees_as_a_whole_or_not() {
        assert_eq!(of(0.96, 1.04, [1.0; 2]), Agreement::Agrees);
        assert_eq!(of(0.94, 1.04, [1.0; 2]), Agreement::Undecided);
        assert_eq!(of(0.96, 1.06, [1.0; 2]), Agreement::Undecided);
        assert_eq!(of(1.051, 1.2, [1.0; 2]), Agreement::Differs);
        assert_eq!(of(0.5, 0.94, [1.0; 2]), Agreement::Differs);
    }

    #[test]
    fn times_that_agree_by_other_pages_do_not_agree() {
        assert_eq!(of(0.96, 1.04, [1.03, 1.0]), Agreement::Counts);
        assert_eq!(of(0.96, 1.04, [1.0, 0.97]), Agreement::Counts);
        assert_eq!(of(0.96, 1.04, [1.019, 0.981]), Agreement::Agrees);
        assert_eq!(of(1.1, 1.2, [1.5, 1.0]), Agreement::Differs);
    }

    #[test]
    fn who_is_hardly_slower_agrees_with_nothing() {
        let agrees = of(0.96, 1.04, [1.0; 2]);
        assert_eq!(agrees.with_slowdown(1.3), Agreement::Agrees);
        assert_eq!(agrees.with_slowdown(1.29), Agreement::Insensitive);
        assert_eq!(of(1.1, 1.2, [1.0; 2]).with_slowdown(1.0), Agreement::Differs);
    }

    #[test]
    fn too_few_runs_decide_nothing() {
        let ratio = Estimate { median: 1.0, interval: None, count: 4 };
        assert_eq!(Agreement::of(&ratio, 0.05, [1.0; 2], 0.02), Agreement::Undecided);
    }
}
