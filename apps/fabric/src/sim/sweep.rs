//! Many simulations on all processors, each written down when it has ended.
//!
//! Whichever ends first, tables and files have the order of the experiment: the same bytes however
//! many threads there were, and whether or not a sweep was interrupted.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use console::{Class, Failure, Line, Output, terminal};
use experiment::journal::{Header, Journal};

use super::figures::figures;
use super::row::Row;
use super::run::{self, Looker};
use super::setting::{Cell, Experiment};
use super::setup::Setup;
use super::{SimError, many, picture, table};
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
            return Err(SimError::At { place: name.to_owned(), message }.into());
        }
    }
    for cell in cells {
        Setup::new(&cell.settings)?;
    }
    let directory = directory(flags);
    let header = header(experiment, cells);
    let mut journal = Journal::<Row>::open(&directory, &header).map_err(SimError::from)?;
    let csv = flags.csv.as_deref().map(Output::open).transpose()?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let signals = console::interrupts().map_err(SimError::from)?;
    let line = if flags.quiet { None } else { Line::on_terminal() };
    let mut looker = Looker { signals: &signals, line };
    let is_whole = run_all(cells, many::threads(flags.jobs), &mut journal, &mut looker)?;
    drop(looker);
    let place = |row: &Row| cells.iter().position(|cell| cell.name() == row.cell);
    journal.rows.sort_by_key(|row| place(row));
    if !is_whole {
        terminal::say(&format!(
            "afar sim: interrupted; {} of {} runs are kept in {}, and the same command goes on \
             from there\n",
            journal.rows.len(),
            cells.len(),
            directory.display()
        ));
        return Ok(Class::Interrupted.into());
    }
    let pairs: Vec<(&Cell, &Row)> = cells.iter().zip(&journal.rows).collect();
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
    let has_failed = journal.rows.iter().any(|row| row.figures.is_none());
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

fn header(experiment: &Experiment, cells: &[Cell]) -> Header {
    Header {
        schema: results::sim::SWEEP_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_ns: sys::clock::unix_ns(),
        seed: 0,
        host: machine::describe(),
        experiment: experiment.said(),
        cells: cells.iter().map(Cell::name).collect(),
        allow_unmanaged: false,
    }
}

/// Runs what is not in the journal; whether all of it ended.
fn run_all(
    cells: &[Cell],
    threads: usize,
    journal: &mut Journal<Row>,
    looker: &mut Looker<'_>,
) -> Result<bool, SimError> {
    let is_new = |cell: &&Cell| journal.rows.iter().all(|row| row.cell != cell.name());
    let left: Vec<&Cell> = cells.iter().filter(is_new).collect();
    let work = |number: usize, stop: &AtomicBool| match one(left[number], stop) {
        Err(SimError::Network(netsim::SimError::Stopped { .. })) => Ok(None),
        row => row.map(Some),
    };
    many::run(left.len(), threads, looker, work, |_, row| Ok(journal.add(row)?))
}

fn one(cell: &Cell, stop: &AtomicBool) -> Result<Row, SimError> {
    let setup = Setup::new(&cell.settings)?;
    let row = Row { cell: cell.name(), figures: None, failure: None, cpu_ns: 0 };
    match run::run(&setup, &mut |_| !stop.load(Ordering::Relaxed)) {
        Ok(run) => {
            let figures = Some(figures(&setup, &run.outcome));
            Ok(Row { figures, cpu_ns: run.cpu_ns, ..row })
        }
        Err(error @ netsim::SimError::Stopped { .. }) => Err(error.into()),
        Err(error) => Ok(Row { failure: Some(error.to_string()), ..row }),
    }
}
