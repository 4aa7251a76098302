//! The runs of a sweep as tables, CSV and JSON, in the order of the experiment.

use std::fmt::Write as _;

use console::layout::{self, row};
use results::sim::{SimRun, Simulations};
use results::{Estimate, Figures, Slowdowns, Spread, Steady};

use super::row::Row;
use super::setting::Cell;

/// The readable table: a line for each run, and why runs failed.
pub(super) fn text(runs: &[(&Cell, &Row)]) -> String {
    let axes = axes(runs);
    let figures =
        ["mean", "p50", "p99", "p99.9", "goodput Gb/s", "utilisation", "drops", "deepest KiB"];
    let mut rows = vec![axes.iter().map(|axis| (*axis).to_owned()).collect::<Vec<_>>()];
    rows[0].extend(row(figures));
    let mut failures = String::new();
    for (cell, run) in runs {
        let mut cells: Vec<String> = cell.axes.iter().map(|(_, value)| value.clone()).collect();
        if let Some(figures) = &run.figures {
            cells.extend(slowdowns(figures));
            cells.push(format!("{:.1}", figures.goodput_bits_per_sec / 1e9));
            cells.push(format!("{:.1} %", figures.utilisation * 100.0));
            cells.push((figures.dropped_at_hosts + figures.dropped_at_switches).to_string());
            cells.push(format!("{:.1}", figures.deepest.bytes as f64 / 1024.0));
        } else {
            cells.extend([layout::NONE; 8].map(str::to_owned));
            let why = run.failure.as_deref().unwrap_or_default();
            let _infallible = writeln!(failures, "{}: {why}", run.cell);
        }
        rows.push(cells);
    }
    let all = || runs.iter().filter_map(|(_, run)| run.figures.as_ref()?.steady.as_ref());
    let is_short = |steady: &Steady| steady.slowdown.mean.interval.is_none();
    let note = match (all().any(is_short), all().next()) {
        (_, None) => String::new(),
        (true, _) => format!(
            "without interval: n too small, fewer than {least} runs; add repetitions = {least}\n",
            least = super::steady::RUNS_MIN
        ),
        (false, _) => "each figure: the middle of independent runs, with where it lies in at \
                       least 93 % of experiments\n"
            .to_owned(),
    };
    format!("slowdown by run\n{}{note}{failures}", layout::table(&rows))
}

/// Mean and quantiles of slowdown as text, with intervals where there are several runs.
fn slowdowns(figures: &Figures) -> [String; 4] {
    match figures.steady.as_ref().filter(|steady| steady.run_count > 1) {
        Some(Steady { slowdown: Slowdowns { mean, p50, p99, p999 }, .. }) => {
            [mean, p50, p99, p999].map(|one| one.text(3))
        }
        None => {
            let Spread { mean, p50, p99, p999, .. } = figures.slowdown;
            [mean, p50, p99, p999].map(|value| format!("{value:.3}"))
        }
    }
}

/// The CSV: a line for each size of each run, and one for all sizes.
pub(super) fn csv(runs: &[(&Cell, &Row)]) -> String {
    let mut text: String =
        axes(runs).iter().map(|axis| format!("{},", axis.replace('-', "_"))).collect();
    text += "over_bytes,to_bytes,count,mean,p50,p99,p999,goodput_bits_per_sec,utilisation,\
             dropped_at_hosts,dropped_at_switches,deepest_bytes,delivered_packets,runs,mean_low,\
             mean_high,p99_low,p99_high,failure\n";
    for (cell, run) in runs {
        let values: String = cell.axes.iter().map(|(_, value)| format!("{value},")).collect();
        let Some(figures) = &run.figures else {
            let why = run.failure.as_deref().unwrap_or_default().replace([',', '\n'], ";");
            let _infallible = writeln!(text, "{values}{}{why}", ",".repeat(18));
            continue;
        };
        let rest = format!(
            "{},{},{},{},{},{}",
            figures.goodput_bits_per_sec,
            figures.utilisation,
            figures.dropped_at_hosts,
            figures.dropped_at_switches,
            figures.deepest.bytes,
            figures.delivered_packets
        );
        let steady = figures.steady.as_ref();
        let run_count = steady.map_or(1, |steady| steady.run_count);
        let mut line = |over: &str, to: &str, spread: &Spread, sure: Option<&Slowdowns>| {
            let Spread { count, mean, p50, p99, p999 } = spread;
            let ends = ends(sure);
            let _infallible = writeln!(
                text,
                "{values}{over},{to},{count},{mean},{p50},{p99},{p999},{rest},{run_count},{ends},"
            );
        };
        line("", "", &figures.slowdown, steady.map(|steady| &steady.slowdown));
        for (index, bin) in figures.bins.iter().enumerate() {
            let to =
                if bin.to_bytes == u64::MAX { String::new() } else { bin.to_bytes.to_string() };
            let sure = steady.and_then(|steady| steady.bins.get(index));
            line(&bin.over_bytes.to_string(), &to, &bin.slowdown, sure);
        }
    }
    text
}

/// CSV of the intervals of mean and 99th percentile, low and high; empty without an interval.
fn ends(sure: Option<&Slowdowns>) -> String {
    let of = |one: Option<Estimate>| match one.and_then(|one| one.ends()) {
        Some((low, high)) => format!("{low},{high}"),
        None => ",".to_owned(),
    };
    format!("{},{}", of(sure.map(|one| one.mean)), of(sure.map(|one| one.p99)))
}

/// The record of a sweep, without what depends on this machine.
pub(super) fn json(runs: &[(&Cell, &Row)]) -> String {
    let named = |(axis, value): &(&str, String)| (axis.replace('-', "_"), value.clone());
    let one = |(cell, run): &(&Cell, &Row)| SimRun {
        settings: cell.axes.iter().map(named).collect(),
        figures: run.figures.clone(),
        failure: run.failure.clone(),
    };
    results::write(&Simulations {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        runs: runs.iter().map(one).collect(),
    })
}

/// The names of the knobs that vary.
fn axes<'a>(runs: &[(&'a Cell, &Row)]) -> Vec<&'a str> {
    let first = runs.first().map(|(cell, _)| cell.axes.iter().map(|(axis, _)| *axis));
    first.into_iter().flatten().collect()
}
