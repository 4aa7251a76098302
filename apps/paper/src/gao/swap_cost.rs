//! §5.1: the software cost of swapping a page in, beside Table 5.
//!
//! Table 5 itself, requests to a block device over RDMA, needs an RDMA network card and is not
//! measured; `table5` has far memory of our own beside it.

use console::layout::{NONE, row, table};
use serde_json::json;

use super::published;
use crate::flags::Options;
use crate::plot::{Axis, Chart, Kind, Series, draw};
use crate::programs;
use crate::programs::{BLOCKS, Program, far};
use crate::report::{Report, Verdict};
use crate::touches;
use crate::touches::Touched;
use crate::{Measured, ReproduceError};
use sweep::Cell;

const PAGES: u32 = 8192;
/// Local memory: a quarter of the pages.
const LOCAL: &str = "8MiB";
const NOT_MEASURED: &str = "Not measured: requests to a block device over RDMA (Table 5). There is \
                            no such network card here; the paper's quantiles are shown beside.";

/// Measures the figure; `None` if it was interrupted before any result.
///
/// # Errors
/// When nothing ran.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    let count = if flags.quick { 2 } else { 8 } * PAGES;
    let program = Program {
        name: "touches",
        experiment: touches::again(PAGES, count),
        cells: vec![cell("swap"), cell("arena")],
    };
    let outcome = programs::run(flags, ("gao-table5-swap-cost", [5, BLOCKS]), &[program])?;
    let Some(runs) = outcome.of("touches") else { return Ok(None) };
    let seen = ["swap", "arena"].map(|engine| touches::of(runs, &cell(engine)));
    if seen == [None; 2] {
        return Ok(None);
    }
    Ok(Some(Measured {
        report: report(seen),
        described: format!(
            "{PAGES} pages read in turn, {LOCAL} local, no delay, {count} touches timed inside the \
             program\n{}",
            outcome.describe()
        ),
        bed: json!({"runs": outcome.record(), "pages": PAGES, "touches": count, "local": LOCAL}),
        is_interrupted: outcome.is_interrupted,
    }))
}

/// The cell of an engine.
fn cell(engine: &str) -> Cell {
    far(&[("engine", engine), ("local", LOCAL)])
}

/// Median, 95th and 99th percentile, and maximum.
fn quantiles(touched: Touched) -> [f64; 4] {
    [touched.p50_ns, touched.p95_ns, touched.p99_ns, touched.max_ns]
}

/// The report from the touches of both engines: swap, arena.
fn report(seen: [Option<Touched>; 2]) -> Report {
    let verdicts = verdicts(seen);
    let mut caption: Vec<String> = verdicts.iter().map(Verdict::text).collect();
    caption.push(NOT_MEASURED.to_owned());
    let [least, mean, median, p995, most] = published::RDMA_NS;
    let record = |touched: Option<Touched>| json!(touched.map(quantiles));
    Report {
        title: title(),
        table: rows(seen),
        picture: picture(seen, &caption),
        verdicts,
        points: json!({
            "p50_p95_p99_max_ns": {"swap": record(seen[0]), "arena": record(seen[1])},
        }),
        paper: json!({
            "swap_software_ns": published::SWAP_NS,
            "rdma_request_ns": {
                "min": least, "mean": mean, "median": median, "p99.5": p995, "max": most,
            },
            "not_measured": "Table 5: no RDMA network card",
        }),
    }
}

fn title() -> String {
    format!("{}, §5.1 and Table 5: what swapping costs", published::SOURCE)
}

/// The table as text.
fn rows(seen: [Option<Touched>; 2]) -> String {
    let mut rows = vec![row(["a page, no delay; ns", "median", "95th", "99th", "longest"])];
    for (name, touched) in ["swapped in from zram", "fetched by the arena engine"].iter().zip(seen)
    {
        let cells = touched.map_or_else(
            || [0; 4].map(|_| NONE.to_owned()),
            |touched| quantiles(touched).map(|ns| format!("{ns:.0}")),
        );
        rows.push([(*name).to_owned()].into_iter().chain(cells).collect());
    }
    let [least, mean, median, p995, most] = published::RDMA_NS;
    format!(
        "{}the paper: at least {:.0} ns of software for a page that is swapped in; a request to \
         its RDMA\ndevice {least:.0} at least, {mean:.0} on average, {median:.0} median, \
         {p995:.0} 99.5th percentile, {most:.0} longest\n{NOT_MEASURED}\n",
        table(&rows),
        published::SWAP_NS
    )
}

