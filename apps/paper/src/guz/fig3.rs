//! Fig. 3: utilisation of the host's processors at the highest throughput, at every mix.
//!
//! The host is the load's process; with local access it includes the drive's emulation. Work of the
//! loopback on a packet counts as that of the packet's sender.

use console::layout::{NONE, row, table};
use serde::Serialize;
use serde_json::json;

use super::super::ReproduceError;
use super::super::bed::{Bed, Measured};
use super::super::report::{Report, Verdict};
use super::super::way::{PerWay, Way};
use super::bars::{self, Bars, Group};
use super::ordering::Compared;
use super::paper;

/// A mix of reads and writes, with a value for each repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Point {
    read_percent: u8,
    iops: PerWay<Vec<f64>>,
    /// Share of this machine's processors that the host uses.
    host_use: PerWay<Vec<f64>>,
    /// Processor time of the host and of the target for a request, in microseconds.
    host_us: PerWay<Vec<f64>>,
    target_us: PerWay<Vec<f64>>,
}

const READ_PERCENTS: [u8; 6] = [100, 90, 80, 70, 50, 0];

/// Measures the figure; `None` if it was interrupted before anything was measured.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    let opened = bed.open(None)?;
    let mut points: Vec<Point> =
        READ_PERCENTS.map(|read_percent| Point { read_percent, ..Point::default() }).into();
    // Each measured load has one before it.
    bed.session.expect(points.len() * 2 * Way::ALL.len() * bed.repetitions);
    for repetition in 0..bed.repetitions {
        for point in &mut points {
            let load = bed.full(point.read_percent);
            let what = format!("{} % reads", point.read_percent);
            let Some(measured) = bed.measure(repetition, &what, &opened, &load)? else { break };
            point.add(&measured, bed.processors);
        }
    }
    points.retain(|point| !point.iops.local.is_empty());
    Ok((!points.is_empty()).then(|| report(&points)))
}

impl Point {
    // Adds the values of a repetition.
    fn add(&mut self, measured: &PerWay<Measured>, processors: usize) {
        let in_use = |one: &Measured| one.host_us() * one.tally.per_second() / 1e6;
        self.iops.push(measured.map(|one| one.tally.per_second()));
        self.host_use.push(measured.map(|one| in_use(one) / processors as f64));
        self.host_us.push(measured.map(Measured::host_us));
        self.target_us.push(measured.map(Measured::target_us));
    }

    /// Utilisation of the host with a way, less that with local access.
    fn added(&self, way: Way) -> f64 {
        let in_use = self.host_use.medians();
        in_use[way] - in_use.local
    }
}

fn report(points: &[Point]) -> Report {
    Report {
        title: format!("{} 3: processors of the host in use", paper::SOURCE),
        table: rows(points),
        verdicts: verdicts(points),
        picture: picture(points),
        points: json!(points),
        paper: json!({
            "host_added_nvmf_max": paper::HOST_ADDED_NVMF,
            "host_added_iscsi_max": paper::HOST_ADDED_ISCSI,
            "host_use_reads": paper::HOST_USE,
        }),
    }
}

// The table of the figure, beside the paper's numbers.
fn rows(points: &[Point]) -> String {
    let mut rows = vec![
        row(["reads", "local", "NVMe/TCP", "iSCSI", "host, µs", "target, µs", "paper"]),
        row(["", "in use", "in use", "in use", "a request", "a request", "in use"]),
    ];
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for point in points {
        let in_use = point.host_use.medians();
        let with = |way| format!("{} ({:+.1})", percent(in_use[way]), point.added(way) * 100.0);
        let each = |figures: PerWay<f64>, ways: &[Way]| {
            let figures = ways.iter().map(|way| format!("{:.1}", figures[*way]));
            figures.collect::<Vec<_>>().join(" / ")
        };
        let theirs = match point.read_percent {
            100 => paper::HOST_USE.all().map(|share| format!("{:.0}", share * 100.0)).join(" / "),
            _ => NONE.to_owned(),
        };
        rows.push(row([
            &format!("{} %", point.read_percent),
            &percent(in_use.local),
            &with(Way::Nvme),
            &with(Way::Iscsi),
            &each(point.host_us.medians(), &Way::ALL),
            &each(point.target_us.medians(), &Way::REMOTE),
            &theirs,
        ]));
    }
    let most = |added: f64| format!("<= {:+.1}", added * 100.0);
    let (nvmf, iscsi) = (most(paper::HOST_ADDED_NVMF), most(paper::HOST_ADDED_ISCSI));
    rows.push(row(["paper: added", NONE, &nvmf, &iscsi, NONE, NONE, NONE]));
    table(&rows)
}

