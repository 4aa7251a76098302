//! Fig. 7 and 8: distributions of read latency under three loads, and what an unloaded read
//! consists of.

use flash::load::Tally;
use measure::Histogram;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::ReproduceError;
use super::super::bed::Bed;
use super::super::report::{Report, Verdict};
use super::super::session::Load;
use super::super::target::{ServeChild, TargetTrace};
use super::paper;
use super::stages::{Read, Stages};
use super::{fig7_picture, stages};
use crate::layout::{NONE, row, table};
use measure::Duration;

/// A load, and what was measured in all repetitions.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub(super) name: String,
    /// Of what local access reaches; one read at a time if `None`.
    pub(super) load: Option<f64>,
    pub(super) local: Histogram,
    pub(super) remote: Histogram,
}

/// Of Fig. 7b and 7c the text does not say the loads: these are between the first and saturation.
const LOADS: [Option<f64>; 3] = [None, Some(0.5), Some(0.8)];
/// Points of a curve in the record.
const QUANTILES: [f64; 15] =
    [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 1.0];

/// Measures it; `None` if nothing was before an interruption.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    bed.session.expect(3 + LOADS.len() * 2 * bed.repetitions);
    let Some(stages) = trace(bed)? else { return Ok(None) };
    let pair = bed.open(None)?;
    let full = bed.full(100);
    let most = bed.session.run("all it can, local", &pair.local, &full)?;
    let most = most.as_ref().map_or(0.0, Tally::per_second);
    let mut curves: Vec<Curve> = LOADS.map(Curve::new).into();
    for repetition in 0..bed.repetitions {
        for curve in &mut curves {
            let load =
                curve.load.map_or_else(|| bed.unloaded(), |share| bed.arriving(most * share));
            let measured = bed.pair(repetition, &curve.name, &pair, &load)?;
            let Some([local, remote]) = measured else { break };
            curve.local.merge(&local.reads.latency);
            curve.remote.merge(&remote.reads.latency);
        }
    }
    curves.retain(|curve| !curve.local.is_empty());
    Ok(Some(report(&curves, &stages)))
}

// Unloaded reads once more, with the points of time that say where they are.
fn trace(bed: &mut Bed) -> Result<Option<Stages>, ReproduceError> {
    let load = Load { ramp: Duration::ZERO, traces: true, ..bed.unloaded() };
    let local = bed.local()?;
    let Some(local) = bed.session.run("stages, local", &local, &load)? else { return Ok(None) };
    let target = ServeChild::start(&bed.uri, None, bed.busy_poll, true)?;
    let remote = target.connect(1)?;
    let tally = bed.session.run("stages, NVMe/TCP", &remote, &load)?;
    drop(remote);
    let Some(remote) = tally else { return Ok(None) };
    let gone = || ReproduceError::Target("it did not say what it had traced".to_owned());
    let traced = target.stop().filter(|traced| traced.count > 0).ok_or_else(gone)?;
    Ok(Some(Stages { local: local_read(&local), remote: remote_read(&remote, &traced) }))
}

fn local_read(tally: &Tally) -> Read {
    let jobs = tally.times;
    let each = |ns: u64| ns as f64 / 1e3 / jobs.count.max(1) as f64;
    Read::local(mean_us(&tally.reads.latency), each(jobs.device_ns), each(jobs.late_ns))
}

fn remote_read(tally: &Tally, traced: &TargetTrace) -> Read {
    let each = |ns: u64, count: u64| ns as f64 / 1e3 / count.max(1) as f64;
    let target = |ns: u64| each(ns, traced.count);
    Read {
        mean_us: mean_us(&tally.reads.latency),
        host_us: mean_us(&tally.reads.submission),
        device_us: target(traced.device_ns),
        late_us: target(traced.late_ns),
        answer_us: target(traced.answer_ns),
    }
}

fn mean_us(latency: &Histogram) -> f64 {
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
        Self { name, load, local: Histogram::new(), remote: Histogram::new() }
    }

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
        json!({
            "name": self.name,
            "load": self.load,
            "local": way(&self.local),
            "remote": way(&self.remote),
        })
    }
}

#[derive(Serialize)]
struct Points<'a> {
    curves: Vec<Value>,
    stages: &'a Stages,
}

fn report(curves: &[Curve], stages: &Stages) -> Report {
    let records = curves.iter().map(Curve::record).collect();
    Report {
        title: format!("{} 7 and 8: distributions of read latency, and its parts", paper::SOURCE),
        table: format!("{}\n{}", rows(curves), stages::rows(stages)),
        verdicts: verdicts(curves, stages),
        picture: fig7_picture::draw(curves, stages),
        points: json!(Points { curves: records, stages }),
        paper: json!({
            "unloaded_mean_us": paper::UNLOADED_MEAN_US,
            "unloaded_p95_us": paper::UNLOADED_P95_US,
            "added_us": paper::ADDED_US,
            "added_host_us": paper::ADDED_HOST_US,
            "added_target_us": paper::ADDED_TARGET_US,
            "added_network_us": paper::ADDED_NETWORK_US,
            "added_elsewhere_us": paper::ADDED_ELSEWHERE_US,
        }),
    }
}

