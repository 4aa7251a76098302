//! `afar run`: resolve, check, calibrate, open outputs, run under watch, tell.

use std::path::Path;
use std::process::ExitCode;

use farmem::runtime::{Outcome, RunError, Supervisor};
use measure::{Calibration, Duration, Params, Results, Run, RunResults};
use serde::Serialize;
use sys::process::Change;

use crate::calibrate::calibrate;
use crate::control::Control;
use crate::experiment::Experiment;
use crate::failure::Failure;
use crate::flags::RunFlags;
use crate::live::LiveLine;
use crate::output::Output;
use crate::record::{Recorded, Recorder};
use crate::summary::{self, Extra};
use crate::trap::{self, Choice};
use crate::tuning::Tuning;
use crate::watch::Watch;
use crate::{host, program, terminal};

/// Median errors of the calibration that are not worth a word, in nanoseconds and as one part of
/// the delay in so many.
const ERROR_NS_TOLERATED: u64 = 100;
const ERROR_SHARE_TOLERATED: u64 = 50;

/// Runs a program and tells what it cost; the answer is the program's own exit status.
///
/// # Errors
/// When it could not be run, or the results could not be written.
pub(crate) fn run(flags: &RunFlags) -> Result<ExitCode, Failure> {
    let experiment = Experiment::resolve(flags)?;
    if let Some(name) = experiment.program.first() {
        program::check(name)?;
    }
    let choice = trap::choose(&experiment)?;
    // Against limits that are known already; the floor is not yet.
    Tuning::new(&experiment, choice.kind, Duration::ZERO).check()?;
    if flags.dry_run {
        let text = dry_run(&experiment, &choice);
        terminal::answer(&text).map_err(Failure::Stdout)?;
        return Ok(ExitCode::SUCCESS);
    }
    let calibration = match experiment.shortest_delay() {
        Some(delay) if experiment.calibrate => Some(calibrate(choice.kind, delay)?),
        _ => None,
    };
    let floor = Duration::from_ns(calibration.map_or(0, |calibration| calibration.floor_ns));
    let mut warnings = Vec::new();
    if let Err(below) = Tuning::new(&experiment, choice.kind, floor).check() {
        if !experiment.allow_below_floor {
            return Err(below.into());
        }
        warnings.push(below.to_string());
    }
    warnings.extend(calibration.and_then(|calibration| doubt(&calibration, &experiment)));
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let allowed = if experiment.allow_below_floor { Duration::ZERO } else { floor };
    let tuning = Tuning::new(&experiment, choice.kind, allowed);
    let mut watch = watch(flags, &experiment, calibration, tuning)?;
    if watch.control.is_none() {
        warnings.push("no control socket, so afar ctl cannot reach this run".to_owned());
    }
    let mut record = frame(&experiment, &choice);
    let ended = supervise(&experiment, &choice, calibration, &mut watch);
    let recorded = close(watch, &mut warnings);
    let outcome = ended?;
    record.results = outcome.results;
    record.results.calibration = calibration;
    record.results.warnings.splice(0..0, warnings);
    if !flags.quiet {
        let recorded = recorded.as_ref().ok().copied().flatten();
        tell(flags, &record, &choice, recorded);
    }
    if let Some(json) = json {
        json.write(&record.to_json())?;
    }
    recorded?;
    Ok(exit_code(outcome.change))
}

/// What a reader should know of a calibration that did not succeed.
fn doubt(calibration: &Calibration, experiment: &Experiment) -> Option<String> {
    let error_ns = calibration.median_error_ns;
    let delay_ns = experiment.shortest_delay().map_or(0, Duration::as_ns);
    let tolerated_ns = ERROR_NS_TOLERATED.max(delay_ns / ERROR_SHARE_TOLERATED);
    let below = delay_ns < calibration.floor_ns;
    (!below && error_ns.unsigned_abs() > tolerated_ns).then(|| {
        format!(
            "delays are off by {error_ns:+} ns in the median, because the machine was busy while \
             afar calibrated itself; run again when it is idle"
        )
    })
}

