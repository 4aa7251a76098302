//! Loads of one figure, one after another.

use std::time::Duration as StdDuration;

use diskload::{Device, LoadConfig, Pace, Tally};
use measure::Duration;
use workload::Spacing;

use super::ReproduceError;
use client::Watch;

/// See the module's description.
pub(super) struct Session {
    inner: client::Session,
    figure: String,
}

/// A load of requests of 4 KiB at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Load {
    pub(super) read_percent: u8,
    /// Threads, and requests under way in each.
    pub(super) jobs: u16,
    pub(super) depth: u16,
    /// Requests per second of all jobs, in an open loop; a closed one if `None`.
    pub(super) rate: Option<f64>,
    pub(super) ramp: Duration,
    pub(super) runtime: Duration,
    /// How long answers are looked for before a thread sleeps.
    pub(super) busy_poll: Duration,
    pub(super) traces: bool,
}

impl Session {
    /// Of a figure.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    pub(super) fn new(figure: String) -> Result<Self, ReproduceError> {
        Ok(Self { inner: client::Session::new()?, figure })
    }

    /// How many loads there will be.
    pub(super) fn expect(&mut self, all: usize) {
        self.inner.expect("load", all);
    }

    pub(super) const fn is_interrupted(&self) -> bool {
        self.inner.is_interrupted()
    }

    /// Erases the line.
    pub(super) fn end_line(&mut self) {
        self.inner.end_line();
    }

    /// Waits for a load of other processes; whether it ended without an interruption.
    ///
    /// # Errors
    /// When the kernel cannot wait.
    pub(super) fn wait(
        &mut self,
        what: &str,
        has_ended: impl Fn() -> bool,
    ) -> Result<bool, ReproduceError> {
        self.inner.wait(&format!("{}: {what}", self.figure), has_ended)?;
        self.inner.end_part(what);
        Ok(!self.is_interrupted())
    }

    /// Runs a load; `None` if it was interrupted, or one before it.
    ///
    /// # Errors
    /// When it cannot begin, or a request fails.
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

    /// Runs loads at the same time; `None` if they were interrupted, or one before them.
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

/// Which load it is.
struct Line(String);

impl Watch for Line {
    fn line(&mut self, _ended: u64, per_second: u64) -> String {
        format!("{}  {per_second} IOPS", self.0)
    }
}

impl Load {
    /// For a disk of so many bytes.
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
