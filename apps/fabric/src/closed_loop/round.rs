//! What passes between the program and the network, round by round.

use std::fs;
use std::path::Path;

use console::OutputError;
use measure::{Bytes, DelayProfile, Duration};
use netsim::{End, Exchange};
use records::FlowRow;
use results::Estimate;
use sys::event::Signals;

use crate::sim::SimError;
use crate::sim::run::run_stranded;
use crate::sim::setting::Settings;
use crate::sim::setup::Setup;

use super::error::{LoopError, Stopped};

/// What fetching a page takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PageTimes {
    pub(super) mean_us: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

/// A time around the loop.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Round {
    /// What the program took, seconds; the middle one of its repetitions.
    pub(super) seconds: f64,
    pub(super) fetch_count: u64,
    /// What its pages were given.
    pub(super) page: PageTimes,
    /// What its traffic makes of that.
    pub(super) flow_slowdown: f64,
    /// How many times slower than without delay.
    pub(super) slowdown: Estimate,
    /// Whether disturbed pairs of runs count, for want of others.
    pub(super) is_disturbed: bool,
    /// Pairs of which a run was disturbed.
    pub(super) disturbed_count: u64,
    /// What disturbed the first of them.
    pub(super) first_disturbance: Option<String>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Closed {
    /// Without delay.
    pub(super) zero_s: f64,
    /// The first is of an idle network.
    pub(super) rounds: Vec<Round>,
    pub(super) agreed: bool,
    /// Whether a run counts only because memory that is not managed was allowed.
    pub(super) allowed: bool,
}

/// What came of a program's traffic.
pub(crate) struct Traffic {
    rows: Vec<FlowRow>,
    end: End,
}

impl Traffic {
    /// Simulates it.
    pub(super) fn simulate(settings: &Settings, signals: &Signals) -> Result<Self, Stopped> {
        Self::of(&Setup::new(settings)?, signals)
    }

    /// Simulates what is read of it, as if nothing were written back.
    pub(super) fn simulate_reads(settings: &Settings, signals: &Signals) -> Result<Self, Stopped> {
        let mut setup = Setup::new(settings)?;
        setup.flows.retain(|flow| flow.exchange == Exchange::Read);
        Self::of(&setup, signals)
    }

    fn of(setup: &Setup, signals: &Signals) -> Result<Self, Stopped> {
        let watched = run_stranded(setup, &mut |_| signals.next().is_none());
        let outcome = match watched.and_then(|run| run.outcome.complete()) {
            Err(netsim::SimError::Stopped { .. }) => return Err(Stopped::Interrupted),
            outcome => outcome.map_err(SimError::from)?,
        };
        let Setup { fabric, flows, end, .. } = setup;
        Ok(Self { rows: crate::sim::figures::rows(fabric, flows, &outcome, *end), end: *end })
    }

    pub(super) fn slowdown(&self) -> f64 {
        self.rows.iter().map(|row| row.slowdown).sum::<f64>() / self.rows.len() as f64
    }

    /// Keeps its times as a profile; those alone in the network if `idle`.
    pub(super) fn keep(&self, path: &Path, idle: bool) -> Result<DelayProfile, Stopped> {
        let profile = self.profile(idle)?;
        let unwritten = |source| SimError::from(OutputError::open(path, source));
        fs::write(path, profile.to_csv()).map_err(unwritten)?;
        Ok(profile)
    }

    /// Times of what is asked for; those of the same flows alone in the network if `idle`.
    pub(super) fn profile(&self, idle: bool) -> Result<DelayProfile, Stopped> {
        let alone = |row: &FlowRow| FlowRow { completion_ps: row.ideal_ps, ..*row };
        let profile = match idle {
            true => {
                let alone: Vec<FlowRow> = self.rows.iter().map(alone).collect();
                crate::sim::told::profile(&alone, self.end)
            }
            false => crate::sim::told::profile(&self.rows, self.end),
        };
        Ok(profile.ok_or_else(|| LoopError::Program("it moved no page".to_owned()))?)
    }
}

impl PageTimes {
    pub(super) fn of(profile: &DelayProfile) -> Self {
        let us = |time: Duration| time.as_ns_f64() / 1e3;
        let times = profile.table(Bytes::PAGE, 1000);
        let sum: f64 = times.iter().map(|time| us(*time)).sum();
        let at = |q| us(profile.quantile(Bytes::PAGE, q));
        Self { mean_us: sum / times.len() as f64, p50_us: at(0.5), p99_us: at(0.99) }
    }

    /// Whether mean and 99th percentile differ by at most a share.
    pub(super) fn agrees(&self, other: &Self, share: f64) -> bool {
        let near = |one: f64, other: f64| (one - other).abs() <= share * one.max(other);
        near(self.mean_us, other.mean_us) && near(self.p99_us, other.p99_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page that is read while others are written: of these each waits for the one before.
    #[test]
    fn reads_are_simulated_with_and_without_writes() {
        let path = std::env::temp_dir().join(format!("afar-moves-{}.csv", std::process::id()));
        let write = "0,0,1,4096\n";
        let list = format!("start_us,src,dst,bytes\n0,1,0,4096\n{}", write.repeat(8));
        fs::write(&path, list).expect("a file for this test");
        let settings = Settings::default()
            .with("topology", "single-switch")
            .with("hosts", "3")
            .with("traffic", "blades")
            .with("nodes", "1")
            .with("moves", &path.display().to_string());
        let signals = Signals::receive(&[]).expect("no signals");
        let both = Traffic::simulate(&settings, &signals).expect("it ends");
        let reads = Traffic::simulate_reads(&settings, &signals).expect("it ends");
        let _removed = fs::remove_file(&path);
        assert_eq!([both.rows.len(), reads.rows.len()], [9, 1]);
        let times = |traffic: &Traffic, idle| {
            PageTimes::of(&traffic.profile(idle).expect("one page is read")).mean_us
        };
        // Alone it has the network for itself; beside writes its request waits.
        assert_eq!(times(&reads, false), times(&reads, true));
        assert!(times(&both, false) >= times(&both, true));
        assert_eq!(times(&both, true), times(&reads, true));
    }
}