/// What `--dry-run` prints.
#[derive(Serialize)]
struct DryRun {
    schema: &'static str,
    version: &'static str,
    program: Vec<String>,
    seed: u64,
    /// What a share of local memory is a share of; none is what is in use at each moment.
    of_bytes: Option<u64>,
    calibrate: bool,
    trap_reason: Option<String>,
    params: Params,
}

fn dry_run(experiment: &Experiment, choice: &Choice) -> String {
    let program = experiment.program.iter();
    let resolved = DryRun {
        schema: "afar.experiment/1",
        version: env!("CARGO_PKG_VERSION"),
        program: program.map(|word| word.to_string_lossy().into_owned()).collect(),
        seed: experiment.seed,
        of_bytes: experiment.of.map(measure::Bytes::get),
        calibrate: experiment.calibrate && experiment.shortest_delay().is_some(),
        trap_reason: choice.reason.clone(),
        params: experiment.params(choice.kind),
    };
    let mut text = serde_json::to_string_pretty(&resolved).expect("plain data has a JSON form");
    text.push('\n');
    text
}

/// The record of a run that has not begun.
fn frame(experiment: &Experiment, choice: &Choice) -> Run {
    Run {
        schema: RunResults::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command(),
        started_unix_ns: sys::clock::unix_ns(),
        seed: experiment.seed,
        host: host::describe(),
        params: experiment.params(choice.kind),
        results: RunResults::default(),
    }
}

fn command() -> Vec<String> {
    let arguments = std::env::args_os();
    arguments.map(|argument| argument.to_string_lossy().into_owned()).collect()
}

fn watch(
    flags: &RunFlags,
    experiment: &Experiment,
    calibration: Option<Calibration>,
    tuning: Tuning,
) -> Result<Watch, Failure> {
    let constant_ns = calibration.map_or(0, |calibration| calibration.constant_ns);
    let create = |path: &Path| {
        let notes = vec![
            ("schema", "afar.faults/1".to_owned()),
            ("command", command().join(" ")),
            ("seed", experiment.seed.to_string()),
        ];
        Recorder::create(path, constant_ns, notes).map_err(|source| Failure::output(path, source))
    };
    Ok(Watch {
        live: if flags.quiet { None } else { LiveLine::on_terminal() },
        recorder: flags.record.as_deref().map(create).transpose()?,
        control: Control::listen(experiment.program_name(), tuning).ok(),
    })
}

fn supervise(
    experiment: &Experiment,
    choice: &Choice,
    calibration: Option<Calibration>,
    watch: &mut Watch,
) -> Result<Outcome, RunError> {
    let constant_ns = calibration.map_or(0, |calibration| calibration.constant_ns);
    let config = experiment.config(choice.kind, constant_ns, watch.recorder.is_some());
    Supervisor::start(config, watch)?.run()
}

/// Ends the watch: erases the line, closes the socket, finishes the record.
fn close(watch: Watch, warnings: &mut Vec<String>) -> Result<Option<Recorded>, Failure> {
    drop(watch.live);
    warnings.extend(watch.control.map(Control::into_changes).unwrap_or_default());
    let Some(recorder) = watch.recorder else {
        return Ok(None);
    };
    let path = recorder.path().to_owned();
    let recorded = recorder.finish().map_err(|source| Failure::Record { path, source })?;
    if recorded.dropped_count > 0 {
        warnings.push(format!(
            "{} faults are missing in the record: its disk was too slow",
            recorded.dropped_count
        ));
    }
    Ok(Some(recorded))
}

fn tell(flags: &RunFlags, record: &Run, choice: &Choice, recorded: Option<Recorded>) {
    let path = flags.record.as_deref().map(|path| path.display().to_string());
    let program = flags.program.first().map(|name| name.to_string_lossy().into_owned());
    let extra = Extra {
        choice,
        program: program.as_deref().unwrap_or_default(),
        recorded: path.as_deref().zip(recorded),
    };
    terminal::say(&summary::text(record, &extra));
}

/// The program's end as a shell reports it.
fn exit_code(change: Change) -> ExitCode {
    let status = match change {
        Change::Exited(status) => status,
        Change::Killed(signal) => 128 + signal,
        // The engine ends with the program only.
        Change::Stopped { .. } | Change::Continued => 125,
    };
    ExitCode::from(u8::try_from(status & 0xff).unwrap_or(u8::MAX))
}
