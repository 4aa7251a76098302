//! Many simulations: transports side by side under each condition (Gao et al. 2016, Fig. 7).

use chart::{Axis, Bar, Bars, BarsScale, Kind, Look, Plot, Series, short};
use serde_json::Value;

use super::{rows, size, within};
use crate::context::Context;
use crate::section::{Chart, Figure, Picture, Section, Table};
use crate::words::{exact, list};
use results::sim::{SimRun, Simulations};
use results::{Figures, Slowdowns, Spread};

/// The settings that tell transports apart.
const SERIES: [&str; 2] = ["transport", "variant"];
/// The most conditions that have pictures; the others are in the answer and the figures only.
const CONDITIONS_MAX: usize = 8;

/// The settings of a run in words: those of its transport, or else its conditions.
fn words(run: &SimRun, is_series: bool) -> String {
    let ours = run.settings.iter().filter(|(key, _)| SERIES.contains(&key.as_str()) == is_series);
    let word = |(key, value): (&String, &String)| {
        if is_series { value.clone() } else { format!("{} {value}", key.replace('_', " ")) }
    };
    ours.map(word).collect::<Vec<_>>().join(", ")
}

// The name of a run among those under the same conditions.
fn series(run: &SimRun) -> String {
    let words = words(run, true);
    if words.is_empty() { "runs".to_owned() } else { words }
}

/// The section of a record `afar.sim.findings`.
pub(crate) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let Simulations { runs, .. } = results::read_body(value)?;
    let mut section = Section {
        title: "Transports compared by simulation".to_owned(),
        kind: "sim sweep",
        ..Section::default()
    };
    let mut conditions: Vec<(String, Vec<&SimRun>)> = Vec::new();
    for run in &runs {
        let name = words(run, false);
        if let Some(why) = &run.failure {
            section.warnings.push(format!("{}, {name}: {why}", series(run)));
        }
        match conditions.iter_mut().find(|one| one.0 == name) {
            Some(one) => one.1.push(run),
            None => conditions.push((name, vec![run])),
        }
        let Some(figures) = &run.figures else { continue };
        let name = [words(run, true), words(run, false)].join(", ");
        let name = name.trim_matches([',', ' ']).to_owned();
        let Spread { mean, p99, .. } = figures.slowdown;
        let sure = figures.steady.as_ref().map(|steady| steady.slowdown);
        let sure = [sure.map(|one| one.mean), sure.map(|one| one.p99)];
        for ((what, value), sure) in [("mean", mean), ("p99", p99)].into_iter().zip(sure) {
            let figure = Figure::new(format!("{what} slowdown, {name}"), "x", value);
            section.figures.push(match &sure {
                Some(sure) => within(figure, sure),
                None => figure,
            });
        }
    }
    section.answer = conditions.iter().map(|(name, runs)| sentence(name, runs)).collect();
    for (index, (name, runs)) in conditions.iter().take(CONDITIONS_MAX).enumerate() {
        let of: [(&str, Of, Sure); 2] = [
            ("mean", |one| one.slowdown.mean, |one| one.mean.ends()),
            ("p99", |one| one.slowdown.p99, |one| one.p99.ends()),
        ];
        for (figure, of, sure) in of {
            section.pictures.extend(bars((index, name, figure), runs, (of, sure)));
        }
        section.pictures.extend(by_size(index, name, runs));
    }
    Ok(section)
}

/// Conditions in brackets, to follow a title; empty if there are none.
fn under(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}

/// A sentence with the slowdown of each run under the same conditions.
fn sentence(name: &str, runs: &[&SimRun]) -> String {
    let mut done: Vec<(&Figures, String)> =
        runs.iter().filter_map(|run| Some((run.figures.as_ref()?, series(run)))).collect();
    done.sort_by(|one, other| one.0.slowdown.mean.total_cmp(&other.0.slowdown.mean));
    let all = done.iter().map(|(figures, name)| {
        format!("{name} {} (p99 {})", short(figures.slowdown.mean), short(figures.slowdown.p99))
    });
    let all = list(&all.collect::<Vec<_>>());
    format!("Mean slowdown of flows, least first{}: {all}.", under(name))
}

type Of = fn(&Figures) -> f64;
type Sure = fn(&Slowdowns) -> Option<(f64, f64)>;

/// Bars of slowdown by transport under the same conditions; `None` without results.
fn bars(
    (index, name, figure): (usize, &str, &str),
    runs: &[&SimRun],
    (of, sure): (Of, Sure),
) -> Option<Picture> {
    let mut table =
        Table::new(["transport", "mean", "p50", "p99", "p99.9", "goodput_bits_per_sec"]);
    let mut all = Vec::new();
    for run in runs {
        let Some(figures) = &run.figures else { continue };
        let spread = &figures.slowdown;
        let goodput = figures.goodput_bits_per_sec;
        let [mean, p50, p99, p999, goodput] =
            [spread.mean, spread.p50, spread.p99, spread.p999, goodput].map(exact);
        table.push([series(run), mean, p50, p99, p999, goodput]);
        let value = of(figures);
        let interval = figures.steady.as_ref().and_then(|steady| sure(&steady.slowdown));
        all.push(Bar { name: series(run), parts: vec![value], interval, text: short(value) });
    }
    let title = format!("Slowdown by transport, {figure}{}", under(name));
    (!all.is_empty()).then(|| Picture {
        name: format!("transports-{figure}-{}", index + 1),
        title: title.clone(),
        caption: "Completion time of a flow by that of the flow alone in the network; 1 is as \
                  fast as can be."
            .to_owned(),
        chart: Chart::Bars(Bars {
            title,
            unit: "slowdown".to_owned(),
            label: short,
            parts: Vec::new(),
            bars: all,
            marks: Vec::new(),
            scale: BarsScale::Ratio,
        }),
        table,
    })
}

/// Lines of p99 slowdown by flow size under the same conditions; `None` without results.
fn by_size(index: usize, name: &str, runs: &[&SimRun]) -> Option<Picture> {
    let done = || runs.iter().filter_map(|run| Some((run.figures.as_ref()?, series(run))));
    let mut bins: Vec<(u64, String)> = Vec::new();
    for bin in done().flat_map(|(figures, _)| &figures.bins) {
        if bins.iter().all(|other| other.0 != bin.to_bytes) {
            bins.push((bin.to_bytes, size(bin)));
        }
    }
    bins.sort_by_key(|bin| bin.0);
    let mut table = Table::new([
        "transport",
        "flow size",
        "flows",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "mean_low",
        "mean_high",
    ]);
    let mut series = Vec::new();
    for (figures, name) in done() {
        rows(&mut table, std::slice::from_ref(&name), figures);
        let points = figures.bins.iter().filter_map(|bin| {
            let at = bins.iter().position(|other| other.0 == bin.to_bytes)?;
            Some((at as f64, bin.slowdown.p99))
        });
        series.push(Series::new(name, Look::Line, points.collect()));
    }
    let title = format!("Slowdown by flow size, p99{}", under(name));
    let names = bins.into_iter().map(|bin| bin.1).collect();
    (!series.is_empty()).then(|| Picture {
        name: format!("transports-by-size-{}", index + 1),
        title: title.clone(),
        caption: "99th percentile; means and medians are in the table.".to_owned(),
        chart: Chart::Plot(Plot {
            title,
            x: Axis::new("flow size", Kind::Named(names)),
            y: Axis::new("slowdown", Kind::Either).showing(&[1.0]),
            series,
            bounds: Vec::new(),
            marks: Vec::new(),
        }),
        table,
    })
}
