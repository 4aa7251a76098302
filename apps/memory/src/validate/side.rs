//! The runs of a validation, each a process of its own: native, real (on a blade) and emulated.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use ::experiment::noise::{Noise, Reading, Tolerance};
use ::experiment::{Measured, least_disturbed};
use launch::{Child, Waited};
use measure::{Calibration, DelayProfile, Duration, Figures, LocalSize, Run, ShareOf};
use paging::write_back::WriteBack;
use results::validity;
use sys::event::Signals;

use super::error::{Stopped, ValidateError};
use super::flags::Ablation;
use super::profile::Shape;
use crate::far::FarUri;
use crate::probe::Probed;
use crate::run::flags::{Budget, RunFlags, Trap, Wait};

/// Most attempts at a run that is disturbed.
const ATTEMPTS: u32 = 3;
const TOLERANCE: Tolerance = Tolerance { stolen_max: 0.05, others_max: 0.05 };

/// How long a probe touches pages, how often at least and at most, and its local memory and blade:
/// its pages are 8 MiB.
const PROBING: Duration = Duration::from_ms(200);
const TOUCHES: RangeInclusive<u64> = 100..=2000;
const PROBE_LOCAL: &str = "2MiB";
const PROBE_BLADE: &str = "memory:64MiB";

/// A kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Without afar.
    Native,
    /// With pages on a blade.
    Real,
    /// With delays, plain (`None`) or with one thing changed.
    Emulated(Option<Ablation>),
}

/// How a fetch is emulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Emulation {
    pub(super) wait: Wait,
    pub(super) write_back: WriteBack,
    pub(super) profile: PathBuf,
    /// The record of a run whose calibration this one uses; `None` to calibrate.
    pub(super) calibrated: Option<PathBuf>,
}

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Once {
    pub(super) seconds: f64,
    /// `None` for a native run.
    pub(super) figures: Option<Figures>,
    pub(super) calibration: Option<Calibration>,
    /// Longest spin of a thread for a page on a blade; `None` if it does not spin.
    pub(super) spin_max_ns: Option<u64>,
    noise: Noise,
    pub(super) disturbed: Option<String>,
}

/// Settings and files of all runs.
pub(super) struct Runs<'a> {
    pub(super) flags: &'a RunFlags,
    pub(super) directory: &'a Path,
    pub(super) signals: &'a Signals,
    /// The profile of emulated runs that the user gave; `None` for a measured one.
    pub(super) given: Option<DelayProfile>,
    pub(super) emulations: RefCell<BTreeMap<&'static str, Emulation>>,
}

impl Measured for Once {
    fn noise(&self) -> &Noise {
        &self.noise
    }

    fn is_disturbed(&self) -> bool {
        self.disturbed.is_some()
    }

    // A run without figures ends the validation.
    fn has_figure(&self) -> bool {
        true
    }
}

impl Kind {
    /// The name that users know the kind by.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Real => "real",
            Self::Emulated(None) => "plain",
            Self::Emulated(Some(ablation)) => ablation.name(),
        }
    }

    /// How the times of its fetches are made.
    pub(super) const fn shape(self) -> Shape {
        match self {
            Self::Emulated(Some(Ablation::Mean)) => Shape::Mean,
            Self::Emulated(Some(Ablation::Scaled)) => Shape::Scaled,
            _ => Shape::AsMeasured,
        }
    }

    /// Which of its pages are written back; to a blade those that have changed.
    pub(super) const fn write_back(self) -> WriteBack {
        match self {
            Self::Emulated(Some(Ablation::DirtyBits)) => WriteBack::Written,
            Self::Emulated(Some(Ablation::FreeWrites)) => WriteBack::Free,
            _ => WriteBack::Changed,
        }
    }

    /// How its threads wait, given how those of the plain emulation do.
    pub(super) const fn wait(self, plain: Wait) -> Wait {
        match (self, plain) {
            (Self::Emulated(Some(Ablation::Waits)), Wait::Spin) => Wait::Sleep,
            (Self::Emulated(Some(Ablation::Waits)), Wait::Sleep) => Wait::Spin,
            (_, plain) => plain,
        }
    }
}

