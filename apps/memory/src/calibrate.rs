//! Measures what a fault costs on this machine beyond the requested delay.
//!
//! ```text
//! probe without a delay and with it ─► floor, constant ─► probe less the constant ─► its error
//!                                                  ▲                                  │
//!                                                  └─────── while it is too large ────┘
//! ```
//!
//! The probe is this same binary run as a program under the engine, with so little local memory
//! that each of its touches is a fetch. It sees delays as every program does: from inside, by
//! the time-stamp counter. The engine must have seen its touches as fetches, each of them once;
//! what cannot be right is an error ([`Unusable`]), never a number.

mod verdict;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};

use blades::MemoryBlade;
use console::{Class, Classed};
use farmem::{BudgetScope, Outcome, RunConfig, RunError, Silent, Supervisor, Tier, TrapKind};
use measure::{Calibration, Duration, LinkConfig, LinkMode, LocalSize, Pages};
use paging::PolicyKind;
use paging::write_back::WriteBack;
use rustix::io::FdFlags;
use rustix::pipe::PipeFlags;
use sys::usage::waited_ns;

use crate::probe::Probed;
use crate::run_failed;

pub(crate) use verdict::{Busy, Unusable};

/// Time for the touches of one probe, and the least number of touches.
const TOUCHING: Duration = Duration::from_ms(15);
const TOUCHES_MIN: u64 = 50;
/// Not zero: without any delay the trap does not read the clock.
const SHORTEST: Duration = Duration::from_ns(1);
/// The assumed cost of a fault until it has been measured.
const FAULT_GUESS: Duration = Duration::from_us(10);
/// Pages of a blade: more than the probe uses.
const BLADE_PAGES: u32 = 1 << 14;
/// The most corrections of the constant.
const CORRECTIONS_MAX: u32 = 4;
/// How often a calibration is tried before a trap is called unusable: a busy moment is no reason.
const TRIES: u32 = 3;
/// The tier of all memory of the probe except the pages that it touches: always local.
const OWN: &str = "own";

/// How many pages the probe touches in a cycle, how many of them are local, and the most touches.
/// The bpf trap holds no small budget; a fault of the other may take milliseconds.
const fn extent(trap: TrapKind) -> (u64, Pages, u64) {
    match trap {
        TrapKind::Bpf => (2048, Pages::new(512), 2048),
        TrapKind::Userfault => (512, Pages::new(64), 448),
    }
}

/// Why the cost of a fault could not be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CalibrationError {
    #[error("{source}; --no-calibrate goes on without")]
    Run { source: RunError },
    #[error("the probe ended before it had an answer ({0}); --no-calibrate goes on without")]
    NoAnswer(serde_json::Error),
    #[error("the probe has not touched every tier; --no-calibrate goes on without")]
    Incomplete,
    #[error("{0}; --no-calibrate goes on without")]
    Pipe(#[source] io::Error),
    #[error("trap {}: not usable: {why}", .trap.name())]
    Unusable { trap: TrapKind, why: Unusable },
    #[error("the record is of --trap {known}, this run of --trap {trap}; give the same")]
    OtherTrap { known: String, trap: &'static str },
}

impl Classed for CalibrationError {
    fn class(&self) -> Class {
        match self {
            Self::Run { source } => run_failed::class(source),
            Self::Unusable { .. } => Class::Environment,
            Self::OtherTrap { .. } => Class::Usage,
            _ => Class::Ours,
        }
    }
}

/// A calibration has failed, and with it the run or the prediction.
#[derive(Debug, thiserror::Error)]
#[error("calibrate: {0}")]
pub(crate) struct NotCalibrated(#[from] CalibrationError);

impl Classed for NotCalibrated {
    fn class(&self) -> Class {
        self.0.class()
    }
}

/// A calibration that can be relied on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calibrated {
    pub(crate) calibration: Calibration,
    /// The delay for which it was made.
    delay: Duration,
    busy: Busy,
}

impl Calibrated {
    /// A warning for the reader of results; `None` if the calibration is good.
    pub(crate) fn doubt(&self) -> Option<String> {
        verdict::doubt(self.calibration.median_error_ns, self.delay, self.busy)
    }
}

/// A calibration of another run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) calibration: Calibration,
    /// The trap's name.
    pub(crate) trap: String,
}

