//! What `afar report` says, as JSON: answers, figures, and the table behind every picture.

use measure::Host;
use serde::{Deserialize, Serialize};

use crate::Record;

/// What `afar report --json` writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// Title of the report.
    pub title: String,
    /// The command that made the report.
    pub command: Vec<String>,
    /// Sections, one for each record, in the order in which the records were given.
    pub sections: Vec<Section>,
}

/// Everything that is said of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// The name of the record's file.
    pub record: String,
    /// Kind of the record, in a word or two.
    pub kind: String,
    /// What the record is about.
    pub title: String,
    /// Command that made the record; empty if the record does not state it.
    pub command: Vec<String>,
    /// The machine that made the record; missing if the record does not state it.
    pub host: Option<Host>,
    /// Whether anything may be concluded from the record.
    pub valid: bool,
    /// The answer in sentences, the most important first; for an invalid record, why there is none.
    pub answer: Vec<String>,
    /// Table of what is enough (such as the longest round trip), by bound on the slowdown; missing
    /// if the record has no such answer.
    pub enough: Option<Table>,
    /// Table of verdicts, by network or by whatever else the answer depends on; missing if the
    /// record has none.
    pub verdicts: Option<Table>,
    /// What a reader must know before believing the figures.
    pub warnings: Vec<String>,
    /// Settings that the record was made with.
    pub facts: Vec<Fact>,
    /// Figures by which records of the same kind can be compared.
    pub figures: Vec<Figure>,
    /// Pictures, each with a table of its numbers.
    pub pictures: Vec<Picture>,
}

/// A setting that a record was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Name of the setting.
    pub name: String,
    /// Value of the setting.
    pub value: String,
}

/// A number that says how good something is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What the figure measures.
    pub name: String,
    /// Unit of the figure; empty for a ratio.
    pub unit: String,
    /// Value of the figure, in its unit.
    pub value: f64,
    /// Lower end of the interval of the figure; missing if the interval is unknown.
    pub low: Option<f64>,
    /// Upper end of the interval of the figure; missing if the interval is unknown.
    pub high: Option<f64>,
    /// Whether a lower or a higher figure is better.
    pub better: Better,
}

/// Which of two figures is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
}

/// A picture and the numbers in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// Stem of the names of the picture's files.
    pub name: String,
    /// Conditions under which the numbers of the picture hold.
    pub title: String,
    /// How to read the picture.
    pub caption: String,
    /// The numbers in the picture.
    pub table: Table,
}

/// Rows of cells with named columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each a list of cells, as the page shows them.
    pub rows: Vec<Vec<String>>,
    /// Number of rows that the record has; missing if the table has all of them.
    pub rows_of_record: Option<u64>,
}

impl Record for Report {
    const SCHEMA: &'static str = "afar.report/1";
}
