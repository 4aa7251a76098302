//! Fig. 2: the highest throughput at every mix of reads and writes.
//!
//! The emulated drive is no faster than the slowest way, so it limits all ways alike. The limit of
//! each way itself is measured, too, with a drive as fast as the paper's, which limits none.

use console::layout::{NONE, kilo, row, table};
use serde::Serialize;
use serde_json::json;

use super::super::ReproduceError;
use super::super::bed::{Bed, told};
use super::super::report::{Report, Verdict};
use super::super::way::{PerWay, Way};
use super::bars::{self, Bars, Group, Level};
use super::ordering::Compared;
use super::paper;

/// A mix of reads and writes, and the throughput of each repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Point {
    read_percent: u8,
    /// Whether the drive is as fast as the paper's.
    whole_drive: bool,
    iops: PerWay<Vec<f64>>,
}

/// Throughput that rises by less than this factor counts as not rising.
const NOISE: f64 = 1.05;
const READ_PERCENTS: [u8; 6] = [100, 90, 80, 70, 50, 0];

/// Measures the figure; `None` if it was interrupted before anything was measured.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    let opened = bed.open(None)?;
    let whole = bed.open_whole()?;
    let mut points: Vec<Point> =
        READ_PERCENTS.map(|read_percent| Point { read_percent, ..Point::default() }).into();
    points.push(Point { read_percent: 100, whole_drive: true, ..Point::default() });
    bed.session.expect(points.len() * Way::ALL.len() * bed.repetitions);
    for repetition in 0..bed.repetitions {
        for point in &mut points {
            let load = bed.full(point.read_percent);
            let opened = if point.whole_drive { &whole } else { &opened };
            let what = point.name();
            let Some(tallies) = bed.each_way(repetition, &what, opened, &load)? else { break };
            point.iops.push(tallies.map(diskload::Tally::per_second));
        }
    }
    points.retain(|point| !point.iops.local.is_empty());
    Ok((!points.is_empty()).then(|| report(&points)))
}

impl Point {
    // The mix of the point, for tables.
    fn name(&self) -> String {
        match self.whole_drive {
            true => format!("{} %, whole drive", self.read_percent),
            false => format!("{} %", self.read_percent),
        }
    }

    // Throughput of a way over that of local access.
    fn ratio(&self, way: Way) -> f64 {
        self.iops.medians().of_local(way)
    }
}

// The points of the figure, without the one with the whole drive.
fn mixes(points: &[Point]) -> Vec<&Point> {
    points.iter().filter(|point| !point.whole_drive).collect()
}

fn report(points: &[Point]) -> Report {
    Report {
        title: format!("{} 2: the most requests per second, 4 KiB at random", paper::SOURCE),
        table: rows(points),
        verdicts: verdicts(points),
        picture: picture(points),
        points: json!(points),
        paper: json!({
            "local_read_iops": paper::LOCAL_READ_IOPS,
            "local_write_iops": paper::LOCAL_WRITE_IOPS,
            "remote_ratio_min": paper::REMOTE_RATIO_MIN,
            "iscsi_read_ratio": paper::ISCSI_READ_RATIO,
        }),
    }
}

// The table of the figure, beside the paper's numbers.
fn rows(points: &[Point]) -> String {
    let mut rows = vec![
        row(["reads", "local", "NVMe/TCP", "of", "paper", "iSCSI", "of", "paper"]),
        row(["", "IOPS", "IOPS", "local", "NVMf", "IOPS", "local", "iSCSI"]),
    ];
    for point in points {
        let iops = point.iops.medians();
        let ratio = |way| format!("{:.3}", point.ratio(way));
        let (at_least, iscsi) = match (point.whole_drive, point.read_percent) {
            (true, _) => (NONE.to_owned(), NONE.to_owned()),
            (false, 100) => (at_least(), format!("{:.2}", paper::ISCSI_READ_RATIO)),
            (false, _) => (at_least(), NONE.to_owned()),
        };
        rows.push(row([
            &point.name(),
            &kilo(iops.local),
            &kilo(iops.nvme),
            &ratio(Way::Nvme),
            &at_least,
            &kilo(iops.iscsi),
            &ratio(Way::Iscsi),
            &iscsi,
        ]));
    }
    table(&rows)
}

// The paper's bound on the ratio of `NVMf` to local access.
fn at_least() -> String {
    format!("> {:.2}", paper::REMOTE_RATIO_MIN)
}

