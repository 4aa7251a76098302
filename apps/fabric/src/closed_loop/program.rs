//! The program under `afar run`, as a process of its own.

use std::cell::OnceCell;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ::experiment::noise::{Noise, Reading};
use ::experiment::{Measured, Ratios, least_disturbed};
use launch::{Child, Network, RunSpec, Waited};
use measure::{Bytes, Figures, Run, ShareOf};
use sys::event::Signals;

use super::experiment::Experiment;
use super::{LoopError, Stopped};
use results::validity;

/// Runs the program under `afar run`; its files are in `directory`.
pub(super) struct Programs<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) directory: &'a Path,
    pub(super) signals: &'a Signals,
    /// Where one calibration serves all runs, its record; empty until a run has made it.
    pub(super) calibrated: Option<&'a OnceCell<PathBuf>>,
}

/// What the program did.
#[derive(Debug)]
pub(super) struct Ran {
    /// The middle one of its repetitions.
    pub(super) seconds: f64,
    /// Times of all repetitions in ascending order, seconds.
    pub(super) times: Vec<f64>,
    pub(super) fetch_count: u64,
    /// Pages fetched per second of wall time in the last repetition.
    pub(super) fetch_per_sec: f64,
    /// Whether a run counts only because memory that is not managed was allowed.
    pub(super) allowed: bool,
    /// The record of page faults of the last repetition.
    pub(super) record: PathBuf,
}

/// One run.
struct Once {
    seconds: f64,
    figures: Figures,
    allowed: bool,
    noise: Noise,
    /// What disturbed the run; `None` if nothing did.
    disturbed: Option<String>,
}

impl Measured for Once {
    fn noise(&self) -> &Noise {
        &self.noise
    }

    fn is_disturbed(&self) -> bool {
        self.disturbed.is_some()
    }

    // A run without figures is an error, and ends the loop.
    fn has_figure(&self) -> bool {
        true
    }
}

