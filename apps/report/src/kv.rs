//! What `afar load` has measured at a key-value server.

use chart::{Axis, Kind, Look, Plot, Series};
use measure::{LatencySummary, LoadParams, LoadResults, LoadSearch, Run};
use serde_json::Value;

use super::context::Context;
use super::section::{Chart, Figure, Picture, Section, Table};
use super::words::{exact, percent, time_ns};
use console::layout::count;

/// The percentiles of every latency, in their order on the axis.
pub(super) const PERCENTILES: [&str; 6] = ["p50", "p90", "p95", "p99", "p99.9", "max"];

/// The section of a record `afar.load/1`.
pub(super) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let run: Run<LoadResults> = serde_json::from_value(value)?;
    let (params, results) = (&run.params, &run.results);
    let answer = answer(params, results);
    let warnings = warnings(results);
    let latencies: Vec<(&str, LatencySummary)> = results
        .operations
        .iter()
        .map(|operation| (operation.operation.as_str(), operation.latency))
        .collect();
    let mut figures = vec![throughput(results.requests_per_s, &results.request_count_by_second)];
    for (name, latency) in &latencies {
        figures.push(Figure::new(format!("{name}, p50"), "µs", latency.p50_ns as f64 / 1e3));
        figures.push(Figure::new(format!("{name}, p99"), "µs", latency.p99_ns as f64 / 1e3));
    }
    for operation in results.probe.iter().flat_map(|probe| &probe.operations) {
        let name = format!("probe, {}, p95", operation.operation);
        figures.push(Figure::new(name, "µs", operation.latency.p95_ns as f64 / 1e3));
    }
    let mut pictures =
        vec![percentiles(&latencies, "From when a request was meant to be sent to its answer.")];
    pictures.extend(by_second(&results.request_count_by_second));
    Ok(Section {
        title: format!("Load on {}", params.target),
        kind: "load",
        invalid: results.search.as_ref().and_then(|search| search.invalid.clone()),
        answer,
        warnings,
        facts: vec![
            ("distribution".to_owned(), params.distribution.clone()),
            ("records".to_owned(), count(params.record_count)),
            ("bytes of a value".to_owned(), count(params.value_bytes)),
            ("connections".to_owned(), params.connection_count.to_string()),
            ("requests under way on each".to_owned(), params.depth.to_string()),
            ("seed".to_owned(), run.seed.to_string()),
        ],
        pictures,
        figures,
        command: run.command,
        host: Some(run.host),
        ..Section::default()
    })
}

/// Sentences on throughput and latencies.
fn answer(params: &LoadParams, results: &LoadResults) -> Vec<String> {
    let loops = params.rate_per_s.map_or_else(
        || format!("in a closed loop of {} connections", params.connection_count),
        |rate| format!("in an open loop at {} requests per second", exact(rate)),
    );
    let mut answer: Vec<String> = results.search.iter().filter_map(searched).collect();
    answer.push(format!(
        "{} answered {} requests per second ({} in all), asked {loops}.",
        params.target,
        count_of(results.requests_per_s),
        count(results.request_count)
    ));
    for operation in &results.operations {
        let latency = &operation.latency;
        answer.push(format!(
            "Half of the requests to {} were answered within {}, 99 of 100 within {}.",
            operation.operation,
            time_ns(latency.p50_ns as f64),
            time_ns(latency.p99_ns as f64)
        ));
    }
    for operation in results.probe.iter().flat_map(|probe| &probe.operations) {
        let latency = &operation.latency;
        answer.push(format!(
            "A client beside the load with one request at a time had half of its requests to {} \
             answered within {}, 95 of 100 within {}.",
            operation.operation,
            time_ns(latency.p50_ns as f64),
            time_ns(latency.p95_ns as f64)
        ));
    }
    answer
}

/// A sentence on the highest rate that a search found; `None` if it found none.
fn searched(search: &LoadSearch) -> Option<String> {
    let (rate, [least, most]) = search.found_per_s.zip(search.interval_per_s)?;
    Some(format!(
        "At most {} requests per second hold {} within {}: every try did up to {}, none from {} \
         on, of {} tries. The figures are of one try at that rate.",
        count_of(rate),
        search.quantity,
        time_ns(search.bound_ns as f64),
        count_of(least),
        count_of(most),
        search.tries.len()
    ))
}

