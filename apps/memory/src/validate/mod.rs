//! `afar run --validate`: compares emulated runs with real runs, whose pages are on a blade.
//!
//! ```text
//! real run ─► faults ─► how long a fetch took ─┐
//! probe on a blade with that delay ─► unseen ──┴─► profile ─► emulated runs
//! blocks, shuffled: native, real, emulated, ablations ─► ratios of a block ─► agreement
//! ```
//!
//! DESIGN NOTES
//!
//! * The profile is of a run that is not compared, with another seed: emulated runs are not
//!   compared with the run from which they were made.
//! * No trap sees a whole fetch as the program does. The unseen part of a real fetch is measured
//!   with a blade that answers after the median time, in a run of a probe that times itself, and
//!   added to the times of the profile; an emulated run subtracts what its own trap does not see
//!   from its requested delay.
//! * Emulated threads wait as those of the real run mostly did, spinning or asleep.
//! * The supervisor's work for a blade on another processor, and a target on this machine, keep
//!   processors busy in real runs only. Where the program needs all of them, that is a difference
//!   which an emulation of delays does not have.

mod error;
pub(crate) mod flags;
mod profile;
mod side;
mod told;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::experiment::machine::Measuring;
use ::experiment::{Ratios, order, stats};
use console::{Class, Failure, Output, Progress, terminal};
use measure::{Duration, LocalSize, ShareOf};
use results::{Agreement, Emulated, Estimate, FetchTimes, ValidatedSide, Validation};

use crate::experiment::Experiment;
use crate::far::Far;
use crate::program;
use crate::run::flags::{RunFlags, Wait};

use error::{Stopped, ValidateError};
use profile::Times;
use side::{Emulation, Kind, Once, Runs};

/// The fetches and the bytes moved may differ by this share.
const COUNTS_WITHIN: f64 = 0.02;

/// Runs `afar run --validate`.
///
/// # Errors
/// When a run fails or is invalid, or emulated and real runs do not surely agree.
pub(crate) fn validate(flags: &RunFlags) -> Result<ExitCode, Failure> {
    let experiment = Experiment::resolve(flags)?;
    if let Some(name) = experiment.program.first() {
        program::check(name, experiment.engine)?;
    }
    let mut record = frame(flags, &experiment);
    let json = flags.json.as_deref().map(Output::open).transpose()?;
    let _alone = Measuring::begin().map_err(ValidateError::from)?;
    let directory = Directory::open(flags.validation.output.as_deref())?;
    let signals = console::interrupts().map_err(ValidateError::from)?;
    let runs = Runs {
        flags,
        directory: &directory.path,
        signals: &signals,
        given: experiment.tiers[0].link.profile.clone(),
        emulations: RefCell::default(),
    };
    match measure(&runs, &mut record) {
        Ok(()) => {}
        Err(Stopped::Interrupted) => {
            terminal::say("afar run: interrupted; there is no result\n");
            return Ok(Class::Interrupted.into());
        }
        Err(Stopped::Error(error)) => {
            if let (ValidateError::Invalid { .. }, Some(json)) = (&error, json) {
                record.invalid = Some(error.to_string());
                json.write(&results::write(&record))?;
            }
            return Err(error.into());
        }
    }
    console::answer(|| told::text(&record), vec![(json, &|| results::write(&record))])?;
    let plain = record.emulated.first().expect("the plain emulation always runs");
    let class = match plain.agreement {
        Agreement::Agrees => return Ok(ExitCode::SUCCESS),
        Agreement::Differs | Agreement::Counts => Class::Above,
        Agreement::Undecided | Agreement::Insensitive | Agreement::Disturbed => Class::Undecided,
    };
    Err(Failure::shown(class, told::verdict(&record, plain)))
}

/// The directory of records; without a name it is temporary.
struct Directory {
    path: PathBuf,
    is_kept: bool,
    _made: console::Directory,
}

impl Directory {
    fn open(wanted: Option<&Path>) -> Result<Self, ValidateError> {
        let scratch = || std::env::temp_dir().join(format!("afar-validate-{}", std::process::id()));
        let path = wanted.map_or_else(scratch, Path::to_owned);
        let made = console::Directory::make(&path)?;
        Ok(Self { path, is_kept: wanted.is_some(), _made: made })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.is_kept {
            let _gone = fs::remove_dir_all(&self.path);
        }
    }
}

