//! What is told of a loop.

use std::path::Path;

use console::layout::{row, table};
use serde_json::{Value, json};

use super::experiment::Experiment;
use super::{Closed, Round};
use crate::validity::ALLOWED;

/// A line for each round, and what that comes to.
pub(super) fn text(experiment: &Experiment, closed: &Closed, directory: &Path) -> String {
    let head = ["round", "s", "slower by", "fetches", "page µs", "p50", "p99", "slowdown"];
    let mut rows = vec![row(head)];
    let zero = format!("{:.3}", closed.zero_s);
    rows.push(row(["no delay", &zero, "", "", "", "", "", ""]));
    for (number, round) in closed.rounds.iter().enumerate() {
        let name = if number == 0 { "idle network".to_owned() } else { format!("{number}") };
        rows.push(vec![
            name,
            format!("{:.3}", round.seconds),
            percent(degradation(closed, round)),
            round.fetch_count.to_string(),
            format!("{:.3}", round.page.mean_us),
            format!("{:.3}", round.page.p50_us),
            format!("{:.3}", round.page.p99_us),
            format!("{:.3}", round.slowdown),
        ]);
    }
    let mut text = if closed.allowed { format!("{ALLOWED}\n\n") } else { String::new() };
    text += &format!("{} with {} local\n\n", experiment.command.join(" "), experiment.local);
    text += &table(&rows);
    text.push('\n');
    if let (Some(first), Some(last)) = (closed.rounds.first(), closed.rounds.last()) {
        text += &format!(
            "slower by {} without queueing, by {} with it\n",
            percent(degradation(closed, first)),
            percent(degradation(closed, last))
        );
    }
    text += match closed.agreed {
        true => "the delays that the last run had are those its traffic makes\n",
        false => "delays and traffic did not agree; give more rounds, or a larger agree\n",
    };
    text + &format!("records and profiles: {}\n", directory.display())
}

fn degradation(closed: &Closed, round: &Round) -> f64 {
    round.seconds / closed.zero_s - 1.0
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The same as JSON.
pub(super) fn record(experiment: &Experiment, closed: &Closed) -> Value {
    let round = |round: &Round| {
        json!({
            "seconds": round.seconds,
            "degradation": degradation(closed, round),
            "fetch_count": round.fetch_count,
            "page_mean_us": round.page.mean_us,
            "page_p50_us": round.page.p50_us,
            "page_p99_us": round.page.p99_us,
            "slowdown": round.slowdown,
        })
    };
    let ends = [closed.rounds.first(), closed.rounds.last()];
    let [alone, queued] = ends.map(|round| round.map(|round| degradation(closed, round)));
    merged(
        experiment,
        json!({
            "valid": true,
            "invalid": null,
            "allowed": closed.allowed,
            "zero_seconds": closed.zero_s,
            "rounds": closed.rounds.iter().map(round).collect::<Vec<_>>(),
            "agreed": closed.agreed,
            "degradation_without_queueing": alone,
            "degradation_with_queueing": queued,
        }),
    )
}

/// The record of a loop with an invalid run, which has no figures.
pub(super) fn invalid(experiment: &Experiment, why: &str) -> Value {
    merged(
        experiment,
        json!({
            "valid": false,
            "invalid": why,
            "allowed": false,
            "zero_seconds": null,
            "rounds": [],
            "agreed": false,
            "degradation_without_queueing": null,
            "degradation_with_queueing": null,
        }),
    )
}

// What was run, and what came of it.
fn merged(experiment: &Experiment, outcome: Value) -> Value {
    let settings: serde_json::Map<String, Value> = experiment
        .settings()
        .all()
        .map(|(name, value)| (name.replace('-', "_"), value.into()))
        .collect();
    let mut record = json!({
        "schema": "afar.loop/2",
        "version": env!("CARGO_PKG_VERSION"),
        "command": experiment.command,
        "local": experiment.local,
        "network": settings,
    });
    if let (Some(record), Value::Object(outcome)) = (record.as_object_mut(), outcome) {
        record.extend(outcome);
    }
    record
}
