//! One simulation: slowdown by flow size, and what the network did.

pub(super) mod many;
mod over_time;

use chart::{Axis, Kind, Look, Plot, Series, short};
use measure::Bytes;
use serde_json::Value;

use super::context::Context;
use super::section::{Chart, Figure, Picture, Section, Table};
use super::words::{bits_per_s, exact, percent, time_ns};
use console::layout::count;
use results::sim::Simulation;
use results::{BinFigures, Estimate, Figures, Slowdowns, Spread, Steady};

/// The section of a record `afar.sim`.
pub(crate) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let Simulation { settings, figures, ports, shares, .. } = results::read_body(value)?;
    let text = |key: &str| settings.get(key).map_or("?", String::as_str);
    let transport = text("transport");
    Ok(Section {
        title: format!("{transport} on {}: simulated flows", text("topology")),
        kind: "sim",
        answer: answer(transport, &figures),
        facts: settings.iter().map(|(key, value)| (key.replace('_', " "), value.clone())).collect(),
        pictures: [by_size(&figures)]
            .into_iter()
            .chain(over_time::completion(&shares))
            .chain(ports.as_ref().map(over_time::queues).unwrap_or_default())
            .chain(ports.as_ref().and_then(over_time::drops))
            .collect(),
        figures: compared(&figures),
        ..Section::default()
    })
}

/// Sentences on slowdown, and on what the network did.
fn answer(transport: &str, figures: &Figures) -> Vec<String> {
    let Spread { mean, p99, count: flows, .. } = figures.slowdown;
    let mut answer = vec![format!(
        "With {transport}, a flow takes {} times as long as it would alone in the network, in the \
         mean of {}; one in a hundred takes more than {} times as long.",
        short(mean),
        count(flows as u64),
        short(p99)
    )];
    answer.extend(figures.steady.as_ref().map(sureness));
    let bins = || figures.bins.iter();
    let worst = bins().max_by(|one, other| one.slowdown.p99.total_cmp(&other.slowdown.p99));
    if let Some(worst) = worst.filter(|_| figures.bins.len() > 1) {
        let (name, p99) = (worst.name(), short(worst.slowdown.p99));
        answer.push(format!("Flows of {name} suffer most: p99 {p99}."));
    }
    answer.push(format!(
        "The network carried {}; hosts' links were busy {} of the time, the busiest link ({}) {}; \
         the deepest queue had {} ({}), and {} packets were dropped.",
        bits_per_s(figures.goodput_bits_per_sec),
        percent(figures.utilisation),
        figures.busiest.link,
        percent(figures.busiest.utilisation),
        Bytes::new(figures.deepest.bytes),
        figures.deepest.link,
        count(figures.dropped_at_hosts + figures.dropped_at_switches)
    ));
    answer.push(format!("All flows were done after {}.", time_ns(figures.end_ps as f64 / 1e3)));
    answer
}

/// A sentence with the interval of the mean, or why there is none.
fn sureness(steady: &Steady) -> String {
    let runs = count(steady.run_count);
    match steady.slowdown.mean.ends() {
        Some((low, high)) => format!(
            "In at least 93 % of experiments the mean lies from {} to {}: {runs} independent runs.",
            exact(low),
            exact(high)
        ),
        None => format!(
            "Where the mean lies is not known, n too small: {runs} of at least 6 runs \
             (--repetitions 6)."
        ),
    }
}

/// The ends of the interval of the mean; empty without one.
fn ends(sure: Option<&Slowdowns>) -> [String; 2] {
    let ends = sure.and_then(|sure| sure.mean.ends());
    ends.map_or_else(Default::default, |(low, high)| [low, high].map(exact))
}

/// Figures by which runs are compared.
fn compared(figures: &Figures) -> Vec<Figure> {
    let Spread { mean, p50, p99, p999, .. } = figures.slowdown;
    let named = [("mean", mean), ("p50", p50), ("p99", p99), ("p99.9", p999)];
    let mut all: Vec<Figure> =
        named.map(|(name, value)| Figure::new(format!("slowdown, {name}"), "x", value)).into();
    if let Some(sure) = figures.steady.as_ref().map(|steady| steady.slowdown) {
        let sure = [sure.mean, sure.p50, sure.p99, sure.p999];
        all = all.into_iter().zip(sure).map(|(one, sure)| within(one, &sure)).collect();
    }
    all.push(Figure::new("goodput", "bit/s", figures.goodput_bits_per_sec).higher());
    let drops = figures.dropped_at_hosts + figures.dropped_at_switches;
    all.push(Figure::new("packets dropped", "", drops as f64));
    all.push(Figure::new("deepest queue", "bytes", figures.deepest.bytes as f64));
    for bin in &figures.bins {
        let name = format!("slowdown of flows of {}, p99", bin.name());
        all.push(Figure::new(name, "x", bin.slowdown.p99));
    }
    all
}

/// A figure with its interval, if it has one.
fn within(figure: Figure, sure: &Estimate) -> Figure {
    match sure.ends() {
        Some(ends) => figure.within(ends),
        None => figure,
    }
}

/// A range of sizes as a label on an axis.
pub(super) fn size(bin: &BinFigures) -> String {
    bin.name().replace("up to ", "≤ ").replace("over ", "> ").replace(".0 ", " ")
}

/// Adds a row for each size and one for all, each after the cells in `before`.
pub(super) fn rows(table: &mut Table, before: &[String], figures: &Figures) {
    let steady = figures.steady.as_ref();
    let sure = |index: usize| steady.and_then(|steady| steady.bins.get(index));
    let bins = figures.bins.iter().enumerate();
    let bins = bins.map(|(index, bin)| (bin.name(), bin.slowdown, sure(index)));
    let all = ("all".to_owned(), figures.slowdown, steady.map(|steady| &steady.slowdown));
    for (name, spread, sure) in bins.chain([all]) {
        let Spread { count, mean, p50, p99, p999 } = spread;
        let mut row = before.to_vec();
        row.extend([name, count.to_string()]);
        row.extend([mean, p50, p99, p999].map(exact));
        row.extend(ends(sure));
        table.rows.push(row);
    }
}

const HEAD: [&str; 8] =
    ["flow size", "flows", "mean", "p50", "p99", "p99.9", "mean_low", "mean_high"];

/// The picture of slowdown by flow size.
fn by_size(figures: &Figures) -> Picture {
    let mut table = Table::new(HEAD);
    rows(&mut table, &[], figures);
    type Of = fn(&Spread) -> f64;
    let of: [(&str, Of); 4] = [
        ("mean", |one| one.mean),
        ("p50", |one| one.p50),
        ("p99", |one| one.p99),
        ("p99.9", |one| one.p999),
    ];
    let series = of.into_iter().map(|(name, of)| {
        let points = figures.bins.iter().enumerate();
        let points = points.map(|(at, bin)| (at as f64, of(&bin.slowdown)));
        Series::new(name, Look::Line, points.collect())
    });
    let chart = Plot {
        title: "Slowdown by flow size".to_owned(),
        x: Axis::new("flow size", Kind::Named(figures.bins.iter().map(size).collect())),
        y: Axis::new("slowdown", Kind::Either).showing(&[1.0]),
        series: series.collect(),
        bounds: Vec::new(),
        marks: Vec::new(),
    };
    Picture {
        name: "slowdown-by-size".to_owned(),
        title: "Slowdown by flow size".to_owned(),
        caption: "Completion time by that of the flow alone in the network.".to_owned(),
        chart: Chart::Plot(chart),
        table,
    }
}
