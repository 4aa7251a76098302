//! Fig. 6: average and 95th percentile of read latency against load.

use chart::{BLUE, ORANGE, Tick};
use flash::load::Tally;
use serde::Serialize;
use serde_json::json;

use super::super::ReproduceError;
use super::super::bed::Bed;
use super::super::report::{Report, Verdict, median};
use super::paper;
use crate::curve::{self, Curve, Frame};
use crate::layout::{NONE, kilo, row, table};

/// A load, and what was measured in each repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Point {
    /// Of what local access reaches.
    load: f64,
    offered_iops: f64,
    local: Vec<Latency>,
    remote: Vec<Latency>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
struct Latency {
    iops: f64,
    mean_us: f64,
    p95_us: f64,
}

const LOADS: [f64; 9] = [paper::FIRST_LOAD, 0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

/// Measures it; `None` if nothing was before an interruption.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    let pair = bed.open(None)?;
    bed.session.expect(1 + LOADS.len() * 2 * bed.repetitions);
    let full = bed.full(100);
    let Some(most) = bed.session.run("all it can, local", &pair.local, &full)? else {
        return Ok(None);
    };
    let most = most.per_second();
    let mut points: Vec<Point> =
        LOADS.map(|load| Point { load, offered_iops: most * load, ..Point::default() }).into();
    for repetition in 0..bed.repetitions {
        for point in &mut points {
            let load = bed.arriving(point.offered_iops);
            let what = format!("{:.0} % load", point.load * 100.0);
            let Some([local, remote]) = bed.pair(repetition, &what, &pair, &load)? else { break };
            point.local.push(Latency::of(&local));
            point.remote.push(Latency::of(&remote));
        }
    }
    points.retain(|point| !point.local.is_empty());
    Ok((!points.is_empty()).then(|| report(&points)))
}

impl Latency {
    fn of(tally: &Tally) -> Self {
        let curve::Point { load: iops, mean_us, p95_us } =
            curve::Point::of(tally.per_second(), &tally.reads.latency);
        Self { iops, mean_us, p95_us }
    }

    // Each figure by itself.
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
    fn local(&self) -> Latency {
        Latency::median(&self.local)
    }

    fn remote(&self) -> Latency {
        Latency::median(&self.remote)
    }

