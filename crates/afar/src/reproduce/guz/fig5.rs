//! Fig. 5: throughput with fewer processors at the target, and the processor time of a request.
//!
//! The paper goes from all 96 processors of the target down to a twelfth; a machine with few has
//! fewer steps, and its host needs the same ones.

use chart::{Anchor, BLUE, GREEN, GREY, ORANGE, Panel, Scale, Svg, Tick, axis};
use flash::load::Tally;
use serde::Serialize;
use serde_json::json;

use super::super::ReproduceError;
use super::super::bed::{Bed, Pair};
use super::super::report::{Report, Verdict, median};
use super::super::session::Load;
use super::paper;
use crate::layout::{NONE, kilo, row, table};
use measure::Duration;

/// A mix with so many processors at the target, one value for each repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Point {
    read_percent: u8,
    /// The target's, and this machine's.
    processors: usize,
    of: usize,
    local_iops: Vec<f64>,
    remote_iops: Vec<f64>,
    /// Processor time of a request in microseconds: of the host when the drive is local, of the
    /// host when it is remote, of the target.
    local_host_us: Vec<f64>,
    remote_host_us: Vec<f64>,
    target_us: Vec<f64>,
}

const READ_PERCENTS: [u8; 2] = [100, 80];

/// Measures it; `None` if nothing was before an interruption.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    let counts = steps(bed.processors);
    // A load before each that is measured, and the one that is, local and remote.
    bed.session.expect(counts.len() * READ_PERCENTS.len() * 4 * bed.repetitions);
    let mut points: Vec<Point> = Vec::new();
    for repetition in 0..bed.repetitions {
        for &processors in &counts {
            let pair = bed.open(Some(processors))?;
            for read_percent in READ_PERCENTS {
                let Some(measured) = measure(bed, repetition, &pair, read_percent)? else { break };
                let is_same =
                    |one: &Point| (one.read_percent, one.processors) == (read_percent, processors);
                let at = points.iter().position(is_same).unwrap_or_else(|| {
                    let of = bed.processors;
                    points.push(Point { read_percent, processors, of, ..Point::default() });
                    points.len() - 1
                });
                points[at].add(&measured);
            }
        }
    }
    points
        .sort_by_key(|point| (READ_PERCENTS[0] - point.read_percent, point.of - point.processors));
    Ok((!points.is_empty()).then(|| report(&points)))
}

// All, and half of them as often as there is a half.
fn steps(processors: usize) -> Vec<usize> {
    std::iter::successors(Some(processors), |count| (*count > 1).then_some(count / 2)).collect()
}

/// One repetition.
struct Measured {
    local: Tally,
    remote: Tally,
    /// Processor time of the target.
    target: Duration,
}

fn measure(
    bed: &mut Bed,
    repetition: usize,
    pair: &Pair,
    read_percent: u8,
) -> Result<Option<Measured>, ReproduceError> {
    let full = bed.full(read_percent);
    // What comes before is a load of its own, so that processor time is of what is counted.
    let before = Load { ramp: Duration::ZERO, runtime: full.ramp, ..full };
    let counted = Load { ramp: Duration::ZERO, ..full };
    let what = format!("{read_percent} % reads");
    let mut tallies = [None, None];
    let mut target = Duration::ZERO;
    for way in [repetition % 2, 1 - repetition % 2] {
        let (name, device) = [("local", &pair.local), ("NVMe/TCP", &pair.remote)][way];
        let what = format!("{what}, {name}");
        let Some(_) = bed.session.run(&what, device, &before)? else { return Ok(None) };
        let begun = pair.target.processor_time();
        let Some(tally) = bed.session.run(&what, device, &counted)? else { return Ok(None) };
        if way == 1 {
            target = pair.target.processor_time().saturating_sub(begun);
        }
        tallies[way] = Some(tally);
    }
    let [Some(local), Some(remote)] = tallies else { return Ok(None) };
    Ok(Some(Measured { local, remote, target }))
}

