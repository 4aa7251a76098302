//! Many simulations, each stored in a directory when it has ended: on all processors of this
//! machine, or on machines of an engine.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use console::{Failure, Progress, machine, terminal};
use dispatch::{Place, Points};
use experiment::Log;
use experiment::journal::{Header, Journal, Point};
use sys::event::Signals;

use super::figures::figures;
use super::flags::SimFlags;
use super::row::Row;
use super::run::{self, Looker};
use super::setting::Settings;
use super::setup::Setup;
use super::{SimError, many};

/// One run.
#[derive(Debug)]
pub(super) struct Job {
    /// The index of the cell that the run belongs to.
    pub(super) cell: usize,
    /// Unique among the jobs.
    pub(super) name: String,
    pub(super) settings: Settings,
}

/// Runs the jobs that are not stored yet; returns the rows of all in the order of jobs, or `None`,
/// with a message, after Ctrl-C. `experiment` is the text that tells sweeps apart.
///
/// # Errors
/// If a job is invalid, or a row cannot be stored. A failed run has a row, too.
pub(super) fn all(
    flags: &SimFlags,
    (directory, experiment): (&Path, String),
    jobs: &[Job],
) -> Result<Option<Vec<Row>>, Failure> {
    let header = header(experiment, jobs);
    let mut journal = Journal::<Row>::open(directory, &header).map_err(SimError::from)?;
    journal.plan(&plan(&header, jobs)).map_err(SimError::from)?;
    let signals = console::interrupts().map_err(SimError::from)?;
    let is_whole = anywhere(flags, directory, jobs, (&mut journal, &signals))?;
    let place = |row: &Row| jobs.iter().position(|job| job.name == row.cell);
    journal.rows.sort_by_key(|row| place(row));
    if is_whole {
        return Ok(Some(journal.rows));
    }
    terminal::say(&format!(
        "afar sim: interrupted; {} of {} runs are kept in {}, and the same command goes on from \
         there\n",
        journal.rows.len(),
        jobs.len(),
        directory.display()
    ));
    Ok(None)
}

/// Runs the jobs here or on an engine. Returns whether all have ended.
fn anywhere(
    flags: &SimFlags,
    directory: &Path,
    jobs: &[Job],
    (journal, signals): (&mut Journal<Row>, &Signals),
) -> Result<bool, SimError> {
    let progress = Progress::new("run", jobs.len()).after(journal.rows.len());
    if flags.on == Place::Local {
        let mut looker = Looker { signals, progress };
        let log = Log::open(directory);
        return here(jobs, many::threads(flags.threads), (journal, &log), &mut looker);
    }
    let (count, jobs, are_measured) = (jobs.len(), flags.threads, false);
    let points = Points { place: &flags.on, directory, count, jobs, are_measured };
    let is_whole = dispatch::send(&points, signals, progress)?;
    journal.read_on()?;
    Ok(is_whole)
}

/// What the journal says of the whole sweep.
fn header(experiment: String, jobs: &[Job]) -> Header {
    Header {
        schema: results::sim::SWEEP_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_ns: sys::clock::unix_ns(),
        seed: 0,
        host: machine::describe(),
        experiment,
        cells: jobs.iter().map(|job| job.name.clone()).collect(),
        allow_unmanaged: false,
    }
}

/// The jobs as points, from which another machine can run them.
fn plan(header: &Header, jobs: &[Job]) -> Vec<Point> {
    let point = |job: &Job| Point {
        id: header.id(0, &job.name),
        block: 0,
        cell: job.name.clone(),
        settings: job.settings.planned(),
    };
    jobs.iter().map(point).collect()
}

/// Runs the jobs that are not in the journal on threads. Returns whether all have ended.
fn here(
    jobs: &[Job],
    threads: usize,
    (journal, log): (&mut Journal<Row>, &Log),
    looker: &mut Looker<'_>,
) -> Result<bool, SimError> {
    let is_new = |job: &&Job| !journal.has(0, &job.name);
    let left: Vec<&Job> = jobs.iter().filter(is_new).collect();
    let ids: Vec<String> = left.iter().map(|job| journal.header().id(0, &job.name)).collect();
    let work = |number: usize, stop: &AtomicBool| {
        log.began(&ids[number]);
        let Job { name, settings, .. } = left[number];
        once(name, settings, &mut |_| !stop.load(Ordering::Relaxed))
    };
    let name = |number: usize| left[number].name.clone();
    many::run(left.len(), threads, (looker, name), work, |number, row| {
        journal.add(row)?;
        log.ended(&ids[number]);
        Ok(())
    })
}

/// Runs one simulation and returns its row; `None` if `watch` stopped the run.
pub(super) fn once(
    name: &str,
    settings: &Settings,
    watch: netsim::Watch<'_>,
) -> Result<Option<Row>, SimError> {
    let setup = Setup::new(settings)?;
    let row = Row { cell: name.to_owned(), figures: None, failure: None };
    match run::run(&setup, watch) {
        Ok(run) => Ok(Some(Row { figures: Some(figures(&setup, &run.outcome)), ..row })),
        Err(netsim::SimError::Stopped { .. }) => Ok(None),
        Err(error) => Ok(Some(Row { failure: Some(error.to_string()), ..row })),
    }
}
