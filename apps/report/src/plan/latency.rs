//! Round trips by design, and which targets they meet.

use chart::{Bar, Bars, BarsScale, short};
use results::plan::latency::{Path, RoundTrips};
use serde_json::Value;

use crate::context::Context;
use crate::section::{Chart, Figure, Picture, Section, Table};
use crate::words::{bits_per_s, exact, list, time_ns};

/// The name of a path: its design, scope and rate.
fn name(path: &Path) -> String {
    format!("{}, {}, {}", path.design, path.scope, bits_per_s(path.rate_bps as f64))
}

/// The section of a record `afar.plan.latency`.
pub(crate) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let record: RoundTrips = results::read_body(value)?;
    let answer = record.targets.iter().map(|target| {
        let meets = record.paths.iter().filter(|path| path.meets.contains(&target.name));
        let names = list(&meets.map(name).collect::<Vec<_>>());
        let (target, time) = (&target.name, time_ns(target.rtt_ns));
        match names.as_str() {
            "" => format!("No path meets {target} ({time})."),
            names => format!("{target} ({time}) is met by {names}."),
        }
    });
    let answer: Vec<String> = answer.collect();
    let table = table(&record.paths);
    let bars = record.paths.iter().map(|path| Bar {
        name: name(path),
        parts: [path.fixed_ns, path.transmission_ns, path.wait_ns].map(|ns| ns / 1e3).to_vec(),
        interval: None,
        text: format!("{} µs", short(path.total_ns / 1e3)),
    });
    let parts = ["software, switches, distance", "the page on the wire", "waiting"];
    let title = "What a remote page costs".to_owned();
    let figures =
        record.paths.iter().map(|path| Figure::new(name(path), "µs", path.total_ns / 1e3));
    Ok(Section {
        title: "Round trips by design".to_owned(),
        kind: "plan latency",
        answer,
        figures: figures.collect(),
        pictures: vec![Picture {
            name: "round-trips".to_owned(),
            title: title.clone(),
            caption: format!(
                "A page of {} bytes, by its parts; dotted: targets.",
                record.page_bytes
            ),
            chart: Chart::Bars(Bars {
                title,
                unit: "µs".to_owned(),
                label: short,
                parts: parts.map(str::to_owned).to_vec(),
                bars: bars.collect(),
                marks: record
                    .targets
                    .iter()
                    .map(|one| (one.rtt_ns / 1e3, one.name.clone()))
                    .collect(),
                scale: BarsScale::Zero,
            }),
            table,
        }],
        ..Section::default()
    })
}

/// A row for each path, with the parts of its round trip.
fn table(paths: &[Path]) -> Table {
    let mut table = Table::new([
        "design",
        "scope",
        "rate_bps",
        "fixed_us",
        "transmission_us",
        "wait_us",
        "total_us",
        "meets",
    ]);
    let us = |ns: f64| exact(ns / 1e3);
    for path in paths {
        table.push([
            path.design.clone(),
            path.scope.clone(),
            path.rate_bps.to_string(),
            us(path.fixed_ns),
            us(path.transmission_ns),
            us(path.wait_ns),
            us(path.total_ns),
            path.meets.join("; "),
        ]);
    }
    table
}
