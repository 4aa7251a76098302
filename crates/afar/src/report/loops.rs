//! What `afar loop` has found: how slow a program is under the delays of its own traffic.

use chart::{Bar, Bars, BarsScale, short};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::context::Context;
use super::section::{Chart, Figure, Picture, Section, Table};
use super::sweep::program;
use super::words::{command, exact, percent, time_ns};
use crate::validity::ALLOWED;

/// `afar.loop/2`.
#[derive(Deserialize)]
struct Record {
    command: Vec<String>,
    local: String,
    network: Map<String, Value>,
    /// Why there is no result.
    invalid: Option<String>,
    #[serde(default)]
    allowed: bool,
    rounds: Vec<Round>,
    agreed: bool,
    degradation_without_queueing: Option<f64>,
    degradation_with_queueing: Option<f64>,
}

#[derive(Deserialize)]
struct Round {
    seconds: f64,
    degradation: f64,
    fetch_count: u64,
    page_mean_us: f64,
    page_p50_us: f64,
    page_p99_us: f64,
    slowdown: f64,
}

/// Reads `afar.loop/2`.
pub(super) fn section(value: Value, context: &Context) -> Result<Section, serde_json::Error> {
    let record: Record = serde_json::from_value(value)?;
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
    let (alone, queued) = (record.degradation_without_queueing, record.degradation_with_queueing);
    if let Some((alone, queued)) = alone.zip(queued) {
        let verdict =
            if queued <= context.bound - 1.0 { "stays within" } else { "does not stay within" };
        section.answer.push(format!(
            "With {} of its memory local, {program} is {} slower in an idle network and {} slower \
             when its own traffic queues ({} on {}); it {verdict} {}.",
            record.local,
            percent(alone),
            percent(queued),
            text("transport"),
            text("topology"),
            percent(context.bound - 1.0)
        ));
        section.figures.push(Figure::new("degradation without queueing", "", alone));
        section.figures.push(Figure::new("degradation with queueing", "", queued));
    }
    if let Some(last) = record.rounds.last() {
        let (mean, p99) = (time_ns(last.page_mean_us * 1e3), time_ns(last.page_p99_us * 1e3));
        section.answer.push(format!("In the end a page took {mean} in the mean, and p99 {p99}."));
        section.figures.push(Figure::new("page, mean", "µs", last.page_mean_us));
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

fn rounds(rounds: &[Round], bound: f64) -> Picture {
    let head = [
        "round",
        "seconds",
        "slower by",
        "fetches",
        "page_mean_us",
        "page_p50_us",
        "page_p99_us",
        "flow_slowdown",
    ];
    let mut table = Table::new(head);
    let mut bars = Vec::new();
    for (index, round) in rounds.iter().enumerate() {
        table.push([
            index.to_string(),
            exact(round.seconds),
            exact(round.degradation),
            round.fetch_count.to_string(),
            exact(round.page_mean_us),
            exact(round.page_p50_us),
            exact(round.page_p99_us),
            exact(round.slowdown),
        ]);
        let name = match index {
            0 => "idle network".to_owned(),
            index => format!("round {index}"),
        };
        let text = percent(round.degradation);
        bars.push(Bar { name, parts: vec![1.0 + round.degradation], interval: None, text });
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
