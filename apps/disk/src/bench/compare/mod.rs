//! Compares several disks: runs the same load on each, in blocks of shuffled order.
//!
//! ```text
//! disks ─► order of a block ─► run, at most three times if disturbed ─► whole blocks ─► told
//!                                         table, CSV, record ◄────────────────────────────┘
//! ```
//!
//! A block counts only if every disk has run in it. So ratios are of runs near in time.

mod runs;
mod told;

use std::path::PathBuf;
use std::process::ExitCode;

use ::experiment::machine::Measuring;
use console::{Class, Failure, Output, terminal};

use super::error::BenchError;
use super::flags::BenchFlags;
use super::job::{Job, Place};
use super::layout;
use super::letters::LETTERS;
use super::plan::{Devices, Plan};
use super::run::Ready;
use client::Session;

use runs::Blocks;

/// Blocks by default: the fewest that have an interval.
const REPETITIONS: u32 = 5;

/// Runs `afar bench` of several disks.
///
/// # Errors
/// When the flags are for one disk, a disk cannot be reached, or a request fails.
pub(super) fn compare(flags: &BenchFlags, file: Option<PathBuf>) -> Result<ExitCode, Failure> {
    refuse(flags, file)?;
    let job = Job::of_flags(flags)?;
    let on = |uri: &String| Job { place: Some(Place::Uri(uri.clone())), ..job.clone() };
    let jobs: Vec<Job> = flags.targets.iter().map(on).collect();
    let plans = jobs.iter().map(|job| Plan::resolve(job, flags));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(Output::open).transpose();
    let [json, csv] = [open(&flags.json)?, open(&flags.csv)?];
    let _measuring = Measuring::begin().map_err(BenchError::from)?;
    let mut session = Session::new().map_err(BenchError::from)?;
    let mut devices = Devices::default();
    let disks = plans.into_iter().map(|plan| Ready::open(plan, &mut devices));
    let disks = disks.collect::<Result<Vec<_>, _>>()?;
    let repetitions = flags.repetitions.unwrap_or(REPETITIONS);
    if repetitions < REPETITIONS {
        terminal::note(&format!(
            "afar bench: --repetitions {repetitions}: an interval needs {REPETITIONS} at least, \
             and nothing is decided without one\n"
        ));
    }
    if flags.layout {
        layout::lay_out(&mut session, &disks)?;
    }
    let started_unix_ns = sys::clock::unix_ns();
    let blocks = runs::measure(&mut session, &disks, repetitions, flags.seed)?;
    session.end_line();
    write(&told::record(&blocks, &disks, flags.seed, started_unix_ns), &blocks, json, csv)
}

// Refuses what is for one disk only: a job file, `--sweep`, `--verify`; and too many disks.
fn refuse(flags: &BenchFlags, file: Option<PathBuf>) -> Result<(), BenchError> {
    let count = flags.targets.len();
    if let Some(path) = file {
        return Err(BenchError::JobOfDisks { path, count });
    }
    if count > LETTERS.len() {
        return Err(BenchError::Disks(count));
    }
    let given = [("--sweep", flags.sweep.is_some()), ("--verify", flags.verify)];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(BenchError::OneDisk { flag: flag.to_owned(), count }),
        None => Ok(()),
    }
}

// Writes and prints the record, and says how the comparison ended.
fn write(
    record: &results::disks::DiskComparison,
    blocks: &Blocks,
    json: Option<Output>,
    csv: Option<Output>,
) -> Result<ExitCode, Failure> {
    // Without a whole block, older files are left as they are.
    let has_blocks = record.block_count > 0;
    let [json, csv] = [json, csv].map(|output| output.filter(|_| has_blocks));
    if has_blocks {
        let (written, rows) = (|| results::write(record), || told::csv(record));
        console::answer(|| told::text(record), vec![(json, &written), (csv, &rows)])?;
    }
    if let Some(failure) = &blocks.failure {
        return Err(Failure::shown(Class::Failed, failure.clone()));
    }
    if !record.interrupted {
        return Ok(ExitCode::SUCCESS);
    }
    let until = match record.block_count {
        0 => " before every disk had run, so there is no result".to_owned(),
        1 => "; this is the block until then".to_owned(),
        count => format!("; these are the {count} whole blocks until then"),
    };
    terminal::say(&format!("afar bench: interrupted{until}\n"));
    Ok(Class::Interrupted.into())
}
