//! A directory: a sweep, simulations over many settings, or records that appear one by one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use console::layout::count;
use results::CellKind;
use results::live::{CellProgress, Progress, SweepState};
use serde_json::Value;

use super::shown::{Shown, Watched};
use super::sources::Sources;
use crate::context::Context;
use crate::section::{Section, Table, tell_apart};
use crate::words::exact;
use crate::{source, sweep};

/// The most cells of the table.
const CELLS_MAX: usize = 200;
/// The most records of a directory, by name; the others are left out.
const RECORDS_MAX: usize = 16;

/// A watched directory.
pub(super) struct Directory {
    path: PathBuf,
    bound: f64,
    sources: Sources,
    /// The files that were there when the directory was last shown.
    seen: Vec<Seen>,
    state: String,
}

type Seen = (PathBuf, u64, Option<SystemTime>);

/// The state in a sentence, and the sections to show.
type Found = (String, Vec<(String, Section)>);

impl Directory {
    /// # Errors
    /// A sentence, if the directory cannot be watched.
    pub(super) fn new(path: &Path, bound: f64, sources: Sources) -> Result<Self, String> {
        let one =
            Self { path: path.to_owned(), bound, sources, seen: Vec::new(), state: String::new() };
        one.read().map(|_| one)
    }

    /// Reads the sweep, the simulations or the records in the directory.
    fn read(&self) -> Result<Found, String> {
        if !self.path.is_dir() {
            return Err("there is no such directory".to_owned());
        }
        let head = self.path.join("sweep.json");
        let Ok(text) = fs::read_to_string(&head) else { return self.records() };
        let head: Value = serde_json::from_str(&text)
            .map_err(|error| format!("its sweep.json is cut short ({error})"))?;
        match head["schema"].as_str().unwrap_or_default() {
            results::SWEEP_SCHEMA => Ok(self.sweep((self.sources.sweep)(&self.path)?)),
            results::sim::SWEEP_SCHEMA => {
                let progress = (self.sources.simulations)(&self.path)?;
                Ok((state(&progress), vec![(self.name(), cells(&progress))]))
            }
            other => {
                Err(format!("its sweep.json is of \"{other}\", which this afar does not know"))
            }
        }
    }

    /// The state and the sections of a sweep.
    fn sweep(&self, found: SweepState) -> Found {
        let mut sections = vec![(self.name(), cells(&found.progress))];
        let is_far = |cell: &results::Finding| cell.kind == CellKind::Far;
        let told = found.findings.filter(|findings| findings.cells.iter().any(is_far));
        if let Some(findings) = told {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let context = Context { bound: self.bound, name };
            let mut section = sweep::of(findings, &context).silenced();
            tell_apart(&mut section.pictures);
            sections.push((self.path.display().to_string(), section));
        }
        (state(&found.progress), sections)
    }

    /// The state and the sections of the records; an error if there is none.
    fn records(&self) -> Result<Found, String> {
        let never = |_: &Path| Err("a sweep within".to_owned());
        let mut sections = Vec::new();
        for (file, ..) in stamps(&self.path) {
            let Ok(section) = source::read(&file, self.bound, &never) else { continue };
            let mut section = section.silenced();
            tell_apart(&mut section.pictures);
            sections.push((file.display().to_string(), section));
            if sections.len() == RECORDS_MAX {
                break;
            }
        }
        match sections.len() {
            0 => Err("it has no sweep.json, and no record yet".to_owned()),
            1 => Ok(("1 record is there.".to_owned(), sections)),
            number => Ok((format!("{number} records are there."), sections)),
        }
    }
}

impl Watched for Directory {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn look(&mut self) -> Shown {
        let mut seen = stamps(&self.path);
        seen.extend(stamp_of_runs(&self.path));
        if seen == self.seen && !seen.is_empty() {
            return Shown { state: self.state.clone(), is_there: true, sections: None };
        }
        match self.read() {
            Ok((state, sections)) => {
                (self.seen, self.state) = (seen, state.clone());
                Shown { state, is_there: true, sections: Some(sections) }
            }
            Err(why) => {
                self.seen.clear();
                let name = self.name();
                Shown::gone(format!("{name}: {why}. The page goes on as soon as that changes."))
            }
        }
    }
}

