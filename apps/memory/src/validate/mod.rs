//! `afar run --validate`: an emulated run held against one whose pages are far for real.
//!
//! ```text
//! real run ─► faults ─► how long a fetch took ─► profile ─► emulated run ─► what a trap cannot see
//!                                                               ▲                  │
//!                                                               └── profile again ─┘
//! blocks, shuffled: native, real, emulated, ablations ─► ratios of a block ─► agreement
//! ```
//!
//! DESIGN NOTES
//!
//! * The profile is of a run that is not compared, with another seed: emulated runs are not held
//!   against what they were made of.
//! * A trap cannot see the end of a fetch. In an emulated run that end is part of what is asked
//!   for, so it is added to what the real run has measured.
//! * Emulated threads wait as those of the real run mostly did, spinning or asleep.
//! * What the supervisor does for a blade on another processor, and a target on this machine, keep
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

use ::experiment::{Ratios, order, stats};
use console::{Class, Failure, Output, Progress, terminal};
use measure::{LocalSize, ShareOf};
use results::{Agreement, Emulated, Estimate, FetchTimes, ValidatedSide, Validation};

use crate::experiment::Experiment;
use crate::far::Far;
use crate::run::flags::{RunFlags, Wait};

use error::{Stopped, ValidateError};
use profile::Times;
use side::{Emulation, Kind, Once, Runs};

/// What was fetched and moved may differ by so much.
const COUNTS_WITHIN: f64 = 0.02;

/// Runs `afar run --validate`.
///
/// # Errors
/// When a run fails or is invalid, or emulated and real runs do not surely agree.
pub(crate) fn validate(flags: &RunFlags) -> Result<ExitCode, Failure> {
    let experiment = Experiment::resolve(flags)?;
    let mut record = frame(flags, &experiment);
    let json = flags.json.as_deref().map(Output::open).transpose()?;
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
        Agreement::Undecided | Agreement::Disturbed => Class::Undecided,
    };
    Err(Failure::shown(class, told::verdict(&record, plain)))
}

/// Where records are; without a name it goes with the validation.
struct Directory {
    path: PathBuf,
    is_kept: bool,
}

impl Directory {
    fn open(wanted: Option<&Path>) -> Result<Self, ValidateError> {
        let scratch = || std::env::temp_dir().join(format!("afar-validate-{}", std::process::id()));
        let path = wanted.map_or_else(scratch, Path::to_owned);
        let failed = |source| ValidateError::Directory { path: path.clone(), source };
        fs::create_dir_all(&path).map_err(failed)?;
        Ok(Self { path, is_kept: wanted.is_some() })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.is_kept {
            let _gone = fs::remove_dir_all(&self.path);
        }
    }
}

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
        within: f64::from(flags.validation.within.ppm()) / 1e6,
        counts_within: COUNTS_WITHIN,
        invalid: None,
        profile: None,
        native_seconds: None,
        real: None,
        emulated: Vec::new(),
    }
}

/// The runs of one kind, by block, and what a trap cannot see of their fetches.
struct Side {
    kind: Kind,
    wait: Wait,
    constant_ns: u64,
    runs: Vec<Once>,
}

fn measure(runs: &Runs<'_>, record: &mut Validation) -> Result<(), Stopped> {
    let validation = &runs.flags.validation;
    let mut ablations = validation.ablate.clone();
    ablations.sort_unstable();
    ablations.dedup();
    let kinds: Vec<Kind> = [Kind::Native, Kind::Real, Kind::Emulated(None)]
        .into_iter()
        .chain(ablations.into_iter().map(|ablation| Kind::Emulated(Some(ablation))))
        .collect();
    let count = validation.repetitions as usize * kinds.len();
    let mut progress = Progress::new("run", count + kinds.len() - 1);
    let (times, mut sides) = prepare(runs, &kinds, &mut progress)?;
    let constant_ns = sides[2].constant_ns;
    record.profile = Some(match &runs.given {
        Some(profile) => profile::told(profile),
        None => times.told(constant_ns),
    });
    for block in 0..validation.repetitions {
        for index in order(kinds.len(), runs.flags.seed, block) {
            let kind = kinds[index];
            progress.show(&format!("block {}: {}", block + 1, kind.name()));
            let once = runs.run(kind)?;
            progress.end(&format!("block {}: {} {:.3} s", block + 1, kind.name(), once.seconds));
            sides[index].runs.push(once);
        }
    }
    progress.close();
    conclude(runs, &sides, record)
}

