//! What `afar loop` has found: how slow a program is under the delays of its own traffic.

use chart::{Bar, Bars, BarsScale, short};
use results::{ClosedLoop, Estimate, LoopRound, Verdict};
use serde_json::Value;

use super::context::Context;
use super::section::{Chart, Figure, Picture, Section, Table};
use super::sweep::program;
use super::words::{command, exact, percent, slower, time_ns};
use results::validity::ALLOWED;

/// The section of a record `afar.loop`.
pub(super) fn section(value: Value, context: &Context) -> Result<Section, serde_json::Error> {
    let record: ClosedLoop = results::read_body(value)?;
    let program = program(&record.command, &context.name);
    let text = |key: &str| record.network.get(key).and_then(Value::as_str).unwrap_or("?");
    let mut section = Section {
        title: format!("{program}: far memory over a shared network"),
        kind: "loop",
        invalid: record.invalid.clone(),
        ..Section::default()
    };
    if record.allowed {
        section.answer.push(format!("{program}: {ALLOWED}."));
    }
    let ends = [record.rounds.first(), record.rounds.last()];
    if let [Some(alone), Some(queued)] = ends {
        let verdict = match queued.slowdown.verdict(context.bound) {
            _ if queued.verdict == Some(Verdict::Disturbed) => {
                "the machine was disturbed, so it is undecided whether it stays within"
            }
            Verdict::Within => "it stays within",
            Verdict::Beyond => "it does not stay within",
            _ => "it is undecided whether it stays within",
        };
        section.answer.push(format!(
            "With {} local, {program} is {} in an idle network and {} when its own traffic queues \
             ({} on {}); {verdict} {}.",
            record.local_told(),
            beside_none(alone),
            beside_none(queued),
            text("transport"),
            text("topology"),
            percent(context.bound - 1.0)
        ));
        for (name, round) in [("without", alone), ("with", queued)] {
            let slowdown = round.slowdown;
            let figure = Figure::new(format!("slowdown {name} queueing"), "x", slowdown.median);
            section.figures.push(match slowdown.ends() {
                Some(ends) => figure.within(ends),
                None => figure,
            });
        }
    }
    if let Some(last) = record.rounds.last() {
        let (mean, p99) = (time_ns(last.page_mean_us * 1e3), time_ns(last.page_p99_us * 1e3));
        section.answer.push(format!("In the end a page took {mean} in the mean, and p99 {p99}."));
        section.figures.push(Figure::new("page, mean", "µs", last.page_mean_us));
    }
    for (number, round) in record.rounds.iter().enumerate() {
        if let Some(why) = &round.first_disturbance {
            let count = round.disturbed_count;
            let what = format!("round {number}: {count} pairs of runs were disturbed: {why}");
            section.warnings.push(what);
        }
    }
    if !record.agreed && record.invalid.is_none() {
        let what = "delays and traffic did not agree: give more rounds, or a larger agree";
        section.warnings.push(what.to_owned());
    }
    section.facts.push(("program".to_owned(), command(&record.command)));
    for (key, value) in &record.network {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        section.facts.push((key.replace('_', " "), value));
    }
    section.pictures.push(rounds(&record.rounds, context.bound));
    Ok(section)
}

/// How much slower a round is than without delay, or why that is unknown.
fn beside_none(round: &LoopRound) -> String {
    let text = round.slowdown.text(3);
    match round.verdict.unwrap_or_else(|| round.slowdown.verdict(1.0)) {
        Verdict::Beyond => format!("{} ({text})", slower(round.slowdown.median)),
        _ => format!("of unknown slowdown ({text}, {})", round.told()),
    }
}

/// The slowdown and completion times of each round, as a picture with its table.
fn rounds(rounds: &[LoopRound], bound: f64) -> Picture {
    let head = [
        "round",
        "seconds",
        "slowdown",
        "low",
        "high",
        "fetches",
        "page_mean_us",
        "page_p50_us",
        "page_p99_us",
        "flow_slowdown",
    ];
    let end = |round: &LoopRound, of: fn((f64, f64)) -> f64| {
        round.slowdown.ends().map_or_else(String::new, |ends| exact(of(ends)))
    };
    let mut table = Table::new(head);
    let mut bars = Vec::new();
    for (index, round) in rounds.iter().enumerate() {
        table.push([
            index.to_string(),
            exact(round.seconds),
            exact(round.slowdown.median),
            end(round, |ends| ends.0),
            end(round, |ends| ends.1),
            round.fetch_count.to_string(),
            exact(round.page_mean_us),
            exact(round.page_p50_us),
            exact(round.page_p99_us),
            exact(round.flow_slowdown),
        ]);
        let name = match index {
            0 => "idle network".to_owned(),
            index => format!("round {index}"),
        };
        let Estimate { median, .. } = round.slowdown;
        let (interval, text) = (round.slowdown.ends(), short(median));
        bars.push(Bar { name, parts: vec![median], interval, text });
    }
    Picture {
        name: "rounds".to_owned(),
        title: "Slowdown from round to round".to_owned(),
        caption: "Each round runs under the delays that the traffic of the one before made in the \
                  simulated network."
            .to_owned(),
        chart: Chart::Bars(Bars {
            title: "Slowdown from round to round".to_owned(),
            unit: "slowdown".to_owned(),
            label: short,
            parts: Vec::new(),
            bars,
            marks: vec![(bound, format!("{} slower", percent(bound - 1.0)))],
            scale: BarsScale::Ratio,
        }),
        table,
    }
}