// The record of the validation, without its results.
fn frame(flags: &RunFlags, experiment: &Experiment) -> Validation {
    let local = flags.local.unwrap_or(LocalSize::Fraction(measure::Fraction::ONE));
    let of = flags.of.unwrap_or(ShareOf::Live);
    Validation {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: flags.program.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        far: Far::new(flags.validation.uris.clone(), 1, None).told(),
        local: local.to_string(),
        of: local.is_share().then(|| of.to_string()),
        policy: experiment.policy.to_string(),
        prefetch: experiment.prefetch.to_string(),
        seed: flags.seed,
        within: f64::from(flags.validation.within().ppm()) / 1e6,
        counts_within: COUNTS_WITHIN,
        invalid: None,
        profile: None,
        native_seconds: None,
        real: None,
        emulated: Vec::new(),
    }
}

/// The runs of one kind, by block.
struct Side {
    kind: Kind,
    wait: Wait,
    runs: Vec<Once>,
}

/// The times of fetches of a real run, and how much of each its trap has not seen.
struct Fetches {
    times: Times,
    unseen_ns: u64,
}

// Runs all kinds in shuffled blocks, and compares them.
fn measure(runs: &Runs<'_>, record: &mut Validation) -> Result<(), Stopped> {
    let validation = &runs.flags.validation;
    let mut ablations = validation.ablate.clone();
    ablations.sort_unstable();
    ablations.dedup();
    let kinds: Vec<Kind> = [Kind::Native, Kind::Real, Kind::Emulated(None)]
        .into_iter()
        .chain(ablations.into_iter().map(|ablation| Kind::Emulated(Some(ablation))))
        .collect();
    let count = validation.repetitions() as usize * kinds.len();
    let mut progress = Progress::new("run", count + kinds.len() - 1);
    let (fetches, mut sides) = prepare(runs, &kinds, &mut progress)?;
    record.profile = Some(match &runs.given {
        Some(profile) => profile::told(profile),
        None => fetches.times.told(fetches.unseen_ns),
    });
    for block in 0..validation.repetitions() {
        for index in order(kinds.len(), runs.flags.seed, block) {
            let kind = kinds[index];
            progress.show(&format!("block {}: {}", block + 1, kind.name()));
            let once = runs.run(kind)?;
            progress.end(&format!("block {}: {} {:.3} s", block + 1, kind.name(), once.seconds));
            sides[index].runs.push(once);
        }
    }
    progress.close();
    conclude(runs, &sides, fetches.unseen_ns, record)
}

/// Measures the profile in a run that is not compared, and calibrates emulated runs in others.
fn prepare(
    runs: &Runs<'_>,
    kinds: &[Kind],
    progress: &mut Progress,
) -> Result<(Fetches, Vec<Side>), Stopped> {
    progress.show("the profile: real");
    let real = runs.once(Kind::Real, runs.flags.seed.wrapping_add(1))?;
    progress.end(&format!("the profile: real {:.3} s", real.seconds));
    let times = Times::read(&runs.faults(Kind::Real))?;
    let wait = match real.spin_max_ns {
        Some(longest_ns) if times.median_ns() <= longest_ns => Wait::Spin,
        _ => Wait::Sleep,
    };
    let median = Duration::from_ns(times.median_ns());
    progress.show("what a trap does not see");
    let unseen_ns = runs.unseen_ns(median)?;
    let fetches = Fetches { times, unseen_ns };
    let side = |&kind: &Kind| Side { kind, wait: kind.wait(wait), runs: Vec::new() };
    let sides: Vec<Side> = kinds.iter().map(side).collect();
    for side in &sides {
        let Kind::Emulated(_) = side.kind else { continue };
        let name = side.kind.name();
        progress.show(&format!("calibration: {name}"));
        calibrate(runs, side.kind, side.wait, &fetches)?;
        progress.end(&format!("calibration: {name}"));
    }
    Ok((fetches, sides))
}

