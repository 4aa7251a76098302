//! Many simulations on all processors, each written down when it has ended.
//!
//! Whichever ends first, tables and files have the order of the experiment: the same bytes however
//! many threads there were, and whether or not a sweep was interrupted.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use console::{Class, Failure, Line, Output, terminal};
use experiment::journal::{Header, Journal};
use results::Figures;

use super::figures::figures;
use super::row::Row;
use super::run::{self, Looker};
use super::setting::{Cell, Experiment, Settings};
use super::setup::Setup;
use super::{SimError, many, picture, steady, table};
use crate::sim::flags::SimFlags;
use console::machine;

/// Runs every cell that has not been run before.
///
/// # Errors
/// When a cell cannot be, or results cannot be kept. Runs without a result are results.
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
    let header = header(experiment, &jobs);
    let mut journal = Journal::<Row>::open(&directory, &header).map_err(SimError::from)?;
    let csv = flags.csv.as_deref().map(Output::open).transpose()?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let signals = console::interrupts().map_err(SimError::from)?;
    let line = if flags.quiet { None } else { Line::if_watched() };
    let mut looker = Looker { signals: &signals, line };
    let is_whole = run_all(&jobs, many::threads(flags.jobs), &mut journal, &mut looker)?;
    drop(looker);
    let place = |row: &Row| jobs.iter().position(|job| job.name == row.cell);
    journal.rows.sort_by_key(|row| place(row));
    if !is_whole {
        terminal::say(&format!(
            "afar sim: interrupted; {} of {} runs are kept in {}, and the same command goes on \
             from there\n",
            journal.rows.len(),
            jobs.len(),
            directory.display()
        ));
        return Ok(Class::Interrupted.into());
    }
    let rows = together(cells, &jobs, &journal.rows);
    let pairs: Vec<(&Cell, &Row)> = cells.iter().zip(&rows).collect();
    write(&directory.join("table.csv"), &table::csv(&pairs))?;
    write(&directory.join("slowdown.svg"), &picture::slowdown(&pairs))?;
    let is_answered =
        [&flags.csv, &flags.json].into_iter().flatten().any(|path| path == Path::new("-"));
    if let Some(csv) = csv {
        csv.write(&table::csv(&pairs))?;
    }
    if let Some(json) = json {
        json.write(&table::json(&pairs))?;
    }
    if !is_answered && !flags.quiet {
        let text = table::text(&pairs);
        let where_to = format!("table, every run and a picture: {}\n", directory.display());
        terminal::answer(&format!("{text}\n{where_to}"))?;
    }
    let has_failed = rows.iter().any(|row| row.figures.is_none());
    Ok(if has_failed { Class::Failed.into() } else { ExitCode::SUCCESS })
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    Output::open(path)?.write(text)
}

/// `experiment.toml` keeps its results in `experiment.sim`.
fn directory(flags: &SimFlags) -> PathBuf {
    let beside = || flags.experiment.as_deref().map(|path| path.with_extension("sim"));
    flags.output.clone().or_else(beside).unwrap_or_else(|| PathBuf::from("afar-sim"))
}

fn header(experiment: &Experiment, jobs: &[Job]) -> Header {
    Header {
        schema: results::sim::SWEEP_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_ns: sys::clock::unix_ns(),
        seed: 0,
        host: machine::describe(),
        experiment: experiment.said(),
        cells: jobs.iter().map(|job| job.name.clone()).collect(),
        allow_unmanaged: false,
    }
}

/// One run of a cell.
struct Job {
    /// The cell's number.
    cell: usize,
    name: String,
    settings: Settings,
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

/// A row for each cell, of its runs.
fn together(cells: &[Cell], jobs: &[Job], rows: &[Row]) -> Vec<Row> {
    let one = |(number, cell): (usize, &Cell)| {
        let ours = jobs.iter().zip(rows).filter(|(job, _)| job.cell == number);
        let rows: Vec<&Row> = ours.map(|(_, row)| row).collect();
        let cpu_ns = rows.iter().map(|row| row.cpu_ns).sum();
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
        Row { cell: cell.name(), figures, failure, cpu_ns }
    };
    cells.iter().enumerate().map(one).collect()
}

/// Runs what is not in the journal; whether all of it ended.
fn run_all(
    jobs: &[Job],
    threads: usize,
    journal: &mut Journal<Row>,
    looker: &mut Looker<'_>,
) -> Result<bool, SimError> {
    let is_new = |job: &&Job| journal.rows.iter().all(|row| row.cell != job.name);
    let left: Vec<&Job> = jobs.iter().filter(is_new).collect();
    let work = |number: usize, stop: &AtomicBool| match one(left[number], stop) {
        Err(SimError::Network(netsim::SimError::Stopped { .. })) => Ok(None),
        row => row.map(Some),
    };
    many::run(left.len(), threads, looker, work, |_, row| Ok(journal.add(row)?))
}

fn one(job: &Job, stop: &AtomicBool) -> Result<Row, SimError> {
    let setup = Setup::new(&job.settings)?;
    let row = Row { cell: job.name.clone(), figures: None, failure: None, cpu_ns: 0 };
    match run::run(&setup, &mut |_| !stop.load(Ordering::Relaxed)) {
        Ok(run) => {
            let figures = Some(figures(&setup, &run.outcome));
            Ok(Row { figures, cpu_ns: run.cpu_ns, ..row })
        }
        Err(error @ netsim::SimError::Stopped { .. }) => Err(error.into()),
        Err(error) => Ok(Row { failure: Some(error.to_string()), ..row }),
    }
}
