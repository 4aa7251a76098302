//! The runs of a sweep as tables, CSV and JSON, in the order of the experiment.

use std::fmt::Write as _;

use console::layout::{self, row};
use results::Spread;
use results::sim::{SimRun, Simulations};

use super::row::Row;
use super::setting::Cell;

/// A line for each run.
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
            let Spread { mean, p50, p99, p999, .. } = figures.slowdown;
            cells.extend([mean, p50, p99, p999].map(|value| format!("{value:.3}")));
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
    format!("slowdown by run\n{}{failures}", layout::table(&rows))
}

/// A line for each size of each run, and one for all sizes.
pub(super) fn csv(runs: &[(&Cell, &Row)]) -> String {
    let mut text = axes(runs).join(",").replace('-', "_");
    text += ",over_bytes,to_bytes,count,mean,p50,p99,p999,goodput_bits_per_sec,utilisation,\
             dropped_at_hosts,dropped_at_switches,deepest_bytes,delivered_packets,failure\n";
    for (cell, run) in runs {
        let values: Vec<&str> = cell.axes.iter().map(|(_, value)| value.as_str()).collect();
        let values = values.join(",");
        let Some(figures) = &run.figures else {
            let why = run.failure.as_deref().unwrap_or_default().replace([',', '\n'], ";");
            let _infallible = writeln!(text, "{values},,,,,,,,,,,,,,{why}");
            continue;
        };
        let rest = format!(
            "{},{},{},{},{},{},",
            figures.goodput_bits_per_sec,
            figures.utilisation,
            figures.dropped_at_hosts,
            figures.dropped_at_switches,
            figures.deepest.bytes,
            figures.delivered_packets
        );
        let mut line = |over: &str, to: &str, spread: &Spread| {
            let Spread { count, mean, p50, p99, p999 } = spread;
            let _infallible =
                writeln!(text, "{values},{over},{to},{count},{mean},{p50},{p99},{p999},{rest}");
        };
        line("", "", &figures.slowdown);
        for bin in &figures.bins {
            let to =
                if bin.to_bytes == u64::MAX { String::new() } else { bin.to_bytes.to_string() };
            line(&bin.over_bytes.to_string(), &to, &bin.slowdown);
        }
    }
    text
}

/// Everything but what depends on this machine.
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

fn axes<'a>(runs: &[(&'a Cell, &Row)]) -> Vec<&'a str> {
    let first = runs.first().map(|(cell, _)| cell.axes.iter().map(|(axis, _)| *axis));
    first.into_iter().flatten().collect()
}
