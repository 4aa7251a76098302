//! `afar load`: runs a load on a key-value server; prints a summary, writes a record.

pub(crate) mod flags;
mod plan;
mod slo;
mod summary;
mod watch;

use std::process::ExitCode;

use ::load::Values;
use console::{Class, Failure, Output, terminal};
use measure::{LoadOperation, LoadProbe, LoadResults, LoadSearch, Results as _, Run};
use serde_json::{Value, json};
use workload::Operation;

use crate::load::flags::{KvFlags, LoadCommand, LoadFlags};
use crate::load::watch::{Loaded, Watched};
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

// Runs `afar load kv`.
fn kv(flags: &KvFlags) -> Result<ExitCode, Failure> {
    let plan = plan::Plan::resolve(flags)?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let csv = flags.csv.as_deref().map(Output::open).transpose()?;
    for property in &plan.ignored {
        terminal::note(&format!(
            "afar load: {}: property {property} has no effect here\n",
            flags.workload
        ));
    }
    let started_unix_ns = sys::clock::unix_ns();
    let loaded = loaded(&plan).map_err(|error| Failure::new(Class::Failed, error))?;
    let mut params = plan.params(flags);
    params.rate_per_s = loaded.rate_per_s.or(params.rate_per_s);
    let run = Run {
        schema: LoadResults::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_unix_ns,
        seed: flags.seed,
        host: machine::describe(),
        params,
        results: results(loaded),
    };
    let record = || serde_json::to_string_pretty(&run).expect("plain data has a JSON form") + "\n";
    let rows = || csv_of(&run.results);
    console::answer(|| summary::text(&run), vec![(json, &record), (csv, &rows)])?;
    let invalid = run.results.search.as_ref().and_then(|search| search.invalid.as_ref());
    match (summary::shortfall(&run.results), invalid) {
        (Some(sentence), _) => Err(Failure::shown(Class::Failed, sentence)),
        (None, Some(sentence)) => Err(Failure::shown(Class::Invalid, sentence.clone())),
        (None, None) => Ok(ExitCode::SUCCESS),
    }
}

/// The result of a load or of a search.
struct Told {
    tally: ::load::Tally,
    is_interrupted: bool,
    /// The rate of the try that `tally` is of; `None` without a search.
    rate_per_s: Option<f64>,
    search: Option<LoadSearch>,
}

/// CSV: a row for each operation of the load and of the probe; after a search, for each try.
fn csv_of(results: &LoadResults) -> String {
    if let Some(search) = &results.search {
        let leading = ["rate_per_s", "holds", "answered_per_s", "latency_ns"];
        return console::csv_of(&json!(search.tries), &leading);
    }
    let probe = results.probe.iter().flat_map(|probe| &probe.operations);
    let probe = probe.map(|operation| ("probe", operation));
    let all = results.operations.iter().map(|operation| ("load", operation)).chain(probe);
    let row = |(client, of): (&str, &LoadOperation)| {
        let seconds = results.elapsed_ns as f64 / 1e9;
        json!({
            "client": client,
            "operation": of.operation,
            "requests_per_s": of.latency.count as f64 / seconds,
            "latency": of.latency,
            "missing_count": of.missing_count,
            "refused_count": of.refused_count,
            "wrong_count": of.wrong_count,
        })
    };
    let leading = ["client", "operation", "latency_count", "requests_per_s", "latency_mean_ns"];
    console::csv_of(&Value::Array(all.map(row).collect()), &leading)
}

// Fills the store with `--fill`, then runs the load or the search. Trouble with filling ends it.
fn loaded(plan: &plan::Plan) -> Result<Told, ::load::LoadError> {
    let alone = |Loaded { tally, is_interrupted }| Told {
        tally,
        is_interrupted,
        rate_per_s: None,
        search: None,
    };
    let mut watched = Watched::new()?;
    if plan.fill {
        let filled = watched.fill(&plan.config)?;
        let has_trouble = filled.tally.lost_count > 0 || filled.tally.first_trouble.is_some();
        if filled.is_interrupted || has_trouble {
            return Ok(alone(filled));
        }
    }
    let Some(slo) = &plan.slo else {
        let values = Values::of(&plan.config);
        return watched.load(&plan.config, values.as_ref(), "").map(alone);
    };
    let slo::Searched { tally, rate_per_s, search, interrupted } =
        slo::run(&plan.config, slo, &mut watched)?;
    let rate_per_s = Some(rate_per_s);
    Ok(Told { tally, is_interrupted: interrupted, rate_per_s, search: Some(search) })
}

// The results for the record.
fn results(Told { tally, is_interrupted, search, .. }: Told) -> LoadResults {
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
        operations: operations(&tally),
        lost_count: tally.lost_count,
        failed_connection_count: tally.failed_connections,
        first_trouble: tally.first_trouble.clone(),
        interrupted: is_interrupted,
        probe,
        search,
    }
}

// The results of each operation that was requested.
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

#[cfg(test)]
mod tests {
    use measure::LoadTry;

    use super::*;

    #[test]
    fn rows_are_of_operations_or_of_tries() {
        let of = |operation: &str| LoadOperation {
            operation: operation.to_owned(),
            latency: measure::LatencySummary { count: 10, p50_ns: 7, ..Default::default() },
            ..LoadOperation::default()
        };
        let probe = LoadProbe { operations: vec![of("read")], ..LoadProbe::default() };
        let mut results = LoadResults {
            elapsed_ns: 2_000_000_000,
            request_count: 20,
            requests_per_s: 10.0,
            request_count_by_second: Vec::new(),
            operations: vec![of("read"), of("update")],
            lost_count: 0,
            failed_connection_count: 0,
            first_trouble: None,
            interrupted: false,
            probe: Some(probe),
            search: None,
        };
        let text = csv_of(&results);
        let mut rows = text.lines();
        let head = "client,operation,latency_count,requests_per_s,latency_mean_ns,";
        assert!(rows.next().is_some_and(|row| row.starts_with(head)), "{text}");
        for wanted in ["load,read,10,5.0,0,", "load,update,10,5.0,0,", "probe,read,10,5.0,0,"] {
            assert!(rows.next().is_some_and(|row| row.starts_with(wanted)), "{text}");
        }
        let tries = vec![LoadTry { rate_per_s: 100.0, latency_ns: 5, ..LoadTry::default() }];
        results.search = Some(LoadSearch { tries, ..LoadSearch::default() });
        let head = "rate_per_s,holds,answered_per_s,latency_ns,request_count";
        assert_eq!(csv_of(&results), format!("{head}\n100.0,false,0.0,5,0\n"));
    }
}
