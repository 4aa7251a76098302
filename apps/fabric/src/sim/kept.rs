//! Many simulations, each kept in a directory when it has ended: on all processors of this machine,
//! or wherever an engine has them done.

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
    /// The number of the cell that it is of.
    pub(super) cell: usize,
    /// No other has it.
    pub(super) name: String,
    pub(super) settings: Settings,
}

/// Runs jobs that have not been run before; answers with the rows of all, in their order. Nothing
/// if the user wanted to stop, who is told where it goes on. `experiment` is what was said of them.
///
/// # Errors
/// When a job cannot be, or results cannot be kept. Runs without a result are results.
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

/// What whoever runs a job elsewhere has to know.
fn plan(header: &Header, jobs: &[Job]) -> Vec<Point> {
    let point = |job: &Job| Point {
        id: header.id(0, &job.name),
        block: 0,
        cell: job.name.clone(),
        settings: job.settings.planned(),
    };
    jobs.iter().map(point).collect()
}

/// Runs what is not in the journal; whether all of it ended.
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

/// One run; nothing if it was told to stop.
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
