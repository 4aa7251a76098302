//! The report of a figure.

use console::{Stream, Tone};
use experiment::stats;
use serde_json::Value;

/// The title, table, verdicts, picture and data of a figure.
#[derive(Debug)]
pub(super) struct Report {
    /// Its title with the citation.
    pub(super) title: String,
    pub(super) table: String,
    pub(super) verdicts: Vec<Verdict>,
    /// The picture as SVG.
    pub(super) picture: String,
    pub(super) points: Value,
    /// The paper's numbers that were compared.
    pub(super) paper: Value,
}

/// Whether a claim of the paper holds here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) holds: bool,
    /// Why the claim is undecided; `None` if it is decided.
    pub(super) undecided: Option<&'static str>,
    /// Our number, the paper's and the criterion.
    pub(super) claim: String,
}

impl Verdict {
    pub(super) const fn new(holds: bool, claim: String) -> Self {
        Self { holds, undecided: None, claim }
    }

    /// An undecided verdict.
    pub(super) const fn undecided(claim: String, why: &'static str) -> Self {
        Self { holds: false, undecided: Some(why), claim }
    }

    /// A verdict that names a likely reason if the claim does not hold.
    pub(super) fn because(holds: bool, claim: String, why: &str) -> Self {
        let claim = if holds { claim } else { format!("{claim} (likely because {why})") };
        Self::new(holds, claim)
    }

    /// Whether the claim holds; `None` if it is undecided.
    pub(super) fn decided(&self) -> Option<bool> {
        self.undecided.is_none().then_some(self.holds)
    }

    /// The verdict as a sentence.
    pub(super) fn text(&self) -> String {
        match (self.undecided, self.holds) {
            (Some(why), _) => format!("undecided, because {why}: {}", self.claim),
            (None, true) => format!("{}: {}", tinted(Tone::Good, "holds"), self.claim),
            (None, false) => format!("{}: {}", tinted(Tone::Bad, "does not hold here"), self.claim),
        }
    }
}

/// `text` in the colour of a tone, if output has colours.
fn tinted(tone: Tone, text: &str) -> String {
    console::tinted(Stream::Answer, tone, text)
}

/// The median; 0 without values.
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
