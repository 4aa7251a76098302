//! Fig. 3: requested and measured delays.
//!
//! The paper times the wait in its fault handler. Here a program times its own touches of far
//! pages, so its figures include the whole cost of a fault.

use chart::{BLUE, GREEN, ORANGE, Scale};
use console::layout::{row, table};
use serde_json::{Value, json};

use super::paper;
use crate::flags::Options;
use crate::plot::{Axis, Chart, Kind, Series, draw};
use crate::programs;
use crate::programs::{BLOCKS, Program, far};
use crate::report::{Report, Verdict};
use crate::touches;
use crate::touches::Touched;
use crate::{Measured, ReproduceError};
use sweep::Cell;

const ASKED_US: [f64; 8] = [1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0];
/// The delays that are judged, in microseconds.
const JUDGED_US: (f64, f64) = (2.0, 20.0);
const PAGES: u32 = 2048;
/// Local memory: a quarter of the pages.
const LOCAL: &str = "2MiB";

/// The results of one requested delay.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    asked_us: f64,
    seen: Touched,
}

impl Point {
    /// Measured minus requested median delay.
    fn error_ns(&self) -> f64 {
        self.seen.p50_ns - self.asked_us * 1e3
    }
}

/// The cell of one requested delay.
fn cell(asked_us: f64) -> Cell {
    far(&[("local", LOCAL), ("rtt", &format!("{asked_us}us")), ("policy", "fifo")])
}

/// Measures the figure; `None` if it was interrupted before any result.
///
/// # Errors
/// When nothing ran.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    let count = if flags.quick { 2 } else { 8 } * PAGES;
    let program = Program {
        name: "touches",
        experiment: touches::again(PAGES, count),
        cells: ASKED_US.map(cell).to_vec(),
    };
    let outcome = programs::run(flags, ("dime-fig3", [3, BLOCKS]), &[program])?;
    let Some(runs) = outcome.of("touches") else { return Ok(None) };
    let point = |asked_us| Some(Point { asked_us, seen: touches::of(runs, &cell(asked_us))? });
    let points: Vec<Point> = ASKED_US.into_iter().filter_map(point).collect();
    if points.is_empty() {
        return Ok(None);
    }
    Ok(Some(Measured {
        report: report(&points),
        described: format!(
            "{PAGES} pages touched in turn, {LOCAL} local, {count} touches of each delay, timed \
             inside the program\n{}",
            outcome.describe()
        ),
        bed: json!({"runs": outcome.record(), "pages": PAGES, "touches": count, "local": LOCAL}),
        is_interrupted: outcome.is_interrupted,
    }))
}

/// The report from all points.
fn report(points: &[Point]) -> Report {
    let verdicts: Vec<Verdict> = verdict(points).into_iter().collect();
    let caption: Vec<String> = verdicts.iter().map(Verdict::text).collect();
    let point = |point: &Point| {
        let Touched { p50_ns, p95_ns, p99_ns, .. } = point.seen;
        json!({
            "asked_us": point.asked_us,
            "p50_ns": p50_ns,
            "p95_ns": p95_ns,
            "p99_ns": p99_ns,
            "error_ns": point.error_ns(),
        })
    };
    Report {
        title: format!("{}, Fig. 3: accuracy of delays", paper::SOURCE),
        table: rows(points),
        picture: picture(points, &caption),
        verdicts,
        points: Value::Array(points.iter().map(point).collect()),
        paper: json!({"mean_error_ns": paper::ERROR_NS}),
    }
}

/// The table as text.
fn rows(points: &[Point]) -> String {
    let mut rows = vec![row(["asked for", "seen, median", "error", "95th", "99th percentile"])];
    for point in points {
        let error = |seen: f64| format!("{:+.0} ns", seen - point.asked_us * 1e3);
        rows.push(row([
            &format!("{} µs", point.asked_us),
            &format!("{:.2} µs", point.seen.p50_ns / 1e3),
            &error(point.seen.p50_ns),
            &error(point.seen.p95_ns),
            &error(point.seen.p99_ns),
        ]));
    }
    table(&rows)
}

