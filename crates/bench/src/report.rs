//! Tables, verdicts and the record of a benchmark.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::context::{Context, STOLEN_MAX, Stolen};
use crate::failure::Failure;

/// The results of a benchmark.
#[derive(Debug)]
pub(crate) struct Report {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its settings, for the record.
    pub(crate) settings: Value,
    /// Its figures, for the record.
    pub(crate) results: Value,
    /// Its figures as tables.
    pub(crate) text: String,
    pub(crate) verdicts: Vec<Verdict>,
}

/// The results of one part of a benchmark.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) settings: Value,
    pub(crate) results: Value,
    pub(crate) text: String,
    pub(crate) verdicts: Vec<Verdict>,
}

/// A figure and its bound.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) bound: Bound,
    /// The unit of both; empty for ratios.
    pub(crate) unit: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// A table: a header and rows, the first column left-aligned, the others right-aligned.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

/// The file of the record, created before any run.
#[derive(Debug)]
pub(crate) struct RecordFile {
    path: PathBuf,
    file: File,
}

impl Report {
    /// The report of a benchmark in parts, each under its name.
    pub(crate) fn of_parts(name: &'static str, parts: Vec<Found>) -> Self {
        let (mut settings, mut results) = (Map::new(), Map::new());
        let (mut texts, mut verdicts) = (Vec::new(), Vec::new());
        for part in parts {
            settings.insert(part.name.to_owned(), part.settings);
            results.insert(part.name.to_owned(), part.results);
            texts.push(part.text);
            verdicts.extend(part.verdicts);
        }
        Self {
            name,
            settings: settings.into(),
            results: results.into(),
            text: texts.join("\n"),
            verdicts,
        }
    }

    /// Whether all bounds were kept.
    pub(crate) fn passes(&self) -> bool {
        self.verdicts.iter().all(Verdict::passes)
    }

    /// The report as text: the machine, the tables and the verdicts.
    pub(crate) fn text(&self, context: &Context) -> String {
        let host = &context.host;
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} (afar {}, {} rounds{}; {}, {} processors, Linux {})\n",
            self.name,
            env!("CARGO_PKG_VERSION"),
            context.rounds,
            if context.quick { ", quick: not to be quoted" } else { "" },
            host.cpu_model,
            host.cpu_count,
            host.kernel
        );
        out.push_str(&self.text);
        if let Some(stolen) = stolen(context) {
            out.push_str(&stolen);
        }
        if !self.verdicts.is_empty() {
            out.push('\n');
        }
        for verdict in &self.verdicts {
            let _ = writeln!(out, "{verdict}");
        }
        out
    }

    /// The record of the benchmark as JSON.
    pub(crate) fn record(&self, context: &Context) -> String {
        let command: Vec<String> =
            std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let verdicts: Vec<Value> = self.verdicts.iter().map(Verdict::json).collect();
        let record = json!({
            "schema": "afar.bench/1",
            "version": env!("CARGO_PKG_VERSION"),
            "command": command,
            "written_unix_ns": sys::clock::unix_ns(),
            "name": self.name,
            "quick": context.quick,
            "round_count": context.rounds,
            "host": context.host,
            "repeated_count": context.stolen().repeated_count,
            "stolen_share_max": context.stolen().kept_max,
            "settings": self.settings,
            "results": self.results,
            "verdicts": verdicts,
            "pass": self.passes(),
        });
        format!("{record:#}\n")
    }
}

// A note on runs that other guests disturbed; `None` if none was repeated.
fn stolen(context: &Context) -> Option<String> {
    let Stolen { repeated_count, kept_max } = context.stolen();
    (repeated_count > 0).then(|| {
        format!(
            "{repeated_count} runs were repeated because other guests of the machine took more \
             than {:.0} % of\ntheir processor time; those kept lost {:.0} % at most\n",
            STOLEN_MAX * 100.0,
            kept_max * 100.0
        )
    })
}

