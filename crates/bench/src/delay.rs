//! The benchmark `delay`: requested against measured delays, timed by the program itself (DiME,
//! Fig. 3).

use std::path::Path;

use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::picture::{self, DIME_ERROR_NS, Figure, Point};
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::{Quantile, Spread, float, quantile, signed};
use crate::touch::Touches;

const REQUESTED_NS: [u64; 8] = [1_000, 2_000, 3_000, 5_000, 7_000, 10_000, 20_000, 50_000];
/// The bound holds up to this delay.
const BOUNDED_NS: u64 = 20_000;
const PAGES: u64 = 2048;
/// Local memory: a quarter of the pages.
const LOCAL: &str = "2MiB";

/// Quantiles of measured minus requested delay in one run, in nanoseconds.
struct Errors {
    floor_ns: u64,
    p5: i64,
    p50: i64,
    p95: i64,
    p99: i64,
    absolute: u64,
}

/// Runs the benchmark; draws its figure to `svg` if that is given.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context, svg: Option<&Path>) -> Result<Report, Failure> {
    let rounds = context.size(8, 2);
    let touches = Touches { pages: PAGES, rounds, write: false };
    let runs = context.alternate("delay", &REQUESTED_NS, |&requested_ns| {
        measure(context, touches, requested_ns)
    })?;
    let floors = runs.iter().flatten().map(|errors| float(errors.floor_ns));
    let figure = Figure {
        floor_ns: Spread::of(floors),
        points: REQUESTED_NS
            .iter()
            .zip(&runs)
            .map(|(&requested_ns, runs)| Point::of(requested_ns, runs))
            .collect(),
    };
    if let Some(path) = svg {
        let drawn = picture::draw(&figure, &context.host);
        std::fs::write(path, drawn).map_err(Failure::file("write", path))?;
    }
    let points: Vec<Value> = figure.points.iter().map(Point::json).collect();
    Ok(Report {
        name: "delay",
        settings: json!({
            "page_count": PAGES,
            "local": LOCAL,
            "policy": "fifo",
            "touch_count": touches.pages * touches.rounds,
            "requested_ns": REQUESTED_NS,
        }),
        results: json!({"floor_ns": figure.floor_ns.json(), "points": points}),
        text: figure.text(),
        verdicts: vec![figure.verdict()],
    })
}

/// One run with one delay.
fn measure(context: &Context, touches: Touches, requested_ns: u64) -> Result<Errors, Failure> {
    let rtt = format!("{requested_ns}ns");
    let flags = ["--local", LOCAL, "--policy", "fifo", "--allow-below-floor", "--rtt", &rtt];
    let (samples, outcome) = touches.far(context, &flags)?;
    let calibration = outcome.run.and_then(|run| run.calibration);
    let mut errors: Vec<i64> = samples.iter().map(|&ns| difference(ns, requested_ns)).collect();
    errors.sort_unstable();
    let mut absolute: Vec<u64> = samples.iter().map(|ns| ns.abs_diff(requested_ns)).collect();
    absolute.sort_unstable();
    Ok(Errors {
        floor_ns: calibration.map_or(0, |calibration| calibration.floor_ns),
        p5: quantile(&errors, Quantile::P5),
        p50: quantile(&errors, Quantile::P50),
        p95: quantile(&errors, Quantile::P95),
        p99: quantile(&errors, Quantile::P99),
        absolute: quantile(&absolute, Quantile::P50),
    })
}

/// `left` minus `right`.
fn difference(left: u64, right: u64) -> i64 {
    let size = i64::try_from(left.abs_diff(right)).unwrap_or(i64::MAX);
    if left < right { -size } else { size }
}

impl Point {
    /// The point of one delay. Leaves out runs whose floor is above the delay, unless all are.
    fn of(requested_ns: u64, runs: &[Errors]) -> Self {
        let is_flagged = |run: &Errors| run.floor_ns > requested_ns;
        let flagged_count = runs.iter().filter(|run| is_flagged(run)).count();
        let run_count = runs.len();
        let runs: Vec<&Errors> =
            runs.iter().filter(|run| flagged_count == run_count || !is_flagged(run)).collect();
        let spread =
            |value: fn(&Errors) -> i64| Spread::of(runs.iter().map(|run| signed(value(run))));
        Self {
            requested_ns,
            flagged_count,
            run_count,
            p5: spread(|run| run.p5),
            p50: spread(|run| run.p50),
            p95: spread(|run| run.p95),
            p99: spread(|run| run.p99),
            absolute: Spread::of(runs.iter().map(|run| float(run.absolute))),
        }
    }

