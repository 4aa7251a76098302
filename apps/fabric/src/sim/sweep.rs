//! Every combination of several values, each a run or several, and their figures side by side.
//!
//! Whichever ends first, tables and files have the order of the experiment: the same bytes however
//! many threads or machines there were, and whether or not a sweep was interrupted.

use std::path::PathBuf;
use std::process::ExitCode;

use console::{Class, Failure, Output};
use results::Figures;

use super::kept::{self, Job};
use super::row::Row;
use super::setting::{Cell, Experiment};
use super::setup::Setup;
use super::{SimError, picture, steady, table};
use crate::sim::flags::SimFlags;

/// Runs every cell that has no row yet, and writes the table, files and picture of all.
///
/// # Errors
/// If a cell is invalid, or a row cannot be stored. A failed run has a row, too.
pub(super) fn sweep(
    flags: &SimFlags,
    experiment: &Experiment,
    cells: &[Cell],
) -> Result<ExitCode, Failure> {
    for (path, name) in flags.of_one_run() {
        if path.is_some() {
            let message = format!("it is for one run, and these are {}", cells.len());
            return Err(SimError::at(name, message).into());
        }
    }
    let jobs = jobs(cells)?;
    for cell in cells {
        Setup::new(&cell.settings)?;
    }
    let directory = directory(flags);
    let csv = flags.csv.as_deref().map(Output::open).transpose()?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let Some(rows) = kept::all(flags, (&directory, experiment.said()), &jobs)? else {
        return Ok(Class::Interrupted.into());
    };
    let rows = together(cells, &jobs, &rows);
    let pairs: Vec<(&Cell, &Row)> = cells.iter().zip(&rows).collect();
    let open = |name: &str| Output::open(&directory.join(name)).map(Some);
    let text = || {
        let where_to = format!("table, every run and a picture: {}\n", directory.display());
        format!("{}\n{where_to}", table::text(&pairs))
    };
    let (as_csv, as_json) = (|| table::csv(&pairs), || table::json(&pairs));
    let picture = || picture::slowdown(&pairs);
    console::answer(
        text,
        vec![
            (open("table.csv")?, &as_csv),
            (open("slowdown.svg")?, &picture),
            (csv, &as_csv),
            (json, &as_json),
        ],
    )?;
    match rows.iter().filter(|row| row.figures.is_none()).count() {
        0 => Ok(ExitCode::SUCCESS),
        failed => {
            let total = rows.len();
            let sentence = format!("{failed} of {total} runs failed; table.csv says which and why");
            Err(Failure::shown(Class::Failed, sentence))
        }
    }
}

/// The directory of results: `--output`, or `experiment.sim` beside `experiment.toml`.
fn directory(flags: &SimFlags) -> PathBuf {
    let beside = || flags.experiment.as_deref().map(|path| path.with_extension("sim"));
    flags.output.clone().or_else(beside).unwrap_or_else(|| PathBuf::from("afar-sim"))
}

/// The runs of cells, in their order.
fn jobs(cells: &[Cell]) -> Result<Vec<Job>, SimError> {
    let mut jobs = Vec::new();
    for (cell, one) in cells.iter().enumerate() {
        let runs = steady::runs(&one.settings)?;
        let count = runs.len();
        for (run, settings) in (1..).zip(runs) {
            let name = match count {
                1 => one.name(),
                _ => format!("{} run={run}", one.name()).trim_start().to_owned(),
            };
            jobs.push(Job { cell, name, settings });
        }
    }
    Ok(jobs)
}

/// A row for each cell, from its runs.
fn together(cells: &[Cell], jobs: &[Job], rows: &[Row]) -> Vec<Row> {
    let one = |(number, cell): (usize, &Cell)| {
        let ours = jobs.iter().zip(rows).filter(|(job, _)| job.cell == number);
        let rows: Vec<&Row> = ours.map(|(_, row)| row).collect();
        let figures: Vec<Figures> = rows.iter().filter_map(|row| row.figures.clone()).collect();
        let failed = rows.iter().find_map(|row| row.failure.clone());
        let (figures, failure) = match (failed, &figures[..]) {
            (Some(failure), _) => (None, Some(failure)),
            (None, [one]) => (Some(one.clone()), None),
            (None, _) => {
                let all = steady::of_runs(&figures);
                let unsteady = steady::unsteady(&all);
                (Some(all).filter(|_| unsteady.is_none()), unsteady)
            }
        };
        Row { cell: cell.name(), figures, failure }
    };
    cells.iter().enumerate().map(one).collect()
}
