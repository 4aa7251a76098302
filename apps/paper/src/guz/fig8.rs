//! Fig. 8: the stages of an unloaded read.

use chart::{Anchor, GREEN, GREY, Panel, Scale, Svg, Tick, axis};
use diskload::Tally;
use measure::Duration;
use serde_json::json;

use super::super::ReproduceError;
use super::super::bed::Bed;
use super::super::report::Report;
use super::super::session::Load;
use super::super::target::{ServeChild, TargetTrace};
use super::super::way::{PerWay, Way, in_turn};
use super::fig7::mean_us;
use super::paper;
use super::stages::{self, Read};

/// Measures the figure; `None` if it was interrupted before anything was measured.
///
/// # Errors
/// When the drive cannot be loaded, or a request fails.
pub(in super::super) fn run(bed: &mut Bed) -> Result<Option<Report>, ReproduceError> {
    bed.session.expect(Way::ALL.len() * bed.repetitions);
    let mut reads = PerWay::<Vec<Read>>::default();
    for repetition in 0..bed.repetitions {
        let Some(measured) = in_turn(repetition, |way| trace(bed, way))? else { break };
        reads.push(measured);
    }
    Ok((!reads.local.is_empty()).then(|| report(&reads)))
}

// Measures the stages of unloaded reads over one way. A target sums times over all of its commands,
// so each way has its own target. `None` if interrupted.
fn trace(bed: &mut Bed, way: Way) -> Result<Option<Read>, ReproduceError> {
    let load = Load { ramp: Duration::ZERO, traces: true, ..bed.unloaded() };
    let what = format!("stages, {}", way.name());
    if way == Way::Local {
        let device = bed.local()?;
        let tally = bed.session.run(&what, &device, &load)?;
        return Ok(tally.as_ref().map(local_read));
    }
    let target = ServeChild::start(&bed.uri, None, bed.busy_poll, true)?;
    let device = target.connect(way, 1)?;
    let tally = bed.session.run(&what, &device, &load)?;
    drop(device);
    let Some(tally) = tally else { return Ok(None) };
    let traced = target.stop().filter(|traced| traced.count > 0).ok_or(ReproduceError::Untraced)?;
    Ok(Some(remote_read(&tally, &traced)))
}

// The average local read of a load.
fn local_read(tally: &Tally) -> Read {
    let jobs = tally.times;
    let each = |ns: u64| ns as f64 / 1e3 / jobs.count.max(1) as f64;
    Read::local(mean_us(&tally.reads.latency), each(jobs.device_ns), each(jobs.late_ns))
}

// The average remote read: the host's times by the load, the target's by its trace.
fn remote_read(tally: &Tally, traced: &TargetTrace) -> Read {
    let each = |ns: u64| ns as f64 / 1e3 / traced.count.max(1) as f64;
    Read {
        mean_us: mean_us(&tally.reads.latency),
        host_us: mean_us(&tally.reads.submission),
        device_us: each(traced.device_ns),
        late_us: each(traced.late_ns),
        answer_us: each(traced.answer_ns),
    }
}

// The report of the figure: stages averaged over the repetitions.
fn report(repetitions: &PerWay<Vec<Read>>) -> Report {
    let reads = repetitions.map(|reads| Read::mean(reads));
    let [nvme, iscsi] = Way::REMOTE.map(|way| stages::added(&reads, way));
    Report {
        title: format!("{} 8: what an unloaded read consists of", paper::SOURCE),
        table: stages::rows(&reads),
        verdicts: stages::verdicts(&reads),
        picture: picture(&reads),
        points: json!({
            "stages": reads,
            "added": {"nvme": nvme, "iscsi": iscsi},
            "repetitions": repetitions,
        }),
        paper: json!({
            "added_us": paper::ADDED_US,
            "added_host_us": paper::ADDED_HOST_US,
            "added_target_us": paper::ADDED_TARGET_US,
            "added_network_us": paper::ADDED_NETWORK_US,
            "added_elsewhere_us": paper::ADDED_ELSEWHERE_US,
            "iscsi_added_us": paper::ISCSI_ADDED_US,
        }),
    }
}

