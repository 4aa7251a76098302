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

/// Completion times of page fetches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PageTimes {
    pub(super) mean_us: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

/// One round of the loop: runs under delays, and the simulation of their traffic.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Round {
    /// What the program took, seconds; the middle one of its repetitions.
    pub(super) seconds: f64,
    pub(super) fetch_count: u64,
    /// Delays of pages in these runs.
    pub(super) page: PageTimes,
    /// Mean slowdown of the flows of its traffic.
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

/// The result of a loop.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Closed {
    /// Time of the run without delay, seconds.
    pub(super) zero_s: f64,
    /// The first has the delays of an idle network.
    pub(super) rounds: Vec<Round>,
    pub(super) agreed: bool,
    /// Whether a run counts only because memory that is not managed was allowed.
    pub(super) allowed: bool,
}

/// The flows of a program's traffic, simulated.
pub(crate) struct Traffic {
    rows: Vec<FlowRow>,
    end: End,
}

impl Traffic {
    /// Simulates the network and traffic that `settings` describe.
    pub(super) fn simulate(settings: &Settings, signals: &Signals) -> Result<Self, Stopped> {
        Self::of(&Setup::new(settings)?, signals)
    }

    /// Simulates only the reads of the traffic, as if nothing were written back.
    pub(super) fn simulate_reads(settings: &Settings, signals: &Signals) -> Result<Self, Stopped> {
        let mut setup = Setup::new(settings)?;
        setup.flows.retain(|flow| flow.exchange == Exchange::Read);
        Self::of(&setup, signals)
    }

    /// Simulates `setup`; a flow that never finishes is an error.
    fn of(setup: &Setup, signals: &Signals) -> Result<Self, Stopped> {
        let watched = run_stranded(setup, &mut |_| signals.next().is_none());
        let outcome = match watched.and_then(|run| run.outcome.complete()) {
            Err(netsim::SimError::Stopped { .. }) => return Err(Stopped::Interrupted),
            outcome => outcome.map_err(SimError::from)?,
        };
        let Setup { fabric, flows, end, .. } = setup;
        Ok(Self { rows: crate::sim::figures::rows(fabric, flows, &outcome, *end), end: *end })
    }

    /// The mean slowdown of all flows.
    pub(super) fn slowdown(&self) -> f64 {
        self.rows.iter().map(|row| row.slowdown).sum::<f64>() / self.rows.len() as f64
    }

    /// Stores the profile of delays as CSV in `path`; see `profile`.
    pub(super) fn keep(&self, path: &Path, idle: bool) -> Result<DelayProfile, Stopped> {
        let profile = self.profile(idle)?;
        let unwritten = |source| SimError::from(OutputError::open(path, source));
        fs::write(path, profile.to_csv()).map_err(unwritten)?;
        Ok(profile)
    }

    /// The delays of flows that are requested; with `idle`, of the same flows alone in the network.
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
    /// The mean and quantiles of a page's delay in `profile`.
    pub(super) fn of(profile: &DelayProfile) -> Self {
        let us = |time: Duration| time.as_ns_f64() / 1e3;
        let times = profile.table(Bytes::PAGE, 1000);
        let sum: f64 = times.iter().map(|time| us(*time)).sum();
        let at = |q| us(profile.quantile(Bytes::PAGE, q));
        Self { mean_us: sum / times.len() as f64, p50_us: at(0.5), p99_us: at(0.99) }
    }

    /// Whether mean and 99th percentile differ by at most `share` of the larger.
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