impl Point {
    fn add(&mut self, Measured { local, remote, target }: &Measured) {
        let each = |time: Duration, tally: &Tally| time.as_ns_f64() / 1e3 / tally.count() as f64;
        self.local_iops.push(local.per_second());
        self.remote_iops.push(remote.per_second());
        self.local_host_us.push(each(local.processor_time(), local));
        self.remote_host_us.push(each(remote.processor_time(), remote));
        self.target_us.push(each(*target, remote));
    }

    fn ratio(&self) -> f64 {
        of(&self.remote_iops) / of(&self.local_iops).max(1e-9)
    }

    fn share(&self) -> f64 {
        self.processors as f64 / self.of.max(1) as f64
    }

    /// How much of its processors the target uses.
    fn utilisation(&self) -> f64 {
        of(&self.remote_iops) * of(&self.target_us) / 1e6 / self.processors.max(1) as f64
    }
}

fn of(values: &[f64]) -> f64 {
    median(values.iter().copied())
}

fn report(points: &[Point]) -> Report {
    Report {
        title: format!("{} 5: throughput with fewer processors at the target", paper::SOURCE),
        table: rows(points),
        verdicts: verdicts(points),
        picture: picture(points),
        points: json!(points),
        paper: json!({
            "fewest_processors": paper::FEWEST_PROCESSORS,
            "fewest_remote_ratio": paper::FEWEST_REMOTE_RATIO,
            "fewest_iscsi_ratio": paper::FEWEST_ISCSI_RATIO,
            "busy_processors": paper::BUSY_PROCESSORS,
        }),
    }
}

fn rows(points: &[Point]) -> String {
    let head = ["reads", "target", "NVMe/TCP", "of", "host, µs a request", "target, µs", "target"];
    let under = ["", "processors", "IOPS", "local", "local / remote", "a request", "in use"];
    let mut rows = vec![row(head), row(under)];
    for point in points {
        let host = format!("{:.1} / {:.1}", of(&point.local_host_us), of(&point.remote_host_us));
        rows.push(row([
            &format!("{} %", point.read_percent),
            &format!("{} of {}", point.processors, point.of),
            &kilo(of(&point.remote_iops)),
            &format!("{:.3}", point.ratio()),
            &host,
            &format!("{:.1}", of(&point.target_us)),
            &format!("{:.0} %", point.utilisation() * 100.0),
        ]));
    }
    let at_least = format!(">= {:.2}", paper::FEWEST_REMOTE_RATIO);
    rows.push(row(["paper: 100 %", "8 of 96", NONE, &at_least, NONE, NONE, NONE]));
    let iscsi = format!("{:.2}", paper::FEWEST_ISCSI_RATIO);
    rows.push(row(["paper, iSCSI: 100 %", "8 of 96", NONE, &iscsi, NONE, NONE, NONE]));
    table(&rows)
}

fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let reads = points.iter().filter(|point| point.read_percent == READ_PERCENTS[0]);
    let Some(fewest) = reads.clone().min_by_key(|point| point.processors) else {
        return Vec::new();
    };
    let mut verdicts = vec![Verdict::new(
        fewest.ratio() >= paper::FEWEST_REMOTE_RATIO,
        format!(
            "with {} of {} processors ({:.2} of them) remote reaches {:.3} of local when all \
             requests read; the paper's NVMf at least {:.2} with 8 of 96 ({:.2}), which is further \
             than this machine can go down unless it has as many",
            fewest.processors,
            fewest.of,
            fewest.share(),
            fewest.ratio(),
            paper::FEWEST_REMOTE_RATIO,
            paper::FEWEST_PROCESSORS
        ),
    )];
    if let Some(most) = reads.max_by_key(|point| point.processors)
        && most.processors > fewest.processors
    {
        let lost = 1.0 - fewest.ratio() / most.ratio().max(1e-9);
        let taken = 1.0 - fewest.share() / most.share();
        verdicts.push(Verdict::new(
            lost < taken,
            format!(
                "throughput degrades less than the processors are taken away: {:.1} % for {:.0} %; \
                 in the paper 10 % at most for 92 %",
                lost * 100.0,
                taken * 100.0
            ),
        ));
    }
    verdicts
}

