//! The benchmark `latency`: the latency of a fetch, mean and tail, timed by the program, as a check
//! of afar's own figures.
//!
//! ```text
//! bench touch --write under afar run ─► mean, p99 ──────────┬─► verdicts
//!                                   └► afar's own mean ─────┤
//! bench waits, without afar ─► how late a wait ends here ───┘
//! ```
//!
//! A tail cannot be measured while other programs run. A disturbed run is repeated, and a delay
//! without any quiet run counts as not measured.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sys::clock::cycles;
use sys::processors::{ProcessorTime, pressure};

use crate::context::Context;
use crate::failure::Failure;
use crate::far::Place;
use crate::flags::WaitsFlags;
use crate::process::LONG;
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::{Quantile, Spread, float, mean, quantile};
use crate::touch::{self, Touches};

const REQUESTED_NS: [u64; 3] = [5_000, 20_000, 100_000];
const PAGES: u64 = 2048;
/// Local memory: a quarter of the pages.
const LOCAL: &str = "2MiB";
/// The sum of all delays of a run, and with `--quick`.
const LONG_NS: u64 = 1_700_000_000;
const SHORT_NS: u64 = 400_000_000;
/// A run is quiet if a task waits for a processor for less than this share of the time,
const PRESSURE_MAX: f64 = 0.02;
/// and other guests take less than this share of the processor time.
const STOLEN_MAX: f64 = 0.005;
/// Most attempts to get a quiet run.
const ATTEMPTS: usize = 5;
/// The mean may deviate by this share of the delay plus [`MEAN_OFF_NS`].
const MEAN_OFF: f64 = 0.05;
const MEAN_OFF_NS: f64 = 300.0;
/// Bound of the 99th percentile, less the machine's own lateness, over the delay.
const TAIL_MAX: f64 = 1.5;
/// Largest deviation of afar's own mean from the program's, as a share.
const OWN_OFF: f64 = 0.02;

/// A kind of run: a delay under afar, or a wait of the same length without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Variant {
    requested_ns: u64,
    is_far: bool,
}

/// The results of one run, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    mean: f64,
    p99: f64,
    /// The mean latency of a fetch that afar reports.
    own: f64,
    is_quiet: bool,
}

/// The results of one delay over all quiet rounds.
struct Compared {
    requested_ns: u64,
    mean: Spread,
    p99: Spread,
    /// How late a wait of that length ended without afar, p99.
    late: Spread,
    /// afar's mean over the program's.
    own: Spread,
    /// Rounds in which both runs were quiet.
    quiet_count: usize,
    run_count: usize,
}

/// Runs the benchmark.
///
/// # Errors
/// When a run fails.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let kinds = |requested_ns| [true, false].map(|is_far| Variant { requested_ns, is_far });
    let variants: Vec<Variant> = REQUESTED_NS.into_iter().flat_map(kinds).collect();
    let runs = context.alternate("latency", &variants, |&variant| measure(context, variant))?;
    let pairs = REQUESTED_NS.iter().zip(runs.chunks_exact(2));
    let compared: Vec<Compared> =
        pairs.map(|(&requested_ns, pair)| Compared::of(requested_ns, &pair[0], &pair[1])).collect();
    let header = ["requested", "mean, ns", "p99, ns", "late, p99, ns", "afar / program", "quiet"];
    let mut table = Table::new(&header);
    compared.iter().for_each(|one| table.row(one.row()));
    let note = "mean, p99: of writes to pages in far memory, by the program's time-stamp counter\n\
                late: by how much a wait of that length ended late without afar, same round\n\
                afar / program: what afar says that a fetch takes in the mean, over the mean\n\
                quiet: rounds in which less than 2 % of the time something waited for a processor\n\
                \x20   and other guests took less than 0.5 %; the others are left out\n";
    Ok(Report {
        name: "latency",
        settings: json!({"page_count": PAGES, "local": LOCAL, "policy": "fifo", "writes": true}),
        results: compared.iter().map(Compared::json).collect(),
        text: table.text() + note,
        verdicts: compared.iter().flat_map(Compared::verdicts).collect(),
    })
}

