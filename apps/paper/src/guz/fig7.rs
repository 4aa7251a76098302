//! Fig. 7: distributions of read latency under three loads.

use console::layout::{NONE, row, table};
use diskload::Tally;
use measure::Histogram;
use serde_json::{Value, json};

use super::super::ReproduceError;
use super::super::bed::Bed;
use super::super::report::{Report, Verdict};
use super::super::way::{PerWay, Way};
use super::fig7_picture::{self, Curve};
use super::ordering::Compared;
use super::paper;

/// Loads; `None` is one read at a time. The paper does not give the loads of Fig. 7b and 7c: these
/// are between the first and saturation.
const LOADS: [Option<f64>; 3] = [None, Some(0.5), Some(0.8)];
/// Quantiles of each distribution in the record.
const QUANTILES: [f64; 15] =
    [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0];

/// Measures the figure; `None` if it was interrupted before anything was measured.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    bed.session.expect(1 + LOADS.len() * Way::ALL.len() * bed.repetitions);
    let opened = bed.open(None)?;
    let full = bed.full(100);
    let most = bed.session.run("all it can, local", &opened.devices.local, &full)?;
    let most = most.as_ref().map_or(0.0, Tally::per_second);
    let mut curves: Vec<Curve> = LOADS.map(Curve::new).into();
    for repetition in 0..bed.repetitions {
        for curve in &mut curves {
            let load =
                curve.load.map_or_else(|| bed.unloaded(), |share| bed.arriving(most * share));
            let measured = bed.each_way(repetition, &curve.name, &opened, &load)?;
            let Some(measured) = measured else { break };
            for way in Way::ALL {
                curve.latency[way].merge(&measured[way].reads.latency);
            }
        }
    }
    curves.retain(|curve| !curve.latency.local.is_empty());
    Ok((!curves.is_empty()).then(|| report(&curves)))
}

pub(super) fn mean_us(latency: &Histogram) -> f64 {
    latency.mean().as_ns_f64() / 1e3
}

fn quantile_us(latency: &Histogram, q: f64) -> f64 {
    latency.quantile(q).as_ns_f64() / 1e3
}

impl Curve {
    fn new(load: Option<f64>) -> Self {
        let name = match load {
            None => "unloaded".to_owned(),
            Some(share) => format!("{:.0} % load", share * 100.0),
        };
        Self { name, load, latency: PerWay::each(|_| Histogram::new()) }
    }

    // The distributions, for the record.
    fn record(&self) -> Value {
        let points = |latency: &Histogram| -> Vec<Value> {
            let point = |q: &f64| json!({"share": q, "us": quantile_us(latency, *q)});
            QUANTILES.iter().map(point).collect()
        };
        let way = |latency: &Histogram| {
            json!({
                "count": latency.count(),
                "mean_us": mean_us(latency),
                "p95_us": quantile_us(latency, 0.95),
                "cdf": points(latency),
            })
        };
        json!({"name": self.name, "load": self.load, "latency": self.latency.map(way)})
    }
}

fn report(curves: &[Curve]) -> Report {
    Report {
        title: format!("{} 7: distributions of read latency", paper::SOURCE),
        table: rows(curves),
        verdicts: verdicts(curves),
        picture: fig7_picture::draw(curves),
        points: curves.iter().map(Curve::record).collect(),
        paper: json!({
            "unloaded_mean_us": paper::UNLOADED_MEAN_US,
            "unloaded_p95_us": paper::UNLOADED_P95_US,
        }),
    }
}

// The table of the figure, beside the paper's numbers.
fn rows(curves: &[Curve]) -> String {
    let head = ["µs", "", "local", "NVMe/TCP", "added", "iSCSI", "added", "paper"];
    let mut rows = vec![row(head)];
    for curve in curves {
        let is_unloaded = curve.load.is_none();
        let mut add = |name: &str, of: &dyn Fn(&Histogram) -> f64, theirs: Option<PerWay<f64>>| {
            let theirs = theirs.filter(|_| is_unloaded).map_or_else(
                || NONE.to_owned(),
                |us| us.all().map(|us| format!("{us:.1}")).join(" / "),
            );
            let ours = curve.latency.map(of);
            let [local, nvme, iscsi] = ours.all().map(|us| format!("{us:.1}"));
            let added = |way: Way| format!("{:.1}", ours[way] - ours.local);
            let [nvme_more, iscsi_more] = Way::REMOTE.map(added);
            let load = &curve.name;
            rows.push(row([load, name, &local, &nvme, &nvme_more, &iscsi, &iscsi_more, &theirs]));
        };
        let quantile = |q| move |latency: &Histogram| quantile_us(latency, q);
        add("average", &mean_us, Some(paper::UNLOADED_MEAN_US));
        add("p50", &quantile(0.5), None);
        add("p95", &quantile(0.95), Some(paper::UNLOADED_P95_US));
        add("p99", &quantile(0.99), None);
    }
    table(&rows)
}

