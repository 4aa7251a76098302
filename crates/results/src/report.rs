//! What `afar report` says, as JSON: answers, figures, and the table behind every picture.

use measure::Host;
use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar report --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Version of the afar that wrote it.
    pub version: String,
    /// As on the page.
    pub title: String,
    /// The command that made the report.
    pub command: Vec<String>,
    /// One for each record, in the order in which they were given.
    pub sections: Vec<Section>,
}

/// Everything that is said of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// The name of the record's file.
    pub record: String,
    /// The kind of record, in a word or two.
    pub kind: String,
    /// What it is about.
    pub title: String,
    /// The command that made the record; empty if it does not say so.
    pub command: Vec<String>,
    /// The machine that made it, if it says so.
    pub host: Option<Host>,
    /// Whether anything is concluded from the record.
    pub valid: bool,
    /// Sentences, the most important one first; why not, for an invalid record.
    pub answer: Vec<String>,
    /// What of something is enough, by how good it is to be.
    pub enough: Option<Table>,
    /// What the answer is for each network, or whatever else it depends on.
    pub verdicts: Option<Table>,
    /// What must be known before the figures are believed.
    pub warnings: Vec<String>,
    /// What was asked for.
    pub facts: Vec<Fact>,
    /// What another record of the kind can be compared by.
    pub figures: Vec<Figure>,
    /// Pictures, with the numbers in them.
    pub pictures: Vec<Picture>,
}

/// Something that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// What.
    pub name: String,
    /// How much of it, or which.
    pub value: String,
}

/// A number that says how good something is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What it is of.
    pub name: String,
    /// Its unit; empty for a ratio.
    pub unit: String,
    /// The number.
    pub value: f64,
    /// The lower end of where it may lie, if that is known.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Which of two is better.
    pub better: Better,
}

/// Which of two figures is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The smaller one.
    Lower,
    /// The larger one.
    Higher,
}

/// A picture and the numbers in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// The stem of its files.
    pub name: String,
    /// Under which conditions.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// The numbers.
    pub table: Table,
}

/// Rows under names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Their names.
    pub columns: Vec<String>,
    /// Cells, as on the page.
    pub rows: Vec<Vec<String>>,
    /// How many rows the record has, where not all of them are here.
    pub rows_of_record: Option<u64>,
}

impl Record for Report {
    const SCHEMA: &'static str = "afar.report/1";
}
