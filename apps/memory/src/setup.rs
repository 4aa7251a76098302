//! Preparation of a run, before the program starts.

use std::path::Path;

use blades::Blade;
use console::{Failure, OutputError};
use farmem::{RunConfig, TrapKind};
use measure::{Calibration, Duration, Params, Results, Run, RunResults};
use paging::FetchOrder;
use serde::Serialize;
use swap::SwapConfig;

use crate::calibrate::{NotCalibrated, calibrate};
use crate::control::Control;
use crate::experiment::Experiment;
use crate::live::LiveLine;
use crate::mechanism::Mechanism;
use crate::program;
use crate::record::Recorder;
use crate::remember::Remember;
use crate::run::flags::RunFlags;
use crate::trap;
use crate::trap::Choice;
use crate::tuning::Tuning;
use crate::watch::Watch;
use console::machine;

/// Most calibrations before a delay counts as below the floor.
const CALIBRATIONS_MAX: u32 = 3;

/// A prepared run.
pub(crate) struct Setup {
    experiment: Experiment,
    choice: Choice,
    /// `None` without a delay, or if it was not wanted.
    calibration: Option<Calibration>,
    /// The order of first fetches; `None` if it is neither recorded nor replayed.
    pub(crate) remember: Option<Remember>,
    /// Warnings for the reader of the results.
    pub(crate) warnings: Vec<String>,
}

/// What `--dry-run` prints.
#[derive(Serialize)]
struct DryRun {
    schema: &'static str,
    version: &'static str,
    program: Vec<String>,
    seed: u64,
    /// The memory that a share of local memory relates to; `None` for what is in use at each
    /// moment.
    of_bytes: Option<u64>,
    calibrate: bool,
    trap_reason: Option<String>,
    params: Params,
}

impl Setup {
    /// Resolves and checks what it can without running anything.
    ///
    /// # Errors
    /// When the flags contradict one another, the program cannot be run, or this machine cannot do
    /// what is requested.
    pub(crate) fn resolve(flags: &RunFlags) -> Result<Self, Failure> {
        let experiment = Experiment::resolve(flags)?;
        if let Some(name) = experiment.program.first() {
            program::check(name, experiment.engine)?;
        }
        let choice = trap::choose(&experiment)?;
        // Check the limits that are known already; the floor is not yet.
        Tuning::new(&experiment, choice.mechanism, Duration::ZERO).check()?;
        let reason = choice.reason.iter();
        let name = choice.mechanism.trap();
        let warnings =
            reason.map(|reason| format!("trap {name} in place of bpf: {reason}")).collect();
        let remember = flags.remember.as_deref();
        let remember = remember.map(|path| Remember::of(path, &experiment.program)).transpose()?;
        Ok(Self { experiment, choice, calibration: None, remember, warnings })
    }

    /// Measures what a fault costs, if any fetch is to take time.
    ///
    /// # Errors
    /// When it cannot be measured, or a delay is shorter than a fault and that is not allowed.
    pub(crate) fn calibrate(&mut self) -> Result<(), Failure> {
        let wanted = self.experiment.calibrate;
        let Some(delay) = self.experiment.shortest_delay().filter(|_| wanted) else {
            return Ok(());
        };
        // The swap engine's delay is added to the kernel's own time.
        let Mechanism::Arena(trap) = self.choice.mechanism else {
            return Ok(());
        };
        if let Some(known) = &self.experiment.known {
            self.calibration = Some(known.of(trap)?);
            return self.check_floor(None);
        }
        let mut found = calibrate(trap, delay).map_err(NotCalibrated::from)?;
        // A floor above the delay may be due to a machine that was busy just then.
        for _ in 1..CALIBRATIONS_MAX {
            if delay.as_ns() >= found.calibration.floor_ns {
                break;
            }
            let again = calibrate(trap, delay).map_err(NotCalibrated::from)?;
            if again.calibration.floor_ns < found.calibration.floor_ns {
                found = again;
            }
        }
        self.calibration = Some(found.calibration);
        self.check_floor(found.doubt())
    }

    // Checks the delays against the measured floor, and adds `doubt` to the warnings.
    fn check_floor(&mut self, doubt: Option<String>) -> Result<(), Failure> {
        match Tuning::new(&self.experiment, self.choice.mechanism, self.floor()).check() {
            Ok(()) => self.warnings.extend(doubt),
            Err(below) if self.experiment.allow_below_floor => {
                self.warnings.push(below.to_string());
            }
            Err(below) => return Err(below.into()),
        }
        Ok(())
    }