// Returns the first quiet run, or the last one tried.
fn measure(context: &Context, variant: Variant) -> Result<Sample, Failure> {
    let mut sample = measure_once(context, variant)?;
    for _ in 1..ATTEMPTS {
        if sample.is_quiet {
            break;
        }
        sample = measure_once(context, variant)?;
    }
    Ok(sample)
}

// One run, and whether it was quiet.
fn measure_once(context: &Context, variant: Variant) -> Result<Sample, Failure> {
    // A run begins with a calibration, which is not quiet, so all runs have the same sum of delays.
    let rounds = (context.size(LONG_NS, SHORT_NS) / (PAGES * variant.requested_ns)).max(1);
    let (began, processors, waited) = (Instant::now(), ProcessorTime::now(), pressure());
    let (mut samples, own) = if variant.is_far {
        let touches = Touches { pages: PAGES, rounds, write: true };
        let rtt = format!("{}ns", variant.requested_ns);
        let flags = ["--local", LOCAL, "--policy", "fifo", "--rtt", &rtt];
        let (samples, outcome) = touches.far(context, &flags)?;
        let own = outcome.run.map(|run| run.figures.fault_latency.achieved.mean_ns);
        (samples, own.unwrap_or(0))
    } else {
        (waits_of(context, PAGES * rounds, variant.requested_ns)?, 0)
    };
    let waited = pressure().saturating_sub(waited).as_secs_f64() / began.elapsed().as_secs_f64();
    let stolen = ProcessorTime::now().stolen_since(processors);
    samples.sort_unstable();
    Ok(Sample {
        mean: mean(samples.iter().map(|&ns| float(ns))),
        p99: float(quantile(&samples, Quantile::P99)),
        own: float(own),
        is_quiet: waited < PRESSURE_MAX && stolen < STOLEN_MAX,
    })
}

// Runs the hidden command `waits`. Returns how long each wait took, in nanoseconds.
fn waits_of(context: &Context, count: u64, ns: u64) -> Result<Vec<u64>, Failure> {
    let mut program = context.hidden("waits");
    program.extend(["--count".into(), count.to_string().into()]);
    program.extend(["--ns".into(), ns.to_string().into()]);
    let said = Place::Native.execute(context, &program, LONG)?.stdout;
    let samples: Result<Vec<u64>, _> = said.split_ascii_whitespace().map(str::parse).collect();
    samples.map_err(|_| Failure::Unreadable { program: "bench", wanted: "times", said })
}

/// The hidden command `waits`: waits `count` times by the time-stamp counter and prints how long
/// each wait took.
pub(crate) fn waits(flags: &WaitsFlags) {
    let (counted, took_ns) = touch::rate();
    let wanted = u128::from(flags.ns) * u128::from(counted) / u128::from(took_ns.max(1));
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
    let mut samples = Vec::with_capacity(flags.count);
    let limit = Instant::now() + Duration::from_secs(60);
    while samples.len() < flags.count && Instant::now() < limit {
        let before = cycles();
        while cycles() - before < wanted {
            spin_loop();
        }
        samples.push(cycles() - before);
    }
    touch::print(&samples);
}

impl Compared {
    /// Compares the quiet rounds under afar (`far`) with those without (`near`).
    fn of(requested_ns: u64, far: &[Sample], near: &[Sample]) -> Self {
        let both = || far.iter().zip(near).filter(|(far, near)| far.is_quiet && near.is_quiet);
        let late = |near: &Sample| (near.p99 - float(requested_ns)).max(0.0);
        Self {
            requested_ns,
            mean: Spread::of(both().map(|(far, _)| far.mean)),
            p99: Spread::of(both().map(|(far, _)| far.p99)),
            late: Spread::of(both().map(|(_, near)| late(near))),
            own: Spread::of(both().map(|(far, _)| far.own / far.mean)),
            quiet_count: both().count(),
            run_count: far.len(),
        }
    }