/// How far our local read may be from the paper's, as a share, for the drives to count as equal.
const LOCAL_ERROR_MAX: f64 = 0.05;

// What the paper claims, and whether it holds here.
fn verdicts(curves: &[Curve]) -> Vec<Verdict> {
    let Some(unloaded) = curves.iter().find(|curve| curve.load.is_none()) else {
        return Vec::new();
    };
    let ours = unloaded.latency.map(mean_us);
    let theirs = paper::UNLOADED_MEAN_US;
    let added = |way: Way| ours[way] - ours.local;
    let mut verdicts = vec![
        Verdict::new(
            (ours.local / theirs.local - 1.0).abs() <= LOCAL_ERROR_MAX,
            format!(
                "an unloaded local read takes {:.1} µs; the paper's {} µs, within {:.0} %",
                ours.local,
                theirs.local,
                LOCAL_ERROR_MAX * 100.0
            ),
        ),
        Verdict::new(
            added(Way::Nvme) <= theirs.nvme - theirs.local,
            format!(
                "NVMe/TCP adds {:.1} µs to an unloaded read; the paper's NVMf over RDMA {:.1} µs \
                 at most",
                added(Way::Nvme),
                theirs.nvme - theirs.local
            ),
        ),
        Verdict::new(
            added(Way::Iscsi) <= paper::ISCSI_ADDED_US,
            format!(
                "iSCSI adds {:.1} µs to an unloaded read; the paper's {:.1} µs at most",
                added(Way::Iscsi),
                paper::ISCSI_ADDED_US
            ),
        ),
    ];
    verdicts.extend(curves.iter().map(behind));
    verdicts
}

// Whether iSCSI's average is behind NVMe/TCP's under a load.
fn behind(curve: &Curve) -> Verdict {
    let paper = match curve.load {
        None => {
            let PerWay { nvme, iscsi, .. } = paper::UNLOADED_MEAN_US;
            format!("{iscsi} µs to {nvme} µs")
        }
        Some(_) => "it is out of the picture".to_owned(),
    };
    let what = format!("the average of reads, {}", curve.name);
    let compared = Compared {
        what: &what,
        is_rate: false,
        figures: curve.latency.map(mean_us),
        text: |us| format!("{us:.1} µs"),
        paper: &paper,
    };
    compared.verdict()
}

#[cfg(test)]
mod tests {
    use measure::Duration;

    use super::*;

    fn latency(us: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        us.iter().for_each(|us| histogram.record(Duration::from_us(*us)));
        histogram
    }

    fn curve(load: Option<f64>, [local, nvme, iscsi]: [&[u64]; 3]) -> Curve {
        let latency = PerWay { local, nvme, iscsi }.map(|us| latency(us));
        Curve { latency, ..Curve::new(load) }
    }

    fn curves(local: &[u64], nvme: &[u64], iscsi: &[u64]) -> Vec<Curve> {
        let loaded = curve(Some(0.5), [&[200], &[300], &[2_500]]);
        vec![curve(None, [local, nvme, iscsi]), loaded]
    }

    #[test]
    fn averages_of_unloaded_reads_decide() {
        let judged = verdicts(&curves(&[83, 85], &[94, 95], &[145]));
        assert_eq!(judged.len(), 5);
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        assert!(judged[1].claim.contains("adds 10.5 µs"), "{judged:?}");
        assert!(judged[2].claim.contains("adds 61.0 µs"), "{judged:?}");
        assert!(judged[3].claim.contains("145.0 µs to 94.5 µs, 1.53 of it"), "{judged:?}");
        let judged = verdicts(&curves(&[100], &[150], &[151]));
        let holds: Vec<bool> = judged.iter().map(|verdict| verdict.holds).collect();
        assert_eq!(holds, [false, false, true, false, true], "{judged:?}");
    }

    #[test]
    fn tables_have_the_paper_where_it_has_numbers() {
        let shown = rows(&curves(&[84], &[95], &[99]));
        assert_eq!(shown.matches("83.5 / 95.2 / 145.8").count(), 1, "{shown}");
        assert_eq!(shown.lines().count(), 9);
    }

    #[test]
    fn the_record_has_every_curve_of_every_way() {
        let report = report(&curves(&[84], &[95], &[99]));
        assert_eq!(report.points[0]["latency"]["iscsi"]["cdf"][0]["us"], 99.0);
        assert_eq!(report.picture.matches("<polyline").count(), 6);
    }
}