impl Known {
    /// The calibration, if it is of `trap`.
    ///
    /// # Errors
    /// When it is of another trap.
    pub(crate) fn of(&self, trap: TrapKind) -> Result<Calibration, NotCalibrated> {
        let (known, trap) = (self.trap.clone(), trap.name());
        if known != trap {
            return Err(CalibrationError::OtherTrap { known, trap }.into());
        }
        Ok(self.calibration)
    }
}

/// Measures the floor of `trap`, and the constant to take off a delay of `delay` for one page.
///
/// # Errors
/// When the engine cannot run the probe, or what is measured cannot be right.
pub(crate) fn calibrate(trap: TrapKind, delay: Duration) -> Result<Calibrated, CalibrationError> {
    patiently(|| calibrate_once(trap, delay))
}

/// Measures the shortest fetch that `trap` can do, in nanoseconds.
///
/// # Errors
/// As [`calibrate`].
pub(crate) fn floor(trap: TrapKind) -> Result<u64, CalibrationError> {
    patiently(|| floor_once(trap))
}

// Measures the floor in a separate run: a probe of long delays touches too few pages to use up the
// frames that are free when it begins.
fn floor_once(trap: TrapKind) -> Result<u64, CalibrationError> {
    let Seen { tiers: [probed], .. } = probe(trap, [SHORTEST], 0, 0)?;
    usable(trap, verdict::floor(probed.p50_ns))?;
    Ok(probed.p50_ns)
}

/// Measures the shortest fetch from a blade in afar's own memory, in nanoseconds.
///
/// # Errors
/// As [`calibrate`].
pub(crate) fn far_floor() -> Result<u64, CalibrationError> {
    let trap = TrapKind::Userfault;
    patiently(|| {
        let configure = |output: &OwnedFd| config(trap, &[SHORTEST], (0, 0), output);
        let blade = MemoryBlade::new(BLADE_PAGES);
        let (probed, outcome, waited_ns) = ask_and_wait(configure, Some(blade))?;
        let Seen { tiers: [probed], .. } = Seen::of(trap, probed, &outcome, waited_ns)?;
        Ok(probed.p50_ns)
    })
}

/// Repeats a measurement while it says that the trap is unusable, up to [`TRIES`] times.
fn patiently<T>(
    mut measure: impl FnMut() -> Result<T, CalibrationError>,
) -> Result<T, CalibrationError> {
    for _ in 1..TRIES {
        match measure() {
            Err(CalibrationError::Unusable { .. }) => {}
            other => return other,
        }
    }
    measure()
}

// Turns a verdict on `trap` into an error of the calibration.
fn usable(trap: TrapKind, verdict: Result<(), Unusable>) -> Result<(), CalibrationError> {
    verdict.map_err(|why| CalibrationError::Unusable { trap, why })
}

// Measures the floor and the constant, and corrects the constant until its error is tolerable.
fn calibrate_once(trap: TrapKind, delay: Duration) -> Result<Calibrated, CalibrationError> {
    let floor_ns = floor_once(trap)?;
    // A delay below the floor would show only the floor again.
    let delay = delay.max(Duration::from_ns(floor_ns));
    let Seen { tiers: [delayed], pace: reference, .. } = probe(trap, [delay], 0, 0)?;
    let most_ns = constant_max_ns(trap, floor_ns, delay);
    let mut constant_ns = delayed.p50_ns.saturating_sub(delay.as_ns()).min(most_ns);
    let mut best: Option<Calibrated> = None;
    for _ in 0..CORRECTIONS_MAX {
        let seen = probe(trap, [delay], constant_ns, reference)?;
        let (calibration, corrected_ns) = corrected(
            &seen.tiers[0].samples_ns,
            delay,
            (floor_ns, constant_ns, reference),
            most_ns,
        );
        let found = Calibrated { calibration, delay, busy: seen.busy };
        let error = |found: &Calibrated| found.calibration.median_error_ns.unsigned_abs();
        if best.is_none_or(|best| error(&found) < error(&best)) {
            best = Some(found);
        }
        if verdict::is_tolerable(calibration.median_error_ns, delay) {
            break;
        }
        constant_ns = corrected_ns;
    }
    let best = best.ok_or(CalibrationError::Incomplete)?;
    usable(trap, verdict::error(best.calibration.median_error_ns, delay, best.busy))?;
    Ok(best)
}