/// The verdict on the mean error over the judged delays; `None` without such a delay.
fn verdict(points: &[Point]) -> Option<Verdict> {
    let is_judged = |point: &&Point| (JUDGED_US.0..=JUDGED_US.1).contains(&point.asked_us);
    let errors: Vec<f64> =
        points.iter().filter(is_judged).map(|point| point.error_ns().abs()).collect();
    if errors.is_empty() {
        return None;
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let claim = format!(
        "the median touch is {mean:.0} ns from the delay asked for, on average over delays of {} \
         to {} µs; the paper's mean error is {:.0} ns, of the wait alone",
        JUDGED_US.0,
        JUDGED_US.1,
        paper::ERROR_NS
    );
    let why = "a virtual machine's faults cost more at times than when they were calibrated";
    Some(Verdict::because(mean <= paper::ERROR_NS, claim, why))
}

/// The figure as SVG.
fn picture(points: &[Point], caption: &[String]) -> String {
    let of = |name: &str, colour, kind, y: &dyn Fn(&Point) -> f64| Series {
        name: name.to_owned(),
        colour,
        points: points.iter().map(|point| (point.asked_us, y(point))).collect(),
        kind,
    };
    // The paper's figure ends at 10 µs.
    let theirs = |offset: f64, scale: f64| {
        let at = ASKED_US.into_iter().filter(|asked| *asked <= 10.0);
        at.map(move |asked| (asked, asked * scale + offset)).collect()
    };
    let dime = |points| Series {
        name: "DiME, mean".to_owned(),
        colour: ORANGE,
        points,
        kind: Kind::Theirs,
    };
    let same = Series {
        name: "as asked for".to_owned(),
        colour: chart::GREY,
        points: ASKED_US.map(|asked| (asked, asked)).to_vec(),
        kind: Kind::Bound,
    };
    let most = points.iter().map(|point| point.seen.p95_ns - point.asked_us * 1e3);
    let most = most.fold(150.0, f64::max).min(1_500.0);
    let (_, ticks) = chart::axis(most, |value| format!("{value:.0}"));
    let ticks = [(-100.0, "−100".to_owned())].into_iter().chain(ticks).collect();
    let charts = [
        Chart {
            title: "seen, µs".to_owned(),
            x: Axis::marks("asked for, µs", &ASKED_US),
            y: Axis::marks("", &ASKED_US),
            series: vec![
                same,
                dime(theirs(paper::ERROR_NS / 1e3, 1.0)),
                of("median here", BLUE, Kind::Ours, &|point| point.seen.p50_ns / 1e3),
            ],
        },
        Chart {
            title: "error, ns".to_owned(),
            x: Axis::marks("asked for, µs", &ASKED_US),
            y: Axis { title: "", scale: Scale::Linear(-100.0, most), ticks },
            series: vec![
                dime(theirs(paper::ERROR_NS, 0.0)),
                of("median here", BLUE, Kind::Ours, &Point::error_ns),
                of("95th percentile here", GREEN, Kind::Ours, &|point| {
                    point.seen.p95_ns - point.asked_us * 1e3
                }),
            ],
        },
    ];
    let title = format!("{}, Fig. 3: delays asked for and seen", paper::SOURCE);
    draw(&title, &charts, 2, caption)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(asked_us: f64, error_ns: f64) -> Point {
        let at = asked_us * 1e3 + error_ns;
        let seen = Touched { p50_ns: at, p95_ns: at + 100.0, p99_ns: at + 900.0, max_ns: 1e6 };
        Point { asked_us, seen }
    }

    #[test]
    fn the_error_is_judged_where_the_network_is() {
        let points = [point(1.0, 900.0), point(2.0, 60.0), point(20.0, -70.0), point(50.0, 400.0)];
        let judged = verdict(&points).expect("two are judged");
        assert!(judged.holds && judged.claim.contains("65 ns"), "{judged:?}");
        assert!(!verdict(&[point(5.0, -69.0)]).expect("one").holds);
        assert!(verdict(&points[..1]).is_none());
        assert!(!picture(&points, &[]).contains("NaN"));
        assert!(rows(&points).contains("+60 ns"));
    }
}