impl Runs<'_> {
    /// Runs `kind` up to [`ATTEMPTS`] times. Returns the least disturbed run.
    pub(super) fn run(&self, kind: Kind) -> Result<Once, Stopped> {
        Ok(least_disturbed(ATTEMPTS, || self.once(kind, self.flags.seed))?.0)
    }

    /// The file of the faults of a kind.
    pub(super) fn faults(&self, kind: Kind) -> PathBuf {
        self.directory.join(format!("{}.parquet", kind.name()))
    }

    /// The file of the record of a kind.
    pub(super) fn record(&self, kind: Kind) -> PathBuf {
        self.json(kind.name())
    }

    // The file of the record of `name`.
    fn json(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    /// One run.
    pub(super) fn once(&self, kind: Kind, seed: u64) -> Result<Once, Stopped> {
        let name = kind.name();
        let (seconds, noise) = self.launch(name, self.command(kind, seed))?;
        let disturbed = self.disturbance(kind, &noise);
        if kind == Kind::Native {
            let (figures, calibration, spin_max_ns) = (None, None, None);
            return Ok(Once { seconds, figures, calibration, spin_max_ns, noise, disturbed });
        }
        let (ran, figures) = self.read(name)?;
        Ok(Once {
            seconds: figures.elapsed_ns as f64 / 1e9,
            figures: Some(figures),
            calibration: ran.results.calibration,
            spin_max_ns: ran.params.spin_max_ns,
            noise,
            disturbed,
        })
    }

    /// Measures how much of a fetch the trap of a real run does not see, in nanoseconds: a probe
    /// times its touches of pages on a blade that answers after `delay`.
    pub(super) fn unseen_ns(&self, delay: Duration) -> Result<u64, Stopped> {
        let (name, answer) = ("unseen", self.directory.join("probe.json"));
        let touches = PROBING.as_ns() / delay.as_ns().max(1);
        let touches = touches.clamp(*TOUCHES.start(), *TOUCHES.end());
        let mut command = launch::afar();
        command.args(["run", "--quiet", "--json"]).arg(self.json(name));
        command.args(["--local", PROBE_LOCAL]).args(waiting(self.flags));
        command.args(["--far", &format!("{PROBE_BLADE}?delay={}ns", delay.as_ns())]);
        command.args([launch::SELF, "probe", "--touches", &touches.to_string()]);
        command.arg("--output").arg(&answer);
        self.launch(name, command)?;
        let (_run, figures) = self.read(name)?;
        let why = |why: String| ValidateError::Read { kind: name.to_owned(), why };
        let text = fs::read_to_string(&answer).map_err(|error| why(error.to_string()))?;
        let probed: Probed = serde_json::from_str(&text).map_err(|error| why(error.to_string()))?;
        let fetched = figures.faults.fetch_count;
        if fetched < probed.touch_count {
            let touched = probed.touch_count;
            return Err(why(format!("{fetched} fetches for {touched} touches")).into());
        }
        Ok(probed.p50_ns.saturating_sub(figures.fault_latency.total.p50_ns))
    }

    // Runs a command to its end. Returns how long it took, in seconds, and the noise meanwhile.
    fn launch(&self, name: &str, mut command: Command) -> Result<(f64, Noise), Stopped> {
        let (json, out) = (self.json(name), self.directory.join("program.out"));
        // Remove the record of an earlier run.
        let _none = fs::remove_file(&json);
        let file = || File::create(&out).and_then(|out| Ok((out.try_clone()?, out)));
        let failed = |source| ValidateError::Directory { path: out.clone(), source };
        let (output, errors) = file().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let (before, began) = (Reading::now(), Instant::now());
        let mut child = Child::start(command).map_err(ValidateError::Start)?;
        let waited = child.wait(self.signals.as_fd(), None).map_err(ValidateError::from)?;
        let Waited::Ended(status) = waited else { return Err(Stopped::Interrupted) };
        let (elapsed, noise) = (began.elapsed().as_secs_f64(), before.until_now());
        if !status.success() {
            // The record of an invalid run has the reason.
            let has_record = json.is_file();
            if has_record {
                self.read(name)?;
            }
            let said = String::from_utf8_lossy(&fs::read(&out).unwrap_or_default()).into_owned();
            let last = said.lines().last().unwrap_or("it printed nothing").to_owned();
            let kind = name.to_owned();
            return Err(match name != Kind::Native.name() && !has_record {
                true => ValidateError::Refused { kind, status, last }.into(),
                false => ValidateError::Program { kind, status, last }.into(),
            });
        }
        Ok((elapsed, noise))
    }

    // Reads the record of a run; an error if it is invalid.
    fn read(&self, name: &str) -> Result<(Run, Figures), Stopped> {
        let wrong = |why: String| ValidateError::Read { kind: name.to_owned(), why };
        let text = fs::read_to_string(self.json(name)).map_err(|error| wrong(error.to_string()))?;
        let run: Run = Run::from_json(&text).map_err(|error| wrong(error.to_string()))?;
        let figures = run.results.figures().cloned().map_err(|invalid| {
            let why = validity::told(&invalid);
            ValidateError::Invalid { kind: name.to_owned(), why }
        })?;
        Ok((run, figures))
    }

    // Whether a run was disturbed, and by what. A target on this machine is another program, but no
    // disturbance.
    fn disturbance(&self, kind: Kind, noise: &Noise) -> Option<String> {
        let has_target = self.flags.validation.uris.iter().any(FarUri::is_elsewhere);
        let others_max = match kind == Kind::Real && has_target {
            true => 1.0,
            false => TOLERANCE.others_max,
        };
        noise.disturbance(Tolerance { others_max, ..TOLERANCE })
    }

    // The command of a run.
    fn command(&self, kind: Kind, seed: u64) -> Command {
        let program = &self.flags.program;
        if kind == Kind::Native {
            let mut command = Command::new(&program[0]);
            command.args(&program[1..]);
            return command;
        }
        let mut command = launch::afar();
        let (json, faults) = (self.record(kind), self.faults(kind));
        command.args(["run", "--quiet", "--json"]).arg(json).arg("--record").arg(faults);
        command.args(shared(self.flags, seed));
        match kind {
            Kind::Real => command.args(real(self.flags)),
            _ => command
                .args(self.emulations.borrow().get(kind.name()).map_or_else(Vec::new, emulated)),
        };
        command.arg("--").args(program);
        command
    }
}

