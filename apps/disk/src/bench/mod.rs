//! `afar bench`: runs the loads of flags or a job file on disks; prints a summary, writes a record.
//!
//! ```text
//! flags ┬─────────► Job ─► Plan ─► Ready ─► run, phase by phase ─► report ─► summary, fio's JSON
//! file ─┴─ job::read ┘                             ├ sweep ─► curve
//!                                                  └ compare, several disks ─► table, record
//! ```

mod compare;
mod error;
mod fio;
pub(crate) mod flags;
mod job;
mod layout;
mod letters;
mod pattern;
mod plan;
mod processors;
mod report;
mod run;
mod summary;
mod sweep;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args as _;
use clap::parser::ValueSource;
use console::{Class, Failure, Output, SpeechFlags, terminal};

use crate::bench::flags::BenchFlags;
use client::Session;

pub(crate) use error::BenchError;
pub(crate) use job::{fio_size, fio_time};
pub(crate) use pattern::{Pattern, skew};

use job::Job;
use plan::{Devices, Plan};
use run::Ready;

/// Runs `afar bench`.
///
/// # Errors
/// When the flags contradict one another, or the disk cannot be reached.
pub fn bench(flags: &BenchFlags) -> Result<ExitCode, Failure> {
    let file = job_file(flags);
    if flags.targets.len() > 1 {
        return compare::compare(flags, file);
    }
    if flags.repetitions.is_some() {
        return Err(BenchError::Needs { flag: "--repetitions", what: "several disks" }.into());
    }
    if let (Some(rates), None) = (&flags.sweep, &file) {
        return sweep::sweep(flags, rates);
    }
    let jobs = match &file {
        Some(path) => read(path)?,
        None => vec![Job::of_flags(flags)?],
    };
    let phases = run::phases(&jobs);
    let located = |job: &Job, error: BenchError| match &file {
        None => error,
        Some(path) => BenchError::Section {
            path: path.clone(),
            line: job.line,
            name: job.name.clone(),
            source: Box::new(error),
        },
    };
    let plans = jobs.iter().map(|job| Plan::resolve(job, flags).map_err(|e| located(job, e)));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(Output::open).transpose();
    let (json, csv) = (open(&flags.json)?, open(&flags.csv)?);
    let mut session = Session::new().map_err(BenchError::from)?;
    let mut devices = Devices::default();
    let mut ready = Vec::new();
    for plan in plans {
        let job = plan.job;
        ready.push(Ready::open(plan, &mut devices).map_err(|error| located(job, error))?);
    }
    for range in &phases {
        if let Some((index, other)) = run::disturbed(&ready[range.clone()]) {
            let error = BenchError::Overlap { other: other.to_owned() };
            return Err(located(&ready[range.start + index].job, error).into());
        }
    }
    if flags.layout {
        layout::lay_out(&mut session, &ready)?;
    }
    let done = run::run(&mut session, &ready, &phases)?;
    session.end_line();
    let interrupted = session.is_interrupted();
    let record = || {
        let phases: Vec<_> = done.iter().collect();
        let beside = [("interrupted", interrupted.into())];
        fio::record(flags, &jobs, &phases, &beside)
    };
    let (text, rows) = (|| fio::text(&record()), || fio::rows(&record()));
    let forms: Vec<console::Form<'_>> = vec![(json, &text), (csv, &rows)];
    console::answer(|| summary::text(&jobs, &done, interrupted), forms)?;
    match summary::shortfall(&done) {
        Some(sentence) => Err(Failure::shown(Class::Failed, sentence)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// File name extensions of job files.
const ENDINGS: [&str; 2] = ["fio", "ini"];

// The job file: given by `--job`, or a target whose name has the extension of one.
fn job_file(flags: &BenchFlags) -> Option<PathBuf> {
    if flags.job.is_some() {
        return flags.job.clone();
    }
    let is_one = |path: &Path| path.extension().is_some_and(|of| ENDINGS.iter().any(|e| of == *e));
    flags.targets.iter().map(PathBuf::from).find(|path| is_one(path))
}

/// Flags that are allowed beside a job file.
const BESIDE: [&str; 15] = [
    "targets",
    "job",
    "layout",
    "overwrite",
    "busy_poll",
    "header_digest",
    "data_digest",
    "ctrl_loss_tmo",
    "host",
    "initiator",
    "chap_secret",
    "chap_target_secret",
    "chap_algs",
    "json",
    "csv",
];

// Reads a job file, and prints notes on options without effect.
fn read(path: &Path) -> Result<Vec<Job>, BenchError> {
    if let Some(flag) = other_flag() {
        return Err(BenchError::WithJob { flag, path: path.to_owned() });
    }
    let named = || path.to_owned();
    let bytes =
        std::fs::read(path).map_err(|source| BenchError::Unread { path: named(), source })?;
    let variable = |name: &str| std::env::var(name).ok();
    let (jobs, notes) = job::read(&bytes, &variable).map_err(|error| BenchError::Job {
        path: named(),
        line: error.line,
        reason: error.reason,
    })?;
    for note in notes {
        let path = path.display();
        terminal::note(&format!("afar bench: {path}:{}: {}\n", note.line, note.text));
    }
    Ok(jobs)
}

// A flag on the command line that is not allowed beside a job file.
fn other_flag() -> Option<String> {
    let command = BenchFlags::augment_args(clap::Command::new("bench"));
    let root = SpeechFlags::augment_args(clap::Command::new("command"));
    let matches = root.subcommand(command.clone()).try_get_matches().ok()?;
    let matches = matches.subcommand_matches("bench")?;
    let arguments = command.get_arguments();
    let mut others = arguments.filter(|argument| {
        let id = argument.get_id();
        let is_given = matches.ids().any(|one| one == id)
            && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        is_given && !BESIDE.contains(&id.as_str())
    });
    others.next()?.get_long().map(|long| format!("--{long}"))
}
