//! Judges the second half of the paper's ordering, that iSCSI is behind, one figure at a time.
//!
//! The first half, that `NVMf` is like local access, is compared with the paper's numbers. The
//! paper's iSCSI target is one of its time; so whether the protocol is behind is judged here
//! against NVMe/TCP from the same target.

use super::super::report::Verdict;
use super::super::way::PerWay;

/// A figure of NVMe/TCP and iSCSI, and what the paper says of it.
#[derive(Debug)]
pub(super) struct Compared<'a> {
    /// The name of the figure, and the load.
    pub(super) what: &'a str,
    /// Whether a larger figure is better.
    pub(super) is_rate: bool,
    pub(super) figures: PerWay<f64>,
    pub(super) text: fn(f64) -> String,
    pub(super) paper: &'a str,
}

/// Figures that differ by less than this share count as equal.
const MARGIN: f64 = 0.05;

impl Compared<'_> {
    /// Whether iSCSI is behind NVMe/TCP by more than the margin.
    pub(super) fn verdict(&self) -> Verdict {
        let Self { what, is_rate, figures, text, paper } = self;
        let share = figures.iscsi / figures.nvme.max(1e-9);
        let is_behind = if *is_rate { share < 1.0 - MARGIN } else { share > 1.0 + MARGIN };
        let claim = format!(
            "iSCSI is more than {:.0} % behind NVMe/TCP in {what}: {} to {}, {share:.2} of it; in \
             the paper {paper}",
            MARGIN * 100.0,
            text(figures.iscsi),
            text(figures.nvme)
        );
        Verdict::new(is_behind, claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(is_rate: bool, iscsi: f64) -> Verdict {
        let figures = PerWay { local: 0.0, nvme: 100.0, iscsi };
        let text = |figure| format!("{figure:.0}");
        Compared { what: "a", is_rate, figures, text, paper: "b" }.verdict()
    }

    #[test]
    fn behind_is_less_of_a_rate_and_more_of_a_time() {
        assert!(judged(true, 60.0).holds && judged(false, 140.0).holds);
        assert!(!judged(true, 140.0).holds && !judged(false, 60.0).holds);
        assert!(!judged(true, 96.0).holds && !judged(false, 104.0).holds, "within the margin");
    }

    #[test]
    fn the_number_is_said_either_way() {
        let expected = "iSCSI is more than 5 % behind NVMe/TCP in a: 98 to 100, 0.98 of it; in the \
                        paper b";
        assert_eq!(judged(true, 98.0).claim, expected);
    }
}