// What the paper claims, and whether it holds here.
fn verdicts(points: &[Point]) -> Vec<Verdict> {
    let most = |way: Way| {
        let added = |point: &&Point| point.added(way);
        points.iter().max_by(|a, b| added(a).total_cmp(&added(b)))
    };
    let bounds = [(Way::Nvme, "NVMf", paper::HOST_ADDED_NVMF)];
    let bounds = bounds.into_iter().chain([(Way::Iscsi, "iSCSI", paper::HOST_ADDED_ISCSI)]);
    let at_most = bounds.filter_map(|(way, theirs, bound)| {
        let worst = most(way)?;
        let claim = format!(
            "{} takes at most {:.1} points more of the host's processors than local access, at \
             {} % reads; the paper's {theirs} at most {:.1}",
            way.name(),
            worst.added(way) * 100.0,
            worst.read_percent,
            bound * 100.0
        );
        Some(Verdict::new(worst.added(way) <= bound, claim))
    });
    let reads = points.iter().find(|point| point.read_percent == 100);
    let behind = reads.map(|point| {
        let paper = format!(
            "{:.0} % of the host in use to {:.0} %",
            paper::HOST_USE.iscsi * 100.0,
            paper::HOST_USE.nvme * 100.0
        );
        let compared = Compared {
            what: "processor time of the host for a read",
            is_rate: false,
            figures: point.host_us.medians(),
            text: |us| format!("{us:.1} µs"),
            paper: &paper,
        };
        compared.verdict()
    });
    at_most.chain(behind).collect()
}

// Draws the figure.
fn picture(points: &[Point]) -> String {
    let group = |point: &Point| Group {
        name: format!("{} %", point.read_percent),
        heights: point.host_use.medians(),
        labels: PerWay::each(|way| match way {
            Way::Local => String::new(),
            Way::Nvme | Way::Iscsi => format!("{:+.1}", point.added(way) * 100.0),
        }),
    };
    bars::draw(&Bars {
        title: "Processors of the host in use at every mix of reads and writes, over three ways",
        axes: ("share of reads", "processors of the host in use"),
        tick: |share| format!("{:.0} %", share * 100.0),
        ways: &Way::ALL,
        groups: points.iter().map(group).collect(),
        levels: Vec::new(),
        notes: [
            "numbers: points more than local; in the paper NVMf at most 4.3, iSCSI 30".to_owned(),
            "when all read, the paper's host is in use to 13, 17 and 43 %".to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(read_percent: u8, host_use: [f64; 3], host_us: [f64; 3]) -> Point {
        let even = |[local, nvme, iscsi]: [f64; 3]| PerWay {
            local: vec![local],
            nvme: vec![nvme],
            iscsi: vec![iscsi],
        };
        Point {
            read_percent,
            iops: even([1e4; 3]),
            host_use: even(host_use),
            host_us: even(host_us),
            target_us: even([0.0, 9.0, 11.0]),
        }
    }

    fn as_in_the_paper() -> Vec<Point> {
        let reads = point(100, [0.13, 0.17, 0.42], [1.0, 1.3, 3.3]);
        vec![reads, point(0, [0.05, 0.06, 0.09], [1.0, 1.2, 1.3])]
    }

    #[test]
    fn what_is_as_in_the_paper_holds() {
        let judged = verdicts(&as_in_the_paper());
        assert_eq!(judged.len(), 3);
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        assert!(judged[0].claim.contains("at most 4.0 points"), "{judged:?}");
        assert!(judged[2].claim.contains("3.3 µs to 1.3 µs, 2.54 of it"), "{judged:?}");
    }

    #[test]
    fn the_worst_mix_and_an_iscsi_that_costs_no_more_are_said() {
        let mut points = as_in_the_paper();
        points[1].host_use.nvme = vec![0.25];
        points[0].host_us.iscsi = vec![1.3];
        let judged = verdicts(&points);
        assert!(!judged[0].holds && judged[0].claim.contains("20.0 points"), "{judged:?}");
        assert!(judged[0].claim.contains("at 0 % reads"), "{judged:?}");
        assert!(!judged[2].holds && judged[2].claim.contains("1.00 of it"), "{judged:?}");
        assert_eq!(verdicts(&[]), []);
    }

    #[test]
    fn table_and_picture_have_all_ways() {
        let points = as_in_the_paper();
        let shown = rows(&points);
        for wanted in ["17.0 % (+4.0)", "42.0 % (+29.0)", "1.0 / 1.3 / 3.3", "13 / 17 / 43"] {
            assert!(shown.contains(wanted), "{wanted} is missing in\n{shown}");
        }
        assert_eq!(
            picture(&points).matches("<rect").count(),
            2 + 3 + 6,
            "page, frame, key and bars"
        );
    }
}
