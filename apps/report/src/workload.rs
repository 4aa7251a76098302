//! What a built-in workload has measured of itself.

use chart::{Axis, Kind, Look, Plot, Series};
use measure::{Run, WorkloadResults};
use serde_json::Value;

use super::context::Context;
use super::section::{Chart, Figure, Picture, Section, Table};
use super::words::{command, exact, time_ns};

/// The section of a record `afar.workload/1`.
pub(super) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let run: Run<WorkloadResults> = serde_json::from_value(value)?;
    let results = &run.results;
    let job = command(&run.command);
    let mut table = Table::new(["run", "elapsed_s"]);
    let seconds: Vec<f64> = results.elapsed_ns.iter().map(|ns| *ns as f64 / 1e9).collect();
    for (index, seconds) in (1..).zip(&seconds) {
        table.push([index.to_string(), exact(*seconds)]);
    }
    let points = (1..).zip(&seconds).map(|(index, seconds)| (f64::from(index), *seconds));
    let chart = Plot {
        title: "Time of each run".to_owned(),
        x: Axis::new("run", Kind::Linear),
        y: Axis::new("time, s", Kind::Linear).showing(&[0.0]),
        series: vec![Series::new("", Look::Dots, points.collect())],
        bounds: Vec::new(),
        marks: Vec::new(),
    };
    let median = results.elapsed_ns_median as f64;
    let ends =
        seconds.iter().copied().reduce(f64::min).zip(seconds.iter().copied().reduce(f64::max));
    let mut figure = Figure::new("elapsed, median", "s", median / 1e9);
    figure.interval = ends.filter(|_| seconds.len() > 2);
    Ok(Section {
        title: job,
        kind: "workload",
        answer: vec![format!(
            "In the median of {} runs it took {}; its result has the checksum {}.",
            results.elapsed_ns.len(),
            time_ns(median),
            results.checksum
        )],
        pictures: vec![Picture {
            name: "runs".to_owned(),
            title: "Time of each run".to_owned(),
            caption: "One after another in one process; the generation of data left out."
                .to_owned(),
            chart: Chart::Plot(chart),
            table,
        }],
        figures: vec![figure],
        command: run.command,
        host: Some(run.host),
        ..Section::default()
    })
}
