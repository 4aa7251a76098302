//! What `afar bench` has measured at disks: loads, and the curve of latency against load.

use std::collections::BTreeMap;

use chart::{Axis, Kind, Look, Plot, Series};
use measure::Host;
use serde::Deserialize;
use serde_json::Value;

use super::context::Context;
use super::kv::by_second;
use super::run::{distribution, distributions};
use super::section::{Chart, Figure, Picture, Section, Table};
use super::words::{exact, time_ns};
use console::layout::count;

/// The part of fio's JSON that is read.
#[derive(Deserialize)]
struct Record {
    jobs: Vec<Job>,
    #[serde(default)]
    afar: Own,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    read: Operation,
    write: Operation,
    #[serde(default)]
    trim: Option<Operation>,
    #[serde(default)]
    total_err: u64,
    #[serde(default)]
    afar: Value,
}

#[derive(Deserialize)]
struct Operation {
    total_ios: u64,
    iops: f64,
    bw_bytes: f64,
    lat_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    #[serde(default)]
    mean: f64,
    #[serde(default)]
    max: f64,
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

/// Fields of afar's own, which fio does not have.
#[derive(Deserialize, Default)]
struct Own {
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    host: Option<Host>,
    #[serde(default)]
    sweep: Option<Sweep>,
    #[serde(default)]
    request_count_by_second: Vec<u64>,
    #[serde(default)]
    first_failure: Option<String>,
    #[serde(default)]
    interrupted: bool,
}

#[derive(Deserialize)]
struct Sweep {
    closed_loop_per_s: Option<f64>,
    points: Vec<PointOfLoad>,
}

#[derive(Deserialize)]
struct PointOfLoad {
    offered_per_s: f64,
    achieved_per_s: f64,
    mean_ns: f64,
    #[serde(default)]
    p50_ns: Option<f64>,
    #[serde(default)]
    p95_ns: Option<f64>,
    #[serde(default)]
    p99_ns: Option<f64>,
}

/// The section of what `afar bench --json` has written.
pub(super) fn section(value: Value, context: &Context) -> Result<Section, serde_json::Error> {
    let record: Record = serde_json::from_value(value)?;
    let own = &record.afar;
    let mut section = Section {
        title: format!("Load on {}", target(&record, &context.name)),
        kind: "bench",
        warnings: own.first_failure.iter().cloned().collect(),
        ..Section::default()
    };
    if own.interrupted {
        section.warnings.push("it was ended before its time".to_owned());
    }
    let mut series = Vec::new();
    let many = record.jobs.len() > 1;
    let mut table = Table::new([
        "job",
        "operation",
        "requests",
        "iops",
        "bytes_per_s",
        "mean_us",
        "p50_us",
        "p99_us",
        "max_us",
    ]);
    for job in &record.jobs {
        if job.total_err > 0 {
            section.warnings.push(format!("{}: {} requests failed", job.jobname, job.total_err));
        }
        let trim = job.trim.as_ref();
        let all = [("read", Some(&job.read)), ("write", Some(&job.write)), ("trim", trim)];
        for (operation, of) in all {
            let Some(of) = of.filter(|of| of.total_ios > 0) else { continue };
            let name =
                if many { format!("{}, {operation}", job.jobname) } else { operation.to_owned() };
            row(&mut table, (&job.jobname, operation), of);
            section.answer.push(sentence(&name, of));
            section.figures.extend(figures(&name, of));
            let bins = of.lat_ns.bins.iter();
            let mut bins: Vec<(u64, u64)> =
                bins.filter_map(|(ns, count)| Some((ns.parse().ok()?, *count))).collect();
            bins.sort_unstable();
            series.push(distribution(&name, &bins));
        }
    }
    if !series.is_empty() {
        let caption = "The share of requests that took no longer. The first table is of jobs.";
        let mut picture = distributions("Latency of requests", caption, series);
        if picture.table.rows.is_empty() {
            picture.table = table.clone();
        }
        section.pictures.push(picture);
        section.verdicts = Some(table);
    }
    if let Some(sweep) = &own.sweep {
        section.answer.extend(limit(sweep));
        section.pictures.push(curve(sweep));
    }
    section.pictures.extend(by_second(&own.request_count_by_second));
    (section.command, section.host) = (record.afar.command, record.afar.host);
    Ok(section)
}

/// The target of the load: from the record, from its command, or else the file's name.
fn target(record: &Record, file: &str) -> String {
    let first = record.jobs.first().and_then(|job| job.afar["target"].as_str());
    let last = record.afar.command.iter().rfind(|word| word.contains(':'));
    first.or_else(|| last.map(String::as_str)).unwrap_or(file).to_owned()
}

/// A percentile in ns, by the beginning of its name; `None` if the record has none.
fn at(latency: &Latency, percentile: &str) -> Option<f64> {
    let found = latency.percentile.iter().find(|(name, _)| name.starts_with(percentile));
    found.map(|(_, ns)| *ns)
}

/// A sentence with the rate and the latencies of one operation.
fn sentence(name: &str, of: &Operation) -> String {
    let percentile = |name| at(&of.lat_ns, name).map(time_ns);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
    let iops = count(of.iops.round() as u64);
    let times = match (percentile("50."), percentile("99.0")) {
        (Some(half), Some(most)) => format!("; half took up to {half}, 99 of 100 up to {most}"),
        _ => format!("; {} in the mean", time_ns(of.lat_ns.mean)),
    };
    format!(
        "{name}: {iops} requests per second, {} MB/s{times}.",
        exact((of.bw_bytes / 1e5).round() / 10.0)
    )
}

/// Adds the row of one operation to the table.
fn row(table: &mut Table, (job, operation): (&str, &str), of: &Operation) {
    let us = |ns: Option<f64>| ns.map_or_else(String::new, |ns| exact(ns / 1e3));
    table.push([
        job.to_owned(),
        operation.to_owned(),
        of.total_ios.to_string(),
        exact(of.iops.round()),
        exact(of.bw_bytes.round()),
        us(Some(of.lat_ns.mean)),
        us(at(&of.lat_ns, "50.")),
        us(at(&of.lat_ns, "99.0")),
        us(Some(of.lat_ns.max)),
    ]);
}

/// The rate and the latencies of one operation, as figures.
fn figures(name: &str, of: &Operation) -> Vec<Figure> {
    let mut figures =
        vec![Figure::new(format!("{name}, requests per second"), "/s", of.iops).higher()];
    figures.push(Figure::new(format!("{name}, mean"), "µs", of.lat_ns.mean / 1e3));
    for percentile in ["50.", "99.0", "99.90"] {
        if let Some(ns) = at(&of.lat_ns, percentile) {
            let short = percentile.trim_end_matches('0').trim_end_matches('.');
            figures.push(Figure::new(format!("{name}, p{short}"), "µs", ns / 1e3));
        }
    }
    figures
}

/// A sentence on the rate up to which the mean latency stays within twice the lowest load's.
fn limit(sweep: &Sweep) -> Option<String> {
    let closed = sweep.closed_loop_per_s?;
    let first = sweep.points.first()?.mean_ns;
    let calm = sweep.points.iter().rfind(|point| point.mean_ns <= 2.0 * first)?;
    Some(format!(
        "A closed loop reaches {} requests per second; up to {} that arrive by themselves, the \
         mean latency stays within twice what it is with few ({}).",
        exact(closed.round()),
        exact(calm.offered_per_s.round()),
        time_ns(first)
    ))
}

/// The picture of latency against load.
fn curve(sweep: &Sweep) -> Picture {
    let mut table =
        Table::new(["offered_per_s", "achieved_per_s", "mean_us", "p50_us", "p95_us", "p99_us"]);
    let us = |ns: Option<f64>| ns.map_or_else(String::new, |ns| exact(ns / 1e3));
    for point in &sweep.points {
        table.push([
            exact(point.offered_per_s.round()),
            exact(point.achieved_per_s.round()),
            us(Some(point.mean_ns)),
            us(point.p50_ns),
            us(point.p95_ns),
            us(point.p99_ns),
        ]);
    }
    type Of = fn(&PointOfLoad) -> Option<f64>;
    let of: [(&str, Of); 3] =
        [("mean", |one| Some(one.mean_ns)), ("p95", |one| one.p95_ns), ("p99", |one| one.p99_ns)];
    let series = of.into_iter().map(|(name, of)| {
        let points = sweep.points.iter();
        let points = points.filter_map(|point| Some((point.offered_per_s, of(point)? / 1e3)));
        Series::new(name, Look::Line, points.collect())
    });
    let closed = sweep.closed_loop_per_s.map(|rate| (rate, "closed loop".to_owned()));
    let chart = Plot {
        title: "Latency against load".to_owned(),
        x: Axis::new("requests that arrive in a second", Kind::Linear).showing(&[0.0]),
        y: Axis::new("latency, µs", Kind::Logarithmic),
        series: series.filter(|series| !series.points.is_empty()).collect(),
        bounds: Vec::new(),
        marks: closed.into_iter().collect(),
    };
    Picture {
        name: "latency-load".to_owned(),
        title: "Latency against load".to_owned(),
        caption: "In an open loop: a request's time begins when it is due.".to_owned(),
        chart: Chart::Plot(chart),
        table,
    }
}