/// Warnings of trouble, lost requests, wrong values and an early end.
fn warnings(results: &LoadResults) -> Vec<String> {
    let mut warnings: Vec<String> = results.first_trouble.iter().cloned().collect();
    if results.lost_count > 0 {
        let share = results.lost_count as f64 / (results.request_count + results.lost_count) as f64;
        warnings.push(format!("{} of the requests were lost", percent(share)));
    }
    for operation in &results.operations {
        if operation.wrong_count > 0 {
            let (number, name) = (count(operation.wrong_count), &operation.operation);
            warnings.push(format!("{number} values were not what was stored ({name})"));
        }
    }
    if results.interrupted {
        warnings.push("it was ended before its time".to_owned());
    }
    warnings
}

/// A rate as a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
pub(super) fn count_of(rate: f64) -> String {
    count(rate.round() as u64)
}

/// Requests per second; the interval is from the counts of at least 3 whole seconds.
pub(super) fn throughput(per_s: f64, by_second: &[u64]) -> Figure {
    let figure = Figure::new("requests per second", "/s", per_s).higher();
    let whole = &by_second[..by_second.len().saturating_sub(1)];
    if whole.len() < 3 {
        return figure;
    }
    let values: Vec<f64> = whole.iter().map(|number| *number as f64).collect();
    let number = values.len() as f64;
    let mean = values.iter().sum::<f64>() / number;
    let variance = values.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (number - 1.0);
    // The interval of the mean, as if seconds were independent.
    let half = 1.96 * (variance / number).sqrt();
    figure.within((per_s - half, per_s + half))
}

/// The picture of latencies by percentile, with its table.
pub(super) fn percentiles(latencies: &[(&str, LatencySummary)], caption: &str) -> Picture {
    let values = |one: &LatencySummary| {
        [one.p50_ns, one.p90_ns, one.p95_ns, one.p99_ns, one.p999_ns, one.max_ns]
            .map(|ns| ns as f64 / 1e3)
    };
    let mut table = Table::new(["operation", "count", "min_us", "mean_us"]);
    table.columns.extend(PERCENTILES.map(|name| format!("{name}_us")));
    let mut series = Vec::new();
    for (name, latency) in latencies {
        let us = |ns: u64| exact(ns as f64 / 1e3);
        let mut row = vec![
            (*name).to_owned(),
            latency.count.to_string(),
            us(latency.min_ns),
            us(latency.mean_ns),
        ];
        row.extend(values(latency).map(exact));
        table.rows.push(row);
        let points = values(latency).into_iter().enumerate().map(|(at, us)| (at as f64, us));
        series.push(Series::new(*name, Look::Line, points.collect()));
    }
    let names = PERCENTILES.map(str::to_owned).to_vec();
    let chart = Plot {
        title: "Latency by percentile".to_owned(),
        x: Axis::new("percentile", Kind::Named(names)),
        y: Axis::new("latency, µs", Kind::Either),
        series,
        bounds: Vec::new(),
        marks: Vec::new(),
    };
    Picture {
        name: "latency-percentiles".to_owned(),
        title: "Latency by percentile".to_owned(),
        caption: caption.to_owned(),
        chart: Chart::Plot(chart),
        table,
    }
}

/// The picture of requests answered in each second; `None` for fewer than 2 seconds.
pub(super) fn by_second(counts: &[u64]) -> Option<Picture> {
    let mut table = Table::new(["second", "requests"]);
    for (second, number) in counts.iter().enumerate() {
        table.push([second.to_string(), number.to_string()]);
    }
    let points = counts.iter().enumerate().map(|(second, number)| (second as f64, *number as f64));
    let chart = Plot {
        title: "Requests over time".to_owned(),
        x: Axis::new("time, s", Kind::Linear),
        y: Axis::new("requests per second", Kind::Linear).showing(&[0.0]),
        series: vec![Series::new("", Look::Steps, points.collect())],
        bounds: Vec::new(),
        marks: Vec::new(),
    };
    (counts.len() > 1).then(|| Picture {
        name: "requests-over-time".to_owned(),
        title: "Requests over time".to_owned(),
        caption: "Answered in each second; the last is not a whole one.".to_owned(),
        chart: Chart::Plot(chart),
        table,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_needs_whole_seconds() {
        assert_eq!(throughput(10.0, &[10, 10, 3]).interval, None);
        let (low, high) = throughput(10.0, &[9, 11, 9, 11, 4]).interval.expect("four seconds");
        assert!((low + high - 20.0).abs() < 1e-9 && high > 11.0 && high < 11.2, "{high}");
    }
}
