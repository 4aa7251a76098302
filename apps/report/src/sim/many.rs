//! Many simulations: transports side by side under each condition (Gao et al. 2016, Fig. 7).

use chart::{Axis, Bar, Bars, BarsScale, Kind, Look, Plot, Series, short};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{rows, size};
use crate::context::Context;
use crate::section::{Chart, Figure, Picture, Section, Table};
use crate::words::{exact, list};
use results::Figures;

/// `afar.sim.findings/1`.
#[derive(Deserialize)]
struct Record {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    settings: Map<String, Value>,
    figures: Option<Figures>,
    failure: Option<String>,
}

/// The settings that tell transports apart.
const SERIES: [&str; 2] = ["transport", "variant"];
/// Conditions that have a picture by size; the others are in the tables.
const CONDITIONS_MAX: usize = 8;

impl Run {
    fn words(&self, is_series: bool) -> String {
        let ours =
            self.settings.iter().filter(|(key, _)| SERIES.contains(&key.as_str()) == is_series);
        let word = |(key, value): (&String, &Value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if is_series { value } else { format!("{} {value}", key.replace('_', " ")) }
        };
        ours.map(word).collect::<Vec<_>>().join(", ")
    }

    // What it is called among those under its condition.
    fn series(&self) -> String {
        let words = self.words(true);
        if words.is_empty() { "runs".to_owned() } else { words }
    }
}

/// Reads `afar.sim.findings/1`.
pub(crate) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let Record { runs } = serde_json::from_value(value)?;
    let mut section = Section {
        title: "Transports compared by simulation".to_owned(),
        kind: "sim sweep",
        ..Section::default()
    };
    let mut conditions: Vec<(String, Vec<&Run>)> = Vec::new();
    for run in &runs {
        let name = run.words(false);
        if let Some(why) = &run.failure {
            section.warnings.push(format!("{}, {name}: {why}", run.series()));
        }
        match conditions.iter_mut().find(|one| one.0 == name) {
            Some(one) => one.1.push(run),
            None => conditions.push((name, vec![run])),
        }
        let Some(figures) = &run.figures else { continue };
        let name = [run.words(true), run.words(false)].join(", ");
        let name = name.trim_matches([',', ' ']).to_owned();
        section.figures.push(Figure::new(
            format!("mean slowdown, {name}"),
            "x",
            figures.slowdown.mean,
        ));
        section.figures.push(Figure::new(
            format!("p99 slowdown, {name}"),
            "x",
            figures.slowdown.p99,
        ));
    }
    section.answer = conditions.iter().map(|(name, runs)| sentence(name, runs)).collect();
    for (index, (name, runs)) in conditions.iter().take(CONDITIONS_MAX).enumerate() {
        let of: [(&str, Of); 2] =
            [("mean", |one| one.slowdown.mean), ("p99", |one| one.slowdown.p99)];
        for (figure, of) in of {
            section.pictures.extend(bars((index, name, figure), runs, of));
        }
        section.pictures.extend(by_size(index, name, runs));
    }
    Ok(section)
}

fn under(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}

fn sentence(name: &str, runs: &[&Run]) -> String {
    let mut done: Vec<(&Figures, String)> =
        runs.iter().filter_map(|run| Some((run.figures.as_ref()?, run.series()))).collect();
    done.sort_by(|one, other| one.0.slowdown.mean.total_cmp(&other.0.slowdown.mean));
    let all = done.iter().map(|(figures, name)| {
        format!("{name} {} (p99 {})", short(figures.slowdown.mean), short(figures.slowdown.p99))
    });
    let all = list(&all.collect::<Vec<_>>());
    format!("Mean slowdown of flows, least first{}: {all}.", under(name))
}

type Of = fn(&Figures) -> f64;

fn bars((index, name, figure): (usize, &str, &str), runs: &[&Run], of: Of) -> Option<Picture> {
    let mut table =
        Table::new(["transport", "mean", "p50", "p99", "p99.9", "goodput_bits_per_sec"]);
    let mut all = Vec::new();
    for run in runs {
        let Some(figures) = &run.figures else { continue };
        let spread = &figures.slowdown;
        let goodput = figures.goodput_bits_per_sec;
        let [mean, p50, p99, p999, goodput] =
            [spread.mean, spread.p50, spread.p99, spread.p999, goodput].map(exact);
        table.push([run.series(), mean, p50, p99, p999, goodput]);
        let value = of(figures);
        all.push(Bar {
            name: run.series(),
            parts: vec![value],
            interval: None,
            text: short(value),
        });
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

fn by_size(index: usize, name: &str, runs: &[&Run]) -> Option<Picture> {
    let done = || runs.iter().filter_map(|run| Some((run.figures.as_ref()?, run.series())));
    let mut bins: Vec<(u64, String)> = Vec::new();
    for bin in done().flat_map(|(figures, _)| &figures.bins) {
        if bins.iter().all(|other| other.0 != bin.to_bytes) {
            bins.push((bin.to_bytes, size(bin)));
        }
    }
    bins.sort_by_key(|bin| bin.0);
    let mut table = Table::new(["transport", "flow size", "flows", "mean", "p50", "p99", "p99.9"]);
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
