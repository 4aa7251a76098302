//! What a fault costs on this machine beyond the delay asked for.
//!
//! ```text
//! probe without delay ─► floor ─► probe at the delay, less the floor ─► error ─► constant
//! ```
//!
//! The probe is this same binary run as a program under the engine, with so little local memory
//! that each of its touches is a fetch. It sees delays as every program does: from inside, by
//! the time-stamp counter.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};

use farmem::PolicyKind;
use farmem::runtime::{BudgetScope, RunConfig, RunError, Silent, Supervisor, Tier, TrapKind};
use measure::{Calibration, Duration, LinkConfig, LinkMode, LocalSize, Pages};

use crate::probe::Probed;

/// Pages that the probe touches in a cycle, and how many of them are local.
const PAGES: u64 = 2048;
const LOCAL: Pages = Pages::new(512);
/// Time for the touches of one probe, and bounds on their number.
const TOUCHING: Duration = Duration::from_ms(10);
const TOUCHES_MIN: u64 = 50;
const TOUCHES_MAX: u64 = PAGES;
/// Assumed of a fault until it has been measured.
const FAULT_GUESS: Duration = Duration::from_us(10);

/// Why the cost of a fault could not be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CalibrationError {
    #[error("{source}; --no-calibrate goes on without")]
    Run { source: RunError },
    #[error("the probe ended before it had an answer ({0}); --no-calibrate goes on without")]
    NoAnswer(serde_json::Error),
    #[error("{0}; --no-calibrate goes on without")]
    Pipe(#[source] io::Error),
}

/// Measures the floor of `trap`, and the constant to take off a delay of `delay` for one page.
///
/// # Errors
/// When the engine cannot run the probe.
pub(crate) fn calibrate(trap: TrapKind, delay: Duration) -> Result<Calibration, CalibrationError> {
    let floor_ns = floor(trap)?;
    // An impossible delay shows nothing but the floor again.
    let delay = delay.max(Duration::from_ns(floor_ns));
    let first = probe(trap, delay, floor_ns)?;
    let constant_ns = floor_ns.saturating_add_signed(error_ns(&first, delay));
    let second = probe(trap, delay, constant_ns)?;
    Ok(Calibration { floor_ns, constant_ns, median_error_ns: error_ns(&second, delay) })
}

/// Measures the shortest fetch that `trap` can do, in nanoseconds.
///
/// # Errors
/// When the engine cannot run the probe.
pub(crate) fn floor(trap: TrapKind) -> Result<u64, CalibrationError> {
    // Not zero: without any delay the trap does not even look at the clock.
    let probed = probe(trap, Duration::from_ns(1), 0)?;
    Ok(probed.p50_ns)
}

fn error_ns(probed: &Probed, delay: Duration) -> i64 {
    probed.p50_ns.cast_signed() - delay.as_ns().cast_signed()
}

/// Runs one probe. In a thread of its own: the engine blocks signals in the thread it runs in and
/// raises its priority, and the program to come must inherit neither.
fn probe(trap: TrapKind, delay: Duration, constant_ns: u64) -> Result<Probed, CalibrationError> {
    let run = move || probe_here(trap, delay, constant_ns);
    match std::thread::spawn(run).join() {
        Ok(probed) => probed,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn probe_here(
    trap: TrapKind,
    delay: Duration,
    constant_ns: u64,
) -> Result<Probed, CalibrationError> {
    // Both ends inheritable, so that the probe finds its end by number; nothing else is started
    // meanwhile. An answer fits in a pipe's buffer, so it can be read afterwards.
    let (near, far) = rustix::pipe::pipe().map_err(|error| CalibrationError::Pipe(error.into()))?;
    let expected = delay.max(FAULT_GUESS).as_ns();
    let touches = (TOUCHING.as_ns() / expected).clamp(TOUCHES_MIN, TOUCHES_MAX);
    let config = RunConfig {
        program: vec![
            "/proc/self/exe".into(),
            "probe".into(),
            format!("--pages={PAGES}").into(),
            format!("--touches={touches}").into(),
            format!("--output=/proc/self/fd/{}", far.as_raw_fd()).into(),
        ],
        trap,
        tiers: vec![Tier {
            name: "far".to_owned(),
            local: Some(LocalSize::Bytes(LOCAL.bytes())),
            link: LinkConfig {
                // Writing back what the probe has initialised must not hold up its fetches.
                mode: LinkMode::PerFault,
                rtt: delay,
                bandwidth: None,
                profile: None,
            },
        }],
        of: None,
        scope: BudgetScope::Process,
        policy: PolicyKind::Fifo,
        prefetch: farmem::Prefetch::None,
        probation: None,
        seed: 1,
        record: false,
        constant_ns,
    };
    let run = |config| Supervisor::start(config, &mut Silent)?.run();
    run(config).map_err(|source| CalibrationError::Run { source })?;
    drop(far);
    answer(near)
}

fn answer(near: OwnedFd) -> Result<Probed, CalibrationError> {
    let mut text = String::new();
    File::from(near).read_to_string(&mut text).map_err(CalibrationError::Pipe)?;
    serde_json::from_str(&text).map_err(CalibrationError::NoAnswer)
}
