//! A program under the delays of several networks, each with its own traffic fed back.

use std::path::{Path, PathBuf};

use sys::event::Signals;

use super::experiment::Experiment;
use super::program::{Programs, Ran};
use super::{PageTimes, Stopped, Traffic};
use crate::sim::setting::Settings;

/// A program, its files, and who may interrupt it.
pub(crate) struct Feeder<'a> {
    experiment: Experiment,
    directory: PathBuf,
    signals: &'a Signals,
}

/// The program in one network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fed {
    pub(crate) zero: Zero,
    /// Under the delays of an idle network.
    pub(crate) idle: Round,
    /// Under those of the traffic of the run before, the first time of the one without delay.
    pub(crate) rounds: Vec<Round>,
    /// Whether the last traffic makes the delays under which it was made.
    pub(crate) agreed: bool,
}

/// The program without delay.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Zero {
    pub(crate) seconds: f64,
    /// Pages it fetches.
    pub(crate) fetch_per_sec: f64,
    record: PathBuf,
}

/// One run of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Round {
    pub(crate) seconds: f64,
    pub(crate) page_mean_us: f64,
    pub(crate) page_p99_us: f64,
}

impl<'a> Feeder<'a> {
    /// Of a workload of afar's own.
    pub(crate) fn new(
        words: &[&str],
        (local, repetitions): (&str, u32),
        directory: PathBuf,
        signals: &'a Signals,
    ) -> Self {
        let experiment = Experiment::of_workload(words, local, repetitions);
        Self { experiment, directory, signals }
    }

    /// Runs it without delay.
    ///
    /// # Errors
    /// If it fails, or a signal came.
    pub(crate) fn zero(&self) -> Result<Zero, Stopped> {
        let Ran { seconds, fetch_per_sec, record, .. } = self.run(None, "zero")?;
        Ok(Zero { seconds, fetch_per_sec, record })
    }

    /// Feeds its traffic over a network back, at most so many rounds.
    ///
    /// # Errors
    /// As `zero`, and if the network has no result.
    pub(crate) fn feed(
        &self,
        name: &str,
        network: &Settings,
        zero: &Zero,
        round_max: u32,
    ) -> Result<Fed, Stopped> {
        let simulate = |record: &Path| {
            let settings = network.clone().with("faults", &record.display().to_string());
            Traffic::simulate(&settings, self.signals)
        };
        let path = |what: &str| self.directory.join(format!("{name}-{what}.csv"));
        let mut traffic = simulate(&zero.record)?;
        let idle = traffic.keep(&path("idle"), true)?;
        let ran = self.run(Some(&path("idle")), &format!("{name}-idle"))?;
        let idle = Round::of(ran.seconds, &PageTimes::of(&idle));
        let zero = zero.clone();
        let mut fed = Fed { zero, idle, rounds: Vec::new(), agreed: false };
        let mut profile = traffic.keep(&path("round-1"), false)?;
        for round in 1..=round_max {
            let ran =
                self.run(Some(&path(&format!("round-{round}"))), &format!("{name}-{round}"))?;
            let pages = PageTimes::of(&profile);
            fed.rounds.push(Round::of(ran.seconds, &pages));
            traffic = simulate(&ran.record)?;
            profile = traffic.keep(&path(&format!("round-{}", round + 1)), false)?;
            fed.agreed = pages.agrees(&PageTimes::of(&profile), self.experiment.agree);
            if fed.agreed {
                break;
            }
        }
        Ok(fed)
    }

    fn run(&self, profile: Option<&Path>, name: &str) -> Result<Ran, Stopped> {
        let Self { experiment, directory, signals } = self;
        Programs { experiment, directory, signals }.run(profile, name)
    }
}

impl Fed {
    /// How much slower than without delay.
    pub(crate) fn slower(&self, round: &Round) -> f64 {
        round.seconds / self.zero.seconds - 1.0
    }
}

#[cfg(test)]
impl Zero {
    /// Without a record.
    pub(crate) fn of(seconds: f64, fetch_per_sec: f64) -> Self {
        Self { seconds, fetch_per_sec, record: PathBuf::new() }
    }
}

impl Round {
    const fn of(seconds: f64, pages: &PageTimes) -> Self {
        Self { seconds, page_mean_us: pages.mean_us, page_p99_us: pages.p99_us }
    }
}