    /// Connects to the blades of `--far`, `None` without it; with `takes`, also to one that another
    /// run has reserved.
    ///
    /// # Errors
    /// When a blade cannot be reached, or another run has it.
    pub(crate) fn reach(&mut self, takes: bool) -> Result<Option<Box<dyn Blade>>, Failure> {
        let reached = self.experiment.far.as_ref().map(|far| far.reach(takes)).transpose()?;
        let (blade, warnings) = reached.unzip();
        self.warnings.extend(warnings.into_iter().flatten());
        Ok(blade)
    }

    /// The order of first fetches for the engine; `None` without `--remember`. Opens its file if it
    /// is to be recorded.
    ///
    /// # Errors
    /// When the file cannot be written to.
    pub(crate) fn order(&mut self) -> Result<Option<FetchOrder>, Failure> {
        let Some(remember) = &mut self.remember else { return Ok(None) };
        remember.open()?;
        Ok(Some(remember.order(self.experiment.prefetch)))
    }

    /// Opens the observers of the run: live line, record and control socket.
    ///
    /// # Errors
    /// When the record of faults cannot be created.
    pub(crate) fn watch(&mut self, flags: &RunFlags) -> Result<Watch, Failure> {
        let params = self.experiment.params(self.choice.mechanism);
        let local = params.share_told().unwrap_or(params.local);
        let create = |path: &Path| {
            let local = local.clone();
            let notes = vec![
                ("schema", records::FAULTS_SCHEMA.to_owned()),
                ("command", command().join(" ")),
                ("seed", self.experiment.seed.to_string()),
                ("local", local),
            ];
            Recorder::create(path, self.constant_ns(), notes)
                .map_err(|source| OutputError::open(path, source))
        };
        let recorder = flags.record.as_deref().map(create).transpose()?;
        let allow_below_floor = self.experiment.allow_below_floor;
        let floor = if allow_below_floor { Duration::ZERO } else { self.floor() };
        let tuning = Tuning::new(&self.experiment, self.choice.mechanism, floor);
        let control = Control::listen(self.experiment.program_name(), tuning);
        if let Err(error) = &control {
            self.warnings.push(format!(
                "afar ctl cannot reach this run: its socket was not opened: {error}"
            ));
        }
        Ok(Watch { live: LiveLine::if_watched(), recorder, control: control.ok() })
    }

    /// The engine and trap of the run.
    pub(crate) const fn mechanism(&self) -> Mechanism {
        self.choice.mechanism
    }

    /// The configuration for the arena engine.
    pub(crate) fn config(&self, trap: TrapKind, record: bool) -> RunConfig {
        let cost = self.calibration.unwrap_or_default();
        let spin_max = match self.choice.mechanism {
            Mechanism::Spinning => Some(self.experiment.spin_max()),
            Mechanism::Arena(_) | Mechanism::Swap => None,
        };
        RunConfig { spin_max, ..self.experiment.config(trap, cost, record) }
    }

    /// The configuration for the swap engine.
    pub(crate) fn swap_config(&self, record: bool) -> SwapConfig {
        self.experiment.swap_config(record)
    }

    /// The record of the run, without its results.
    pub(crate) fn frame(&self) -> Run {
        Run {
            schema: RunResults::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command(),
            started_unix_ns: sys::clock::unix_ns(),
            seed: self.experiment.seed,
            host: machine::describe(),
            params: self.experiment.params(self.choice.mechanism),
            results: RunResults::default(),
        }
    }

    /// The calibration of the delays; `None` if there is none.
    pub(crate) const fn calibration(&self) -> Option<Calibration> {
        self.calibration
    }

    /// The resolved experiment as JSON.
    pub(crate) fn dry_run(&self) -> String {
        let experiment = &self.experiment;
        let program = experiment.program.iter();
        let resolved = DryRun {
            schema: "afar.experiment/1",
            version: env!("CARGO_PKG_VERSION"),
            program: program.map(|word| word.to_string_lossy().into_owned()).collect(),
            seed: experiment.seed,
            of_bytes: experiment.of.map(measure::Bytes::get),
            calibrate: experiment.calibrate
                && experiment.known.is_none()
                && experiment.shortest_delay().is_some()
                && self.choice.mechanism != Mechanism::Swap,
            trap_reason: self.choice.reason.clone(),
            params: experiment.params(self.choice.mechanism),
        };
        let json = serde_json::to_string_pretty(&resolved);
        json.expect("plain data has a JSON form") + "\n"
    }

    // The calibrated constant; 0 without a calibration.
    fn constant_ns(&self) -> u64 {
        self.calibration.map_or(0, |calibration| calibration.constant_ns)
    }

    // The measured floor; 0 without a calibration.
    fn floor(&self) -> Duration {
        let floor_ns = self.calibration.map_or(0, |calibration| calibration.floor_ns);
        Duration::from_ns(floor_ns)
    }
}

// The command line of this process.
fn command() -> Vec<String> {
    let arguments = std::env::args_os();
    arguments.map(|argument| argument.to_string_lossy().into_owned()).collect()
}
