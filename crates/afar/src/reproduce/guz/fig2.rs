//! Fig. 2: the most throughput at every mix of reads and writes.

use chart::{Anchor, BLUE, GREEN, GREY, ORANGE, Panel, Scale, Svg, Tick, axis};
use serde::Serialize;
use serde_json::json;

use super::super::ReproduceError;
use super::super::bed::Bed;
use super::super::report::{Report, Verdict, median};
use super::paper;
use crate::layout::{NONE, kilo, row, table};

/// A mix, and what was reached in each repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Point {
    read_percent: u8,
    local_iops: Vec<f64>,
    remote_iops: Vec<f64>,
}

/// A step in which throughput rises by less is not counted as one.
const NOISE: f64 = 1.05;
const READ_PERCENTS: [u8; 6] = [100, 90, 80, 70, 50, 0];

/// Measures it; `None` if nothing was before an interruption.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    let pair = bed.open(None)?;
    let mut points: Vec<Point> =
        READ_PERCENTS.map(|read_percent| Point { read_percent, ..Point::default() }).into();
    bed.session.expect(points.len() * 2 * bed.repetitions);
    for repetition in 0..bed.repetitions {
        for point in &mut points {
            let load = bed.full(point.read_percent);
            let what = format!("{} % reads", point.read_percent);
            let Some([local, remote]) = bed.pair(repetition, &what, &pair, &load)? else { break };
            point.local_iops.push(local.per_second());
            point.remote_iops.push(remote.per_second());
        }
    }
    points.retain(|point| !point.local_iops.is_empty());
    Ok((!points.is_empty()).then(|| report(&points)))
}

impl Point {
    fn local(&self) -> f64 {
        median(self.local_iops.iter().copied())
    }

    fn remote(&self) -> f64 {
        median(self.remote_iops.iter().copied())
    }

    fn ratio(&self) -> f64 {
        self.remote() / self.local().max(1e-9)
    }
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

fn rows(points: &[Point]) -> String {
    let mut rows = vec![
        row(["reads", "local", "NVMe/TCP", "ratio", "paper", "iSCSI", "paper"]),
        row(["", "IOPS", "IOPS", "", "NVMf", "", "iSCSI"]),
    ];
    for point in points {
        let share = format!("{} %", point.read_percent);
        let (local, remote) = (kilo(point.local()), kilo(point.remote()));
        let ratio = format!("{:.3}", point.ratio());
        let at_least = format!("> {:.2}", paper::REMOTE_RATIO_MIN);
        let iscsi = match point.read_percent {
            100 => format!("{:.2}", paper::ISCSI_READ_RATIO),
            _ => NONE.to_owned(),
        };
        rows.push(row([&share, &local, &remote, &ratio, &at_least, NONE, &iscsi]));
    }
    table(&rows)
}

fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    if let Some(worst) = points.iter().min_by(|a, b| a.ratio().total_cmp(&b.ratio())) {
        verdicts.push(Verdict::new(
            worst.ratio() >= paper::REMOTE_RATIO_MIN,
            format!(
                "remote reaches {:.3} of local at its worst mix ({} % reads); the paper's NVMf \
                 more than {:.2} at every mix",
                worst.ratio(),
                worst.read_percent,
                paper::REMOTE_RATIO_MIN
            ),
        ));
    }
    let falls = points.windows(2).all(|two| two[1].local() <= two[0].local() * NOISE);
    if let (Some(first), Some(last)) = (points.first(), points.last())
        && points.len() == READ_PERCENTS.len()
    {
        verdicts.push(Verdict::new(
            falls,
            format!(
                "local throughput rises by no more than 5 % in any step towards writes and falls \
                 to {:.3} of that of reads; in the paper, by its drives' figures, to {:.3}",
                last.local() / first.local().max(1e-9),
                paper::LOCAL_WRITE_IOPS / paper::LOCAL_READ_IOPS
            ),
        ));
    }
    verdicts
}

const SIZE: (f64, f64) = (640.0, 380.0);
const BAR: f64 = 0.34;

fn picture(points: &[Point]) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    let most = points.iter().flat_map(|point| [point.local(), point.remote()]).fold(1.0, f64::max);
    let (high, ticks) = axis(most * 1.1, |value| format!("{:.0}", value / 1e3));
    let count = u32::try_from(points.len()).unwrap_or(1);
    let panel = Panel {
        left: 70.0,
        top: 48.0,
        width: SIZE.0 - 90.0,
        height: 270.0,
        x: Scale::Linear(0.0, f64::from(count)),
        y: Scale::Linear(0.0, high),
    };
    let centre = |index: u32| f64::from(index) + 0.5;
    let names: Vec<Tick> = (0..)
        .zip(points)
        .map(|(index, point)| (centre(index), format!("{} %", point.read_percent)))
        .collect();
    svg.axes(&panel, ("share of reads", &names), ("thousand requests per second", &ticks));
    for (index, point) in (0..).zip(points) {
        let at = centre(index);
        svg.bar(panel.at(at - BAR, 0.0), panel.at(at, point.local()), BLUE);
        svg.bar(panel.at(at, 0.0), panel.at(at + BAR, point.remote()), ORANGE);
        let (x, y) = panel.at(at, point.local().max(point.remote()));
        svg.text((x, y - 6.0), &format!("{:.3}", point.ratio()), Anchor::Middle);
        if point.read_percent == 100 {
            let height = point.local() * paper::ISCSI_READ_RATIO;
            let ends = [panel.at(at - 0.48, height), panel.at(at + 0.48, height)];
            svg.line(ends[0], ends[1], GREEN, "stroke-width=\"2\" stroke-dasharray=\"5 3\"");
        }
    }
    svg.frame(&panel);
    let names = [("local", BLUE), ("NVMe/TCP", ORANGE), ("iSCSI, the paper's ratio", GREEN)];
    svg.key((70.0, 20.0), &names);
    let note = "numbers: remote / local, in the paper more than 0.99";
    svg.tinted((70.0, 38.0), note, Anchor::Start, GREY);
    svg.finish("Most requests per second at every mix of reads and writes, local and remote")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(remote_of_local: f64) -> Vec<Point> {
        let local = [100.0, 80.0, 60.0, 40.0, 30.0, 20.0];
        let point = |(read_percent, local): (u8, f64)| Point {
            read_percent,
            local_iops: vec![local * 1e3, local * 1e3, 1.0],
            remote_iops: vec![local * remote_of_local * 1e3],
        };
        READ_PERCENTS.into_iter().zip(local).map(point).collect()
    }

    #[test]
    fn the_worst_mix_decides() {
        let mut points = points(0.995);
        let judged = verdicts(&points);
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        points[2].remote_iops = vec![54_000.0];
        let judged = verdicts(&points);
        assert!(!judged[0].holds);
        assert!(judged[0].claim.contains("0.900 of local at its worst mix (80 % reads)"));
        assert!(judged[1].claim.contains("falls to 0.200 of that of reads"), "{judged:?}");
        points[1].local_iops = vec![106_000.0; 3];
        assert!(!verdicts(&points)[1].holds, "it rises");
    }

    #[test]
    fn what_was_measured_before_an_interruption_is_shown() {
        let points = &points(0.995)[..2];
        assert_eq!(verdicts(points).len(), 1);
        assert_eq!(rows(points).lines().count(), 4);
        let drawn = picture(points);
        assert_eq!(drawn.matches("#0072B2").count(), 3, "two bars and the key");
        assert!(drawn.contains("90 %") && !drawn.contains("80 %"));
    }
}
