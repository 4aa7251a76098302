//! A curve as a table, CSV, a picture and a record.

use chart::BLUE;
use console::layout::{NONE, row, table};
use serde_json::{Value, json};

use super::Curve;
use super::point::{Point, QUANTILES};
use crate::bench::run::Ready;
use crate::bench::summary::how;
use crate::curve;
use crate::curve::Frame;
use console::layout::count;

/// Describes the load, as an open loop.
fn kind(ready: &Ready) -> String {
    how(&ready.job).replace("closed loop", "open loop")
}

// The rate of the closed loop, if there was one.
fn closed(curve: &Curve) -> Option<f64> {
    curve.closed.as_ref().map(|phase| phase.outcomes[0].tally.per_second())
}

/// The curve as a table for people.
pub(super) fn text(ready: &Ready, curve: &Curve) -> String {
    let mut text = format!("\nafar: {}: {}\n", ready.target, kind(ready));
    if let Some(rate) = closed(curve) {
        text += &format!("closed loop: {} requests/s\n", whole(rate));
    }
    let head = ["load", "offered/s", "achieved/s", "mean µs", "p50", "p95", "p99", "p99.9"];
    let mut rows = vec![row(head)];
    rows[0].push("not made".to_owned());
    for point in &curve.points {
        let us = |ns: f64| format!("{:.1}", ns / 1e3);
        let load = point.share.map_or_else(|| NONE.to_owned(), |s| format!("{:.0} %", s * 100.0));
        let achieved = whole(point.tally().per_second());
        let mut cells = vec![load, whole(point.offered), achieved];
        cells.push(us(point.latency.mean().as_ns_f64()));
        cells.extend(QUANTILES.map(|(_, q)| us(point.latency.quantile(q).as_ns_f64())));
        cells.push(match point.tally().unmade_count {
            0 => NONE.to_owned(),
            unmade => count(unmade),
        });
        rows.push(cells);
    }
    text + "\n" + &table(&rows)
}

/// The curve as CSV: a row for each point; names of columns end in their unit.
pub(super) fn csv(points: &[Point]) -> String {
    let records: Vec<Value> = points.iter().map(Point::record).collect();
    let mut text = COLUMNS.join(",") + "\n";
    for record in &records {
        let cells = COLUMNS.map(|name| match &record[name] {
            Value::Null => String::new(),
            value => value.to_string(),
        });
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

/// Columns of the CSV: names of fields in a point's record.
const COLUMNS: [&str; 14] = [
    "load_share",
    "offered_per_s",
    "achieved_per_s",
    "bytes_per_s",
    "mean_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "p999_ns",
    "max_ns",
    "request_count",
    "unmade_count",
    "own_processor_ns_per_request",
    "target_processor_ns_per_request",
];

/// The curve as JSON, for the record.
pub(super) fn record(curve: &Curve) -> Value {
    json!({
        "closed_loop_per_s": closed(curve),
        "points": curve.points.iter().map(Point::record).collect::<Vec<_>>(),
        "failure": curve.failure,
    })
}

/// Draws latency against offered load. (Achieved load may fall when the disk is overloaded.)
pub(super) fn picture(ready: &Ready, curve: &Curve) -> String {
    let of = |point: &Point| curve::Point::of(point.offered, &point.latency);
    let points: Vec<curve::Point> = curve.points.iter().map(of).collect();
    let closed = closed(curve);
    let most = points.iter().map(|point| point.load).chain(closed).fold(1.0, f64::max);
    let us = || points.iter().flat_map(|point| [point.mean_us, point.p95_us]);
    let low = us().reduce(f64::min).unwrap_or(1.0).max(0.001);
    let high = us().reduce(f64::max).unwrap_or(10.0).max(low);
    let kind = kind(ready);
    let frame = Frame {
        title: &format!("Latency against load: {}, {kind}", ready.target),
        loads: "requests that arrive in a second",
        latencies: "latency, µs",
        axis: chart::axis(most * 1.02, whole),
        shown_us: (step_below(low), step_above(high * 1.1).max(step_below(low) * 5.0)),
        bound_us: None,
        mark: closed.map(|rate| (rate, "closed loop")),
        note: &format!("filled: average; hollow: 95th percentile; {kind}"),
    };
    let name = shortened(&ready.target);
    curve::draw(&frame, &[curve::Curve { name: &name, colour: BLUE, points }])
}

// Cuts a name to the width of a picture.
fn shortened(name: &str) -> String {
    const MOST: usize = 72;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}

// The largest of 1, 2 or 5 times a power of ten that is at most `value`.
fn step_below(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    [5.0, 2.0].into_iter().map(|step| step * decade).find(|step| *step <= value).unwrap_or(decade)
}

// The smallest of 1, 2 or 5 times a power of ten that is at least `value`.
fn step_above(value: f64) -> f64 {
    let decade = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0].into_iter().map(|step| step * decade);
    steps.into_iter().find(|step| *step >= value).unwrap_or(decade * 10.0)
}

// A rate, rounded to a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
fn whole(rate: f64) -> String {
    count(rate.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_begin_and_end_on_steps() {
        assert_eq!([0.7, 1.0, 4.9, 5.0, 999.0].map(step_below), [0.5, 1.0, 2.0, 5.0, 500.0]);
        assert_eq!([0.7, 1.0, 4.9, 5.0, 999.0].map(step_above), [1.0, 1.0, 5.0, 5.0, 1000.0]);
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("memory:1GiB"), "memory:1GiB");
        let cut = shortened(&"µ".repeat(100));
        assert!(cut.chars().count() == 72 && cut.ends_with('…'), "{cut}");
    }
}
