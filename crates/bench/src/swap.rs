//! The benchmark `swap`: by how much a delay of the swap engine moves the median swap-in, and the
//! cost of a swap-in without a delay.

use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::{Quantile, Spread, float, quantile};
use crate::touch::Touches;

const REQUESTED_NS: [u64; 6] = [0, 2_000, 5_000, 10_000, 20_000, 40_000];
/// The delay that has a bound,
const BOUNDED_NS: u64 = 10_000;
/// and its bound.
const ERROR_MAX_NS: f64 = 500.0;
const PAGES: u64 = 8192;
/// Local memory: a quarter of the pages.
const LOCAL: &str = "8MiB";
/// Median software cost of a fault in the emulator of Gao et al.: 25.47 - 23.01 us, section 3.1.
const GAO_NS: f64 = 2_460.0;

/// Quantiles of one run, in nanoseconds.
struct Quantiles {
    p50: f64,
    p95: f64,
}

/// The results of one requested delay over rounds.
struct Point {
    requested_ns: u64,
    p50: Spread,
    p95: Spread,
    /// The median swap-in minus that without a delay; the extremes are of differences in rounds.
    moved: Spread,
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let rounds = context.size(4, 1);
    let touches = Touches { pages: PAGES, rounds, write: false };
    let runs = context.alternate("swap", &REQUESTED_NS, |&requested_ns| {
        let rtt = format!("{requested_ns}ns");
        let flags =
            ["--engine", "swap", "--local", LOCAL, "--page-cluster", "0", "--rtt", rtt.as_str()];
        let (mut samples, _outcome) = touches.far(context, &flags)?;
        samples.sort_unstable();
        let quantile = |q| float(quantile(&samples, q));
        Ok(Quantiles { p50: quantile(Quantile::P50), p95: quantile(Quantile::P95) })
    })?;
    let points: Vec<Point> =
        REQUESTED_NS.iter().zip(&runs).map(|(&ns, run)| Point::of(ns, run, &runs[0])).collect();
    let json: Vec<Value> = points.iter().map(Point::json).collect();
    Ok(Report {
        name: "swap",
        settings: json!({
            "page_count": PAGES,
            "local": LOCAL,
            "page_cluster": 0,
            "touch_count": touches.pages * touches.rounds,
            "requested_ns": REQUESTED_NS,
        }),
        results: json!({"points": json}),
        text: text(&points),
        verdicts: vec![verdict(&points)],
    })
}

impl Point {
    /// Compares the runs of a delay with those without one.
    fn of(requested_ns: u64, runs: &[Quantiles], without: &[Quantiles]) -> Self {
        let medians = |runs: &[Quantiles]| Spread::of(runs.iter().map(|run| run.p50));
        let rounds = Spread::of(runs.iter().zip(without).map(|(run, none)| run.p50 - none.p50));
        Self {
            requested_ns,
            p50: medians(runs),
            p95: Spread::of(runs.iter().map(|run| run.p95)),
            moved: Spread { median: medians(runs).median - medians(without).median, ..rounds },
        }
    }

    /// The point for the record.
    fn json(&self) -> Value {
        json!({
            "requested_ns": self.requested_ns,
            "p50_ns": self.p50.json(),
            "p95_ns": self.p95.json(),
            "moved_ns": self.moved.json(),
        })
    }
}

/// The table and notes as text.
fn text(points: &[Point]) -> String {
    let header = ["requested", "swap-in p50, ns", "p95", "moved by", "error"];
    let mut table = Table::new(&header);
    for point in points {
        let error = point.moved.median - float(point.requested_ns);
        table.row(vec![
            format!("{} us", point.requested_ns / 1000),
            point.p50.show(0),
            point.p95.show(0),
            point.moved.show(0),
            format!("{error:+.0}"),
        ]);
    }
    format!(
        "{}\nmoved by: median less the median without a delay; extremes of rounds in brackets\n\
         the p95 and what lies above it are the kernel's: who needs a page makes room for 32\n\
         Gao et al., published: {GAO_NS} ns of software in a fault, on a machine of its own\n",
        table.text()
    )
}

/// The verdict on the delay that has a bound.
fn verdict(points: &[Point]) -> Verdict {
    let bounded = points.iter().find(|point| point.requested_ns == BOUNDED_NS);
    let error = bounded.map(|point| (point.moved.median - float(BOUNDED_NS)).abs());
    Verdict {
        what: "a delay of 10 us moves the median swap-in by 10 us, but for".to_owned(),
        value: error.unwrap_or(f64::NAN),
        bound: Bound::AtMost(ERROR_MAX_NS),
        unit: "ns",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(medians: &[f64]) -> Vec<Quantiles> {
        medians.iter().map(|&p50| Quantiles { p50, p95: p50 * 2.0 }).collect()
    }

    #[test]
    fn the_bound_is_on_what_a_delay_moves() {
        let without = runs(&[4_000.0, 4_100.0, 5_000.0]);
        let point = |medians: &[f64]| Point::of(BOUNDED_NS, &runs(medians), &without);
        let good = point(&[14_100.0, 14_300.0, 15_000.0]);
        assert_eq!((good.moved.median, good.moved.min), (10_200.0, 10_000.0));
        assert!(verdict(&[good]).passes());
        assert!(!verdict(&[point(&[14_700.0, 14_700.0, 14_700.0])]).passes());
        assert!(!verdict(&[]).passes());
    }
}
