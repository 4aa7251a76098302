//! Fig. 6: degradation against swap bandwidth.
//!
//! Fig. 6(b) is over memory bandwidth, by counters of the memory controller. Guests of a virtual
//! machine cannot read them, so it is not measured.

use console::layout::{row, table};
use planner::slowdown::SwapLine;
use serde_json::{Value, json};

use super::apps::{Seen, measure};
use super::place::{BASE, Section};
use super::{claims, degradation, published};
use crate::flags::Options;
use crate::plot::{Axis, Chart, Kind, Series, draw};
use crate::report::{Report, Verdict};
use crate::{Measured, ReproduceError};
use experiment::fit::correlation;

/// The least correlation that counts as "very strongly correlated".
const STRONG: f64 = 0.8;
const PAGE_MB: f64 = 4096.0 / 1e6;

/// One application: megabytes per second that it fetches in a run without delays, and its
/// degradation.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    name: &'static str,
    mb_per_s: f64,
    degradation: f64,
}

/// Measures the figure; `None` if it was interrupted before any result.
///
/// # Errors
/// When results cannot be written, or nothing ran.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    let Some(matrix) = measure(flags, Section::Fig6)? else { return Ok(None) };
    let points: Vec<Point> = matrix.seen.iter().filter_map(point).collect();
    if points.is_empty() {
        return Ok(None);
    }
    Ok(Some(Measured {
        report: report(&points, matrix.left_out()),
        described: matrix.describe(),
        bed: matrix.record(),
        is_interrupted: matrix.outcome.is_interrupted,
    }))
}

/// The point of an application; `None` if a run is missing.
fn point(seen: &Seen) -> Option<Point> {
    let (fetches, seconds) = seen.undelayed?;
    let degradation = seen.degradation(BASE)?;
    let mb_per_s = fetches * PAGE_MB / seconds.max(1e-3);
    Some(Point { name: seen.app.name, mb_per_s, degradation })
}

/// The report from all points.
fn report(points: &[Point], left_out: Vec<String>) -> Report {
    let verdicts: Vec<Verdict> = verdict(points).into_iter().collect();
    let mut caption: Vec<String> = verdicts.iter().map(Verdict::text).collect();
    caption.push(
        "Not measured: Fig. 6(b), over the bandwidth of all memory. Counters of the memory \
         controller are not for guests of a virtual machine."
            .to_owned(),
    );
    let not_measured = caption.last().cloned().unwrap_or_default();
    caption.extend(left_out);
    let mut rows = vec![row(["", "swap, MB/s", "degradation"])];
    for point in points {
        let swap = format!("{:.1}", point.mb_per_s);
        rows.push(row([point.name, &swap, &claims::percent(point.degradation)]));
    }
    let line = |point: &Point| {
        let Point { name, mb_per_s, degradation } = point;
        json!({"workload": name, "mb_per_s": mb_per_s, "degradation": degradation})
    };
    Report {
        title: title(),
        table: format!(
            "{}swap: pages fetched with a quarter local and no delay, over the whole run, its data \
             and its start included\n{not_measured}\n",
            table(&rows)
        ),
        picture: picture(points, &caption),
        verdicts,
        points: Value::Array(points.iter().map(line).collect()),
        paper: json!({"strong": STRONG, "not_measured": "6(b), memory bandwidth"}),
    }
}

fn title() -> String {
    format!("{}, Fig. 6(a): degradation against swap bandwidth", published::SOURCE)
}

/// Pairs of swap bandwidth and degradation.
fn pairs(points: &[Point]) -> Vec<(f64, f64)> {
    points.iter().map(|point| (point.mb_per_s, point.degradation)).collect()
}

/// The verdict on the correlation; `None` if there is none to compute.
fn verdict(points: &[Point]) -> Option<Verdict> {
    let strength = correlation(&pairs(points))?;
    let claim = format!(
        "degradation goes with swap bandwidth: r = {strength:.2} over {} workloads; {STRONG} is \
         enough for the paper's \"very strongly correlated\"",
        points.len()
    );
    let why = "a run's start and the making of its data, which differ between the workloads, are \
               in its bandwidth and not in its degradation";
    Some(Verdict::because(strength >= STRONG, claim, why))
}

fn picture(points: &[Point], caption: &[String]) -> String {
    let mut series: Vec<Series> = points
        .iter()
        .map(|point| Series {
            name: point.name.to_owned(),
            colour: degradation::colour(point.name),
            points: vec![(point.mb_per_s, point.degradation * 100.0)],
            kind: Kind::Dots,
        })
        .collect();
    let most = points.iter().map(|point| point.mb_per_s).fold(1.0, f64::max);
    if let Some(line) = SwapLine::new(&pairs(points)) {
        series.push(Series {
            name: "least squares".to_owned(),
            colour: chart::GREY,
            points: [0.0, most].map(|mb| (mb, line.degradation(mb) * 100.0)).to_vec(),
            kind: Kind::Bound,
        });
    }
    let high = points.iter().map(|point| point.degradation * 100.0).fold(1.0, f64::max);
    let chart = Chart {
        title: format!("degradation at {}; %", BASE.name()),
        x: Axis::from_zero("swap bandwidth without delays, MB/s", most),
        y: Axis::from_zero("", high),
        series,
    };
    draw(&title(), &[chart], 1, caption)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(degradations: [f64; 4]) -> Vec<Point> {
        let names = ["wordcount", "sort", "als", "sql"];
        let all = (1..).map(f64::from).zip(names).zip(degradations);
        all.map(|((mb_per_s, name), degradation)| Point { name, mb_per_s, degradation }).collect()
    }

    #[test]
    fn strength_is_judged() {
        assert!(verdict(&points([0.1, 0.2, 0.3, 0.4])).expect("they vary").holds);
        assert!(!verdict(&points([0.4, 0.1, 0.3, 0.2])).expect("they vary").holds);
        assert!(verdict(&points([0.1; 4])).is_none());
        let report = report(&points([0.1, 0.2, 0.3, 0.4]), Vec::new());
        assert!(report.table.contains("Not measured: Fig. 6(b)"), "{}", report.table);
        assert_eq!(report.picture.matches("<circle").count(), 4);
    }
}
