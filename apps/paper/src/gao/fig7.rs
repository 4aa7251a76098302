//! Figure 7: slowdown of flows by transport, under the traffic of a disaggregated datacenter.
//!
//! Each workload runs once with a quarter of its memory local; the pages that it fetched and wrote
//! back are recorded. Clusters of five nodes draw flows from the record (§4.2), in racks and across
//! the datacenter. Every transport carries the same flows: as the simulator of 2016 had it, and as
//! its own paper has it, both with one measure. The paper prints no numbers beside its bars: what
//! it says of their order is compared, and the completion times of 4 KiB that it publishes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use console::Line;
use measure::Instant;
use serde_json::json;
use sys::event::Signals;

use super::fig7_report::{self, Bar, Place};
use super::workloads::{DELAY, LOCAL, WORKLOADS, directory};
use crate::flags::Options;
use crate::{Measured, ReproduceError};
use fabric::{Feeder, Looker, LoopError, Settings, Setup, SimError, Stopped};
use fabric::{figures, many, rows, run_stranded};

/// Transports of the figure, in its order, then those published later.
pub(super) const TRANSPORTS: [&str; 7] =
    ["pfabric", "phost", "fastpass", "dctcp", "tcp", "ndp", "homa"];
/// How many of [`TRANSPORTS`] the simulator of 2016 had.
pub(super) const PUBLISHED_COUNT: usize = 5;
/// Where the blades of a cluster are.
pub(super) const SCALES: [&str; 2] = ["rack", "datacenter"];
/// What a pair of blades moves within this time is one flow, as §4.1 sums what is swapped at once:
/// afar writes back some thirty pages at once, 0.1 µs apart, and programs wait for one page before
/// they ask for the next, 3.5 µs later or more.
pub(super) const BATCH: &str = "4us";
/// The transport that also carries every page by itself, to test what batches do.
pub(super) const PAGES_BY: usize = 0;
/// Flows before and after those that are measured, each, are one in so many.
const UNMEASURED: usize = 10;

/// How much is simulated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Which of the sizes that workloads have.
    size: usize,
    /// Rates of hosts' links.
    pub(super) rates: &'static [&'static str],
    /// Seeds from 1 on; each places the clusters and draws the flows anew.
    pub(super) seed_count: u32,
    flow_count: u32,
}

const FULL: Extent =
    Extent { size: 1, rates: &["40Gbps", "100Gbps"], seed_count: 5, flow_count: 20_000 };
const QUICK: Extent = Extent { size: 0, rates: &["40Gbps"], seed_count: 2, flow_count: 1_000 };

/// One simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) place: Place,
    /// One of [`WORKLOADS`].
    pub(super) workload: usize,
    /// One of [`TRANSPORTS`].
    pub(super) transport: usize,
    pub(super) is_published: bool,
    seed: u32,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// Mean slowdown of flows.
    pub(super) mean: f64,
    /// 99th percentile of slowdowns.
    pub(super) p99: f64,
    /// Share of the time that hosts' links were sending, while flows were measured.
    pub(super) load: f64,
    /// Mean completion time of 4 KiB, in microseconds; nothing if no flow carries that.
    pub(super) page_us: Option<f64>,
    /// Flows that never finished.
    pub(super) unfinished_count: usize,
    /// What may wait at a switch, as a setting.
    pub(super) buffer: String,
}

/// Measures the figure; `None` if it was interrupted before anything was known.
pub(crate) fn run(flags: &Options) -> Result<Option<Measured>, ReproduceError> {
    let extent = if flags.quick { QUICK } else { FULL };
    let signals = console::interrupts()?;
    let mut line = if flags.quiet { None } else { Line::on_terminal() };
    let Some(recorded) = recorded(flags, &extent, &signals, &mut line)? else { return Ok(None) };
    let cases = cases(&extent, &recorded);
    let mut points = vec![None; cases.len()];
    let work = |number: usize, stop: &AtomicBool| {
        let mut setup = Setup::new(&settings(&cases[number], &extent, &flags.output))?;
        setup.observe.span = middle(&setup);
        match run_stranded(&setup, &mut |_| !stop.load(Ordering::Relaxed)) {
            Err(netsim::SimError::Stopped { .. }) => Ok(None),
            run => Ok::<_, SimError>(Some(point(&setup, &run?.outcome))),
        }
    };
    let mut looker = Looker { signals: &signals, line };
    let threads = many::threads(None);
    let is_whole = many::run(cases.len(), threads, &mut looker, work, |number, one| {
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

/// What workloads did.
struct Recorded {
    /// Those of [`WORKLOADS`] of which there is a record.
    workloads: Vec<usize>,
    /// Why there is none of the others.
    invalid: Vec<String>,
    /// The most memory that each used, in bytes.
    peaks: serde_json::Map<String, serde_json::Value>,
}

/// Runs every workload without delay, and keeps lists of flows that are drawn from its record.
fn recorded(
    flags: &Options,
    extent: &Extent,
    signals: &Signals,
    line: &mut Option<Line>,
) -> Result<Option<Recorded>, ReproduceError> {
    let (mut workloads, mut invalid) = (Vec::new(), Vec::new());
    let mut peaks = serde_json::Map::new();
    for (place, (workload, sizes)) in WORKLOADS.into_iter().enumerate() {
        if let Some(line) = line {
            line.draw(&format!("afar reproduce gao-fig7  {workload}  is recorded"));
        }
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
            // The others can be recorded all the same.
            Err(Stopped::Error(LoopError::Invalid(why))) => {
                invalid.push(format!("{workload}: {why}"));
            }
            Err(Stopped::Error(error)) => return Err(error.into()),
        }
        peaks.extend(feeder.peak().map(|peak| (workload.to_owned(), json!(peak.get()))));
    }
    if workloads.is_empty() {
        return Err(LoopError::Invalid(invalid.join("; ")).into());
    }
    Ok(Some(Recorded { workloads, invalid, peaks }))
}

/// Draws the flows of every scale and seed from a record, and writes each list to a file that
/// `afar sim --traffic` reads, too.
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
                .map_err(|source| SimError::Unreadable { path: path.clone(), source })?;
        }
    }
    Ok(())
}

