//! Runs the loads of a figure, one after another, with a progress line.

use std::time::Duration as StdDuration;

use diskload::{Device, LoadConfig, Pace, Tally};
use measure::Duration;
use workload::Spacing;

use super::ReproduceError;
use client::Watch;

/// The session of a figure.
pub(super) struct Session {
    inner: client::Session,
    figure: String,
}

/// A load of random requests of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Load {
    pub(super) read_percent: u8,
    /// Threads,
    pub(super) jobs: u16,
    /// and outstanding requests of each.
    pub(super) depth: u16,
    /// Requests per second of all jobs in an open loop; `None` for a closed loop.
    pub(super) rate: Option<f64>,
    pub(super) ramp: Duration,
    pub(super) runtime: Duration,
    /// How long a thread polls for answers before it sleeps.
    pub(super) busy_poll: Duration,
    pub(super) traces: bool,
}

impl Session {
    /// The session of the figure named `figure`.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    pub(super) fn new(figure: String) -> Result<Self, ReproduceError> {
        Ok(Self { inner: client::Session::new()?, figure })
    }

    /// Announces the number of loads, for progress.
    pub(super) fn expect(&mut self, all: usize) {
        self.inner.expect("load", all);
    }

    pub(super) const fn is_interrupted(&self) -> bool {
        self.inner.is_interrupted()
    }

    /// Erases the progress line.
    pub(super) fn end_line(&mut self) {
        self.inner.end_line();
    }

    /// Waits for a load of other processes. Returns false if it was interrupted.
    ///
    /// # Errors
    /// When a wait for events fails.
    pub(super) fn wait(
        &mut self,
        what: &str,
        has_ended: impl Fn() -> bool,
    ) -> Result<bool, ReproduceError> {
        self.inner.wait(&format!("{}: {what}", self.figure), has_ended)?;
        self.inner.end_part(what);
        Ok(!self.is_interrupted())
    }

    /// Runs a load; `None` if the session has been interrupted.
    ///
    /// # Errors
    /// When the load cannot begin, or a request fails.
    pub(super) fn run(
        &mut self,
        what: &str,
        device: &Device,
        load: &Load,
    ) -> Result<Option<Tally>, ReproduceError> {
        let config = load.config(device.geometry().bytes());
        let tallies = self.together(what, &[(config, device.clone())])?;
        Ok(tallies.map(|mut tallies| tallies.remove(0)))
    }

    /// Runs several loads at the same time; `None` if the session has been interrupted.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub(super) fn together(
        &mut self,
        what: &str,
        loads: &[(LoadConfig, Device)],
    ) -> Result<Option<Vec<Tally>>, ReproduceError> {
        if self.is_interrupted() {
            return Ok(None);
        }
        let mut line = Line(format!("{}: {what}", self.figure));
        let tallies = self.inner.run(loads, &mut line).map_err(ReproduceError::Load)?;
        if self.is_interrupted() {
            return Ok(None);
        }
        self.inner.end_part(what);
        let failed = |tally: &&Tally| tally.failure_count() > 0 || tally.count() == 0;
        if let Some(tally) = tallies.iter().find(failed) {
            let count = tally.failure_count();
            let first = tally.first_failure.clone();
            let first = first.unwrap_or_else(|| "none was answered".to_owned());
            return Err(ReproduceError::Failed { what: what.to_owned(), count, first });
        }
        Ok(Some(tallies))
    }
}

/// The progress line of a load.
struct Line(String);

impl Watch for Line {
    fn line(&mut self, _ended: u64, per_second: u64) -> String {
        format!("{}  {per_second} IOPS", self.0)
    }
}

impl Load {
    /// The configuration for a disk of `disk_bytes`.
    pub(super) fn config(&self, disk_bytes: u64) -> LoadConfig {
        let pace = match self.rate {
            None => Pace::Closed,
            Some(rate) => {
                let mean_s = f64::from(self.jobs) / rate;
                let mean = StdDuration::from_secs_f64(mean_s.clamp(1e-9, 3600.0));
                let mean = Duration::from_ns(u64::try_from(mean.as_nanos()).unwrap_or(u64::MAX));
                Pace::Open { mean, spacing: Spacing::Poisson }
            }
        };
        LoadConfig {
            read_percent: self.read_percent,
            depth: self.depth,
            jobs: self.jobs,
            pace,
            ramp: self.ramp,
            runtime: Some(self.runtime),
            busy_poll: self.busy_poll,
            traces: self.traces,
            ..LoadConfig::reads(disk_bytes)
        }
    }
}