fn rows(curves: &[Curve]) -> String {
    let mut rows = vec![row(["µs", "", "local", "NVMe/TCP", "added", "iSCSI", "paper"])];
    for curve in curves {
        let is_unloaded = curve.load.is_none();
        let mut add = |name: &str, ours: [f64; 2], theirs: Option<[f64; 3]>| {
            let theirs = theirs.filter(|_| is_unloaded).map_or_else(
                || NONE.to_owned(),
                |of| format!("{:.1} / {:.1} / {:.1}", of[0], of[1], of[2]),
            );
            let [local, remote] = ours.map(|us| format!("{us:.1}"));
            let added = format!("{:.1}", ours[1] - ours[0]);
            rows.push(row([&curve.name, name, &local, &remote, &added, NONE, &theirs]));
        };
        let both = [&curve.local, &curve.remote];
        add("average", both.map(mean_us), Some(paper::UNLOADED_MEAN_US));
        add("p50", both.map(|latency| quantile_us(latency, 0.5)), None);
        add("p95", both.map(|latency| quantile_us(latency, 0.95)), Some(paper::UNLOADED_P95_US));
        add("p99", both.map(|latency| quantile_us(latency, 0.99)), None);
    }
    table(&rows)
}

/// How far our local read may be from the paper's, as a share, for the drive to be the same.
const LOCAL_ERROR_MAX: f64 = 0.05;

fn verdicts(curves: &[Curve], stages: &Stages) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    if let Some(unloaded) = curves.iter().find(|curve| curve.load.is_none()) {
        let [local, remote] = [&unloaded.local, &unloaded.remote].map(mean_us);
        let [their_local, their_remote, _] = paper::UNLOADED_MEAN_US;
        verdicts.push(Verdict::new(
            (local / their_local - 1.0).abs() <= LOCAL_ERROR_MAX,
            format!(
                "an unloaded local read takes {local:.1} µs; the paper's {their_local} µs, within \
                 {:.0} %",
                LOCAL_ERROR_MAX * 100.0
            ),
        ));
        verdicts.push(Verdict::new(
            remote - local <= their_remote - their_local,
            format!(
                "NVMe/TCP adds {:.1} µs to an unloaded read; the paper's NVMf over RDMA {:.1} µs \
                 at most",
                remote - local,
                their_remote - their_local
            ),
        ));
    }
    verdicts.push(stages::verdict(stages));
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(us: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        us.iter().for_each(|us| histogram.record(Duration::from_us(*us)));
        histogram
    }

    fn curves(local: &[u64], remote: &[u64]) -> Vec<Curve> {
        let unloaded = Curve { local: latency(local), remote: latency(remote), ..Curve::new(None) };
        let loaded =
            Curve { local: latency(&[200]), remote: latency(&[300]), ..Curve::new(Some(0.5)) };
        vec![unloaded, loaded]
    }

    fn stages() -> Stages {
        let local = Read::local(84.0, 83.5, 0.5);
        let remote =
            Read { mean_us: 95.0, host_us: 3.0, device_us: 83.5, late_us: 1.5, answer_us: 3.0 };
        Stages { local, remote }
    }

    #[test]
    fn averages_of_unloaded_reads_decide() {
        let judged = verdicts(&curves(&[83, 85], &[94, 95]), &stages());
        assert!(judged.iter().all(|verdict| verdict.holds), "{judged:?}");
        assert!(judged[1].claim.contains("adds 10.5 µs"), "{judged:?}");
        let judged = verdicts(&curves(&[100], &[150]), &stages());
        assert!(!judged[0].holds && !judged[1].holds, "{judged:?}");
    }

    #[test]
    fn tables_have_the_paper_where_it_has_numbers() {
        let shown = rows(&curves(&[84], &[95]));
        assert_eq!(shown.matches("83.5 / 95.2 / 145.8").count(), 1, "{shown}");
        assert_eq!(shown.lines().count(), 9);
    }

    #[test]
    fn the_record_has_every_curve() {
        let report = report(&curves(&[84], &[95]), &stages());
        assert_eq!(report.points["curves"][0]["local"]["cdf"][0]["us"], 84.0);
        assert_eq!(report.points["stages"]["remote"]["device_us"], 83.5);
        assert_eq!(report.picture.matches("<polyline").count(), 4);
    }
}
