//! What a fault costs on this machine beyond the delay asked for.
//!
//! ```text
//! probe without a delay and with it ─► floor, constant ─► probe less the constant ─► its error
//! ```
//!
//! The probe is this same binary run as a program under the engine, with so little local memory
//! that each of its touches is a fetch. It sees delays as every program does: from inside, by
//! the time-stamp counter.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};

use farmem::PolicyKind;
use farmem::runtime::{
    BudgetScope, Outcome, RunConfig, RunError, Silent, Supervisor, Tier, TrapKind,
};
use measure::{Calibration, Duration, LinkConfig, LinkMode, LocalSize, Pages};
use rustix::io::FdFlags;
use rustix::pipe::PipeFlags;

use crate::probe::Probed;

/// Pages that the probe touches in a cycle, and how many of them are local.
const PAGES: u64 = 2048;
const LOCAL: Pages = Pages::new(512);
/// Time for the touches of one probe, and bounds on their number.
const TOUCHING: Duration = Duration::from_ms(15);
const TOUCHES_MIN: u64 = 50;
const TOUCHES_MAX: u64 = PAGES;
/// Not zero: without any delay the trap does not even look at the clock.
const SHORTEST: Duration = Duration::from_ns(1);
/// Assumed of a fault until it has been measured.
const FAULT_GUESS: Duration = Duration::from_us(10);

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
}

/// Measures the floor of `trap`, and the constant to take off a delay of `delay` for one page.
///
/// # Errors
/// When the engine cannot run the probe.
pub(crate) fn calibrate(trap: TrapKind, delay: Duration) -> Result<Calibration, CalibrationError> {
    let ([at_once, delayed], reference) = probe(trap, [SHORTEST, delay], 0, 0)?;
    let floor_ns = at_once.p50_ns;
    // A delay that cannot be had shows nothing but the floor again.
    let delay = delay.max(Duration::from_ns(floor_ns));
    let guess_ns = delayed.p50_ns.saturating_sub(delay.as_ns()).min(floor_ns);
    let ([checked], _pace) = probe(trap, [delay], guess_ns, reference)?;
    let samples = checked.samples_ns.as_slice();
    let constant_ns = guess_ns
        .saturating_add_signed(error_ns(samples, delay))
        // More is not a fault but other programs that ran meanwhile.
        .min(floor_ns * 2);
    let correction_ns = constant_ns.cast_signed() - guess_ns.cast_signed();
    Ok(Calibration {
        floor_ns,
        constant_ns,
        reference,
        // Of all samples it would be none by construction; of the later ones it shows a drift.
        median_error_ns: error_ns(&samples[samples.len() / 2..], delay) - correction_ns,
    })
}

/// Measures the shortest fetch that `trap` can do, in nanoseconds.
///
/// # Errors
/// When the engine cannot run the probe.
pub(crate) fn floor(trap: TrapKind) -> Result<u64, CalibrationError> {
    let ([probed], _pace) = probe(trap, [SHORTEST], 0, 0)?;
    Ok(probed.p50_ns)
}

/// The median of `samples` over the delay.
fn error_ns(samples: &[u64], delay: Duration) -> i64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    median.cast_signed() - delay.as_ns().cast_signed()
}

/// Runs one probe over tiers with these delays; answers what it saw, and the processor's speed.
fn probe<const TIERS: usize>(
    trap: TrapKind,
    delays: [Duration; TIERS],
    constant_ns: u64,
    reference: u64,
) -> Result<([Probed; TIERS], u64), CalibrationError> {
    let configure = |output: &OwnedFd| config(trap, &delays, (constant_ns, reference), output);
    let (probed, outcome) = ask(configure)?;
    let probed = probed.try_into().map_err(|_| CalibrationError::Incomplete)?;
    Ok((probed, outcome.pace))
}

/// Runs the probe that is configured to write to the given descriptor; answers what it saw of each
/// tier, and what the engine did.
///
/// # Errors
/// When the engine cannot run it.
pub(crate) fn ask(
    configure: impl FnOnce(&OwnedFd) -> RunConfig,
) -> Result<(Vec<Probed>, Outcome), CalibrationError> {
    let (near, far) = pipe().map_err(|error| CalibrationError::Pipe(error.into()))?;
    let config = configure(&far);
    // In a thread of its own: the engine blocks signals in the thread it runs in and raises its
    // priority, and the program to come must inherit neither.
    let engine = std::thread::spawn(move || {
        let ended = Supervisor::start(config, &mut Silent)?.run();
        drop(far);
        ended
    });
    // To the end, which comes when both the probe and the engine have closed their descriptor.
    let mut answer = String::new();
    let read = File::from(near).read_to_string(&mut answer);
    let outcome = match engine.join() {
        Ok(ended) => ended.map_err(|source| CalibrationError::Run { source })?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    read.map_err(CalibrationError::Pipe)?;
    let probed = serde_json::from_str(&answer).map_err(CalibrationError::NoAnswer)?;
    Ok((probed, outcome))
}

/// A pipe whose writing end is inherited, so that the probe finds it by number.
fn pipe() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let (near, far) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&far, FdFlags::empty())?;
    Ok((near, far))
}

fn config(
    trap: TrapKind,
    delays: &[Duration],
    (constant_ns, reference): (u64, u64),
    output: &OwnedFd,
) -> RunConfig {
    let program = command(delays, output.as_raw_fd());
    engine(trap, program, delays.iter().enumerate().map(tier).collect(), (constant_ns, reference))
}

/// How the engine runs a probe.
pub(crate) fn engine(
    trap: TrapKind,
    program: Vec<OsString>,
    tiers: Vec<Tier>,
    (constant_ns, reference): (u64, u64),
) -> RunConfig {
    RunConfig {
        program,
        trap,
        tiers,
        of: None,
        scope: BudgetScope::Process,
        policy: PolicyKind::Fifo,
        prefetch: farmem::Prefetch::None,
        probation: None,
        seed: 1,
        record: false,
        watch: None,
        constant_ns,
        reference,
    }
}

fn command(delays: &[Duration], output: i32) -> Vec<OsString> {
    let longest = delays.iter().copied().fold(FAULT_GUESS, Duration::max);
    let touches = (TOUCHING.as_ns() / longest.as_ns()).clamp(TOUCHES_MIN, TOUCHES_MAX);
    let names: Vec<String> = (0..delays.len()).map(tier_name).collect();
    let words = [
        "/proc/self/exe".to_owned(),
        "probe".to_owned(),
        "--raw".to_owned(),
        format!("--pages={PAGES}"),
        format!("--touches={touches}"),
        format!("--tiers={}", names.join(",")),
        format!("--output=/proc/self/fd/{output}"),
    ];
    words.map(OsString::from).to_vec()
}

fn tier((index, &delay): (usize, &Duration)) -> Tier {
    far(index, Some(LOCAL), delay)
}

/// The tier of that index, with so much local memory: `None` for all.
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
    use super::*;

    #[test]
    fn error_is_the_median_over_the_delay() {
        let delay = Duration::from_ns(100);
        assert_eq!(error_ns(&[90, 900, 107], delay), 7);
        assert_eq!(error_ns(&[90], delay), -10);
    }
}