// Calibrates the trap in an emulated run that is not compared; the others use its calibration.
fn calibrate(runs: &Runs<'_>, kind: Kind, wait: Wait, fetches: &Fetches) -> Result<(), Stopped> {
    let name = kind.name();
    let profile = runs.directory.join(format!("{name}.csv"));
    let failed = |source| ValidateError::Directory { path: runs.directory.to_owned(), source };
    let measured = || fetches.times.profile(kind.shape(), fetches.unseen_ns);
    let text = runs.given.clone().unwrap_or_else(measured).to_csv();
    fs::write(&profile, text).map_err(failed)?;
    let write_back = kind.write_back();
    let emulation = Emulation { wait, write_back, profile, calibrated: None };
    runs.emulations.borrow_mut().insert(name, emulation.clone());
    let once = runs.once(kind, runs.flags.seed.wrapping_add(1))?;
    let calibrated = runs.directory.join(format!("{name}-calibrated.json"));
    fs::copy(runs.record(kind), &calibrated).map_err(failed)?;
    let calibrated = once.calibration.map(|_| calibrated);
    runs.emulations.borrow_mut().insert(name, Emulation { calibrated, ..emulation });
    Ok(())
}

// Computes the ratios and agreements of emulated runs with real ones.
fn conclude(
    runs: &Runs<'_>,
    sides: &[Side],
    unseen_ns: u64,
    record: &mut Validation,
) -> Result<(), Stopped> {
    let [native, real, emulated @ ..] = sides else { return Ok(()) };
    let seconds: Vec<f64> = native.runs.iter().map(|once| once.seconds).collect();
    record.native_seconds = stats::estimate(&seconds);
    let seen = Times::read(&runs.faults(Kind::Real))?;
    let really = told_side(real, native, seen.told(unseen_ns));
    for side in emulated {
        let ratios = beside(side, real);
        let (values, is_disturbed) = ratios.counting();
        let ratio = estimate(&values);
        // The record of an emulated run has whole fetches: nothing is unseen.
        let told = told_side(side, native, Times::read(&runs.faults(side.kind))?.told(0));
        let fetch_ratio = told.fetch_count / really.fetch_count.max(1.0);
        let moved_ratio = told.moved_bytes / really.moved_bytes.max(1.0);
        let counts = [fetch_ratio, moved_ratio];
        let agreement = match is_disturbed {
            true => Agreement::Disturbed,
            false => Agreement::of(&ratio, record.within, counts, record.counts_within)
                .with_slowdown(really.slowdown.median),
        };
        record.emulated.push(Emulated {
            name: side.kind.name().to_owned(),
            side: told,
            ratio,
            fetch_ratio,
            moved_ratio,
            agreement,
            disturbed_count: ratios.disturbed_count(),
            first_disturbance: ratios.first_disturbance().map(str::to_owned),
        });
    }
    record.real = Some(really);
    Ok(())
}

// The ratios of times of one kind to those of another, by block.
fn beside(side: &Side, other: &Side) -> Ratios {
    let mut ratios = Ratios::default();
    for (block, (once, other)) in (0..).zip(side.runs.iter().zip(&other.runs)) {
        let disturbed = once.disturbed.clone().or_else(|| other.disturbed.clone());
        ratios.add(block, once.seconds / other.seconds, disturbed);
    }
    ratios
}

// The medians of one kind, for the record.
fn told_side(side: &Side, native: &Side, fetch: FetchTimes) -> ValidatedSide {
    let values = |of: fn(&Once) -> f64| side.runs.iter().map(of).collect::<Vec<f64>>();
    let moved = |once: &Once| {
        let figures = once.figures.as_ref();
        figures.map_or(0.0, |all| (all.fetched_bytes + all.written_back_bytes) as f64)
    };
    let fetched =
        |once: &Once| once.figures.as_ref().map_or(0.0, |all| all.faults.fetch_count as f64);
    ValidatedSide {
        wait: side.wait.name().to_owned(),
        seconds: estimate(&values(|once| once.seconds)),
        slowdown: estimate(&beside(side, native).all().collect::<Vec<f64>>()),
        fetch_count: stats::median(&mut values(fetched)).unwrap_or(0.0),
        moved_bytes: stats::median(&mut values(moved)).unwrap_or(0.0),
        fetch,
    }
}

fn estimate(values: &[f64]) -> Estimate {
    stats::estimate(values).expect("each kind runs at least once")
}
