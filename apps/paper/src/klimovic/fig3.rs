//! Fig. 3: throughput over iSCSI as optimisations are added, with some that the paper could not
//! try.

use chart::{BLUE, GREEN, ORANGE, Panel, Scale, Svg, Tick, axis};
use console::layout::{NONE, kilo, row, table};
use measure::Duration;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::report::{Report, Verdict, median};
use super::super::session::Session;
use super::super::{Measured, ReproduceError};
use super::cable::{self, Cable};
use super::paper;
use super::rungs::{RUNGS, Rung, TENANTS, so_many};
use super::tenants::{DEPTH, Target};
use crate::flags::Options;

/// The results of a number of tenants on a rung, one value for each repetition.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Point {
    rung: Rung,
    tenants: usize,
    iops: Vec<f64>,
    /// Processor time of the target for each request, in microseconds.
    target_us: Vec<f64>,
    /// Why further repetitions failed; `None` if none did.
    failure: Option<String>,
}

/// Measures the figure; `None` if it was interrupted before any result.
///
/// # Errors
/// When the network cannot be made, or the target cannot be started in it.
pub(in super::super) fn run(
    mut session: Session,
    flags: &Options,
) -> Result<Option<Measured>, ReproduceError> {
    cable::check()?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let usual = Duration::from_ms(if flags.quick { 2_000 } else { 5_000 });
    let runtime = flags.duration.unwrap_or(usual);
    let repetitions = if flags.quick { 1 } else { 3 };
    let rungs: Vec<Rung> =
        RUNGS.into_iter().filter(|&rung| rung != Rung::Bbr || cable::has_bbr()).collect();
    session.expect(repetitions * rungs.len() * TENANTS.len());
    let mut points: Vec<Point> = Vec::new();
    for repetition in 0..repetitions {
        let mut order = rungs.clone();
        if repetition % 2 == 1 {
            order.reverse();
        }
        for rung in order {
            climb(&mut session, rung, processors, runtime, &mut points)?;
            if session.is_interrupted() {
                break;
            }
        }
    }
    session.end_line();
    points.sort_by_key(|point| (point.rung, point.tenants));
    let is_interrupted = session.is_interrupted();
    Ok(points.iter().any(|point| !point.iops.is_empty()).then(|| Measured {
        report: report(&points),
        described: format!(
            "target and tenants in two networks of one machine with {processors} processors\n\
             loads: 4 KiB reads at random, {DEPTH} under way for each tenant, {runtime} each, \
             {repetitions} repetitions; disks in memory"
        ),
        bed: json!({
            "processors": processors,
            "depth": DEPTH,
            "runtime_ns": runtime.as_ns(),
            "repetitions": repetitions,
            "has_bbr": cable::has_bbr(),
        }),
        is_interrupted,
    }))
}