/// The most that a fault can cost beyond its delay. The bpf trap waits in the fault itself, so that
/// more than a fault is due to other programs that ran meanwhile; the other trap wakes the
/// supervisor.
fn constant_max_ns(trap: TrapKind, floor_ns: u64, delay: Duration) -> u64 {
    match trap {
        TrapKind::Bpf => (floor_ns * 2).min(delay.as_ns()),
        TrapKind::Userfault => delay.as_ns(),
    }
}

/// The calibration that samples taken with a constant give, and the constant to try next.
fn corrected(
    samples: &[u64],
    delay: Duration,
    (floor_ns, constant_ns, reference): (u64, u64, u64),
    most_ns: u64,
) -> (Calibration, u64) {
    let off_ns = error_ns(samples, delay);
    let wanted_ns = constant_ns.saturating_add_signed(off_ns).min(most_ns);
    let calibration = |constant_ns, median_error_ns| Calibration {
        floor_ns,
        constant_ns,
        reference,
        median_error_ns,
    };
    if !verdict::is_tolerable(off_ns, delay) {
        // A large correction may have another effect than it should: measure it first.
        return (calibration(constant_ns, off_ns), wanted_ns);
    }
    let correction_ns = wanted_ns.cast_signed() - constant_ns.cast_signed();
    // Over all samples the error would be 0 by construction; over the later ones it shows a drift.
    let drift_ns = error_ns(&samples[samples.len() / 2..], delay) - correction_ns;
    (calibration(wanted_ns, drift_ns), wanted_ns)
}

/// By how much the median of `samples` exceeds the delay, in nanoseconds.
fn error_ns(samples: &[u64], delay: Duration) -> i64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    median.cast_signed() - delay.as_ns().cast_signed()
}

/// The results of one probe.
struct Seen<const TIERS: usize> {
    tiers: [Probed; TIERS],
    /// The processor's speed ([`Outcome::pace`]).
    pace: u64,
    busy: Busy,
}

/// Runs one probe over tiers with these delays. The error says if the engine counted other fetches.
fn probe<const TIERS: usize>(
    trap: TrapKind,
    delays: [Duration; TIERS],
    constant_ns: u64,
    reference: u64,
) -> Result<Seen<TIERS>, CalibrationError> {
    let configure = |output: &OwnedFd| config(trap, &delays, (constant_ns, reference), output);
    let (probed, outcome, engine_waited_ns) = ask_and_wait(configure, None)?;
    Seen::of(trap, probed, &outcome, engine_waited_ns)
}

impl<const TIERS: usize> Seen<TIERS> {
    /// The results for each tier, if the engine fetched a page for each touch of the probe.
    fn of(
        trap: TrapKind,
        probed: Vec<Probed>,
        outcome: &Outcome,
        engine_waited_ns: Option<u64>,
    ) -> Result<Self, CalibrationError> {
        let tiers: [Probed; TIERS] = probed.try_into().map_err(|_| CalibrationError::Incomplete)?;
        let touched = tiers.iter().map(|probed| probed.touch_count).sum();
        usable(trap, verdict::counted(touched, outcome.results.seen().faults.fetch_count))?;
        let waited = tiers.iter().map(|probed| probed.waited_ns).sum::<Option<u64>>();
        let busy = Busy {
            waited_ns: waited.zip(engine_waited_ns).map(|(probe, engine)| probe + engine),
            elapsed_ns: tiers.iter().map(|probed| probed.elapsed_ns).sum(),
        };
        Ok(Self { tiers, pace: outcome.pace, busy })
    }
}

