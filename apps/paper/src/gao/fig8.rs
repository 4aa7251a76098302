//! Figure 8: the degradation of applications whose pages take the completion times of a simulated
//! network, with and without the queueing of their own traffic.
//!
//! The paper injects completion times of pFabric once, simulated from traffic without delay; so
//! does the first round here. Delays slow a program down, and its traffic with it, so more rounds
//! follow until delays and traffic agree. Workloads stand in for applications. Clusters of five
//! nodes fill the network; each draws flows from distributions by pair of blades, as in §4.2.

use std::cell::OnceCell;

use console::Progress;
use serde_json::{Value, json};

use super::fig8_case::{NETWORKS, Network, Point};
use super::fig8_report;
use super::workloads::{DELAY, LOCAL, WORKLOADS, directory};
use crate::flags::Options;
use crate::{Measured, ReproduceError};
use fabric::Settings;
use fabric::{Feeder, LoopError, Short, Stopped};

/// The amount of measurement.
struct Extent {
    /// The index of the size of programs.
    size: usize,
    /// Repetitions of a program's job in each run; the median time counts.
    repeat: &'static str,
    runs: u32,
    /// Runs without delay to which all others of a program are compared; `None` if each has its
    /// own.
    without_count: Option<u32>,
    rounds: u32,
    flow_count: &'static str,
}

const FULL: Extent =
    Extent { size: 1, repeat: "5", runs: 5, without_count: None, rounds: 6, flow_count: "100000" };
/// With `--quick`: one calibration for all runs and three runs without delay per program, because
/// calibrations and runs without delay would take most of the time.
const QUICK: Extent = Extent {
    size: 0,
    repeat: "3",
    runs: 1,
    without_count: Some(3),
    rounds: 2,
    flow_count: "20000",
};

/// Measures the figure; `None` if it was interrupted before any result.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    let extent = if flags.quick { QUICK } else { FULL };
    let calibrated = OnceCell::new();
    let signals = console::interrupts()?;
    let mut progress = Progress::new("step", WORKLOADS.len() * (1 + NETWORKS.len()));
    let mut points: Vec<Point> = Vec::new();
    let (mut is_interrupted, mut invalid) = (false, Vec::new());
    let mut peaks: serde_json::Map<String, Value> = serde_json::Map::new();
    for (workload, sizes) in WORKLOADS {
        let words = [&[workload, "--repetitions", extent.repeat], sizes[extent.size]].concat();
        let directory = directory(&flags.output, "gao-fig8", workload)?;
        let feeder = Feeder::new(&words, (LOCAL, flags.of, extent.runs), directory, &signals);
        let short = extent
            .without_count
            .map(|count| Short { without_count: count, calibrated: &calibrated });
        let feeder = feeder.allowing(flags.allow_unmanaged).shortened(short);
        points.push(Point { workload, fed: vec![None; NETWORKS.len()] });
        match every_network(&feeder, &extent, &mut points, &mut progress) {
            Ok(()) => {}
            Err(Stopped::Interrupted) => {
                is_interrupted = true;
                break;
            }
            // An invalid run leaves out only its own workload.
            Err(Stopped::Error(LoopError::Invalid(why))) => {
                if let Some(point) = points.last_mut() {
                    point.fed.fill(None);
                }
                invalid.push(format!("{workload}: {why}"));
            }
            Err(Stopped::Error(error)) => return Err(error.into()),
        }
        peaks.extend(feeder.peak().map(|peak| (workload.to_owned(), json!(peak.get()))));
    }
    drop(progress);
    let is_nothing = points.iter().flat_map(|point| &point.fed).all(Option::is_none);
    if is_nothing && !invalid.is_empty() {
        return Err(LoopError::Invalid(invalid.join("; ")).into());
    }
    if is_nothing {
        return Ok(None);
    }
    let mut described = extent.told(&flags.of.told(None));
    for why in &invalid {
        described += &format!("\n{why}");
    }
    let bed = json!({"invalid": invalid, "delay": DELAY, "local": LOCAL, "repeat": extent.repeat,
        "local_is_share": {"of": flags.of.name(), "bytes": peaks}, "runs": extent.runs,
        "runs_without": extent.without_count, "is_calibrated_once": extent.without_count.is_some(),
        "rounds_max": extent.rounds, "flow_count": extent.flow_count});
    Ok(Some(Measured { report: fig8_report::report(&points), described, bed, is_interrupted }))
}

impl Extent {
    /// The lines that describe the runs.
    fn told(&self, of: &str) -> String {
        let Self { repeat, runs, flow_count, .. } = self;
        let beside = match self.without_count {
            None => format!("{runs} runs, each beside one without delay"),
            Some(count) => format!(
                "{runs} run with delays, compared with {count} without;\none calibration for all; \
                 ± takes the one to vary as much as they do"
            ),
        };
        format!(
            "144 hosts in 9 racks, full bisection, pFabric, clusters of 5 nodes; {flow_count} \
             flows drawn from distributions of\nwhat each program fetched and wrote back with \
             {LOCAL} local, of {of};\nthe middle of {repeat} times in each of {beside}"
        )
    }
}

/// Measures the last workload of `points` in every network.
fn every_network(
    feeder: &Feeder<'_>,
    extent: &Extent,
    points: &mut [Point],
    progress: &mut Progress,
) -> Result<(), Stopped> {
    let workload = points.last().map_or("", |point| point.workload);
    progress.show(&format!("{workload} without delay"));
    let zero = feeder.zero()?;
    progress.end(&format!("{workload} without delay"));
    for (place, network) in NETWORKS.iter().enumerate() {
        let name = format!("{}-{}", network.rate, network.scale);
        progress.show(&format!("{workload} {name}"));
        let fed =
            feeder.feed(&name, &settings(network, extent.flow_count), &zero, extent.rounds)?;
        if let Some(point) = points.last_mut() {
            point.fed[place] = Some(fed);
        }
        progress.end(&format!("{workload} {name}"));
    }
    Ok(())
}

/// The settings of a network's simulation.
fn settings(network: &Network, flow_count: &str) -> Settings {
    Settings::default()
        .with("traffic", "blades")
        .with("replay", "fitted")
        .with("rate", network.rate)
        .with("scale", network.scale)
        .with("delay", DELAY)
        .with("flows", flow_count)
}
