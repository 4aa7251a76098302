//! `afar workload`: generates data, times a job on it, prints a line and writes a record; or
//! becomes another program.

mod error;
pub(crate) mod flags;
mod job;
mod jobs;
mod list;
mod program;

use std::process::ExitCode;

use console::{Failure, Output, Progress, terminal};
use measure::{Bytes, Results as _, Run, WorkloadParams, WorkloadResults};
use sys::clock::monotonic_ns;

use self::job::Job;
use self::jobs::{Als, Pagerank, Sort, Wordcount};
use crate::workload::flags::{JobFlags, PagerankFlags, Variant, WorkloadCommand, WorkloadFlags};
use console::machine;
use serde_json::json;

pub(crate) use error::WorkloadError;

/// Runs `afar workload`.
///
/// # Errors
/// When a flag is invalid, a program is missing, or a result is wrong or cannot be written.
pub fn workload(flags: &WorkloadFlags) -> Result<ExitCode, Failure> {
    match &flags.command {
        WorkloadCommand::Wordcount(job) => run(job, &mut Wordcount::new(job)),
        WorkloadCommand::Sort(job) => run(job, &mut Sort::new(job)),
        WorkloadCommand::Als(flags) => run(&flags.job, &mut Als::new(flags)),
        WorkloadCommand::Pagerank(flags) => {
            check_threads(flags)?;
            run(&flags.job, &mut Pagerank::new(flags))
        }
        WorkloadCommand::Sql(flags) => {
            check_size(flags.size)?;
            Err(program::sql(flags).into())
        }
        WorkloadCommand::Kv(flags) => {
            check_size(flags.size)?;
            Err(program::server(flags).into())
        }
        WorkloadCommand::List => {
            terminal::answer(&list::text())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

// Refuses sizes that fit in caches, or not in this machine's memory.
fn check_size(size: Bytes) -> Result<(), WorkloadError> {
    let least = Bytes::new(::jobs::SIZE_MIN_BYTES);
    let memory = Bytes::new(machine::describe().memory_bytes);
    if size < least {
        return Err(WorkloadError::Small { size, least });
    }
    // If the size of memory is unknown, there is no upper limit.
    if memory > Bytes::ZERO && size > memory {
        return Err(WorkloadError::Large { size, memory });
    }
    Ok(())
}

// Refuses several threads for the single variant of PageRank.
fn check_threads(flags: &PagerankFlags) -> Result<(), WorkloadError> {
    match (flags.variant, flags.threads) {
        (Variant::Single, Some(threads)) if threads > 1 => Err(WorkloadError::Threads(threads)),
        _ => Ok(()),
    }
}

/// Runs a job `--repetitions` times; prints the median time, and writes the files.
fn run(flags: &JobFlags, job: &mut dyn Job) -> Result<ExitCode, Failure> {
    check_size(flags.size)?;
    let [json, csv] = [&flags.json, &flags.csv].map(|path| Output::wanted(path.as_deref()));
    let (json, csv) = (json?, csv?);
    let started_unix_ns = sys::clock::unix_ns();
    let (elapsed_ns, checksum) = measure(flags, job)?;
    let mut sorted = elapsed_ns.clone();
    sorted.sort_unstable();
    let median_ns = sorted[(sorted.len() - 1) / 2];
    let text = || {
        let seconds = median_ns as f64 / 1e9;
        let of = if flags.repetitions > 1 {
            format!(" (median of {})", flags.repetitions)
        } else {
            String::new()
        };
        let (name, facts) = (job.name(), job.facts());
        format!("{name}: {seconds:.6} s{of}, {facts}, checksum {checksum:016x}\n")
    };
    let record = || {
        let run = Run {
            schema: WorkloadResults::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            started_unix_ns,
            seed: flags.seed,
            host: machine::describe(),
            params: WorkloadParams {
                size_bytes: flags.size.get(),
                repeat_count: u64::from(flags.repetitions),
                input: job.input(),
            },
            results: WorkloadResults {
                elapsed_ns: elapsed_ns.clone(),
                elapsed_ns_median: median_ns,
                checksum: format!("{checksum:016x}"),
                outcome: job.outcome(median_ns as f64 / 1e9),
            },
        };
        run.to_json()
    };
    let rows = || {
        let row = |(repetition, elapsed_ns)| {
            json!({
                "repetition": repetition,
                "elapsed_ns": elapsed_ns,
                "checksum": format!("{checksum:016x}"),
            })
        };
        let rows = (1..).zip(&elapsed_ns).map(row);
        console::csv_of(&rows.collect(), &["repetition", "elapsed_ns", "checksum"])
    };
    console::answer(text, vec![(json, &record), (csv, &rows)])?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a job repeatedly: the time of each run in nanoseconds, and their common checksum.
fn measure(flags: &JobFlags, job: &mut dyn Job) -> Result<(Vec<u64>, u64), Failure> {
    let mut progress = Progress::new("run", flags.repetitions as usize);
    let mut elapsed_ns = Vec::new();
    let mut checksums = Vec::new();
    for _ in 0..flags.repetitions {
        progress.show(&format!("{}: making data", flags.size));
        job.prepare();
        progress.show(&format!("{}: the job", flags.size));
        let start_ns = monotonic_ns();
        job.run();
        let took_ns = monotonic_ns() - start_ns;
        elapsed_ns.push(took_ns);
        progress.show(&format!("{}: verifying", flags.size));
        let name = job.name();
        checksums.push(job.verify().map_err(|source| WorkloadError::Wrong { name, source })?);
        progress.end(&format!("{name} {:.3} s", took_ns as f64 / 1e9));
    }
    let first = checksums[0];
    if let Some(other) = checksums.iter().find(|&&checksum| checksum != first) {
        let text = format!("checksum {other:016x} in one run and {first:016x} in another");
        return Err(WorkloadError::Wrong { name: job.name(), source: text.into() }.into());
    }
    Ok((elapsed_ns, first))
}
