//! What a report is made of: for each record a section with its answer in words, pictures, and the
//! table behind each picture.

use chart::{Bars, Drawing, Heat, Plot};
use console::layout;
use measure::Host;

/// What the report says of one record.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// What the record is about.
    pub(super) title: String,
    /// The kind of record, in a word or two.
    pub(super) kind: &'static str,
    /// The command that made the record; empty if unknown.
    pub(super) command: Vec<String>,
    pub(super) host: Option<Host>,
    /// When the record was begun, in nanoseconds since 1970; `None` if unknown.
    pub(super) began_unix_ns: Option<u64>,
    /// Why the record is invalid, and has no answer; `None` if it is valid.
    pub(super) invalid: Option<String>,
    /// Sentences, the most important one first.
    pub(super) answer: Vec<String>,
    /// How much of something is enough for each bound, with a note on how to read the table.
    pub(super) enough: Option<(Table, &'static str)>,
    /// The answer for each network, or for each value of what else it depends on.
    pub(super) verdicts: Option<Table>,
    /// What must be known before the figures are believed.
    pub(super) warnings: Vec<String>,
    /// Settings and other facts, by name.
    pub(super) facts: Vec<(String, String)>,
    pub(super) pictures: Vec<Picture>,
    /// Whether the first picture is the answer, and stands beside its first sentence.
    pub(super) opens: bool,
    /// Figures by which records of the same kind are compared.
    pub(super) figures: Vec<Figure>,
}

/// A picture and the numbers in it.
#[derive(Debug)]
pub(super) struct Picture {
    /// The stem of its files, in letters, digits and dashes.
    pub(super) name: String,
    /// What is shown under which conditions, without a judgement.
    pub(super) title: String,
    /// How to read it.
    pub(super) caption: String,
    pub(super) chart: Chart,
    pub(super) table: Table,
}

/// A chart of any kind.
#[derive(Debug, Clone)]
pub(super) enum Chart {
    Plot(Plot),
    Heat(Heat),
    Bars(Bars),
}

/// A table: rows under named columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// How many rows the record has, if the table has only the first; else `None`.
    pub(super) cut_from: Option<u64>,
}

/// A number that says how good something is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) value: f64,
    /// The interval of the value; `None` if unknown.
    pub(super) interval: Option<(f64, f64)>,
    pub(super) better: Better,
}

/// Which of two values of a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    Lower,
    Higher,
}

impl Section {
    /// Replaces the answer of an invalid record by the reason, and removes all tables, pictures and
    /// figures. A valid section is unchanged.
    pub(super) fn silenced(self) -> Self {
        let Some(why) = &self.invalid else { return self };
        let answer = vec![format!("{why}."), "Nothing is concluded from this record.".to_owned()];
        Self {
            answer,
            enough: None,
            verdicts: None,
            pictures: Vec::new(),
            figures: Vec::new(),
            ..self
        }
    }
}

impl Chart {
    /// Draws the chart.
    pub(super) fn draw(&self) -> Drawing {
        match self {
            Self::Plot(plot) => plot.draw(),
            Self::Heat(heat) => heat.draw(),
            Self::Bars(bars) => bars.draw(),
        }
    }
}

impl Table {
    pub(super) fn new<const N: usize>(columns: [&str; N]) -> Self {
        Self { columns: columns.map(str::to_owned).to_vec(), ..Self::default() }
    }

    /// Adds a row.
    pub(super) fn push<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// The table as CSV (RFC 4180), but with line ends of one character.
    pub(super) fn csv(&self) -> String {
        layout::csv(std::iter::once(&self.columns).chain(&self.rows))
    }
}

impl Figure {
    /// A figure without an interval.
    pub(super) fn new(name: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self { name: name.into(), unit, value, interval: None, better: Better::Lower }
    }

    /// The same figure with an interval.
    pub(super) fn within(mut self, interval: (f64, f64)) -> Self {
        self.interval = Some(interval);
        self
    }

    /// The same figure, of which the higher value is better.
    pub(super) fn higher(mut self) -> Self {
        self.better = Better::Higher;
        self
    }
}

/// Makes the names of a section's pictures unique, and fit for files.
pub(super) fn tell_apart(pictures: &mut [Picture]) {
    let mut taken: Vec<String> = Vec::new();
    for picture in pictures {
        let is_good = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let name: String =
            picture.name.chars().map(|letter| if is_good(letter) { letter } else { '-' }).collect();
        let mut unique = name.clone();
        let mut number = 2;
        while taken.contains(&unique) {
            unique = format!("{name}-{number}");
            number += 1;
        }
        taken.push(unique.clone());
        picture.name = unique;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_record_has_no_answer_of_its_own() {
        let full = || Section {
            answer: vec!["The network did not matter.".to_owned()],
            figures: vec![Figure::new("elapsed", "s", 1.0)],
            verdicts: Some(Table::new(["a"])),
            ..Section::default()
        };
        let section = Section { invalid: Some("invalid: why".to_owned()), ..full() }.silenced();
        let answer = ["invalid: why.", "Nothing is concluded from this record."];
        assert_eq!(section.answer, answer);
        assert!(section.figures.is_empty() && section.verdicts.is_none());
        assert_eq!(full().silenced().answer, full().answer);
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut table = Table::new(["a", "b,c"]);
        table.push(["1".to_owned(), "say \"no\"".to_owned()]);
        assert_eq!(table.csv(), "a,\"b,c\"\n1,\"say \"\"no\"\"\"\n");
    }
}