/// Runs the probe that `configure` sets up to write to the given descriptor. Returns its results
/// for each tier, and the engine's outcome.
///
/// # Errors
/// When the engine cannot run it.
pub(crate) fn ask(
    configure: impl FnOnce(&OwnedFd) -> RunConfig,
) -> Result<(Vec<Probed>, Outcome), CalibrationError> {
    ask_and_wait(configure, None).map(|(probed, outcome, _waited_ns)| (probed, outcome))
}

/// As [`ask`], with pages on a blade if there is one. Also returns how long the engine waited for a
/// processor.
fn ask_and_wait(
    configure: impl FnOnce(&OwnedFd) -> RunConfig,
    blade: Option<MemoryBlade>,
) -> Result<(Vec<Probed>, Outcome, Option<u64>), CalibrationError> {
    let (near, far) = pipe().map_err(|error| CalibrationError::Pipe(error.into()))?;
    let config = configure(&far);
    // In a thread of its own: the engine blocks signals in the thread it runs in and raises its
    // priority, and the program to come must inherit neither.
    let engine = std::thread::spawn(move || {
        let mut silent = Silent;
        let started = match blade {
            None => Supervisor::start(config, &mut silent),
            Some(blade) => Supervisor::start_far(config, &mut silent, Box::new(blade), None),
        };
        let ended = started.and_then(Supervisor::run);
        drop(far);
        (ended, waited_ns())
    });
    // Read to the end, which comes when both the probe and the engine have closed their descriptor.
    let mut answer = String::new();
    let read = File::from(near).read_to_string(&mut answer);
    let (outcome, waited_ns) = match engine.join() {
        Ok((ended, waited_ns)) => {
            (ended.map_err(|source| CalibrationError::Run { source })?, waited_ns)
        }
        Err(panic) => std::panic::resume_unwind(panic),
    };
    read.map_err(CalibrationError::Pipe)?;
    let probed = serde_json::from_str(&answer).map_err(CalibrationError::NoAnswer)?;
    Ok((probed, outcome, waited_ns))
}

/// A pipe whose writing end is inherited, so that the probe finds it by number.
fn pipe() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let (near, far) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&far, FdFlags::empty())?;
    Ok((near, far))
}

// The run that calibrates `trap`: a probe over tiers with `delays`.
fn config(
    trap: TrapKind,
    delays: &[Duration],
    (constant_ns, reference): (u64, u64),
    output: &OwnedFd,
) -> RunConfig {
    let (pages, local, touches_max) = extent(trap);
    let program = command(delays, (pages, touches_max), output.as_raw_fd());
    let own = Tier { name: OWN.to_owned(), ..far(0, None, Duration::ZERO) };
    let tiers = std::iter::once(own).chain(tiers_of(delays, local)).collect();
    engine(trap, program, tiers, (constant_ns, reference))
}

/// The configuration of a probe's run.
pub(crate) fn engine(
    trap: TrapKind,
    program: Vec<OsString>,
    tiers: Vec<Tier>,
    (constant_ns, reference): (u64, u64),
) -> RunConfig {
    RunConfig {
        program,
        trap,
        spin_max: None,
        processor: None,
        tiers,
        of: None,
        scope: BudgetScope::Process,
        policy: PolicyKind::FIFO,
        prefetch: paging::Prefetch::None,
        in_flight: None,
        write_back: WriteBack::default(),
        probation: None,
        seed: 1,
        record: false,
        watch: None,
        constant_ns,
        reference,
    }
}

// The probe's command line.
fn command(delays: &[Duration], (pages, touches_max): (u64, u64), output: i32) -> Vec<OsString> {
    let longest = delays.iter().copied().fold(FAULT_GUESS, Duration::max);
    let touches = (TOUCHING.as_ns() / longest.as_ns()).clamp(TOUCHES_MIN, touches_max);
    let names: Vec<String> = (0..delays.len()).map(tier_name).collect();
    let words = [
        launch::SELF.to_owned(),
        "probe".to_owned(),
        "--raw".to_owned(),
        format!("--pages={pages}"),
        format!("--touches={touches}"),
        format!("--tiers={}", names.join(",")),
        format!("--output=/proc/self/fd/{output}"),
    ];
    words.map(OsString::from).to_vec()
}

