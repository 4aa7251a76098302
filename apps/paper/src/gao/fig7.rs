//! Figure 7: slowdown of flows by transport, under the traffic of a disaggregated datacenter.
//!
//! Each workload runs once with a quarter of its memory local, and its fetches and write-backs are
//! recorded. Clusters of five nodes draw flows from the record (§4.2), in racks and across the
//! datacenter. Every transport carries the same flows, once as in the simulator of 2016 and once as
//! in its own paper, with the same measure. The paper prints no numbers for its bars, so verdicts
//! compare the order of bars, and completion times of 4 KiB.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use console::{OutputError, Progress};
use measure::Instant;
use serde_json::json;
use sys::event::Signals;

use super::fig7_case::{
    BATCH, Bar, Case, Extent, FULL, Place, Point, QUICK, SCALES, TRANSPORTS, cases, seeds,
};
use super::fig7_report;
use super::workloads::{DELAY, LOCAL, WORKLOADS, directory};
use crate::flags::Options;
use crate::{Measured, ReproduceError};
use fabric::{Feeder, Looker, LoopError, Settings, Setup, SimError, Stopped};
use fabric::{figures, many, rows, run_stranded};

/// One in this many flows is warm-up, and as many are cool-down.
const UNMEASURED: usize = 10;

/// Measures the figure; `None` if it was interrupted before any result.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    let extent = if flags.quick { QUICK } else { FULL };
    let signals = console::interrupts()?;
    let mut progress = Progress::new("program", WORKLOADS.len());
    let Some(recorded) = recorded(flags, &extent, &signals, &mut progress)? else {
        return Ok(None);
    };
    let cases = cases(&extent, &recorded.workloads);
    let mut points = vec![None; cases.len()];
    let work = |number: usize, stop: &AtomicBool| {
        let mut setup = Setup::new(&settings(&cases[number], &extent, &flags.output))?;
        setup.observe.span = middle(&setup);
        match run_stranded(&setup, &mut |_| !stop.load(Ordering::Relaxed)) {
            Err(netsim::SimError::Stopped { .. }) => Ok(None),
            run => Ok::<_, SimError>(Some(point(&setup, &run?.outcome))),
        }
    };
    progress.restart("run", cases.len(), 0);
    let mut looker = Looker { signals: &signals, progress };
    let threads = many::threads(None);
    let name = |number: usize| {
        let Case { workload, transport, seed, .. } = cases[number];
        format!("{} {} seed={seed}", WORKLOADS[workload].0, TRANSPORTS[transport])
    };
    let is_whole = many::run(cases.len(), threads, (&mut looker, name), work, |number, one| {
        points[number] = Some(one);
        Ok(())
    })?;
    drop(looker);
    let bars = Bar::all(&cases, &points);
    if bars.is_empty() {
        return Ok(None);
    }
    let bed = json!({"delay": DELAY, "local": LOCAL, "end": "acknowledged", "seeds": seeds(&extent),
        "flow_count": extent.flow_count, "batch": BATCH, "invalid": recorded.invalid,
        "local_is_share": {"of": flags.of.name(), "bytes": recorded.peaks}});
    let described = extent.told(&flags.of.told(None), &recorded.invalid);
    let report = fig7_report::report(&extent, &bars);
    Ok(Some(Measured { report, described, bed, is_interrupted: !is_whole }))
}

impl Extent {
    /// The lines that describe the simulations.
    fn told(&self, of: &str, invalid: &[String]) -> String {
        let Self { seed_count, flow_count, .. } = self;
        let mut text = format!(
            "144 hosts in 9 racks, full bisection, clusters of 5 nodes; {flow_count} flows drawn \
             from distributions of what\neach program fetched and wrote back with {LOCAL} local, \
             of {of}; what a pair of blades moves within {BATCH} is one\nflow; seeds 1 to \
             {seed_count}, each with the same flows for every transport"
        );
        for why in invalid {
            let _infallible = write!(text, "\n{why}");
        }
        text
    }
}

/// The records of workloads.
struct Recorded {
    /// Indexes of the [`WORKLOADS`] that were recorded.
    workloads: Vec<usize>,
    /// Why the others were not.
    invalid: Vec<String>,
    /// The peak memory of each, in bytes.
    peaks: serde_json::Map<String, serde_json::Value>,
}