    /// How much longer the average is remotely, as a share.
    fn above(&self) -> f64 {
        self.remote().mean_us / self.local().mean_us.max(1e-9) - 1.0
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

fn rows(points: &[Point]) -> String {
    let mut rows = vec![
        row(["load", "offered", "local µs", "NVMe/TCP µs", "average", "paper", "iSCSI µs"]),
        row(["", "IOPS", "average / p95", "average / p95", "above", "NVMf", "paper"]),
    ];
    for point in points {
        let (local, remote) = (point.local(), point.remote());
        let pair = |one: Latency| format!("{:.0} / {:.0}", one.mean_us, one.p95_us);
        let within = match point.load > paper::FIRST_LOAD {
            true => format!("<= {:.1} %", paper::AVERAGE_ABOVE_MAX * 100.0),
            false => NONE.to_owned(),
        };
        let iscsi = match point.load == 0.5 {
            true => format!("{:.0}", paper::ISCSI_HALF_US),
            false => NONE.to_owned(),
        };
        rows.push(row([
            &format!("{:.0} %", point.load * 100.0),
            &kilo(point.offered_iops),
            &pair(local),
            &pair(remote),
            &format!("{:.1} %", point.above() * 100.0),
            &within,
            &iscsi,
        ]));
    }
    table(&rows)
}

fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let later = points.iter().filter(|point| point.load > paper::FIRST_LOAD);
    let mut verdicts = Vec::new();
    if let Some(worst) = later.max_by(|a, b| a.above().total_cmp(&b.above())) {
        verdicts.push(Verdict::new(
            worst.above() <= paper::AVERAGE_ABOVE_MAX,
            format!(
                "remote's average is at most {:.1} % ({:.0} µs) above local's, at {:.0} % load; \
                 the paper's NVMf 3.5 % at every load but the first",
                worst.above() * 100.0,
                worst.remote().mean_us - worst.local().mean_us,
                worst.load * 100.0
            ),
        ));
    }
    let bounded = |point: &&Point| {
        [point.local(), point.remote()].iter().all(|one| one.p95_us < paper::P95_BOUND_US)
    };
    let up_to = points.iter().take_while(bounded).last().map_or(0.0, |point| point.load);
    let last = points.last().map_or(0.0, |point| point.load);
    verdicts.push(Verdict::new(
        up_to >= last && last > 0.0,
        format!(
            "the 95th percentiles of local and remote stay below 2 ms up to {:.0} % load, of \
             {:.0} % measured; in the paper over the whole range, iSCSI's to {:.0} %",
            up_to * 100.0,
            last * 100.0,
            paper::ISCSI_P95_LOAD * 100.0
        ),
    ));
    verdicts
}

fn picture(points: &[Point]) -> String {
    let loads: Vec<Tick> =
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0].map(|at| (at, format!("{:.0} %", at * 100.0))).into();
    let frame = Frame {
        title: "Average and 95th percentile of read latency against load, local and remote",
        loads: "load, of what local access reaches",
        latencies: "latency of a read, µs",
        axis: (1.0, loads),
        shown_us: (80.0, 2_500.0),
        bound_us: Some(paper::P95_BOUND_US),
        mark: None,
        note: "filled: average; hollow: 95th percentile; dotted: 2 ms, the paper's bound",
    };
    let of = |way: fn(&Point) -> Latency| {
        let point = |point: &Point| {
            let Latency { mean_us, p95_us, .. } = way(point);
            curve::Point { load: point.load, mean_us, p95_us }
        };
        points.iter().map(point).collect()
    };
    let local = Curve { name: "local", colour: BLUE, points: of(Point::local) };
    let remote = Curve { name: "NVMe/TCP", colour: ORANGE, points: of(Point::remote) };
    curve::draw(&frame, &[local, remote])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(load: f64, local_us: f64, remote_us: f64) -> Point {
        let one = |mean_us| Latency { iops: 1.0, mean_us, p95_us: mean_us * 2.0 };
        Point {
            load,
            offered_iops: load * 1e4,
            local: vec![one(local_us)],
            remote: vec![one(remote_us), one(remote_us), one(9e9)],
        }
    }

    #[test]
    fn the_first_load_is_left_out_as_in_the_paper() {
        let points = [point(0.02, 84.0, 120.0), point(0.5, 100.0, 103.0), point(0.9, 400.0, 410.0)];
        let judged = verdicts(&points);
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        assert!(judged[0].claim.contains("at most 3.0 % (3 µs) above local's, at 50 % load"));
    }

    #[test]
    fn what_is_slower_does_not_hold() {
        let points = [point(0.5, 100.0, 150.0), point(0.8, 400.0, 1_100.0), point(0.9, 1.0, 1.0)];
        let judged = verdicts(&points);
        assert!(!judged[0].holds && !judged[1].holds);
        assert!(judged[1].claim.contains("up to 50 % load, of 90 % measured"), "{judged:?}");
    }

    #[test]
    fn a_figure_has_a_median_of_its_own() {
        let one = |mean_us, p95_us| Latency { iops: 1.0, mean_us, p95_us };
        let middle = Latency::median(&[one(1.0, 9.0), one(2.0, 7.0), one(3.0, 8.0)]);
        assert_eq!(middle, one(2.0, 8.0));
    }

    #[test]
    fn picture_has_four_lines() {
        let drawn = picture(&[point(0.02, 84.0, 120.0), point(0.9, 400.0, 410.0)]);
        assert_eq!(drawn.matches("<polyline").count(), 4);
        assert_eq!(drawn.matches("<circle").count(), 8);
    }
}
