//! `afar load`: from flags to a record and a summary.

pub(crate) mod flags;
mod plan;
mod summary;
mod watch;

use std::process::ExitCode;

use console::{Class, Failure, Output, terminal};
use measure::{LoadOperation, LoadProbe, LoadResults, Results as _, Run};
use workload::Operation;

use crate::load::flags::{KvFlags, LoadCommand, LoadFlags};
use console::machine;

/// Runs `afar load`.
///
/// # Errors
/// When the flags contradict one another, the server cannot be reached or a result cannot be
/// written.
pub fn load(flags: &LoadFlags) -> Result<ExitCode, Failure> {
    match &flags.command {
        LoadCommand::Kv(flags) => kv(flags),
    }
}

fn kv(flags: &KvFlags) -> Result<ExitCode, Failure> {
    let plan = plan::Plan::resolve(flags)?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    for property in &plan.ignored {
        terminal::note(&format!(
            "afar load: {}: property {property} has no effect here\n",
            flags.workload
        ));
    }
    let started_unix_ns = sys::clock::unix_ns();
    let (tally, interrupted) =
        watch::run(&plan).map_err(|error| Failure::new(Class::Failed, error))?;
    let run = Run {
        schema: LoadResults::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_ns,
        seed: flags.seed,
        host: machine::describe(),
        params: plan.params(flags),
        results: results(&tally, interrupted),
    };
    let record = || serde_json::to_string_pretty(&run).expect("plain data has a JSON form") + "\n";
    console::answer(|| summary::text(&run), vec![(json, &record)])?;
    match summary::shortfall(&run.results) {
        Some(sentence) => Err(Failure::shown(Class::Failed, sentence)),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn results(tally: &::load::Tally, interrupted: bool) -> LoadResults {
    let probe = tally.probe.as_deref().map(|tally| LoadProbe {
        request_count: tally.count(),
        operations: operations(tally),
        lost_count: tally.lost_count,
        first_trouble: tally.first_trouble.clone(),
    });
    LoadResults {
        elapsed_ns: tally.elapsed.as_ns(),
        request_count: tally.count(),
        requests_per_s: tally.throughput(),
        request_count_by_second: tally.seconds.clone(),
        operations: operations(tally),
        lost_count: tally.lost_count,
        failed_connection_count: tally.failed_connections,
        first_trouble: tally.first_trouble.clone(),
        interrupted,
        probe,
    }
}

fn operations(tally: &::load::Tally) -> Vec<LoadOperation> {
    let operations = Operation::ALL.into_iter().map(|operation| {
        let of = tally.of(operation);
        LoadOperation {
            operation: operation.name().to_owned(),
            latency: of.latency.summary(),
            missing_count: of.missing_count,
            refused_count: of.refused_count,
            wrong_count: of.wrong_count,
        }
    });
    let asked = |operation: &LoadOperation| {
        operation.latency.count + operation.refused_count + operation.missing_count > 0
    };
    operations.filter(asked).collect()
}