    /// The row of the table.
    fn row(&self) -> Vec<String> {
        let quiet = format!("{} of {}", self.quiet_count, self.run_count);
        let name = format!("{} us", self.requested_ns / 1000);
        if self.quiet_count == 0 {
            let none = "not measured".to_owned();
            return vec![name, none, String::new(), String::new(), String::new(), quiet];
        }
        let (mean, p99, late) = (self.mean.show(0), self.p99.show(0), self.late.show(0));
        vec![name, mean, p99, late, self.own.show(4), quiet]
    }

    /// The verdicts on mean, tail and afar's own mean.
    fn verdicts(&self) -> [Verdict; 3] {
        let requested = float(self.requested_ns);
        let name = format!("{} us", self.requested_ns / 1000);
        // NaN fails every bound.
        let measured = |value: f64| if self.quiet_count == 0 { f64::NAN } else { value };
        let verdict = |what: &str, value: f64, bound: f64, unit| Verdict {
            what: format!("{name}: {what}"),
            value: measured(value),
            bound: Bound::AtMost(bound),
            unit,
        };
        let off = (self.mean.median - requested).abs();
        let tail = self.p99.median - self.late.median;
        let own = (self.own.median - 1.0).abs();
        [
            verdict("mean beside the delay", off, requested * MEAN_OFF + MEAN_OFF_NS, "ns"),
            verdict("p99 less the machine's own", tail, requested * TAIL_MAX, "ns"),
            verdict("afar's own mean beside the program's", own, OWN_OFF, ""),
        ]
    }

    /// The results of this delay for the record.
    fn json(&self) -> Value {
        json!({
            "requested_ns": self.requested_ns,
            "mean_ns": self.mean.json(),
            "p99_ns": self.p99.json(),
            "late_p99_ns": self.late.json(),
            "own_over_program": self.own.json(),
            "quiet_count": self.quiet_count,
            "run_count": self.run_count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Sample = Sample { mean: 5_100.0, p99: 6_000.0, own: 5_090.0, is_quiet: true };

    fn passing(far: &[Sample], near: &[Sample]) -> [bool; 3] {
        Compared::of(5_000, far, near).verdicts().map(|verdict| verdict.passes())
    }

    #[test]
    fn a_delay_without_a_quiet_round_keeps_no_bound() {
        let loud = Sample { is_quiet: false, ..QUIET };
        assert_eq!(passing(&[QUIET], &[QUIET]), [true; 3]);
        assert_eq!(passing(&[QUIET], &[loud]), [false; 3]);
        assert_eq!(passing(&[loud], &[QUIET]), [false; 3]);
        let with_one = Compared::of(5_000, &[loud, QUIET], &[QUIET, QUIET]);
        assert_eq!((with_one.quiet_count, with_one.mean.max), (1, 5_100.0));
    }

    #[test]
    fn each_bound_is_its_own() {
        let near = Sample { p99: 5_000.0, ..QUIET };
        let far = |mean, p99, own| Sample { mean, p99, own, is_quiet: true };
        assert_eq!(passing(&[far(5_549.0, 7_499.0, 5_549.0)], &[near]), [true; 3]);
        assert_eq!(passing(&[far(5_551.0, 7_499.0, 5_551.0)], &[near]), [false, true, true]);
        assert_eq!(passing(&[far(4_449.0, 7_499.0, 4_449.0)], &[near]), [false, true, true]);
        assert_eq!(passing(&[far(5_000.0, 7_501.0, 5_000.0)], &[near]), [true, false, true]);
        let late = Sample { p99: 5_100.0, ..near };
        assert_eq!(passing(&[far(5_000.0, 7_599.0, 5_000.0)], &[late]), [true; 3]);
        assert_eq!(passing(&[far(5_000.0, 5_000.0, 4_890.0)], &[near]), [true, true, false]);
    }
}