// Measures a rung with each number of tenants, unless it has failed before. A failed rung does not
// end the figure.
fn climb(
    session: &mut Session,
    rung: Rung,
    processors: usize,
    runtime: Duration,
    points: &mut Vec<Point>,
) -> Result<(), ReproduceError> {
    if points.iter().any(|point| point.rung == rung && point.failure.is_some()) {
        return Ok(());
    }
    let cable = Cable::new(rung, processors)?;
    let target = Target::start(&cable, rung, processors)?;
    for tenants in TENANTS {
        let measured = target.load(session, tenants, runtime);
        if matches!(measured, Ok(None)) {
            return Ok(());
        }
        let at = points.iter().position(|point| (point.rung, point.tenants) == (rung, tenants));
        let at = at.unwrap_or_else(|| {
            let (iops, target_us) = (Vec::new(), Vec::new());
            points.push(Point { rung, tenants, iops, target_us, failure: None });
            points.len() - 1
        });
        match measured {
            Ok(Some(measured)) => {
                points[at].iops.push(measured.iops);
                points[at].target_us.push(measured.target_us);
            }
            Ok(None) => {}
            Err(ReproduceError::Failed { what, first, .. }) => {
                points[at].failure = Some(format!("{what}: {first}"));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

// The results of a number of tenants on a rung; `None` if there are none.
fn find(points: &[Point], rung: Rung, tenants: usize) -> Option<&Point> {
    let is_it = |point: &&Point| (point.rung, point.tenants) == (rung, tenants);
    points.iter().find(is_it).filter(|point| !point.iops.is_empty())
}

// The ratio of throughputs of two rungs: the median over repetitions of both.
fn ratio(points: &[Point], rung: Rung, below: Rung, tenants: usize) -> Option<f64> {
    let (one, other) = (find(points, rung, tenants)?, find(points, below, tenants)?);
    let pairs = one.iops.iter().zip(&other.iops);
    Some(median(pairs.map(|(one, other)| one / other.max(1e-9))))
}

// The gain of a rung over the highest measured rung that it builds on.
fn gain(points: &[Point], rung: Rung, tenants: usize) -> Option<f64> {
    rung.below().find_map(|below| ratio(points, rung, below, tenants))
}

/// The report from all points.
fn report(points: &[Point]) -> Report {
    Report {
        title: format!("{} 3: throughput over iSCSI as the target is tuned", paper::SOURCE),
        table: rows(points),
        verdicts: verdicts(points),
        picture: picture(points),
        points: json!(points),
        paper: paper_json(),
    }
}

fn paper_json() -> Value {
    json!({
        "baseline_iops": paper::BASELINE_IOPS,
        "many_workers_iops": paper::MANY_WORKERS_IOPS,
        "many_workers_gain_1_6": paper::MANY_WORKERS,
        "offloads_gain_1_6": paper::OFFLOADS,
        "jumbo_gain_least_most": paper::JUMBO,
        "affinity_gain_1_3_6": paper::AFFINITY,
        "tuned_gain_6": paper::TUNED,
    })
}

/// The median.
fn of(values: &[f64]) -> f64 {
    median(values.iter().copied())
}

/// The tables as text.
fn rows(points: &[Point]) -> String {
    let mut rows = Vec::new();
    for tenants in TENANTS {
        let who = so_many(tenants);
        rows.push(row([&who, "IOPS", "target, µs a request", "gain", "paper"]));
        for rung in RUNGS {
            let Some(point) = find(points, rung, tenants) else { continue };
            let gain = gain(points, rung, tenants);
            let gain = gain.map_or_else(|| NONE.to_owned(), percent);
            rows.push(row([
                rung.name(),
                &kilo(of(&point.iops)),
                &format!("{:.2}", of(&point.target_us)),
                &gain,
                &rung.paper(tenants).unwrap_or_else(|| NONE.to_owned()),
            ]));
        }
    }
    let mut text = table(&rows);
    text += "Rungs of the paper are each on top of those above it, the others each on top of all\n\
             of the paper's. Between virtual interfaces the kernel copies what is sent without a\n\
             copy all the same; and what is sent is received on the processor that sent it, so\n\
             RPS, which spreads it over all, costs interrupts between them and spares no card's.\n";
    if !points.iter().any(|point| point.rung == Rung::Bbr) {
        text += "bbr is not among them: it is not in this kernel, or was not reached.\n";
    }
    for point in points {
        if let Some(failure) = &point.failure {
            text += &format!("not measured: {failure}\n");
        }
    }
    text
}

/// A gain as text, in percent.
fn percent(gain: f64) -> String {
    format!("{:+.1} %", (gain - 1.0) * 100.0)
}

/// A claim: the gain of a rung over the one below with a number of tenants, the paper's gain, and
/// the least gain that is enough.
struct Claim {
    rung: Rung,
    tenants: usize,
    paper: f64,
    least: f64,
}

const CLAIMS: [Claim; 6] = [
    Claim { rung: Rung::ManyWorkers, tenants: 6, paper: paper::MANY_WORKERS[1], least: 1.1 },
    Claim { rung: Rung::Offloads, tenants: 1, paper: paper::OFFLOADS[0], least: 1.04 },
    Claim { rung: Rung::Offloads, tenants: 6, paper: paper::OFFLOADS[1], least: 1.11 },
    Claim { rung: Rung::Jumbo, tenants: 6, paper: paper::JUMBO[0], least: paper::JUMBO[0] },
    Claim { rung: Rung::Affinity, tenants: 1, paper: paper::AFFINITY[0], least: 1.03 },
    Claim { rung: Rung::Affinity, tenants: 6, paper: paper::AFFINITY[2], least: 1.03 },
];

fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for Claim { rung, tenants, paper, least } in CLAIMS {
        let Some(gain) = gain(points, rung, tenants) else { continue };
        let claim = format!(
            "{}, {}: {}; the paper's {:+.0} %, and {:+.0} % is enough",
            rung.name(),
            so_many(tenants),
            percent(gain),
            (paper - 1.0) * 100.0,
            (least - 1.0) * 100.0
        );
        verdicts.push(Verdict::new(gain >= least, claim));
    }
    if let Some(tuned) = ratio(points, Rung::Affinity, Rung::ManyWorkers, 6) {
        let claim = format!(
            "6 tenants: offloads, jumbo frames and affinity together make it {tuned:.2} times as \
             fast; the paper's {:.1} times at least",
            paper::TUNED
        );
        verdicts.push(Verdict::new(tuned >= paper::TUNED, claim));
    }
    if let Some(gain) = gain(points, Rung::Connections, 1) {
        let claim = format!(
            "one connection is what limits a session (footnote 2): a second one gives one tenant \
             {}; +5 % is enough",
            percent(gain)
        );
        verdicts.push(Verdict::new(gain >= 1.05, claim));
    }
    verdicts
}

const SIZE: (f64, f64) = (900.0, 390.0);
const COLOURS: [&str; 3] = [BLUE, ORANGE, GREEN];

fn picture(points: &[Point]) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    let most = points.iter().map(|point| of(&point.iops)).fold(1.0, f64::max);
    let (high, ticks) = axis(most * 1.1, |iops| format!("{:.0}k", iops / 1e3));
    let panel = Panel {
        left: 75.0,
        top: 48.0,
        width: SIZE.0 - 95.0,
        height: 270.0,
        x: Scale::Linear(0.0, 10.0),
        y: Scale::Linear(0.0, high),
    };
    let places = || (0..).zip(RUNGS).map(|(index, rung)| (f64::from(index) + 0.5, rung));
    let names: Vec<Tick> = places().map(|(at, rung)| (at, rung.short().to_owned())).collect();
    svg.axes(
        &panel,
        ("to affinity each on top of those to its left, then each on top of affinity", &names),
        ("IOPS of all", &ticks),
    );
    for (at, rung) in places() {
        for ((offset, tenants), colour) in
            [-0.39, -0.13, 0.13].into_iter().zip(TENANTS).zip(COLOURS)
        {
            let Some(point) = find(points, rung, tenants) else { continue };
            let left = at + offset;
            svg.bar(panel.at(left, 0.0), panel.at(left + 0.26, of(&point.iops)), colour);
        }
    }
    svg.frame(&panel);
    let names = ["1 tenant", "3 tenants", "6 tenants"];
    svg.key((75.0, 24.0), &[0, 1, 2].map(|index| (names[index], COLOURS[index])));
    svg.finish("Throughput over iSCSI as the target is tuned, for 1, 3 and 6 tenants")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(rung: Rung, tenants: usize, iops: &[f64]) -> Point {
        let target_us = vec![5.0; iops.len()];
        Point { rung, tenants, iops: iops.to_vec(), target_us, failure: None }
    }

    #[test]
    fn gains_are_over_the_rung_below_that_was_measured() {
        let points = [
            point(Rung::Offloads, 1, &[100.0, 200.0, 300.0]),
            point(Rung::Jumbo, 1, &[]),
            point(Rung::BusyPoll, 1, &[1.0]),
            point(Rung::Nvme, 1, &[150.0, 200.0, 600.0]),
        ];
        assert_eq!(gain(&points, Rung::Nvme, 1), Some(1.5), "busy polling is beside it");
        assert_eq!(gain(&points, Rung::Offloads, 1), None);
        assert_eq!(gain(&points, Rung::Nvme, 6), None);
    }

    #[test]
    fn verdicts_have_their_criteria() {
        let points = |jumbo: f64| {
            [
                point(Rung::ManyWorkers, 6, &[100.0]),
                point(Rung::Offloads, 6, &[120.0]),
                point(Rung::Jumbo, 6, &[jumbo]),
                point(Rung::Affinity, 6, &[160.0]),
            ]
        };
        let judged = verdicts(&points(130.0));
        assert_eq!(judged.len(), 4, "{judged:?}");
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        assert!(judged[3].claim.contains("1.60 times"), "{judged:?}");
        assert!(!verdicts(&points(121.0))[1].holds);
    }

    #[test]
    fn tables_and_pictures_have_every_point() {
        let mut points = vec![point(Rung::OneWorker, 1, &[9e3]), point(Rung::Offloads, 1, &[2e4])];
        points.push(Point { failure: Some("why".to_owned()), ..point(Rung::Nvme, 1, &[]) });
        let shown = rows(&points);
        for wanted in ["10.5k IOPS", "+122.2 %", "+8 %", "not measured: why", "bbr is not"] {
            assert!(shown.contains(wanted), "{wanted} is missing in\n{shown}");
        }
        assert_eq!(picture(&points).matches("<rect").count(), 1 + 2 + 1 + 3);
    }
}