fn verdicts(seen: [Option<Touched>; 2]) -> Vec<Verdict> {
    let [swap, arena] = seen.map(|touched| touched.map(|touched| touched.p50_ns));
    let mut verdicts = Vec::new();
    if let Some(swap) = swap {
        let claim = format!(
            "a page that is swapped in takes {swap:.0} ns before any network, which is to be the \
             paper's {:.0} ns or more (ours with copying the page out of zram)",
            published::SWAP_NS
        );
        let why = "this processor and kernel are ten years younger than the paper's";
        verdicts.push(Verdict::because(swap >= published::SWAP_NS, claim, why));
    }
    if let Some((swap, arena)) = swap.zip(arena) {
        let claim = format!(
            "swapping is most of that: the arena engine, which moves no bytes, takes \
             {arena:.0} ns, {:.2} of it; half is enough",
            arena / swap
        );
        let why = "a fault of a virtual machine costs much by itself";
        verdicts.push(Verdict::because(arena <= swap / 2.0, claim, why));
    }
    verdicts
}

fn picture(seen: [Option<Touched>; 2], caption: &[String]) -> String {
    let names = ["median", "95th", "99th", "longest"].map(str::to_owned);
    let series = |name: &str, colour, points: &[f64], kind| Series {
        name: name.to_owned(),
        colour,
        points: (1..).map(f64::from).zip(points.iter().map(|ns| ns / 1e3)).collect(),
        kind,
    };
    let mut all = Vec::new();
    let ours = [("swapped in from zram", chart::BLUE), ("arena engine", chart::GREEN)];
    for ((name, colour), touched) in ours.into_iter().zip(seen) {
        if let Some(touched) = touched {
            all.push(series(name, colour, &quantiles(touched), Kind::Ours));
        }
    }
    // The paper has other quantiles: its 99.5th percentile is drawn at the 99th.
    let [_, _, median, p995, most] = published::RDMA_NS.map(|ns| ns / 1e3);
    all.push(Series {
        name: "the paper's RDMA request (99.5th at 99th)".to_owned(),
        colour: chart::ORANGE,
        points: vec![(1.0, median), (3.0, p995), (4.0, most)],
        kind: Kind::Theirs,
    });
    let software = published::SWAP_NS / 1e3;
    all.push(Series {
        name: "the paper's swap software, at least".to_owned(),
        colour: chart::GREY,
        points: vec![(0.5, software), (4.5, software)],
        kind: Kind::Bound,
    });
    let chart = Chart {
        title: "a page without any delay, µs".to_owned(),
        x: Axis::names("quantile", &names),
        y: Axis::decades("", 0.5, 1_000.0),
        series: all,
    };
    draw(&title(), &[chart], 1, caption)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapping_is_compared_with_the_paper_and_with_the_arena() {
        let touched = |p50_ns: f64| {
            Some(Touched { p50_ns, p95_ns: p50_ns, p99_ns: 2.0 * p50_ns, max_ns: 1e5 })
        };
        let holds = |swap: f64, arena: f64| -> Vec<bool> {
            let verdicts = verdicts([touched(swap), touched(arena)]);
            verdicts.iter().map(|verdict| verdict.holds).collect()
        };
        assert_eq!(holds(3_800.0, 1_000.0), [true, true]);
        assert_eq!(holds(2_400.0, 1_300.0), [false, false]);
        let report = report([touched(3_800.0), None]);
        assert!(report.table.contains("Not measured") && report.table.contains('–'));
        assert!(report.picture.contains("Not measured: requests"), "{}", report.picture);
        assert_eq!(report.verdicts.len(), 1);
    }
}