    /// Whether most runs reported that the delay is below their floor.
    pub(crate) const fn is_below_floor(&self) -> bool {
        self.flagged_count * 2 > self.run_count
    }

    /// The point for the record.
    fn json(&self) -> Value {
        json!({
            "requested_ns": self.requested_ns,
            "flagged_count": self.flagged_count,
            "error_p5_ns": self.p5.json(),
            "error_p50_ns": self.p50.json(),
            "error_p95_ns": self.p95.json(),
            "error_p99_ns": self.p99.json(),
            "absolute_error_p50_ns": self.absolute.json(),
        })
    }
}

impl Figure {
    /// The table and notes as text.
    fn text(&self) -> String {
        let header = ["requested", "error p50", "p95", "p99", "median |error|, ns", ""];
        let mut table = Table::new(&header);
        for point in &self.points {
            let note = match point.flagged_count {
                _ if point.is_below_floor() => "below the floor".to_owned(),
                0 if point.requested_ns > BOUNDED_NS => "no bound".to_owned(),
                0 => String::new(),
                flagged => format!("below the floor of {flagged} runs, left out"),
            };
            let error = |spread: &Spread| format!("{:+.0}", spread.median);
            table.row(vec![
                format!("{} us", point.requested_ns / 1000),
                error(&point.p50),
                error(&point.p95),
                error(&point.p99),
                point.absolute.show(0),
                note,
            ]);
        }
        format!(
            "{}\nerror: measured minus requested, ns; medians over rounds, extremes in brackets\n\
             floor: {} ns (the shortest fetch this machine can do, by afar's calibration)\n\
             DiME, published: mean error 68 ns (text of the paper), 63 ns (data of its Fig. 3)\n",
            table.text(),
            self.floor_ns.show(0)
        )
    }

    /// The verdict on the worst point of those with a bound.
    fn verdict(&self) -> Verdict {
        let bounded = self.points.iter();
        let bounded = bounded.filter(|point| point.requested_ns <= BOUNDED_NS);
        let bounded = bounded.filter(|point| !point.is_below_floor());
        let worst = bounded.max_by(|a, b| a.absolute.median.total_cmp(&b.absolute.median));
        Verdict {
            what: worst.map_or_else(
                || "median absolute error: no delay is above the floor".to_owned(),
                |point| {
                    let at = point.requested_ns / 1000;
                    format!("median absolute error, worst from the floor to 20 us (at {at} us)")
                },
            ),
            value: worst.map_or(f64::NAN, |point| point.absolute.median),
            bound: Bound::AtMost(DIME_ERROR_NS),
            unit: "ns",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(requested_ns: u64, absolute: u64) -> Point {
        Point::of(requested_ns, &[run(1_100, absolute)])
    }

    fn run(floor_ns: u64, absolute: u64) -> Errors {
        Errors { floor_ns, p5: 0, p50: 0, p95: 0, p99: 0, absolute }
    }

    fn verdict(points: Vec<Point>) -> Verdict {
        Figure { floor_ns: Spread::of([1_100.0]), points }.verdict()
    }

    #[test]
    fn bound_holds_from_the_floor_to_20_us() {
        let points =
            vec![point(1_000, 900), point(2_000, 40), point(20_000, 50), point(50_000, 999)];
        let verdict = verdict(points);
        assert_eq!(verdict.value, 50.0);
        assert!(verdict.passes());
    }

    #[test]
    fn floor_above_every_delay_fails() {
        assert!(!verdict(vec![point(1_000, 0)]).passes());
    }

    #[test]
    fn runs_that_were_told_so_are_left_out() {
        let mixed = Point::of(2_000, &[run(2_100, 300), run(1_900, 40), run(1_800, 60)]);
        assert_eq!((mixed.flagged_count, mixed.absolute.median), (1, 50.0));
        assert!(!mixed.is_below_floor());
        let flagged = Point::of(2_000, &[run(2_100, 300), run(2_200, 500), run(1_800, 60)]);
        assert!(flagged.is_below_floor());
    }

    #[test]
    fn difference_has_a_sign() {
        assert_eq!((difference(5, 7), difference(7, 5)), (-2, 2));
    }
}
