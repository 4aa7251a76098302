//! Fig. 6: average and 95th percentile of read latency against load.

use chart::Tick;
use console::layout::{NONE, kilo, row, table};
use diskload::Tally;
use serde::Serialize;
use serde_json::json;

use super::super::ReproduceError;
use super::super::bed::Bed;
use super::super::report::{Report, Verdict, median};
use super::super::way::{PerWay, Way};
use super::ordering::Compared;
use super::paper;
use disk::{Curve, Frame};

/// A load, and the latency of each repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Point {
    /// Offered load, as a share of the highest throughput of local access.
    load: f64,
    offered_iops: f64,
    latency: PerWay<Vec<Latency>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
struct Latency {
    iops: f64,
    mean_us: f64,
    p95_us: f64,
}

const LOADS: [f64; 9] = [paper::FIRST_LOAD, 0.1, 0.25, 0.4, HALF, 0.6, 0.7, 0.8, 0.9];

/// The load at which the paper gives iSCSI's average.
const HALF: f64 = 0.5;

/// Measures the figure; `None` if it was interrupted before anything was measured.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    let opened = bed.open(None)?;
    bed.session.expect(1 + LOADS.len() * Way::ALL.len() * bed.repetitions);
    let full = bed.full(100);
    let Some(most) = bed.session.run("all it can, local", &opened.devices.local, &full)? else {
        return Ok(None);
    };
    let most = most.per_second();
    let mut points: Vec<Point> =
        LOADS.map(|load| Point { load, offered_iops: most * load, ..Point::default() }).into();
    for repetition in 0..bed.repetitions {
        for point in &mut points {
            let load = bed.arriving(point.offered_iops);
            let what = format!("{:.0} % load", point.load * 100.0);
            let Some(tallies) = bed.each_way(repetition, &what, &opened, &load)? else { break };
            point.latency.push(tallies.map(Latency::of));
        }
    }
    points.retain(|point| !point.latency.local.is_empty());
    let title_of = |report: Report| match bed.own_disk() {
        Some(uri) => Report { title: format!("{}, of {uri}", report.title), ..report },
        None => report,
    };
    Ok((!points.is_empty()).then(|| title_of(report(&points))))
}

impl Latency {
    // Throughput and latency of the reads of a load.
    fn of(tally: &Tally) -> Self {
        let disk::Point { load: iops, mean_us, p95_us } =
            disk::Point::of(tally.per_second(), &tally.reads.latency);
        Self { iops, mean_us, p95_us }
    }

    // The median of each value by itself.
    fn median(all: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| median(all.iter().map(figure));
        Self {
            iops: of(|one| one.iops),
            mean_us: of(|one| one.mean_us),
            p95_us: of(|one| one.p95_us),
        }
    }
}

impl Point {
    // The median latency over the repetitions.
    fn of(&self, way: Way) -> Latency {
        Latency::median(&self.latency[way])
    }

    /// How far the average is above that of local access, as a share.
    fn above(&self, way: Way) -> f64 {
        self.of(way).mean_us / self.of(Way::Local).mean_us.max(1e-9) - 1.0
    }
}

fn report(points: &[Point]) -> Report {
    Report {
        title: format!("{} 6: latency of reads against load", paper::SOURCE),
        table: rows(points),
        verdicts: verdicts(points),
        picture: picture(points),
        points: json!(points),
        paper: json!({
            "average_above_max": paper::AVERAGE_ABOVE_MAX,
            "p95_bound_us": paper::P95_BOUND_US,
            "iscsi_p95_load": paper::ISCSI_P95_LOAD,
            "iscsi_half_us": paper::ISCSI_HALF_US,
        }),
    }
}

// The table of the figure, beside the paper's numbers.
fn rows(points: &[Point]) -> String {
    let head = ["load", "offered", "local µs", "NVMe/TCP µs", "", "paper", "iSCSI µs", "", "paper"];
    let both = "average / p95";
    let mut rows =
        vec![row(head), row(["", "IOPS", both, both, "above", "NVMf", both, "above", "iSCSI µs"])];
    for point in points {
        let both = |way| format!("{:.0} / {:.0}", point.of(way).mean_us, point.of(way).p95_us);
        let above = |way| format!("{:.1} %", point.above(way) * 100.0);
        let within = match point.load > paper::FIRST_LOAD {
            true => format!("<= {:.1} %", paper::AVERAGE_ABOVE_MAX * 100.0),
            false => NONE.to_owned(),
        };
        let iscsi = match point.load == HALF {
            true => format!("{:.0}", paper::ISCSI_HALF_US),
            false => NONE.to_owned(),
        };
        rows.push(row([
            &format!("{:.0} %", point.load * 100.0),
            &kilo(point.offered_iops),
            &both(Way::Local),
            &both(Way::Nvme),
            &above(Way::Nvme),
            &within,
            &both(Way::Iscsi),
            &above(Way::Iscsi),
            &iscsi,
        ]));
    }
    table(&rows)
}