const SIZE: (f64, f64) = (640.0, 390.0);

fn picture(points: &[Point]) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    let count = u32::try_from(points.len()).unwrap_or(1);
    let most = points.iter().map(Point::ratio).fold(1.0, f64::max);
    let (high, ticks) = axis(most * 1.15, |ratio| format!("{ratio:.1}"));
    let panel = Panel {
        left: 70.0,
        top: 48.0,
        width: SIZE.0 - 90.0,
        height: 270.0,
        x: Scale::Linear(0.0, f64::from(count)),
        y: Scale::Linear(0.0, high),
    };
    let name = |point: &Point| format!("{} of {}", point.processors, point.of);
    let names: Vec<Tick> =
        (0..).zip(points).map(|(index, point)| (f64::from(index) + 0.5, name(point))).collect();
    svg.axes(&panel, ("processors of the target", &names), ("remote / local", &ticks));
    for (index, point) in (0..).zip(points) {
        let at = f64::from(index) + 0.5;
        let colour = if point.read_percent == READ_PERCENTS[0] { BLUE } else { ORANGE };
        svg.bar(panel.at(at - 0.3, 0.0), panel.at(at + 0.3, point.ratio()), colour);
        let (x, y) = panel.at(at, point.ratio());
        let used = format!("{:.0} % in use", point.utilisation() * 100.0);
        svg.text((x, y - 6.0), &used, Anchor::Middle);
    }
    let lines = [
        (paper::FEWEST_REMOTE_RATIO, GREY, "NVMf in the paper, reads, 8 of 96"),
        (paper::FEWEST_ISCSI_RATIO, GREEN, "iSCSI in the paper, reads, 8 of 96"),
    ];
    let right = f64::from(count);
    for (ratio, colour, _) in lines {
        let ends = [panel.at(0.0, ratio), panel.at(right, ratio)];
        svg.line(ends[0], ends[1], colour, "stroke-width=\"2\" stroke-dasharray=\"5 3\"");
    }
    svg.frame(&panel);
    svg.key((70.0, 20.0), &[("all read", BLUE), ("80 % read", ORANGE)]);
    svg.key((70.0, 38.0), &lines.map(|(_, colour, name)| (name, colour)));
    svg.finish("Remote throughput as a share of local with fewer processors at the target")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(read_percent: u8, processors: usize, ratio: f64) -> Point {
        Point {
            read_percent,
            processors,
            of: 4,
            local_iops: vec![10_000.0],
            remote_iops: vec![10_000.0 * ratio],
            local_host_us: vec![5.0],
            remote_host_us: vec![10.0],
            target_us: vec![20.0],
        }
    }

    #[test]
    fn processors_are_halved_down_to_one() {
        assert_eq!(steps(6), [6, 3, 1]);
        assert_eq!(steps(2), [2, 1]);
        assert_eq!(steps(1), [1]);
    }

    #[test]
    fn the_fewest_processors_with_reads_decide() {
        let points = [point(100, 4, 1.0), point(100, 1, 0.92), point(80, 1, 0.2)];
        let judged = verdicts(&points);
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        assert!(judged[0].claim.starts_with("with 1 of 4 processors (0.25 of them)"));
        assert!(judged[1].claim.contains("8.0 % for 75 %"), "{judged:?}");
        let judged = verdicts(&[point(100, 4, 1.0), point(100, 1, 0.2)]);
        assert!(judged.iter().all(|verdict| !verdict.holds), "{judged:?}");
        assert_eq!(verdicts(&[point(80, 1, 1.0)]), []);
    }

    #[test]
    fn utilisation_is_time_over_processors() {
        assert!((point(100, 1, 1.0).utilisation() - 0.2).abs() < 1e-9);
        assert!((point(100, 4, 1.0).utilisation() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn picture_has_a_bar_for_every_point() {
        let drawn = picture(&[point(100, 4, 1.0), point(100, 1, 0.9), point(80, 1, 0.8)]);
        assert_eq!(drawn.matches("in use").count(), 3);
    }
}
