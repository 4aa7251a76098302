//! What a figure comes to.

use console::{Stream, Tone};
use experiment::stats;
use serde_json::Value;

/// Everything that is said of a figure.
#[derive(Debug)]
pub(super) struct Report {
    /// What it is, with its citation.
    pub(super) title: String,
    pub(super) table: String,
    pub(super) verdicts: Vec<Verdict>,
    /// As SVG.
    pub(super) picture: String,
    pub(super) points: Value,
    /// The paper's numbers, as they were compared.
    pub(super) paper: Value,
}

/// Whether something of the paper is so here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) holds: bool,
    /// Why nothing can be said.
    pub(super) undecided: Option<&'static str>,
    /// Our number, the paper's and the criterion.
    pub(super) claim: String,
}

impl Verdict {
    pub(super) const fn new(holds: bool, claim: String) -> Self {
        Self { holds, undecided: None, claim }
    }

    /// Nothing can be said, and why.
    pub(super) const fn undecided(claim: String, why: &'static str) -> Self {
        Self { holds: false, undecided: Some(why), claim }
    }

    /// With a likely reason where it is not so.
    pub(super) fn because(holds: bool, claim: String, why: &str) -> Self {
        let claim = if holds { claim } else { format!("{claim} (likely because {why})") };
        Self::new(holds, claim)
    }

    /// Whether it holds; nothing where that is undecided.
    pub(super) fn decided(&self) -> Option<bool> {
        self.undecided.is_none().then_some(self.holds)
    }

    /// As a sentence.
    pub(super) fn text(&self) -> String {
        match (self.undecided, self.holds) {
            (Some(why), _) => format!("undecided, because {why}: {}", self.claim),
            (None, true) => format!("{}: {}", tinted(Tone::Good, "holds"), self.claim),
            (None, false) => format!("{}: {}", tinted(Tone::Bad, "does not hold here"), self.claim),
        }
    }
}

fn tinted(tone: Tone, text: &str) -> String {
    console::tinted(Stream::Answer, tone, text)
}

/// The median; 0 of none.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    stats::median(&mut values.into_iter().collect::<Vec<_>>()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_one_or_between_two() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0]), 2.5);
        assert_eq!(median([]), 0.0);
    }
}