/// Runs every workload without delay, and writes lists of flows drawn from its record; `None` if
/// it was interrupted.
fn recorded(
    flags: &Options,
    extent: &Extent,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<Option<Recorded>, ReproduceError> {
    let (mut workloads, mut invalid) = (Vec::new(), Vec::new());
    let mut peaks = serde_json::Map::new();
    for (place, (workload, sizes)) in WORKLOADS.into_iter().enumerate() {
        progress.show(&format!("{workload} is recorded"));
        let words = [&[workload], sizes[extent.size]].concat();
        let kept = directory(&flags.output, "gao-fig7", workload)?;
        let feeder = Feeder::new(&words, (LOCAL, flags.of, 1), kept, signals);
        let feeder = feeder.allowing(flags.allow_unmanaged);
        match feeder.zero() {
            Ok(zero) => {
                draw_lists(&zero.record, workload, extent, &flags.output)?;
                workloads.push(place);
            }
            Err(Stopped::Interrupted) => return Ok(None),
            // An invalid run leaves out only its own workload.
            Err(Stopped::Error(LoopError::Invalid(why))) => {
                invalid.push(format!("{workload}: {why}"));
            }
            Err(Stopped::Error(error)) => return Err(error.into()),
        }
        progress.end(workload);
        peaks.extend(feeder.peak().map(|peak| (workload.to_owned(), json!(peak.get()))));
    }
    if workloads.is_empty() {
        return Err(LoopError::Invalid(invalid.join("; ")).into());
    }
    Ok(Some(Recorded { workloads, invalid, peaks }))
}

/// Draws the flows of every scale and seed from a record, and writes each list to a file, in the
/// format of `afar sim --traffic`.
fn draw_lists(
    record: &Path,
    workload: &str,
    extent: &Extent,
    output: &Path,
) -> Result<(), SimError> {
    for place in Place::once(0) {
        for seed in seeds(extent) {
            let settings = Settings::default()
                .with("traffic", "blades")
                .with("replay", "fitted")
                .with("faults", &record.display().to_string())
                .with("scale", SCALES[place.scale])
                .with("batch", if place.is_batched { BATCH } else { "0" })
                .with("flows", &extent.flow_count.to_string())
                .with("seed", &seed.to_string());
            let path = list(output, workload, place, seed);
            let text = csv(&Setup::new(&settings)?.flows);
            std::fs::write(&path, text)
                .map_err(|source| SimError::from(OutputError::open(&path, source)))?;
        }
    }
    Ok(())
}

/// Flows as CSV, without exchanges: the simulator of 2016 had one-way flows only, and both halves
/// of the figure have the same measure.
fn csv(flows: &[netsim::Flow]) -> String {
    let mut text = "start_ps,src,dst,bytes\n".to_owned();
    for flow in flows {
        let netsim::Flow { start, src, dst, bytes, .. } = flow;
        let _infallible = writeln!(text, "{},{src},{dst},{bytes}", start.as_ps());
    }
    text
}

/// The file of a list of flows.
fn list(output: &Path, workload: &str, place: Place, seed: u32) -> PathBuf {
    let (scale, what) = (SCALES[place.scale], if place.is_batched { "batches" } else { "pages" });
    output.join("gao-fig7").join(workload).join(format!("{scale}-{what}-seed-{seed}.csv"))
}

/// The settings of a simulation.
fn settings(case: &Case, extent: &Extent, output: &Path) -> Settings {
    let Case { place, workload, transport, is_published, seed } = *case;
    let list = list(output, WORKLOADS[workload].0, place, seed);
    Settings::default()
        .with("transport", TRANSPORTS[transport])
        .with("variant", if is_published { "as-published-2016" } else { "default" })
        .with("rate", extent.rates[place.rate])
        .with("delay", DELAY)
        .with("traffic", &list.display().to_string())
        .with("last-packet", "full")
        .with("end", "acknowledged")
        .with("seed", &seed.to_string())
}

/// The span in which measured flows begin: without warm-up and cool-down.
fn middle(setup: &Setup) -> Option<[Instant; 2]> {
    let count = setup.flows.len();
    let start = |place: usize| setup.flows.get(place).map(|flow| flow.start);
    Some([start(count / UNMEASURED)?, start(count - count / UNMEASURED)?])
}

/// The results of a simulation.
fn point(setup: &Setup, outcome: &netsim::Outcome) -> Point {
    let Setup { fabric, flows, end, resolved, .. } = setup;
    let rows = rows(fabric, flows, outcome, *end);
    // Flows of a page: the simulator of 2016 only had full packets, three of which carry a page.
    let is_page = |bytes: u64| (4096..=3 * u64::from(fabric.frame.payload)).contains(&bytes);
    let pages = rows.iter().filter(|row| is_page(row.flow.bytes));
    let (count, sum_ps) =
        pages.fold((0_u32, 0.0), |(count, sum), row| (count + 1, sum + row.completion_ps as f64));
    let figures = figures(setup, outcome);
    let buffer = resolved.iter().find(|(name, _)| *name == "buffer");
    Point {
        mean: figures.slowdown.mean,
        p99: figures.slowdown.p99,
        load: figures.measured.map_or(figures.utilisation, |measured| measured.utilisation),
        page_us: (count > 0).then(|| sum_ps / 1e6 / f64::from(count)),
        unfinished_count: flows.len() - rows.len(),
        buffer: buffer.map_or_else(String::new, |(_, buffer)| buffer.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transport_carries_the_same_flows_by_one_measure() {
        let cases = cases(&FULL, &[0, 2]);
        assert_eq!(cases.len(), 2 * 2 * 2 * (5 + 7 + 2) * 5);
        for one in &cases {
            let first = cases.iter().find(|other| {
                (other.place, other.workload, other.seed) == (one.place, one.workload, one.seed)
            });
            let first = first.expect("it is in the list");
            // All but the transport and its variant.
            let same = |case: &Case| Case { transport: 0, is_published: false, ..*case };
            let of = |case: &Case| settings(&same(case), &FULL, Path::new("out"));
            assert_eq!(of(one), of(first));
            let own = of(one).with("transport", TRANSPORTS[one.transport]);
            let variant = if one.is_published { "as-published-2016" } else { "default" };
            assert_eq!(settings(one, &FULL, Path::new("out")), own.with("variant", variant));
        }
    }

    #[test]
    fn lists_are_flows_that_go_one_way() {
        let flow = netsim::Flow {
            start: Instant::from_ns(5),
            src: 7,
            dst: 3,
            bytes: 4096,
            exchange: netsim::Exchange::Read,
        };
        assert_eq!(csv(&[flow]), "start_ps,src,dst,bytes\n5000,7,3,4096\n");
    }
}