// The directory of a sweep's runs: how many files it has, and when it last changed.
fn stamp_of_runs(directory: &Path) -> Option<Seen> {
    let runs = directory.join("runs");
    let since = fs::metadata(&runs).ok()?.modified().ok();
    let count = fs::read_dir(&runs).ok()?.count() as u64;
    Some((runs, count, since))
}

// The JSON files of a directory, each with its size and time, in order of their names.
fn stamps(directory: &Path) -> Vec<Seen> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_ours =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "json" || end == "jsonl");
    let mut seen: Vec<Seen> = entries
        .map(|entry| entry.path())
        .filter(is_ours)
        .filter_map(|path| {
            let data = fs::metadata(&path).ok()?;
            Some((path, data.len(), data.modified().ok()))
        })
        .collect();
    seen.sort();
    seen
}

/// A sentence on how many runs are done.
fn state(progress: &Progress) -> String {
    let done = count(progress.run_count);
    match progress.runs_of {
        None => format!("{done} runs are done; how many a search needs is found out on the way."),
        Some(all) if progress.run_count >= all => format!("All {} runs are done.", count(all)),
        Some(all) => format!("{done} of {} runs are done.", count(all)),
    }
}

/// The section on the progress of each cell.
fn cells(progress: &Progress) -> Section {
    let mut table = Table::new(["cell", "runs", "state", "last figure"]);
    for cell in progress.cells.iter().take(CELLS_MAX) {
        let of = cell.runs_of.map_or_else(String::new, |of| format!(" of {of}"));
        let figure = cell.last_value.map_or_else(String::new, exact);
        table.push([cell.name.clone(), format!("{}{of}", cell.run_count), stands(cell), figure]);
    }
    let all = progress.cells.len();
    table.cut_from = (all > CELLS_MAX).then_some(all as u64);
    let troubles = progress
        .cells
        .iter()
        .filter_map(|cell| cell.last_trouble.as_ref().map(|why| format!("{}: {why}", cell.name)));
    Section {
        title: "Cells".to_owned(),
        answer: vec![state(progress), format!("The figure of a run: {}.", progress.metric)],
        verdicts: Some(table),
        warnings: troubles.take(5).collect(),
        ..Section::default()
    }
}

/// The state of a cell, in words.
fn stands(cell: &CellProgress) -> String {
    let stands = match cell.runs_of {
        _ if cell.run_count == 0 => "waits",
        Some(of) if cell.run_count >= of => "done",
        _ => "under way",
    };
    match cell.trouble_count {
        0 => stands.to_owned(),
        number => format!("{stands}, {number} without a figure"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_say_how_they_stand() {
        let mut one = CellProgress::new("native", Some(2));
        assert_eq!(stands(&one), "waits");
        one.add(Some(1.5), None);
        assert_eq!(stands(&one), "under way");
        one.add(None, Some("it ended with status 1"));
        assert_eq!(stands(&one), "done, 1 without a figure");
        let progress = |cells| Progress {
            run_count: 2,
            runs_of: Some(4),
            metric: "seconds".to_owned(),
            cells,
        };
        let section = cells(&progress(vec![one]));
        assert_eq!(section.answer[0], "2 of 4 runs are done.");
        let rows = &section.verdicts.as_ref().expect("a table").rows;
        assert_eq!(rows[0], ["native", "2 of 2", "done, 1 without a figure", "1.5"]);
        assert_eq!(section.warnings, ["native: it ended with status 1"]);
        let many = (0..1000).map(|number| CellProgress::new(number.to_string(), None)).collect();
        let table = cells(&progress(many)).verdicts.expect("a table");
        assert_eq!((table.rows.len(), table.cut_from), (CELLS_MAX, Some(1000)));
    }
}