/// The flags that all runs share.
fn shared(flags: &RunFlags, seed: u64) -> Vec<OsString> {
    let mut words = Words::default();
    words.some(
        "--local",
        flags.local.map(|local| match local {
            LocalSize::Bytes(bytes) => bytes.get().to_string(),
            LocalSize::Fraction(share) => share.to_string(),
        }),
    );
    words.some(
        "--of",
        flags.of.map(|of| match of {
            ShareOf::Bytes(bytes) => bytes.get().to_string(),
            other => other.to_string(),
        }),
    );
    words.some(
        "--budget",
        flags.budget.map(|budget| match budget {
            Budget::Process => "process".to_owned(),
            Budget::Tree => "tree".to_owned(),
        }),
    );
    words.some("--policy", flags.policy.map(|policy| policy.to_string()));
    words.some("--prefetch", Some(flags.prefetch.to_string()));
    words.some("--in-flight", flags.in_flight.map(|pages| pages.to_string()));
    words.some("--seed", Some(seed.to_string()));
    words.flag("--allow-unmanaged", flags.allow_unmanaged);
    words.0
}

/// The flags of real runs only.
fn real(flags: &RunFlags) -> Vec<OsString> {
    let mut words = Words::default();
    let uris: Vec<String> = flags.validation.uris.iter().map(FarUri::to_string).collect();
    words.some("--far", Some(uris.join(",")));
    words.some("--replicas", Some(flags.replicas.to_string()));
    words.some("--far-timeout", flags.far_timeout.map(ns));
    words.flag("--far-take", flags.far_take);
    words.0.extend(waiting(flags));
    words.0
}

