//! What repeated runs say of a quantity, and what follows from it.

use serde::{Deserialize, Serialize};

/// The median of repeated runs, and where the true median lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Median of the runs.
    pub median: f64,
    /// Interval that holds the true median; missing if there are too few runs, or too few flows for
    /// a percentile.
    pub interval: Option<Interval>,
    /// Number of runs that the median is of; 0 if the median was computed and not measured.
    pub count: u64,
}

/// Where a true median lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Confidence of the interval: the share of experiments whose interval holds the true median, 0
    /// to 1.
    pub level: f64,
}

/// What a slowdown comes to beside a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval is at or below the bound.
    Within,
    /// The whole interval is above the bound.
    Beyond,
    /// The interval holds the bound, or there are too few runs for an interval.
    Undecided,
    /// The whole interval is below 1: far memory cannot make a program faster, so something else
    /// did.
    Implausible,
    /// Other programs or other guests took processor time while it ran.
    Disturbed,
    /// No valid run is left.
    Invalid,
}

impl Estimate {
    /// `1.234 [1.200, 1.300]`, or the median and why there is no interval.
    #[must_use]
    pub fn text(&self, decimals: usize) -> String {
        let Self { median, interval, count } = self;
        match interval {
            Some(Interval { low, high, .. }) => {
                format!("{median:.decimals$} [{low:.decimals$}, {high:.decimals$}]")
            }
            None => format!("{median:.decimals$} [n too small: {count}]"),
        }
    }

    /// The ends of the interval; `None` without one.
    #[must_use]
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.interval.map(|Interval { low, high, .. }| (low, high))
    }

    /// The verdict on a slowdown beside `bound`; 1 is as fast as without far memory.
    #[must_use]
    pub fn verdict(&self, bound: f64) -> Verdict {
        match self.ends() {
            Some((_, high)) if high < 1.0 => Verdict::Implausible,
            Some((_, high)) if high <= bound => Verdict::Within,
            Some((low, _)) if low > bound => Verdict::Beyond,
            _ => Verdict::Undecided,
        }
    }
}

impl Estimate {
    /// A text for people: whether a slowdown beside runs without delay differs from 1.
    #[must_use]
    pub fn told_beside_none(&self) -> &'static str {
        match (self.interval, self.verdict(1.0)) {
            (None, _) => "undecided: n too small",
            (_, Verdict::Beyond) => "slower than without delay",
            (_, Verdict::Implausible) => {
                "implausible: faster than without delay, so the machine was disturbed"
            }
            _ => "undecided: the interval holds 1",
        }
    }
}

impl Verdict {
    /// A text for people, of a slowdown beside a bound.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Within => "within the bound",
            Self::Beyond => "beyond the bound",
            Self::Undecided => "undecided",
            Self::Implausible => "implausible: faster than native, so the machine was disturbed",
            Self::Disturbed => "disturbed",
            Self::Invalid => "invalid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(low: f64, median: f64, high: f64) -> Estimate {
        Estimate { median, interval: Some(Interval { low, high, level: 0.94 }), count: 5 }
    }

    #[test]
    fn verdict_follows_the_interval_and_never_the_median() {
        assert_eq!(estimate(1.0, 1.02, 1.05).verdict(1.05), Verdict::Within);
        assert_eq!(estimate(1.051, 1.2, 1.3).verdict(1.05), Verdict::Beyond);
        assert_eq!(estimate(1.0, 1.01, 1.06).verdict(1.05), Verdict::Undecided);
        assert_eq!(estimate(1.0, 1.2, 1.3).verdict(1.05), Verdict::Undecided);
        assert_eq!(estimate(0.5, 0.6, 0.75).verdict(1.05), Verdict::Implausible);
        assert_eq!(estimate(0.5, 0.6, 1.0).verdict(1.05), Verdict::Within);
        let told = |low: f64, high: f64| estimate(low, f64::midpoint(low, high), high);
        assert_eq!(told(1.01, 1.3).told_beside_none(), "slower than without delay");
        assert_eq!(told(0.9, 1.3).told_beside_none(), "undecided: the interval holds 1");
        assert!(told(0.5, 0.9).told_beside_none().starts_with("implausible: faster"));
        let few = Estimate { median: 0.6, interval: None, count: 2 };
        assert_eq!(few.told_beside_none(), "undecided: n too small");
        assert_eq!(few.verdict(1.05), Verdict::Undecided);
        assert_eq!(few.text(2), "0.60 [n too small: 2]");
    }
}
