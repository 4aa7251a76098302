//! A program under the delays of several networks, each with its own traffic fed back.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use measure::{Bytes, ShareOf};
use sys::event::Signals;

use super::experiment::Experiment;
use super::program::{Programs, Ran};
use super::{PageTimes, Stopped, Traffic};
use crate::sim::setting::Settings;

/// Runs a program, and feeds its traffic back as delays.
pub struct Feeder<'a> {
    experiment: Experiment,
    directory: PathBuf,
    signals: &'a Signals,
    short: Option<Short<'a>>,
}

/// The shortcuts of a quick look.
#[derive(Debug, Clone, Copy)]
pub struct Short<'a> {
    /// Runs without delay, before the others: every other run is compared with each of these, and
    /// none runs beside it.
    pub without_count: u32,
    /// The record of the run whose calibration is that of all others; empty until one has run.
    pub calibrated: &'a OnceCell<PathBuf>,
}

/// The program in one network.
#[derive(Debug, Clone, PartialEq)]
pub struct Fed {
    /// Without delay.
    pub zero: Zero,
    /// Under the delays of an idle network.
    pub idle: Round,
    /// Each under the delays of the previous run's traffic, the first of the run without delay.
    pub rounds: Vec<Round>,
    /// As the first of `rounds`, had the run without delay written nothing back.
    pub reads: Reads,
    /// Whether the delays of the last run agree with those that its traffic makes.
    pub agreed: bool,
}

/// The program without delay.
#[derive(Debug, Clone, PartialEq)]
pub struct Zero {
    /// Median time of a run.
    pub seconds: f64,
    /// Times of all runs, in ascending order.
    pub times: Vec<f64>,
    /// Pages that the program fetches per second of wall time.
    pub fetch_per_sec: f64,
    /// The record of page faults.
    pub record: PathBuf,
}

/// The program under the delays of one network.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Median time of a run.
    pub seconds: f64,
    /// How much slower than the runs without delay.
    pub slower: Slower,
    /// How much slower each run was than those without delay, as a share.
    pub shares: Vec<f64>,
    /// What disturbed the first of the runs that were disturbed.
    pub disturbed: Option<String>,
    /// Completion times of pages.
    pub page: Page,
    /// Completion times of the same pages alone in the network.
    pub alone: Page,
}

/// Completion times of pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Page {
    /// Mean, in microseconds.
    pub mean_us: f64,
    /// 99th percentile, in microseconds.
    pub p99_us: f64,
}

/// Traffic of reads alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Reads {
    /// Completion times of pages in this traffic.
    pub page: Page,
    /// How much slower the program is under these delays; `None` in a quick look.
    pub slower: Option<Slower>,
}

impl Page {
    /// The mean and 99th percentile of `times`.
    const fn of(times: &PageTimes) -> Self {
        Self { mean_us: times.mean_us, p99_us: times.p99_us }
    }
}

/// How much slower than without delay, as a share, run by run beside one without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slower {
    /// In the middle run, or between the two in the middle.
    pub median: f64,
    /// Half of the way from the least to the most. A single run that is compared with several
    /// without delay is taken to vary as much as those do.
    pub noise: f64,
}

impl Slower {
    /// The median and the noise of `shares`, at least one.
    fn of(mut shares: Vec<f64>) -> Self {
        shares.sort_by(f64::total_cmp);
        let noise = (shares[shares.len() - 1] - shares[0]) / 2.0;
        let median = f64::midpoint(shares[(shares.len() - 1) / 2], shares[shares.len() / 2]);
        Self { median, noise }
    }

    /// The same with the noise of two independent times that vary alike: √2 times as much.
    fn with_as_much_again(self) -> Self {
        Self { noise: self.noise * std::f64::consts::SQRT_2, ..self }
    }
}

impl<'a> Feeder<'a> {
    /// A feeder of `afar workload` with the arguments `words`, whose files are in `directory`.
    pub fn new(
        words: &[&str],
        (local, of, repetitions): (&str, ShareOf, u32),
        directory: PathBuf,
        signals: &'a Signals,
    ) -> Self {
        let experiment = Experiment::of_workload(words, (local, of), repetitions);
        Self { experiment, directory, signals, short: None }
    }

    /// Takes the shortcuts of a quick look if `short` is given.
    pub const fn shortened(mut self, short: Option<Short<'a>>) -> Self {
        self.short = short;
        self
    }

    /// Accepts runs much of whose memory was not managed, if `allow_unmanaged`.
    pub fn allowing(mut self, allow_unmanaged: bool) -> Self {
        self.experiment.allow_unmanaged = allow_unmanaged;
        self
    }

    /// The peak of the program's managed memory; `None` before a run has measured it.
    pub fn peak(&self) -> Option<Bytes> {
        self.experiment.peak.get().copied()
    }