/// A horizontal bar of parts: length in microseconds, and colour.
struct Bar {
    name: &'static str,
    parts: Vec<(f64, &'static str)>,
}

const SIZE: (f64, f64) = (760.0, 300.0);
const TARGET: &str = "#E69F00";
/// Colour of the paper's iSCSI, which is not divided into parts.
const WHOLE: &str = "#BBBBBB";

// Draws what remote access adds to a read, in parts: the paper's ways and ours.
fn picture(reads: &PerWay<Read>) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    let bars = bars(reads);
    let whole = |bar: &Bar| bar.parts.iter().map(|(us, _)| us).sum::<f64>();
    let most = bars.iter().map(whole).fold(1.0, f64::max);
    let (high, ticks) = axis(most * 1.1, |us| format!("{us}"));
    let panel = Panel {
        left: 130.0,
        top: 44.0,
        width: SIZE.0 - 160.0,
        height: 200.0,
        x: Scale::Linear(0.0, high),
        y: Scale::Linear(0.0, bars.len() as f64),
    };
    let rows = (0..).map(|row: u32| f64::from(row)).zip(bars.iter().rev());
    let names: Vec<Tick> =
        rows.clone().map(|(row, bar)| (row + 0.5, bar.name.to_owned())).collect();
    svg.axes(&panel, ("added to an unloaded read by remote access, µs", &ticks), ("", &names));
    for (row, bar) in rows {
        let mut from = 0.0;
        for (us, colour) in &bar.parts {
            svg.bar(panel.at(from, row + 0.2), panel.at(from + us, row + 0.8), colour);
            from += us;
        }
        let (x, y) = panel.at(from, row + 0.5);
        svg.text((x + 6.0, y + 4.0), &format!("{from:.1}"), Anchor::Start);
    }
    svg.frame(&panel);
    let names = [
        ("host", GREEN),
        ("target", TARGET),
        ("network, kernels, elsewhere", GREY),
        ("not divided in the paper", WHOLE),
    ];
    svg.key((130.0, 26.0), &names);
    svg.finish("What remote access adds to an unloaded read, in parts, in the paper and here")
}

// The bars of the picture, from top to bottom.
fn bars(reads: &PerWay<Read>) -> [Bar; 4] {
    let parted = |[host, target, wire]: [f64; 3]| {
        [(host, GREEN), (target, TARGET), (wire, GREY)].map(|(us, of)| (us.max(0.0), of)).into()
    };
    let ours = |way: Way| {
        let added = stages::added(reads, way);
        Bar { name: way.name(), parts: parted([added.host_us, added.target_us, added.wire_us]) }
    };
    let elsewhere = paper::ADDED_NETWORK_US + paper::ADDED_ELSEWHERE_US;
    let nvmf = [paper::ADDED_HOST_US, paper::ADDED_TARGET_US, elsewhere];
    [
        Bar { name: "paper: NVMf", parts: parted(nvmf) },
        ours(Way::Nvme),
        Bar { name: "paper: iSCSI", parts: vec![(paper::ISCSI_ADDED_US, WHOLE)] },
        ours(Way::Iscsi),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_averaged_and_kept() {
        let remote =
            |mean_us| Read { mean_us, host_us: 3.0, answer_us: 4.0, ..Read::local(0.0, 83.5, 1.0) };
        let mut repetitions = PerWay::<Vec<Read>>::default();
        for more in [0.0, 10.0] {
            let local = Read::local(85.0, 83.5, 1.0);
            let (nvme, iscsi) = (remote(95.0 + more), remote(105.0 + more));
            repetitions.push(PerWay { local, nvme, iscsi });
        }
        let report = report(&repetitions);
        assert_eq!(report.points["stages"]["iscsi"]["mean_us"], 110.0);
        assert_eq!(report.points["added"]["iscsi"]["all_us"], 25.0);
        assert_eq!(report.points["repetitions"]["nvme"][1]["mean_us"], 105.0);
        // Page, frame, key; three parts of each bar but of one that is whole.
        assert_eq!(report.picture.matches("<rect").count(), 2 + 4 + 3 * 3 + 1);
    }
}
