//! Fig. 5: throughput with fewer processors at the target, and the processor time of a request.
//!
//! The paper reduces the target's 96 processors to a twelfth. A machine with few processors has
//! fewer steps, and the host runs on the same processors.

use chart::GREY;
use console::layout::{NONE, kilo, row, table};
use serde::Serialize;
use serde_json::json;

use super::super::ReproduceError;
use super::super::bed::{Bed, Measured};
use super::super::report::{Report, Verdict};
use super::super::way::{PerWay, Way};
use super::bars::{self, Bars, Group, Level};
use super::ordering::Compared;
use super::paper;

/// A mix with a number of processors at the target, with a value for each repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Point {
    read_percent: u8,
    /// Processors of the target, and of this machine.
    processors: usize,
    of: usize,
    iops: PerWay<Vec<f64>>,
    /// Processor time of the host and of the target for a request, in microseconds.
    host_us: PerWay<Vec<f64>>,
    target_us: PerWay<Vec<f64>>,
}

const READ_PERCENTS: [u8; 2] = [100, 80];

/// Measures the figure; `None` if it was interrupted before anything was measured.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    let counts = steps(bed.processors);
    // Each measured load has one before it.
    let loads = counts.len() * READ_PERCENTS.len() * 2 * Way::ALL.len();
    bed.session.expect(loads * bed.repetitions);
    let mut points: Vec<Point> = Vec::new();
    for repetition in 0..bed.repetitions {
        for &processors in &counts {
            let opened = bed.open(Some(processors))?;
            for read_percent in READ_PERCENTS {
                let (load, what) = (bed.full(read_percent), format!("{read_percent} % reads"));
                let measured = bed.measure(repetition, &what, &opened, &load)?;
                let Some(measured) = measured else { break };
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

// Numbers of processors at the target: all, then half as many each time, down to 1.
fn steps(processors: usize) -> Vec<usize> {
    std::iter::successors(Some(processors), |count| (*count > 1).then_some(count / 2)).collect()
}

impl Point {
    // Adds the values of a repetition.
    fn add(&mut self, measured: &PerWay<Measured>) {
        self.iops.push(measured.map(|one| one.tally.per_second()));
        self.host_us.push(measured.map(Measured::host_us));
        self.target_us.push(measured.map(Measured::target_us));
    }

    // Throughput of a way over that of local access.
    fn ratio(&self, way: Way) -> f64 {
        self.iops.medians().of_local(way)
    }

    // The share of this machine's processors that the target has.
    fn share(&self) -> f64 {
        self.processors as f64 / self.of.max(1) as f64
    }

    /// Utilisation of the target's processors.
    fn utilisation(&self, way: Way) -> f64 {
        let time_us = self.iops.medians()[way] * self.target_us.medians()[way];
        time_us / 1e6 / self.processors.max(1) as f64
    }
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

// The table of the figure, beside the paper's numbers.
fn rows(points: &[Point]) -> String {
    let head = ["reads", "target", "way", "IOPS", "of", "host, µs", "target, µs", "target"];
    let under = ["", "processors", "", "", "local", "a request", "a request", "in use"];
    let mut rows = vec![row(head), row(under)];
    for point in points {
        let (iops, host_us) = (point.iops.medians(), point.host_us.medians());
        for way in Way::ALL {
            let is_remote = Way::REMOTE.contains(&way);
            let remote = |text: String| if is_remote { text } else { NONE.to_owned() };
            rows.push(row([
                &format!("{} %", point.read_percent),
                &format!("{} of {}", point.processors, point.of),
                way.name(),
                &kilo(iops[way]),
                &format!("{:.3}", point.ratio(way)),
                &format!("{:.1}", host_us[way]),
                &remote(format!("{:.1}", point.target_us.medians()[way])),
                &remote(format!("{:.0} %", point.utilisation(way) * 100.0)),
            ]));
        }
    }
    let at_least = format!(">= {:.2}", paper::FEWEST_REMOTE_RATIO);
    rows.push(row(["paper: 100 %", "8 of 96", "NVMf", NONE, &at_least, NONE, NONE, NONE]));
    let iscsi = format!("{:.2}", paper::FEWEST_ISCSI_RATIO);
    rows.push(row(["paper: 100 %", "8 of 96", "iSCSI", NONE, &iscsi, NONE, NONE, NONE]));
    table(&rows)
}

// What the paper claims, and whether it holds here.
fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let reads = points.iter().filter(|point| point.read_percent == READ_PERCENTS[0]);
    let Some(fewest) = reads.clone().min_by_key(|point| point.processors) else {
        return Vec::new();
    };
    let mut verdicts = vec![Verdict::new(
        fewest.ratio(Way::Nvme) >= paper::FEWEST_REMOTE_RATIO,
        format!(
            "with {} of {} processors ({:.2} of them) NVMe/TCP reaches {:.3} of local when all \
             requests read; the paper's NVMf at least {:.2} with 8 of 96 ({:.2}), which is further \
             than this machine can go down unless it has as many",
            fewest.processors,
            fewest.of,
            fewest.share(),
            fewest.ratio(Way::Nvme),
            paper::FEWEST_REMOTE_RATIO,
            paper::FEWEST_PROCESSORS
        ),
    )];
    verdicts.extend(behind(fewest));
    if let Some(most) = reads.max_by_key(|point| point.processors)
        && most.processors > fewest.processors
    {
        let lost = |way| 1.0 - fewest.ratio(way) / most.ratio(way).max(1e-9);
        let taken = 1.0 - fewest.share() / most.share();
        let degrades = |(way, theirs): (Way, &str)| {
            Verdict::new(
                lost(way) < taken,
                format!(
                    "{} degrades less than the processors are taken away: {:.1} % for {:.0} %; in \
                     the paper {theirs} for 92 %",
                    way.name(),
                    lost(way) * 100.0,
                    taken * 100.0
                ),
            )
        };
        let theirs = [(Way::Nvme, "10 % at most"), (Way::Iscsi, "more than half")];
        verdicts.extend(theirs.map(degrades));
    }
    verdicts
}

// Whether iSCSI is behind NVMe/TCP with the fewest processors: in throughput, and in the target's
// processor time for a request.
fn behind(fewest: &Point) -> [Verdict; 2] {
    let ratios = format!(
        "iSCSI reaches {:.2} of local and NVMf at least {:.2}",
        paper::FEWEST_ISCSI_RATIO,
        paper::FEWEST_REMOTE_RATIO
    );
    let iops = Compared {
        what: "reads a second with the fewest processors at the target",
        is_rate: true,
        figures: fewest.iops.medians(),
        text: kilo,
        paper: &ratios,
    };
    let cost = Compared {
        what: "processor time of the target for a read",
        is_rate: false,
        figures: fewest.target_us.medians(),
        text: |us| format!("{us:.1} µs"),
        paper: "by what it reaches with so few",
    };
    [iops.verdict(), cost.verdict()]
}

// Draws the figure.
fn picture(points: &[Point]) -> String {
    let group = |point: &Point| Group {
        name: format!("{} %, {} of {}", point.read_percent, point.processors, point.of),
        heights: PerWay::each(|way| point.ratio(way)),
        labels: PerWay::each(|way| match way {
            Way::Local => String::new(),
            Way::Nvme | Way::Iscsi => format!("{:.0} % in use", point.utilisation(way) * 100.0),
        }),
    };
    let reads = points.iter().filter(|point| point.read_percent == READ_PERCENTS[0]).count();
    let count = u32::try_from(reads).unwrap_or(0);
    let levels =
        [(paper::FEWEST_REMOTE_RATIO, GREY), (paper::FEWEST_ISCSI_RATIO, Way::Iscsi.colour())];
    bars::draw(&Bars {
        title: "Throughput as a share of local with fewer processors at the target, over two ways",
        axes: ("share of reads, processors of the target", "remote / local"),
        tick: |ratio| format!("{ratio:.1}"),
        ways: &Way::REMOTE,
        groups: points.iter().map(group).collect(),
        levels: levels
            .map(|(height, colour)| Level { height, first: 0, count, colour })
            .into_iter()
            .filter(|level| level.count > 0)
            .collect(),
        notes: [
            "numbers: of the target's processors".to_owned(),
            "dashed: the paper with 8 of 96, all reading; grey NVMf, green iSCSI".to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(read_percent: u8, processors: usize, ratio: f64) -> Point {
        Point {
            read_percent,
            processors,
            of: 4,
            iops: PerWay {
                local: vec![10_000.0],
                nvme: vec![10_000.0 * ratio],
                iscsi: vec![5_000.0 * ratio],
            },
            host_us: PerWay { local: vec![5.0], nvme: vec![10.0], iscsi: vec![12.0] },
            target_us: PerWay { local: vec![0.0], nvme: vec![20.0], iscsi: vec![24.0] },
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
        assert_eq!(judged.len(), 5);
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        assert!(judged[0].claim.starts_with("with 1 of 4 processors (0.25 of them)"));
        assert!(judged[1].claim.contains("4.6k to 9.2k, 0.50 of it"), "{judged:?}");
        assert!(judged[2].claim.contains("24.0 µs to 20.0 µs, 1.20 of it"), "{judged:?}");
        assert!(judged[3].claim.contains("8.0 % for 75 %"), "{judged:?}");
        assert_eq!(verdicts(&[point(80, 1, 1.0)]), []);
    }

    #[test]
    fn what_is_not_so_does_not_hold() {
        let mut fewest = point(100, 1, 0.2);
        fewest.iops.iscsi = vec![2_000.0];
        fewest.target_us.iscsi = vec![18.0];
        let judged = verdicts(&[point(100, 4, 1.0), fewest]);
        let holds: Vec<bool> = judged.iter().map(|verdict| verdict.holds).collect();
        assert_eq!(holds, [false, false, false, false, true], "{judged:?}");
    }

    #[test]
    fn utilisation_is_time_over_processors() {
        assert!((point(100, 1, 1.0).utilisation(Way::Nvme) - 0.2).abs() < 1e-9);
        assert!((point(100, 4, 1.0).utilisation(Way::Iscsi) - 0.03).abs() < 1e-9);
    }

    #[test]
    fn picture_has_two_bars_for_every_point() {
        let drawn = picture(&[point(100, 4, 1.0), point(100, 1, 0.9), point(80, 1, 0.8)]);
        assert_eq!(drawn.matches("in use").count(), 6);
        assert_eq!(drawn.matches("<rect").count(), 2 + 2 + 6, "page, frame, key and bars");
    }
}
