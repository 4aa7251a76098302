//! What a key-value server for experiments has done.

use measure::{Bytes, LatencySummary};
use results::served::{KvServed, Results};
use serde_json::Value;

use super::context::Context;
use super::kv::{count_of, percentiles};
use super::section::{Figure, Section};
use super::words::{percent, time_ns};
use console::layout::count;

/// The section of a record `afar.kv.serve`.
pub(super) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let KvServed { command, host, params, results, .. } = results::read_body(value)?;
    let mut answer = vec![format!(
        "{} served {} commands per second ({} in all).",
        params.directory,
        count_of(results.commands_per_s),
        count(results.command_count)
    )];
    let latencies: Vec<(&str, LatencySummary)> = results
        .operations
        .iter()
        .filter(|of| of.served.max_ns > 0)
        .map(|of| (of.operation.as_str(), of.served))
        .collect();
    for of in results.operations.iter().filter(|of| of.served.max_ns > 0) {
        answer.push(format!(
            "Half of {} were done within {}, 99 of 100 within {}, after 99 of 100 had waited for \
             a thread no longer than {}.",
            of.operation,
            time_ns(of.served.p50_ns as f64),
            time_ns(of.served.p99_ns as f64),
            time_ns(of.waited.p99_ns as f64)
        ));
    }
    let warnings = warnings(&results);
    let store = &results.store;
    let blocks = store.block_cache_hit_count + store.block_cache_miss_count;
    let share = store.block_cache_hit_count as f64 / blocks.max(1) as f64;
    let each_ns = results.processor_ns as f64 / results.command_count.max(1) as f64;
    let bytes = |bytes| Bytes::new(bytes).to_string();
    let is = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    let mut figures = vec![
        Figure::new("commands per second", "/s", results.commands_per_s).higher(),
        Figure::new("processor time a command", "µs", each_ns / 1e3),
    ];
    for (name, latency) in &latencies {
        figures.push(Figure::new(format!("{name}, p50"), "µs", latency.p50_ns as f64 / 1e3));
        figures.push(Figure::new(format!("{name}, p99"), "µs", latency.p99_ns as f64 / 1e3));
    }
    let picture = percentiles(&latencies, "From when a thread had a command to its answer.");
    Ok(Section {
        title: format!("Key-value server on {}", params.directory),
        kind: "key-value server",
        answer,
        warnings,
        facts: vec![
            ("library".to_owned(), params.library),
            ("readers".to_owned(), params.reader_count.to_string()),
            ("writers".to_owned(), params.writer_count.to_string()),
            ("block cache".to_owned(), bytes(params.block_cache_bytes)),
            ("blocks found there".to_owned(), percent(share)),
            ("without the page cache".to_owned(), is(params.direct)),
            ("each write synced".to_owned(), is(params.sync)),
            ("work a command".to_owned(), time_ns(params.work_ns as f64)),
            ("bytes of the log".to_owned(), bytes(store.log_bytes)),
            ("written by flushes".to_owned(), bytes(store.flush_write_bytes)),
            ("written by compactions".to_owned(), bytes(store.compaction_write_bytes)),
        ],
        pictures: if latencies.is_empty() { Vec::new() } else { vec![picture] },
        figures,
        command,
        host: Some(host),
        ..Section::default()
    })
}

/// Warnings of errors, and of refused commands and connections.
fn warnings(results: &Results) -> Vec<String> {
    let errors: u64 = results.operations.iter().map(|of| of.error_count).sum();
    let mut warnings: Vec<String> = results.first_error.iter().cloned().collect();
    for (number, what) in [
        (errors, "commands were not done by RocksDB"),
        (results.refused_count, "requests were no command of this server"),
        (results.violation_count, "connections were ended for what they sent"),
        (results.turned_away_count, "connections were turned away"),
    ] {
        if number > 0 {
            warnings.push(format!("{} {what}", count(number)));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_done_is_a_warning() {
        let golden = include_str!("../../../crates/results/tests/golden/kv-serve.json");
        let record = serde_json::from_str(golden).expect("it is JSON");
        let context = Context { bound: 1.1, name: String::new() };
        let section = section(record, &context).expect("it is one");
        assert_eq!(section.answer.len(), 2);
        assert_eq!(
            section.warnings,
            [
                "IO error: No space left on device",
                "1 commands were not done by RocksDB",
                "1 requests were no command of this server",
                "1 connections were ended for what they sent"
            ]
        );
        assert_eq!(section.figures[0].value, 2.0);
        assert_eq!(section.facts[4].1, "12 %");
    }
}