// A tier with `local` pages of local memory for each delay.
fn tiers_of(delays: &[Duration], local: Pages) -> impl Iterator<Item = Tier> {
    delays.iter().enumerate().map(move |(index, &delay)| far(index, Some(local), delay))
}

/// The tier number `index`, with `local` pages of local memory; `None` for no limit.
pub(crate) fn far(index: usize, local: Option<Pages>, delay: Duration) -> Tier {
    Tier {
        name: tier_name(index),
        local: local.map(|pages| LocalSize::Bytes(pages.bytes())),
        link: LinkConfig {
            // Writing back what the probe has initialised must not hold up its fetches.
            mode: LinkMode::PerFault,
            rtt: delay,
            bandwidth: None,
            profile: None,
        },
    }
}

pub(crate) fn tier_name(index: usize) -> String {
    format!("tier-{index}")
}

#[cfg(test)]
mod tests {
    use measure::{FaultCounts, Figures, RunResults};
    use sys::process::Change;

    use super::*;

    #[test]
    fn error_is_the_median_over_the_delay() {
        let delay = Duration::from_ns(100);
        assert_eq!(error_ns(&[90, 900, 107], delay), 7);
        assert_eq!(error_ns(&[90], delay), -10);
    }

    #[test]
    fn what_the_probe_saw_counts_only_if_the_engine_fetched_as_often() {
        let probed = |touch_count: u64| {
            let named = "page_count timer_ns elapsed_ns min_ns p50_ns p90_ns p95_ns p99_ns p999_ns \
                         max_ns";
            let mut fields: serde_json::Map<String, serde_json::Value> =
                named.split(' ').map(|name| (name.to_owned(), 0.into())).collect();
            fields.insert("touch_count".to_owned(), touch_count.into());
            fields.insert("write".to_owned(), false.into());
            serde_json::from_value::<Probed>(fields.into()).unwrap()
        };
        let seen = |fetch_count| {
            let faults = FaultCounts { fetch_count, ..FaultCounts::default() };
            let figures = Figures { faults, ..Figures::default() };
            let results = RunResults::judged(figures, Vec::new(), &[], None);
            let outcome =
                Outcome { change: Change::Exited(0), results, pace: 7, touches: None, order: None };
            Seen::<2>::of(TrapKind::Bpf, vec![probed(300), probed(200)], &outcome, None)
        };
        assert_eq!(seen(500).map(|seen| seen.pace).ok(), Some(7));
        for fetch_count in [0, 1, 300, 499, 501] {
            let refused = seen(fetch_count).map(|seen| seen.pace);
            let is_refused = matches!(refused, Err(CalibrationError::Unusable { .. }));
            assert!(is_refused, "{fetch_count} of 500: {refused:?}");
        }
    }

    #[test]
    fn a_small_error_is_corrected_and_a_large_one_is_seen_first() {
        let delay = Duration::from_us(5);
        let (small, wanted_ns) = corrected(&[5060; 8], delay, (900, 500, 7), 5000);
        assert_eq!((small.constant_ns, small.median_error_ns, wanted_ns), (560, 0, 560));
        assert_eq!((small.floor_ns, small.reference), (900, 7));
        let (large, wanted_ns) = corrected(&[5600; 8], delay, (900, 500, 7), 5000);
        assert_eq!((large.constant_ns, large.median_error_ns, wanted_ns), (500, 600, 1100));
        let (_, wanted_ns) = corrected(&[99_000; 8], delay, (900, 500, 7), 5000);
        assert_eq!(wanted_ns, 5000, "no more than there is");
    }

    #[test]
    fn only_what_looked_unusable_is_tried_again() {
        let unusable = || CalibrationError::Unusable {
            trap: TrapKind::Bpf,
            why: Unusable::Blind { touched: 1 },
        };
        let mut tries = 0;
        let again = patiently(|| {
            tries += 1;
            if tries < 3 { Err(unusable()) } else { Ok(tries) }
        });
        assert_eq!(again.ok(), Some(3));
        let mut tries = 0;
        let never = patiently(|| -> Result<(), _> {
            tries += 1;
            Err(CalibrationError::Incomplete)
        });
        assert!(matches!((never, tries), (Err(CalibrationError::Incomplete), 1)));
    }
}
