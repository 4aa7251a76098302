//! The profile of a program, from one run with all memory local.

use std::ffi::OsString;

use console::{Failure, Progress};
use farmem::{BudgetScope, Outcome, RunConfig, Supervisor, Tier, TrapKind};
use measure::{Duration, EngineKind, Fraction, LinkConfig, LinkMode, LocalSize};
use paging::reuse::{SamplerConfig, Touches};
use paging::write_back::WriteBack;
use paging::{PolicyKind, Prefetch};
use results::prediction::Facts;
use sys::event::{SIGHUP, SIGINT, SIGTERM};
use sys::process::Change;

use super::PredictError;
use crate::calibrate::{NotCalibrated, calibrate};
use crate::live::LiveLine;
use crate::run_failed::RunFailed;
use crate::watch::Watch;
use crate::{program, software, trap};
use console::machine;

/// How a program uses its memory.
pub(super) struct Profile {
    pub(super) facts: Facts,
    pub(super) touches: Touches,
}

/// The seed of the sample, which need not vary.
const SEED: u64 = 1;
/// A delay typical of predictions, for the calibration.
const DELAY: Duration = Duration::from_us(5);

/// How long the program takes without being watched.
pub(super) fn alone(facts: &Facts) -> Duration {
    alone_if(facts, 1.0)
}

/// As [`alone`], if watching cost `times` as much as was measured.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
pub(super) fn alone_if(facts: &Facts, times: f64) -> Duration {
    if let Some(known_ns) = facts.known_ns {
        return Duration::from_ns(known_ns);
    }
    let cost_ns = facts.soft_count.saturating_mul(facts.software.touch_ns) as f64 * times;
    // Watching takes more than half of a run only if the machine was busy otherwise.
    let left_ns = facts.elapsed_ns.saturating_sub(cost_ns as u64);
    Duration::from_ns(left_ns.max(facts.elapsed_ns / 2))
}

/// The cost in nanoseconds of a soft fault, if there are `count` in a run and a share of `in_order`
/// of them is in order: that of a fetch without a delay.
pub(super) fn soft_ns(facts: &Facts, count: f64, in_order: f64) -> f64 {
    let work_ns = facts.elapsed_ns as f64 / count.max(1.0);
    facts.floor_ns as f64 + software::fetch_ns(&facts.software, work_ns, in_order)
}

/// How many processors can wait for fetches at a time.
pub(super) fn processors(facts: &Facts) -> u32 {
    u32::try_from(facts.host.cpu_count).unwrap_or(u32::MAX).max(1)
}

/// Runs `words` with all memory local and watches a sample of its pages.
///
/// # Errors
/// When the program cannot be run, or fails.
pub(super) fn watch(words: &[OsString], allow_unmanaged: bool) -> Result<Profile, Failure> {
    if let Some(name) = words.first() {
        program::check(name, EngineKind::Arena)?;
    }
    let kind = trap::any()?;
    let calibration = calibrate(kind, DELAY).map_err(NotCalibrated::from)?.calibration;
    let started_unix_ns = sys::clock::unix_ns();
    let live = LiveLine::if_watched();
    let mut watch = Watch { live, ..Watch::default() };
    let outcome = Supervisor::start(config(words, kind), &mut watch)
        .and_then(Supervisor::run)
        .map_err(RunFailed::from)?;
    drop(watch);
    // The engine has blocked these signals for its program, which has ended: from here on they end
    // afar as any command.
    sys::event::take_again(&[SIGHUP, SIGINT, SIGTERM]);
    let program: Vec<String> =
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let name = program.first().cloned().unwrap_or_default();
    let Outcome { change, results, touches, .. } = outcome;
    let touches = touches.unwrap_or_default();
    let results = if allow_unmanaged { results.allowing_unmanaged() } else { results };
    let end = match change {
        Change::Exited(0) => None,
        Change::Exited(status) => Some(format!("status {status}")),
        Change::Killed(SIGINT) => return Err(PredictError::Interrupted.into()),
        Change::Killed(signal) => Some(format!("signal {signal}")),
        Change::Stopped { .. } => None,
    };
    if let Some(end) = end {
        return Err(PredictError::Failed { program: name, end }.into());
    }
    let figures = results.figures().map_err(PredictError::from)?;
    if touches.events.is_empty() {
        return Err(PredictError::Nothing { program: name }.into());
    }
    // Only now, so that a program without a profile is reported at once.
    let mut progress = Progress::new("measurement", 1);
    let software = software::measure(kind, DELAY, &calibration, |done, all| {
        if done == 0 {
            progress.restart("measurement", all, 0);
        }
        while progress.ended() < done {
            progress.end("what a fetch costs on this machine");
        }
        progress.show("what a fetch costs on this machine");
    })?;
    drop(progress);
    let facts = Facts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program,
        started_unix_ns,
        host: machine::describe(),
        trap: kind.name().to_owned(),
        elapsed_ns: figures.elapsed_ns,
        known_ns: None,
        managed_peak_bytes: figures.managed_peak_bytes,
        first_touch_count: figures.faults.first_touch_count,
        sampled_share: touches.rate,
        sample_seed: touches.seed,
        earlier: touches.earlier.iter().map(|part| (part.end, part.rate, part.scale)).collect(),
        blind_share: touches.blind_share,
        soft_count: touches.soft_count,
        allowed: results.allowed.iter().map(|one| one.reason.clone()).collect(),
        floor_ns: calibration.floor_ns,
        software,
    };
    Ok(Profile { facts, touches })
}

// The run with all memory local whose pages are watched.
fn config(words: &[OsString], trap: TrapKind) -> RunConfig {
    RunConfig {
        program: words.to_vec(),
        trap,
        spin_max: None,
        processor: None,
        tiers: vec![Tier {
            name: "far".to_owned(),
            local: Some(LocalSize::Fraction(Fraction::ONE)),
            link: LinkConfig {
                mode: LinkMode::HalfDuplex,
                rtt: Duration::ZERO,
                bandwidth: None,
                profile: None,
            },
        }],
        of: None,
        scope: BudgetScope::Process,
        policy: PolicyKind::FIFO,
        prefetch: Prefetch::None,
        in_flight: None,
        write_back: WriteBack::default(),
        probation: None,
        seed: SEED,
        record: true,
        watch: Some(SamplerConfig::new(SEED)),
        constant_ns: 0,
        reference: 0,
    }
}