impl Programs<'_> {
    /// Runs the program `repetitions` times; without a profile there is no delay.
    pub(super) fn run(&self, profile: Option<&Path>, name: &str) -> Result<Ran, Stopped> {
        self.repeat(self.experiment.repetitions, profile, name, |_, _| Ok(()))
    }

    /// Runs the program `count` times without delay.
    pub(super) fn run_without(&self, count: u32, name: &str) -> Result<Ran, Stopped> {
        self.repeat(count, None, name, |_, _| Ok(()))
    }

    /// Runs the program under `profile`, each time beside a run without delay that is first or
    /// second by chance, so that a machine that gets slower slows both alike. Returns also the
    /// ratios of their times. If `without` has times of runs without delay, every run is compared
    /// with each of these instead.
    pub(super) fn compare(
        &self,
        profile: &Path,
        name: &str,
        without: &[f64],
    ) -> Result<(Ran, Ratios), Stopped> {
        let beside = self.directory.join(format!("{name}-beside.parquet"));
        let mut ratios = Ratios::default();
        let mut other: Option<Once> = None;
        let ran = self.repeat(self.experiment.repetitions, Some(profile), name, |block, ran| {
            let is_due = ran.is_some() || without_goes_first(block);
            if without.is_empty() && other.is_none() && is_due {
                other = Some(self.once(None, &beside)?);
            }
            let Some(ran) = ran else { return Ok(()) };
            if let Some(other) = other.take() {
                let disturbed = ran.disturbed.clone().or(other.disturbed);
                ratios.add(block, ran.seconds / other.seconds, disturbed);
            }
            for without in without {
                ratios.add(block, ran.seconds / without, ran.disturbed.clone());
            }
            Ok(())
        })?;
        let _kept = std::fs::remove_file(&beside);
        Ok((ran, ratios))
    }

    // Runs the program `count` times; calls `beside` before each run (`None`) and after it.
    fn repeat(
        &self,
        count: u32,
        profile: Option<&Path>,
        name: &str,
        mut beside: impl FnMut(u32, Option<&Once>) -> Result<(), Stopped>,
    ) -> Result<Ran, Stopped> {
        let record = self.directory.join(format!("{name}.parquet"));
        let mut times = Vec::new();
        let (mut fetch_count, mut fetch_per_sec, mut allowed) = (0, 0.0, false);
        for block in 0..count {
            beside(block, None)?;
            let once = self.once(profile, &record)?;
            beside(block, Some(&once))?;
            let Once { seconds, figures, .. } = once;
            allowed |= once.allowed;
            times.push(seconds);
            fetch_count = figures.faults.fetch_count;
            fetch_per_sec = fetch_count as f64 * 1e9 / figures.elapsed_ns.max(1) as f64;
        }
        times.sort_by(f64::total_cmp);
        let seconds = times[times.len() / 2];
        Ok(Ran { seconds, times, fetch_count, fetch_per_sec, allowed, record })
    }

    /// The least disturbed of at most `attempts` runs.
    fn once(&self, profile: Option<&Path>, record: &Path) -> Result<Once, Stopped> {
        let peak = self.peak(record)?;
        let once = || self.launch((&self.experiment.local, peak), profile, record);
        Ok(least_disturbed(self.experiment.attempts, once)?.0)
    }

    // The peak of the program's memory, from a run with all memory local before the first run that
    // needs it; `None` unless local memory is a share of the peak.
    fn peak(&self, record: &Path) -> Result<Option<Bytes>, Stopped> {
        let Experiment { peak, .. } = self.experiment;
        if !matches!(self.experiment.share(), Some((_, ShareOf::Peak))) {
            return Ok(None);
        }
        if let Some(&known) = peak.get() {
            return Ok(Some(known));
        }
        let ran = self.launch(("100%", None), None, record)?;
        let most = Bytes::new(ran.figures.managed_peak_bytes);
        if most == Bytes::ZERO {
            let why = "none of its memory was managed, so a share of it is nothing; give local as \
                       a size such as 64MiB";
            return Err(LoopError::Program(why.to_owned()).into());
        }
        Ok(Some(*peak.get_or_init(|| most)))
    }

    /// Runs `afar run` once with `local` memory, and reads its record.
    fn launch(
        &self,
        (local, peak): (&str, Option<Bytes>),
        profile: Option<&Path>,
        record: &Path,
    ) -> Result<Once, Stopped> {
        let of = self.experiment.of.bytes(peak).filter(|_| self.experiment.share().is_some());
        let [json, out] = ["run.json", "program.out"].map(|name| self.directory.join(name));
        // The record of an earlier run must not pass for that of this one.
        let _none = std::fs::remove_file(&json);
        let spec = RunSpec {
            local,
            of_bytes: of.filter(|_| local != "100%").map(Bytes::get),
            // The peak is that of all processes together.
            is_tree: peak.is_some(),
            network: profile.map_or(Network::None, Network::Profile),
            calibrated: self.calibrated.and_then(|kept| kept.get()).map(PathBuf::as_path),
            json: &json,
            record,
            allow_unmanaged: self.experiment.allow_unmanaged,
            program: &self.experiment.command,
        };
        let failed = |error: std::io::Error| LoopError::Program(error.to_string());
        let file = || File::create(&out).and_then(|out| Ok((out.try_clone()?, out)));
        let (output, errors) = file().map_err(failed)?;
        let mut command = spec.command();
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let before = Reading::now();
        let mut child = Child::start(command).map_err(failed)?;
        let waited = child.wait(self.signals.as_fd(), None).map_err(LoopError::from)?;
        let Waited::Ended(status) = waited else { return Err(Stopped::Interrupted) };
        let noise = before.until_now();
        let read = |path: &Path| {
            String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
        };
        let printed = read(&out);
        let ran = Run::from_json(&read(&json));
        if let Ok(Err(invalid)) = ran.as_ref().map(|run: &Run| run.results.figures()) {
            return Err(LoopError::Invalid(validity::told(&invalid)).into());
        }
        if !status.success() {
            let last = printed.lines().last().unwrap_or("it printed nothing").to_owned();
            return Err(LoopError::Program(format!("{status}: {last}")).into());
        }
        let results = ran.map_err(|error| LoopError::Program(error.to_string()))?.results;
        if let (Some(_), Some(kept)) = (results.calibration, self.calibrated)
            && kept.get().is_none()
        {
            let path = self.directory.join("calibrated.json");
            std::fs::copy(&json, &path).map_err(failed)?;
            kept.get_or_init(|| path);
        }
        let figures = results.figures();
        let figures = figures.map_err(|invalid| LoopError::Invalid(validity::told(&invalid)))?;
        let own = self.experiment.metric.as_ref().map(|metric| {
            let found = metric.captures_iter(&printed).last();
            let found = found.and_then(|found| found.get(1)?.as_str().parse().ok());
            let missing = || LoopError::Program("it printed nothing that metric finds".to_owned());
            found.filter(|seconds: &f64| *seconds > 0.0).ok_or_else(missing)
        });
        let seconds = own.transpose()?.unwrap_or(figures.elapsed_ns as f64 / 1e9);
        let allowed = !results.allowed.is_empty();
        let disturbed = noise.disturbance(self.experiment.tolerance);
        Ok(Once { seconds, figures: figures.clone(), allowed, noise, disturbed })
    }
}

/// Whether the run without delay is the first of a pair: shuffled, as blocks of a sweep are.
fn without_goes_first(block: u32) -> bool {
    ::experiment::order(2, ORDER_SEED, block)[0] == 1
}

const ORDER_SEED: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_of_a_pair_goes_first() {
        let count = (0..100).filter(|&block| without_goes_first(block)).count();
        assert!((30..=70).contains(&count), "{count} of 100");
        let few = (0..5).filter(|&block| without_goes_first(block)).count();
        assert!((1..5).contains(&few), "{few} of 5");
    }
}
