//! The report and the record of a loop.

use std::path::Path;

use console::layout::{row, table};
use measure::Bytes;
use results::{ClosedLoop, LoopRound, Verdict};

use super::experiment::Experiment;
use super::{Closed, Round};
use results::validity::ALLOWED;

/// The report of a loop whose delays and traffic did not agree.
pub(super) const DISAGREED: &str =
    "delays and traffic did not agree; give more rounds, or a larger agree";

/// The readable report: a line for each round, the slowdowns, and whether traffic and delays agree.
pub(super) fn text(experiment: &Experiment, closed: &Closed, directory: &Path) -> String {
    let head = ["round", "s", "slowdown", "fetches", "page µs", "p50", "p99", "of flows"];
    let mut rows = vec![row(head)];
    let zero = format!("{:.3}", closed.zero_s);
    rows.push(row(["no delay", &zero, "", "", "", "", "", ""]));
    for (number, round) in closed.rounds.iter().enumerate() {
        let name = if number == 0 { "idle network".to_owned() } else { format!("{number}") };
        rows.push(vec![
            name,
            format!("{:.3}", round.seconds),
            round.slowdown.text(3),
            round.fetch_count.to_string(),
            format!("{:.3}", round.page.mean_us),
            format!("{:.3}", round.page.p50_us),
            format!("{:.3}", round.page.p99_us),
            format!("{:.3}", round.flow_slowdown),
        ]);
    }
    let mut text = if closed.allowed { format!("{ALLOWED}\n\n") } else { String::new() };
    text += &format!("{} with {} local\n\n", experiment.command.join(" "), local(experiment));
    text += &table(&rows);
    text.push('\n');
    if let (Some(first), Some(last)) = (closed.rounds.first(), closed.rounds.last()) {
        text += &format!(
            "without queueing {}: {}\nwith queueing    {}: {}\nslowdown: median of the ratios to \
             the run without delay beside it, in shuffled pairs, with an\ninterval that holds the \
             true median in at least 93 % of experiments (from 5 repetitions on)\n",
            first.slowdown.text(3),
            record_of(first).told(),
            last.slowdown.text(3),
            record_of(last).told()
        );
    }
    for (number, round) in closed.rounds.iter().enumerate() {
        if let Some(why) = &round.first_disturbance {
            let count = round.disturbed_count;
            text += &format!("round {number}: {count} pairs of runs were disturbed: {why}\n");
        }
    }
    text += match closed.agreed {
        true => "the delays that the last run had are those its traffic makes",
        false => DISAGREED,
    };
    text + "\n" + &format!("records and profiles: {}\n", directory.display())
}

/// How much memory is local, in words.
fn local(experiment: &Experiment) -> String {
    match experiment.share() {
        Some((local, of)) => local.told(of, experiment.peak.get().copied()),
        None => experiment.local.clone(),
    }
}

/// The record of a loop that ended.
pub(super) fn record(experiment: &Experiment, closed: &Closed) -> ClosedLoop {
    ClosedLoop {
        allowed: closed.allowed,
        zero_seconds: Some(closed.zero_s),
        rounds: closed.rounds.iter().map(record_of).collect(),
        agreed: closed.agreed,
        ..nothing(experiment)
    }
}

/// A round as the record has it.
fn record_of(round: &Round) -> LoopRound {
    LoopRound {
        seconds: round.seconds,
        slowdown: round.slowdown,
        verdict: Some(match round.is_disturbed {
            true => Verdict::Disturbed,
            false => round.slowdown.verdict(1.0),
        }),
        disturbed_count: round.disturbed_count,
        first_disturbance: round.first_disturbance.clone(),
        fetch_count: round.fetch_count,
        page_mean_us: round.page.mean_us,
        page_p50_us: round.page.p50_us,
        page_p99_us: round.page.p99_us,
        flow_slowdown: round.flow_slowdown,
    }
}

/// The record of a loop with an invalid run, which has no figures.
pub(super) fn invalid(experiment: &Experiment, why: &str) -> ClosedLoop {
    ClosedLoop { invalid: Some(why.to_owned()), ..nothing(experiment) }
}

// The record of what was run, without results.
fn nothing(experiment: &Experiment) -> ClosedLoop {
    let settings = experiment.settings().all();
    let of = experiment.share().map(|(_, of)| of);
    let peak = experiment.peak.get().copied();
    ClosedLoop {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: experiment.command.clone(),
        local: experiment.local.clone(),
        of: of.map(|of| of.name().to_owned()),
        of_bytes: of.and_then(|of| of.bytes(peak)).map(Bytes::get),
        network: settings.map(|(name, value)| (name.replace('-', "_"), value.into())).collect(),
        invalid: None,
        allowed: false,
        zero_seconds: None,
        rounds: Vec::new(),
        agreed: false,
    }
}