// What the paper claims, and whether it holds here.
fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let later = points.iter().filter(|point| point.load > paper::FIRST_LOAD);
    let above = |point: &Point| point.above(Way::Nvme);
    let mut verdicts = Vec::new();
    if let Some(worst) = later.max_by(|a, b| above(a).total_cmp(&above(b))) {
        verdicts.push(Verdict::new(
            above(worst) <= paper::AVERAGE_ABOVE_MAX,
            format!(
                "NVMe/TCP's average is at most {:.1} % ({:.0} µs) above local's, at {:.0} % load; \
                 the paper's NVMf 3.5 % at every load but the first",
                above(worst) * 100.0,
                worst.of(Way::Nvme).mean_us - worst.of(Way::Local).mean_us,
                worst.load * 100.0
            ),
        ));
    }
    verdicts.extend(points.iter().find(|point| point.load == HALF).map(behind));
    let last = points.last().map_or(0.0, |point| point.load);
    let [local, nvme, iscsi] = Way::ALL.map(|way| bounded(points, way));
    verdicts.push(Verdict::new(
        local.min(nvme) >= last && last > 0.0,
        format!(
            "the 95th percentiles of local and NVMe/TCP stay below 2 ms up to {:.0} % load, of \
             {:.0} % measured; in the paper over the whole range",
            local.min(nvme) * 100.0,
            last * 100.0
        ),
    ));
    verdicts.push(Verdict::new(
        iscsi < last,
        format!(
            "that of iSCSI does not: below 2 ms up to {:.0} % load, of {:.0} % measured; in the \
             paper to {:.0} %",
            iscsi * 100.0,
            last * 100.0,
            paper::ISCSI_P95_LOAD * 100.0
        ),
    ));
    verdicts
}

// The highest load up to which the 95th percentile stays below the paper's bound; 0 if none does.
fn bounded(points: &[Point], way: Way) -> f64 {
    let within = |point: &&Point| point.of(way).p95_us < paper::P95_BOUND_US;
    points.iter().take_while(within).last().map_or(0.0, |point| point.load)
}

// Whether iSCSI's average is behind NVMe/TCP's at half the load.
fn behind(half: &Point) -> Verdict {
    let ratio = half.above(Way::Iscsi) + 1.0;
    let paper = format!(
        "{:.0} µs, more than ten times local's, which is {ratio:.1} times here",
        paper::ISCSI_HALF_US
    );
    let compared = Compared {
        what: "the average at 50 % load",
        is_rate: false,
        figures: PerWay::each(|way| half.of(way).mean_us),
        text: |us| format!("{us:.0} µs"),
        paper: &paper,
    };
    compared.verdict()
}

// Draws the figure.
fn picture(points: &[Point]) -> String {
    let loads: Vec<Tick> =
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0].map(|at| (at, format!("{:.0} %", at * 100.0))).into();
    let frame = Frame {
        title: "Average and 95th percentile of read latency against load, over three ways",
        loads: "load, of what local access reaches",
        latencies: "latency of a read, µs",
        axis: (1.0, loads),
        shown_us: (80.0, 2_500.0),
        bound_us: Some(paper::P95_BOUND_US),
        mark: None,
        note: "filled: average; hollow: 95th percentile; dotted: 2 ms, the paper's bound",
    };
    let curve = |way: Way| {
        let point = |point: &Point| {
            let Latency { mean_us, p95_us, .. } = point.of(way);
            disk::Point { load: point.load, mean_us, p95_us }
        };
        let points = points.iter().map(point).collect();
        Curve { name: way.name(), colour: way.colour(), points }
    };
    disk::draw(&frame, &Way::ALL.map(curve))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(load: f64, [local, nvme, iscsi]: [f64; 3]) -> Point {
        let one = |mean_us| Latency { iops: 1.0, mean_us, p95_us: mean_us * 2.0 };
        Point {
            load,
            offered_iops: load * 1e4,
            latency: PerWay {
                local: vec![one(local)],
                nvme: vec![one(nvme), one(nvme), one(9e9)],
                iscsi: vec![one(iscsi)],
            },
        }
    }

    #[test]
    fn the_first_load_is_left_out_as_in_the_paper() {
        let first = point(0.02, [84.0, 120.0, 150.0]);
        let half = point(0.5, [100.0, 103.0, 2_500.0]);
        let judged = verdicts(&[first, half, point(0.9, [400.0, 410.0, 9_000.0])]);
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        assert!(judged[0].claim.contains("at most 3.0 % (3 µs) above local's, at 50 % load"));
        assert!(judged[1].claim.contains("2500 µs to 103 µs, 24.27 of it"), "{judged:?}");
        assert!(judged[3].claim.contains("up to 2 % load, of 90 % measured"), "{judged:?}");
    }

    #[test]
    fn what_is_slower_does_not_hold() {
        let half = point(0.5, [100.0, 150.0, 151.0]);
        let later = point(0.8, [400.0, 1_100.0, 900.0]);
        let judged = verdicts(&[half, later, point(0.9, [1.0, 1.0, 1.0])]);
        assert!(judged.iter().all(|verdict| !verdict.holds), "{judged:?}");
        assert!(judged[1].claim.contains("which is 1.5 times here"), "{judged:?}");
        assert!(judged[2].claim.contains("up to 50 % load, of 90 % measured"), "{judged:?}");
        assert!(judged[3].claim.contains("up to 90 % load, of 90 % measured"), "{judged:?}");
    }

    #[test]
    fn a_figure_has_a_median_of_its_own() {
        let one = |mean_us, p95_us| Latency { iops: 1.0, mean_us, p95_us };
        let middle = Latency::median(&[one(1.0, 9.0), one(2.0, 7.0), one(3.0, 8.0)]);
        assert_eq!(middle, one(2.0, 8.0));
    }

    #[test]
    fn picture_has_two_lines_for_each_way() {
        let points = [point(0.02, [84.0, 120.0, 130.0]), point(0.9, [400.0, 410.0, 420.0])];
        let drawn = picture(&points);
        assert_eq!(drawn.matches("<polyline").count(), 6);
        assert_eq!(drawn.matches("<circle").count(), 12);
    }
}