impl Verdict {
    /// Whether the value keeps its bound; NaN does not.
    pub(crate) fn passes(&self) -> bool {
        match self.bound {
            Bound::AtMost(limit) => self.value <= limit,
            Bound::AtLeast(limit) => self.value >= limit,
        }
    }

    /// The verdict for the record.
    fn json(&self) -> Value {
        let (kind, limit) = self.bound.parts();
        json!({
            "what": self.what,
            "value": self.value,
            "bound": kind,
            "limit": limit,
            "unit": self.unit,
            "pass": self.passes(),
        })
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = if self.passes() { "PASS" } else { "FAIL" };
        let (kind, limit) = self.bound.parts();
        let kind = kind.replace('_', " ");
        let (value, limit) = (figure(self.value), figure(limit));
        let space = if self.unit.is_empty() { "" } else { " " };
        let unit = self.unit;
        write!(f, "{word}  {}: {value}{space}{unit} ({kind} {limit}{space}{unit})", self.what)
    }
}

impl Bound {
    /// The kind as the record names it, and the limit.
    const fn parts(self) -> (&'static str, f64) {
        match self {
            Self::AtMost(limit) => ("at_most", limit),
            Self::AtLeast(limit) => ("at_least", limit),
        }
    }
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        let header = header.iter().map(|&word| word.to_owned()).collect();
        Self { rows: vec![header] }
    }

    /// Appends a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as text.
    pub(crate) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell: &String| cell.chars().count()).max().unwrap_or(0)
        };
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = width(column);
                let _ = match column {
                    0 => write!(line, "{cell:<width$}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }
}

/// Creates the record's file before any run, so that a wrong path is found at once.
///
/// # Errors
/// When it cannot be created.
pub(crate) fn open(path: &Path) -> Result<RecordFile, Failure> {
    let file = File::create(path).map_err(Failure::file("create", path))?;
    Ok(RecordFile { path: path.to_owned(), file })
}

impl RecordFile {
    /// Writes the record.
    ///
    /// # Errors
    /// When the disk is full.
    pub(crate) fn write(mut self, text: &str) -> Result<(), Failure> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(Failure::file("write", self.path))
    }
}

/// A number with 0 to 4 decimals: about three significant digits.
fn figure(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = if value.fract() == 0.0 || magnitude >= 100.0 {
        0
    } else if magnitude >= 10.0 {
        1
    } else if magnitude >= 2.0 {
        2
    } else {
        4
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(value: f64, bound: Bound) -> Verdict {
        Verdict { what: "error".to_owned(), value, bound, unit: "ns" }
    }

    #[test]
    fn verdict_passes_on_its_bound() {
        assert!(verdict(68.0, Bound::AtMost(68.0)).passes());
        assert!(!verdict(68.1, Bound::AtMost(68.0)).passes());
        assert!(verdict(0.99, Bound::AtLeast(0.99)).passes());
        assert!(!verdict(0.98, Bound::AtLeast(0.99)).passes());
        assert!(!verdict(f64::NAN, Bound::AtMost(1.0)).passes());
        assert!(!verdict(f64::NAN, Bound::AtLeast(1.0)).passes());
    }

    #[test]
    fn verdict_reads_as_a_sentence() {
        let text = verdict(41.5, Bound::AtMost(68.0)).to_string();
        assert_eq!(text, "PASS  error: 41.5 ns (at most 68 ns)");
        let text = verdict(100.0, Bound::AtMost(68.0)).to_string();
        assert_eq!(text, "FAIL  error: 100 ns (at most 68 ns)");
    }

    #[test]
    fn table_aligns_columns() {
        let mut table = Table::new(&["", "ns"]);
        table.row(vec!["read".to_owned(), "5".to_owned()]);
        table.row(vec!["w".to_owned(), "1234".to_owned()]);
        assert_eq!(table.text(), "        ns\nread     5\nw     1234\n");
    }
}