/// Measures the profile in a run that does not count, and what the traps of emulated runs cannot
/// see in others.
fn prepare(
    runs: &Runs<'_>,
    kinds: &[Kind],
    progress: &mut Progress,
) -> Result<(Times, Vec<Side>), Stopped> {
    progress.show("the profile: real");
    let real = runs.once(Kind::Real, runs.flags.seed.wrapping_add(1))?;
    progress.end(&format!("the profile: real {:.3} s", real.seconds));
    let times = Times::read(&runs.faults(Kind::Real))?;
    let wait = match real.spin_max_ns {
        Some(longest_ns) if times.median_ns() <= longest_ns => Wait::Spin,
        _ => Wait::Sleep,
    };
    let side = |kind, wait, constant_ns| Side { kind, wait, constant_ns, runs: Vec::new() };
    let mut sides: Vec<Side> = kinds.iter().map(|&kind| side(kind, kind.wait(wait), 0)).collect();
    for side in &mut sides {
        let Kind::Emulated(_) = side.kind else { continue };
        let name = side.kind.name();
        progress.show(&format!("calibration: {name}"));
        side.constant_ns = calibrate(runs, side.kind, side.wait, &times)?;
        progress.end(&format!("calibration: {name}"));
    }
    sides[1].constant_ns = sides[2].constant_ns;
    Ok((times, sides))
}

// An emulated run that does not count: it calibrates its trap, and the others take what it found.
fn calibrate(runs: &Runs<'_>, kind: Kind, wait: Wait, times: &Times) -> Result<u64, Stopped> {
    let profile = runs.directory.join(format!("{}.csv", kind.name()));
    let write = |constant_ns| {
        let given = runs.given.clone();
        let text = given.unwrap_or_else(|| times.profile(kind.shape(), constant_ns)).to_csv();
        let failed = |source| ValidateError::Directory { path: profile.clone(), source };
        fs::write(&profile, text).map_err(failed)
    };
    write(0)?;
    let emulation = Emulation { wait, profile: profile.clone(), calibrated: None };
    let name = kind.name();
    runs.emulations.borrow_mut().insert(name, emulation.clone());
    let once = runs.once(kind, runs.flags.seed.wrapping_add(1))?;
    let constant_ns = once.calibration.map_or(0, |calibration| calibration.constant_ns);
    let calibrated = runs.directory.join(format!("{name}-calibrated.json"));
    let failed = |source| ValidateError::Directory { path: calibrated.clone(), source };
    fs::copy(runs.record(kind), &calibrated).map_err(failed)?;
    write(constant_ns)?;
    let calibrated = once.calibration.map(|_| calibrated);
    runs.emulations.borrow_mut().insert(name, Emulation { calibrated, ..emulation });
    Ok(constant_ns)
}

fn conclude(runs: &Runs<'_>, sides: &[Side], record: &mut Validation) -> Result<(), Stopped> {
    let [native, real, emulated @ ..] = sides else { return Ok(()) };
    let seconds: Vec<f64> = native.runs.iter().map(|once| once.seconds).collect();
    record.native_seconds = stats::estimate(&seconds);
    let really = told_side(real, native, Times::read(&runs.faults(Kind::Real))?);
    for side in emulated {
        let ratios = beside(side, real);
        let (values, is_disturbed) = ratios.counting();
        let ratio = estimate(&values);
        let told = told_side(side, native, Times::read(&runs.faults(side.kind))?);
        let fetch_ratio = told.fetch_count / really.fetch_count.max(1.0);
        let moved_ratio = told.moved_bytes / really.moved_bytes.max(1.0);
        let counts = [fetch_ratio, moved_ratio];
        let agreement = match is_disturbed {
            true => Agreement::Disturbed,
            false => Agreement::of(&ratio, record.within, counts, record.counts_within),
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

fn beside(side: &Side, other: &Side) -> Ratios {
    let mut ratios = Ratios::default();
    for (block, (once, other)) in (0..).zip(side.runs.iter().zip(&other.runs)) {
        let disturbed = once.disturbed.clone().or_else(|| other.disturbed.clone());
        ratios.add(block, once.seconds / other.seconds, disturbed);
    }
    ratios
}

fn told_side(side: &Side, native: &Side, fetches: Times) -> ValidatedSide {
    let values = |of: fn(&Once) -> f64| side.runs.iter().map(of).collect::<Vec<f64>>();
    let moved = |once: &Once| {
        let figures = once.figures.as_ref();
        figures.map_or(0.0, |all| (all.fetched_bytes + all.written_back_bytes) as f64)
    };
    let fetched =
        |once: &Once| once.figures.as_ref().map_or(0.0, |all| all.faults.fetch_count as f64);
    // An emulated run's record has the end of a fetch in it.
    let unseen_ns = if side.kind == Kind::Real { side.constant_ns } else { 0 };
    let fetch: FetchTimes = fetches.told(unseen_ns);
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