/// The flags of real runs for waiting threads and the supervisor.
fn waiting(flags: &RunFlags) -> Vec<OsString> {
    let mut words = Words::default();
    words.some("--spin-max", flags.spin_max.map(ns));
    words.some("--supervisor-cpu", flags.supervisor_cpu.map(|number| number.to_string()));
    words.some("--wait", flags.wait.map(|wait| wait.name().to_owned()));
    words.some(
        "--trap",
        Some(flags.trap).and_then(|trap| match trap {
            Trap::Auto => None,
            Trap::Bpf => Some("bpf".to_owned()),
            Trap::Userfaultfd => Some("userfaultfd".to_owned()),
        }),
    );
    words.0
}

fn ns(time: Duration) -> String {
    format!("{}ns", time.as_ns())
}

/// The flags of emulated runs only. A thread that spins does so in the BPF trap; userfaultfd puts
/// threads to sleep.
fn emulated(how: &Emulation) -> Vec<OsString> {
    let mut words = Words::default();
    let trap = match how.wait {
        Wait::Spin => "bpf",
        Wait::Sleep => "userfaultfd",
    };
    words.some("--trap", Some(trap.to_owned()));
    words.flag("--allow-below-floor", true);
    words.some("--write-back", Some(how.write_back.name().to_owned()));
    words.0.extend(["--profile".into(), how.profile.clone().into()]);
    if let Some(record) = &how.calibrated {
        words.0.extend(["--calibrated".into(), record.clone().into()]);
    }
    words.0
}

/// A command line that is built up.
#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    // Adds a flag with its value, if there is one.
    fn some(&mut self, flag: &str, value: Option<String>) {
        if let Some(value) = value {
            self.0.extend([flag.into(), value.into()]);
        }
    }

    // Adds a flag if it is set.
    fn flag(&mut self, flag: &str, is_set: bool) {
        self.0.extend(is_set.then(|| flag.into()));
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn flags(text: &str) -> RunFlags {
        let command = RunFlags::augment_args(clap::Command::new("run").no_binary_name(true));
        let words = text.split_whitespace();
        RunFlags::from_arg_matches(&command.try_get_matches_from(words).expect(text)).expect(text)
    }

    fn text(words: Vec<OsString>) -> String {
        words.join(&OsString::from(" ")).into_string().expect("flags are text")
    }

    #[test]
    fn runs_of_both_kinds_have_the_same_memory_and_one_has_the_blade() {
        let flags = flags(
            "--validate memory:1MiB --local 25% --of 64MiB --policy lru --in-flight 4 --seed 9 \
             --spin-max 30us --trap bpf -- sort x",
        );
        let same = "--local 25% --of 67108864 --policy lru --prefetch none --in-flight 4";
        assert_eq!(text(shared(&flags, 9)), format!("{same} --seed 9"));
        let far = "--far memory:1048576 --replicas 1 --spin-max 30000ns --trap bpf";
        assert_eq!(text(real(&flags)), far);
        let write_back = Kind::Emulated(None).write_back();
        let (wait, profile) = (Wait::Sleep, "p.csv".into());
        let how = Emulation { wait, write_back, profile, calibrated: None };
        let words = "--trap userfaultfd --allow-below-floor --write-back changed --profile p.csv";
        assert_eq!(text(emulated(&how)), words);
    }

    #[test]
    fn an_ablation_waits_in_the_other_way() {
        let waits = Kind::Emulated(Some(Ablation::Waits));
        assert_eq!(waits.wait(Wait::Spin), Wait::Sleep);
        assert_eq!(waits.wait(Wait::Sleep), Wait::Spin);
        assert_eq!(Kind::Emulated(None).wait(Wait::Sleep), Wait::Sleep);
        let of = |ablation| Kind::Emulated(Some(ablation)).write_back();
        let ways = [Ablation::DirtyBits, Ablation::FreeWrites, Ablation::Mean].map(of);
        assert_eq!(ways, [WriteBack::Written, WriteBack::Free, WriteBack::Changed]);
    }
}