// What the paper claims, and whether it holds here.
fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let mixes = mixes(points);
    let mut verdicts = Vec::new();
    let by_ratio = |a: &&&Point, b: &&&Point| a.ratio(Way::Nvme).total_cmp(&b.ratio(Way::Nvme));
    if let Some(worst) = mixes.iter().min_by(by_ratio) {
        verdicts.push(Verdict::new(
            worst.ratio(Way::Nvme) >= paper::REMOTE_RATIO_MIN,
            format!(
                "NVMe/TCP reaches {:.3} of local at its worst mix ({} % reads); the paper's NVMf \
                 more than {:.2} at every mix",
                worst.ratio(Way::Nvme),
                worst.read_percent,
                paper::REMOTE_RATIO_MIN
            ),
        ));
    }
    verdicts.extend(points.iter().find(|point| point.whole_drive).map(behind));
    let local = |point: &Point| point.iops.medians().local;
    let falls = mixes.windows(2).all(|two| local(two[1]) <= local(two[0]) * NOISE);
    if let (Some(first), Some(last)) = (mixes.first(), mixes.last())
        && mixes.len() == READ_PERCENTS.len()
    {
        verdicts.push(Verdict::new(
            falls,
            format!(
                "local throughput rises by no more than 5 % in any step towards writes and falls \
                 to {:.3} of that of reads; in the paper, by its drives' figures, to {:.3}",
                local(last) / local(first).max(1e-9),
                paper::LOCAL_WRITE_IOPS / paper::LOCAL_READ_IOPS
            ),
        ));
    }
    verdicts
}

// Whether iSCSI is behind NVMe/TCP with the whole drive, as it is in the paper.
fn behind(whole: &Point) -> Verdict {
    let paper = format!(
        "iSCSI reaches {:.2} of local and NVMf more than {:.2}",
        paper::ISCSI_READ_RATIO,
        paper::REMOTE_RATIO_MIN
    );
    let compared = Compared {
        what: "reads a second of the whole drive",
        is_rate: true,
        figures: whole.iops.medians(),
        text: kilo,
        paper: &paper,
    };
    compared.verdict()
}

// Draws the figure.
fn picture(points: &[Point]) -> String {
    let group = |point: &Point| Group {
        name: point.name(),
        heights: point.iops.medians(),
        labels: PerWay::each(|way| match way {
            Way::Local => String::new(),
            Way::Nvme | Way::Iscsi => format!("{:.3}", point.ratio(way)),
        }),
    };
    let mixes = mixes(points);
    let reads = (0..).zip(&mixes).find(|(_, point)| point.read_percent == 100);
    let level = reads.map(|(first, point)| Level {
        height: point.iops.medians().local * paper::ISCSI_READ_RATIO,
        first,
        count: 1,
        colour: Way::Iscsi.colour(),
    });
    let whole = points.iter().find(|point| point.whole_drive).map(|point| point.iops.medians());
    let whole = whole.map_or_else(String::new, |iops| {
        format!("reads of the whole drive, which is no limit here: {}", told(&iops, kilo))
    });
    bars::draw(&Bars {
        title: "Most requests per second at every mix of reads and writes, over three ways",
        axes: ("share of reads", "thousand requests per second"),
        tick: |iops| format!("{:.0}", iops / 1e3),
        ways: &Way::ALL,
        groups: mixes.into_iter().map(group).collect(),
        levels: level.into_iter().collect(),
        notes: [
            "numbers: of local; the paper's NVMf more than 0.99, its iSCSI the dashed line".into(),
            whole,
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(nvme_of_local: f64) -> Vec<Point> {
        let local = [100.0, 80.0, 60.0, 40.0, 30.0, 20.0];
        let point = |(read_percent, local): (u8, f64)| Point {
            read_percent,
            whole_drive: false,
            iops: PerWay {
                local: vec![local * 1e3, local * 1e3, 1.0],
                nvme: vec![local * nvme_of_local * 1e3],
                iscsi: vec![local * 1e3],
            },
        };
        let mixes = READ_PERCENTS.into_iter().zip(local).map(point);
        let iops = PerWay { local: vec![900e3], nvme: vec![300e3], iscsi: vec![200e3] };
        mixes.chain([Point { read_percent: 100, whole_drive: true, iops }]).collect()
    }

    #[test]
    fn the_worst_mix_decides() {
        let mut points = points(0.995);
        let judged = verdicts(&points);
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        points[2].iops.nvme = vec![54_000.0];
        let judged = verdicts(&points);
        assert!(!judged[0].holds);
        assert!(judged[0].claim.contains("0.900 of local at its worst mix (80 % reads)"));
        assert!(judged[2].claim.contains("falls to 0.200 of that of reads"), "{judged:?}");
        points[1].iops.local = vec![106_000.0; 3];
        assert!(!verdicts(&points)[2].holds, "it rises");
    }

    #[test]
    fn iscsi_is_judged_where_the_drive_is_no_limit() {
        let mut points = points(0.995);
        let judged = &verdicts(&points)[1];
        assert!(
            judged.holds && judged.claim.contains("200.0k to 300.0k, 0.67 of it"),
            "{judged:?}"
        );
        points[6].iops.iscsi = vec![310e3];
        let judged = &verdicts(&points)[1];
        assert!(!judged.holds && judged.claim.contains("1.03 of it"), "{judged:?}");
    }

    #[test]
    fn what_was_measured_before_an_interruption_is_shown() {
        let points = &points(0.995)[..2];
        assert_eq!(verdicts(points).len(), 1);
        assert_eq!(rows(points).lines().count(), 4);
        let drawn = picture(points);
        for way in Way::ALL {
            let bars = drawn.lines().filter(|line| line.starts_with("<rect"));
            let own = bars.filter(|line| line.contains(way.colour()));
            assert_eq!(own.count(), 3, "two bars and the key of {}", way.name());
        }
        assert!(drawn.contains("90 %") && !drawn.contains("80 %"));
    }
}
