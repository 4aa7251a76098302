//! `--fail-above`: an exit status that says whether every cell is within a slowdown.
//!
//! The gate is open only if the whole interval of each cell is at or below the bound. A cell whose
//! whole interval is above closes the gate. Any other cell closes it, too, with another status,
//! because more runs may decide it.

use console::{Class, Classed};
use results::{CellKind, Finding, Verdict};

/// The least repetitions: fewer runs have no interval (see `experiment::stats`).
const RUNS_MIN: u32 = 5;

/// Why `--fail-above` is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GateError {
    #[error("--fail-above {0}: give a share above 0 with its sign, such as 5%")]
    Bound(String),
    #[error("--fail-above {0}: repetitions = {1} decides nothing; set at least {RUNS_MIN}")]
    TooFew(String, u32),
}

/// Why the gate is closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Closed {
    /// Cells whose whole interval is above the bound.
    #[error(
        "--fail-above {bound}: {count} of {all} cells are slower than that, the first at {first}; \
         give them more local memory or a faster network, or raise the bound"
    )]
    Above { bound: String, count: usize, all: usize, first: String },
    /// Cells that are undecided, disturbed, implausible or invalid.
    #[error(
        "--fail-above {bound}: {count} of {all} cells are not decided, the first at {first}; use a \
         quieter machine, or raise repetitions in the experiment"
    )]
    Undecided { bound: String, count: usize, all: usize, first: String },
}

impl Classed for Closed {
    fn class(&self) -> Class {
        match self {
            Self::Above { .. } => Class::Above,
            Self::Undecided { .. } => Class::Undecided,
        }
    }
}

/// A share as a ratio of run times: 1.05 for `5%`; `None` if `text` is no share above 0.
pub(crate) fn share(text: &str) -> Option<f64> {
    let share: Option<f64> = text.strip_suffix('%').and_then(|share| share.trim().parse().ok());
    share.filter(|share| share.is_finite() && *share > 0.0).map(|share| 1.0 + share / 100.0)
}

/// A bound for every cell.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    /// The largest slowdown, as a ratio to the native run.
    bound: f64,
    /// The bound as the user wrote it.
    text: String,
}

impl Gate {
    /// The gate with the bound `text` for an experiment with `repetitions`.
    ///
    /// # Errors
    /// When the bound is no share, or there are too few repetitions to decide anything.
    pub(crate) fn new(text: &str, repetitions: u32) -> Result<Self, GateError> {
        let bound = share(text).ok_or_else(|| GateError::Bound(text.to_owned()))?;
        if repetitions < RUNS_MIN {
            return Err(GateError::TooFew(text.to_owned(), repetitions));
        }
        Ok(Self { bound, text: text.to_owned() })
    }

    /// Why the gate is closed; `None` if every cell with far memory is within the bound.
    pub(crate) fn closed(&self, findings: &[Finding]) -> Option<Closed> {
        let far: Vec<&Finding> =
            findings.iter().filter(|finding| finding.kind == CellKind::Far).collect();
        let of = |is: fn(Verdict) -> bool| -> Vec<&&Finding> {
            far.iter().filter(|finding| is(finding.verdict_beside(self.bound))).collect()
        };
        let above = of(|verdict| verdict == Verdict::Beyond);
        let open = of(|verdict| verdict != Verdict::Within);
        let (bound, all) = (self.text.clone(), far.len());
        if let [first, ..] = above.as_slice() {
            let first = self.told(first);
            return Some(Closed::Above { bound, count: above.len(), all, first });
        }
        let [first, ..] = open.as_slice() else { return None };
        let first = self.told(first);
        Some(Closed::Undecided { bound, count: open.len(), all, first })
    }

    /// A cell with its slowdown and verdict, as text.
    fn told(&self, finding: &Finding) -> String {
        let settings = finding.settings.iter().map(|(axis, value)| format!("{axis}={value}"));
        let settings = settings.collect::<Vec<_>>().join(" ");
        let verdict = match finding.verdict_beside(self.bound) {
            Verdict::Beyond => "above",
            other => other.words(),
        };
        let figure = finding.slowdown.map_or_else(|| "no figure".to_owned(), |one| one.text(3));
        format!("{settings}: {figure}, {verdict}")
    }
}

#[cfg(test)]
mod tests {
    use results::{Estimate, Interval};

    use super::*;

    fn gate() -> Gate {
        Gate::new("5%", 5).expect("it is one")
    }

    fn cell(low: f64, high: f64, verdict: Verdict) -> Finding {
        let interval = Some(Interval { low, high, level: 0.93 });
        let slowdown = Some(Estimate { median: f64::midpoint(low, high), interval, count: 5 });
        let settings = [("local".to_owned(), "25%".to_owned())].into();
        Finding { slowdown, verdict, ..Finding::new(CellKind::Far, settings) }
    }

    fn status(findings: &[Finding]) -> u8 {
        gate().closed(findings).map_or(0, |closed| closed.class().status())
    }

    #[test]
    fn only_what_is_within_with_its_whole_interval_passes() {
        let good = || cell(1.0, 1.04, Verdict::Undecided);
        let far = |finding: Finding| [good(), finding, good()];
        assert_eq!(status(&far(good())), 0);
        assert_eq!(status(&far(cell(1.02, 1.04, Verdict::Beyond))), 0, "slower, but within");
        assert_eq!(status(&far(cell(1.06, 1.2, Verdict::Beyond))), 5);
        assert_eq!(status(&far(cell(1.04, 1.06, Verdict::Beyond))), 6, "it holds the bound");
        assert_eq!(status(&far(cell(0.5, 0.9, Verdict::Implausible))), 6, "faster than native");
        assert_eq!(status(&far(cell(1.0, 1.01, Verdict::Disturbed))), 6);
        let few = Estimate { median: 1.0, interval: None, count: 2 };
        assert_eq!(status(&far(Finding { slowdown: Some(few), ..good() })), 6, "n too small");
        for verdict in [Verdict::Invalid, Verdict::Undecided] {
            let none = Finding { slowdown: None, ..cell(1.0, 1.0, verdict) };
            assert_eq!(status(&far(none)), 6, "{verdict:?}");
        }
        // What is slower for sure is told first, whatever else is open.
        let both = [cell(1.04, 1.06, Verdict::Beyond), cell(1.06, 1.2, Verdict::Beyond)];
        assert_eq!(status(&both), 5);
        let told = gate().closed(&both).expect("it is closed").to_string();
        assert!(told.contains("1 of 2 cells") && told.contains("at local=25%: 1.130 ["), "{told}");
    }

    #[test]
    fn cells_without_far_memory_are_not_judged() {
        let zero = Finding { kind: CellKind::Zero, ..cell(2.0, 3.0, Verdict::Beyond) };
        assert_eq!(status(&[zero, cell(1.0, 1.01, Verdict::Undecided)]), 0);
    }

    #[test]
    fn a_gate_that_could_decide_nothing_is_refused() {
        let error = Gate::new("5%", 4).expect_err("no interval").to_string();
        assert!(error.contains("repetitions = 4") && error.contains("at least 5"), "{error}");
        for wrong in ["5", "0%", "-1%", "x%"] {
            let error = Gate::new(wrong, 5).expect_err(wrong).to_string();
            assert!(error.starts_with(&format!("--fail-above {wrong}: ")), "{error}");
        }
    }
}