/// Flows as a list. None has an exchange: the simulator of 2016 knew flows that go one way only,
/// and both halves of the figure have one measure.
fn csv(flows: &[netsim::Flow]) -> String {
    let mut text = "start_ps,src,dst,bytes\n".to_owned();
    for flow in flows {
        let netsim::Flow { start, src, dst, bytes, .. } = flow;
        let _infallible = writeln!(text, "{},{src},{dst},{bytes}", start.as_ps());
    }
    text
}

fn list(output: &Path, workload: &str, place: Place, seed: u32) -> PathBuf {
    let (scale, what) = (SCALES[place.scale], if place.is_batched { "batches" } else { "pages" });
    output.join("gao-fig7").join(workload).join(format!("{scale}-{what}-seed-{seed}.csv"))
}

fn seeds(extent: &Extent) -> Vec<u32> {
    (1..=extent.seed_count).collect()
}

fn cases(extent: &Extent, recorded: &Recorded) -> Vec<Case> {
    let mut cases = Vec::new();
    for place in (0..extent.rates.len()).flat_map(Place::once) {
        for &workload in &recorded.workloads {
            for transport in 0..TRANSPORTS.len() {
                for is_published in [true, false] {
                    let of = |seed| Case { place, workload, transport, is_published, seed };
                    let is_known = transport < PUBLISHED_COUNT || !is_published;
                    if is_known && (place.is_batched || transport == PAGES_BY) {
                        cases.extend(seeds(extent).into_iter().map(of));
                    }
                }
            }
        }
    }
    // The longest last would leave processors idle; Fastpass with many small flows is that.
    cases.sort_by_key(|case| TRANSPORTS[case.transport] != "fastpass");
    cases
}

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

/// When flows begin that are measured: neither the first nor the last ones, which meet a network
/// that fills or empties.
fn middle(setup: &Setup) -> Option<[Instant; 2]> {
    let count = setup.flows.len();
    let start = |place: usize| setup.flows.get(place).map(|flow| flow.start);
    Some([start(count / UNMEASURED)?, start(count - count / UNMEASURED)?])
}

fn point(setup: &Setup, outcome: &netsim::Outcome) -> Point {
    let Setup { fabric, flows, end, resolved, .. } = setup;
    let rows = rows(fabric, flows, outcome, *end);
    // The simulator of 2016 knew full packets only.
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
pub(super) mod tests {
    use super::*;

    pub(in super::super) const EXTENT: Extent = Extent { seed_count: 5, ..QUICK };

    /// Every case of one rate with a mean slowdown by a rule.
    pub(in super::super) fn bars(rule: impl Fn(&Case) -> f64) -> Vec<Bar> {
        let all = Recorded {
            workloads: (0..WORKLOADS.len()).collect(),
            invalid: Vec::new(),
            peaks: serde_json::Map::new(),
        };
        let cases = cases(&EXTENT, &all);
        let point = |case: &Case| {
            let mean = rule(case) + f64::from(case.seed) * 1e-4;
            let page_us = Some(mean);
            let buffer = "36864B".to_owned();
            Some(Point { mean, p99: 2.0 * mean, load: 0.1, page_us, unfinished_count: 0, buffer })
        };
        let points: Vec<Option<Point>> = cases.iter().map(point).collect();
        Bar::all(&cases, &points)
    }

    #[test]
    fn every_transport_carries_the_same_flows_by_one_measure() {
        let recorded =
            Recorded { workloads: vec![0, 2], invalid: Vec::new(), peaks: serde_json::Map::new() };
        let cases = cases(&FULL, &recorded);
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