    /// Runs the program without delay.
    ///
    /// # Errors
    /// If a run fails, or a signal arrives.
    pub fn zero(&self) -> Result<Zero, Stopped> {
        let count = self.short.map_or(self.experiment.repetitions, |short| short.without_count);
        let Ran { seconds, times, fetch_per_sec, record, .. } =
            self.programs().run_without(count, "zero")?;
        Ok(Zero { seconds, times, fetch_per_sec, record })
    }

    /// The program with its files and signals, ready to run.
    fn programs(&self) -> Programs<'_> {
        let Self { experiment, directory, signals, short } = self;
        let calibrated = short.map(|short| short.calibrated);
        Programs { experiment, directory, signals, calibrated }
    }

    /// Runs the program under the delays of `network`: idle, with its reads alone, and with its own
    /// traffic for at most `round_max` rounds.
    ///
    /// # Errors
    /// If a run fails, a signal arrives, or the network has no result.
    pub fn feed(
        &self,
        name: &str,
        network: &Settings,
        zero: &Zero,
        round_max: u32,
    ) -> Result<Fed, Stopped> {
        let settings =
            |record: &Path| network.clone().with("faults", &record.display().to_string());
        let simulate = |record: &Path| Traffic::simulate(&settings(record), self.signals);
        let path = |what: &str| self.directory.join(format!("{name}-{what}.csv"));
        let mut traffic = simulate(&zero.record)?;
        let idle = traffic.keep(&path("idle"), true)?;
        let times = PageTimes::of(&idle);
        let without = self.short.map_or(&[][..], |_| &zero.times);
        let run = |profile: &Path, what: &str, pages: [&PageTimes; 2]| {
            self.round(profile, &format!("{name}-{what}"), pages, without)
        };
        let (_ran, idle) = run(&path("idle"), "idle", [&times; 2])?;
        let reads = Traffic::simulate_reads(&settings(&zero.record), self.signals)?;
        let reads = PageTimes::of(&reads.keep(&path("reads"), false)?);
        let slower = match self.short {
            Some(_) => None,
            None => Some(run(&path("reads"), "reads", [&reads, &times])?.1.slower),
        };
        let reads = Reads { page: Page::of(&reads), slower };
        let zero = zero.clone();
        let mut fed = Fed { zero, idle, rounds: Vec::new(), reads, agreed: false };
        let mut profile = traffic.keep(&path("round-1"), false)?;
        for round in 1..=round_max {
            let pages = PageTimes::of(&profile);
            let alone = PageTimes::of(&traffic.profile(true)?);
            let from = path(&format!("round-{round}"));
            let (ran, done) = run(&from, &round.to_string(), [&pages, &alone])?;
            fed.rounds.push(done);
            traffic = simulate(&ran.record)?;
            profile = traffic.keep(&path(&format!("round-{}", round + 1)), false)?;
            fed.agreed = pages.agrees(&PageTimes::of(&profile), self.experiment.agree);
            if fed.agreed {
                break;
            }
        }
        Ok(fed)
    }

    /// Runs the program under the delays in `profile`; returns what it did and the round's figures.
    fn round(
        &self,
        profile: &Path,
        name: &str,
        [pages, alone]: [&PageTimes; 2],
        without: &[f64],
    ) -> Result<(Ran, Round), Stopped> {
        let (ran, ratios) = self.programs().compare(profile, name, without)?;
        let shares: Vec<f64> = ratios.all().map(|ratio| ratio - 1.0).collect();
        // One share per run: the median where each run was compared with several.
        let each = shares.chunks(without.len().max(1));
        let each = each.map(|shares| Slower::of(shares.to_vec()).median).collect();
        let slower = match without {
            [] => Slower::of(shares),
            _ => Slower::of(shares).with_as_much_again(),
        };
        let [page, alone] = [pages, alone].map(Page::of);
        let disturbed = ratios.first_disturbance().map(str::to_owned);
        let round = Round { seconds: ran.seconds, slower, shares: each, disturbed, page, alone };
        Ok((ran, round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_is_that_of_the_middle_run_with_half_the_range() {
        let slower = Slower::of(vec![0.3, 0.1, 0.2, 0.0, 0.5]);
        assert_eq!(slower, Slower { median: 0.2, noise: 0.25 });
        assert_eq!(Slower::of(vec![0.25, 0.75]), Slower { median: 0.5, noise: 0.25 });
        assert_eq!(Slower::of(vec![0.1]).noise, 0.0);
        let more = Slower::of(vec![0.25, 0.75]).with_as_much_again();
        assert!((more.noise.powi(2) - 2.0 * 0.25_f64.powi(2)).abs() < 1e-12, "{more:?}");
    }
}
