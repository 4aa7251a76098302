//! `afar run`: resolves flags, opens outputs, runs the program under watch, prints the summary.

pub(crate) mod flags;

use std::process::ExitCode;

use blades::Blade;
use console::{Class, Failure, Output, terminal};
use farmem::{Outcome, RunError, Supervisor, TrapKind};
use measure::{InvalidRun, Run};
use paging::FetchOrder;
use swap::SwapSupervisor;
use sys::process::Change;

use crate::control::Control;
use crate::mechanism::Mechanism;
use crate::record::Recorded;
use crate::run::flags::RunFlags;
use crate::run_failed::RunFailed;
use crate::setup::Setup;
use crate::summary;
use crate::summary::Extra;
use crate::validate::validate;
use crate::watch::Watch;
use document::NotRecorded;
use results::validity;

/// Runs a program and prints what it cost. Returns the program's own exit status.
///
/// # Errors
/// When the program could not be run, or the results could not be written.
pub fn run(flags: &RunFlags) -> Result<ExitCode, Failure> {
    if !flags.validation.uris.is_empty() {
        return validate(flags);
    }
    let mut setup = Setup::resolve(flags)?;
    if flags.dry_run {
        terminal::answer(&setup.dry_run())?;
        return Ok(ExitCode::SUCCESS);
    }
    setup.calibrate()?;
    terminal::detail(|| format!("runs with {}", setup.dry_run().trim_end()));
    let blade = setup.reach(flags.far_take)?;
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let order = setup.order()?;
    let mut watch = setup.watch(flags)?;
    let mut record = setup.frame();
    let ended = supervise(&setup, &mut watch, blade.map(|blade| (blade, order)))
        .map(|outcome| judged(outcome, flags));
    let verdict = ended.as_ref().ok().map(|outcome| outcome.results.figures().map(drop));
    let recorded = close(watch, &mut setup.warnings, verdict.as_ref());
    let Outcome { change, results, order, .. } = ended.map_err(RunFailed)?;
    record.results = results;
    record.results.remembered = order.as_ref().map(|order| order.counts);
    let kept = setup.remember.take().zip(order);
    let kept = kept.map(|(remember, order)| remember.keep(order, change));
    let (said, kept) = kept.unwrap_or_else(|| (Vec::new(), Ok(())));
    setup.warnings.extend(said);
    record.results.calibration = setup.calibration();
    record.results.warnings.splice(0..0, setup.warnings);
    // A run without any result is no failure: the summary and the record say so, and the program
    // has run.
    let failed = record.results.figures().err().filter(|_| !record.results.tells_nothing());
    if !console::is_quiet() {
        tell(flags, &record, recorded.as_ref().ok().copied().flatten());
    } else if let Some(invalid) = &failed {
        terminal::say(&format!("afar run: {}\n", validity::told(invalid)));
    }
    if let Some(json) = json {
        json.write(&record.to_json())?;
    }
    recorded?;
    kept?;
    Ok(match change {
        // A program that was ended by a signal is reported as that, whatever its verdict.
        Change::Exited(_) if failed.is_some() => Class::Invalid.into(),
        change => exit_code(change),
    })
}

// The outcome with unmanaged memory allowed, if the flags say so.
fn judged(outcome: Outcome, flags: &RunFlags) -> Outcome {
    let results = match flags.allow_unmanaged {
        true => outcome.results.allowing_unmanaged(),
        false => outcome.results,
    };
    Outcome { results, ..outcome }
}

// Runs the program under the engine of `setup`, with pages on a blade if there is one.
fn supervise(
    setup: &Setup,
    watch: &mut Watch,
    far: Option<(Box<dyn Blade>, Option<FetchOrder>)>,
) -> Result<Outcome, RunError> {
    let record = watch.recorder.is_some();
    let arena = |trap| {
        let config = setup.config(trap, record);
        let started = match far {
            None => Supervisor::start(config, watch),
            Some((blade, None)) => Supervisor::start_far(config, watch, blade, None),
            Some((blade, order)) => sys::process::at_fixed_addresses(|| {
                Supervisor::start_far(config, watch, blade, order)
            })?,
        };
        started?.run()
    };
    match setup.mechanism() {
        Mechanism::Arena(trap) => arena(trap),
        // userfaultfd takes the faults for which no thread spins.
        Mechanism::Spinning => arena(TrapKind::Userfault),
        Mechanism::Swap => SwapSupervisor::start(setup.swap_config(record), watch)?.run(),
    }
}

/// Ends the watch: erases the line, closes the socket, and finishes the record with the verdict on
/// the run; `None` if it has none.
fn close(
    watch: Watch,
    warnings: &mut Vec<String>,
    verdict: Option<&Result<(), InvalidRun>>,
) -> Result<Option<Recorded>, Failure> {
    drop(watch.live);
    warnings.extend(watch.control.map(Control::into_changes).unwrap_or_default());
    let Some(recorder) = watch.recorder else {
        return Ok(None);
    };
    let path = recorder.path().to_owned();
    let recorded = recorder.finish(verdict).map_err(|source| NotRecorded { path, source })?;
    if recorded.dropped_count > 0 {
        warnings.push(format!(
            "{} faults are missing in the record: its disk was too slow",
            recorded.dropped_count
        ));
    }
    Ok(Some(recorded))
}

// Prints the summary.
fn tell(flags: &RunFlags, record: &Run, recorded: Option<Recorded>) {
    let path = flags.record.as_deref().map(|path| path.display().to_string());
    let program = flags.program.first().map(|name| name.to_string_lossy().into_owned());
    let extra = Extra {
        program: program.as_deref().unwrap_or_default(),
        recorded: path.as_deref().zip(recorded),
    };
    terminal::say(&summary::text(record, &extra));
}

/// The exit status of the program's end, as a shell reports it.
fn exit_code(change: Change) -> ExitCode {
    let status = match change {
        Change::Exited(status) => status,
        Change::Killed(signal) => 128 + signal,
        // The engine ends with the program only.
        Change::Stopped { .. } => 125,
    };
    ExitCode::from(u8::try_from(status & 0xff).unwrap_or(u8::MAX))
}
