//! Loads one after another: a live line, and Ctrl-C ends the one that runs and all that follow.

use std::time::Duration as StdDuration;

use flash::load::{Device, LoadConfig, Pace, Progress, Tally};
use measure::Duration;
use sys::clock::monotonic_ns;
use sys::event::{Poll, Signals};
use workload::Spacing;

use super::ReproduceError;
use crate::live::Line;

/// See the module's description.
pub(super) struct Session {
    signals: Signals,
    poll: Poll,
    line: Option<Line>,
    figure: String,
    done: usize,
    all: usize,
    interrupted: bool,
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

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
const LOOK: StdDuration = StdDuration::from_millis(20);
const PERIOD_NS: u64 = 500_000_000;

impl Session {
    /// Of a figure; nothing is drawn if `quiet`.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    pub(super) fn new(figure: String, quiet: bool) -> Result<Self, ReproduceError> {
        let signals = Signals::receive(&[SIGINT, SIGTERM])?;
        let poll = Poll::new()?;
        poll.add(&signals, 0)?;
        let line = if quiet { None } else { Line::on_terminal() };
        Ok(Self { signals, poll, line, figure, done: 0, all: 0, interrupted: false })
    }

    /// How many loads there will be.
    pub(super) const fn expect(&mut self, all: usize) {
        (self.done, self.all) = (0, all);
    }

    pub(super) const fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Erases the line.
    pub(super) fn end_line(&mut self) {
        self.line = None;
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
        if self.interrupted {
            return Ok(None);
        }
        self.done += 1;
        let config = load.config(device.geometry().bytes());
        let progress = Progress::default();
        let tally = std::thread::scope(|scope| {
            let worker = scope.spawn(|| flash::load::run(&config, device, &progress));
            let watched = self.watch(what, &progress, || worker.is_finished());
            progress.stop();
            let tally = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            watched?;
            tally.map_err(ReproduceError::Load)
        })?;
        if self.interrupted {
            return Ok(None);
        }
        if tally.failure_count() > 0 || tally.count() == 0 {
            let count = tally.failure_count();
            let first = tally.first_failure.unwrap_or_else(|| "none was answered".to_owned());
            return Err(ReproduceError::Failed { what: what.to_owned(), count, first });
        }
        Ok(Some(tally))
    }

    fn watch(
        &mut self,
        what: &str,
        progress: &Progress,
        has_ended: impl Fn() -> bool,
    ) -> Result<(), ReproduceError> {
        let (mut last_ns, mut last) = (monotonic_ns(), 0);
        let mut ready = Vec::new();
        while !has_ended() {
            self.poll.wait(Some(LOOK), &mut ready)?;
            if self.signals.next().is_some() {
                self.interrupted = true;
                progress.stop();
            }
            let now_ns = monotonic_ns();
            let period = now_ns - last_ns;
            if let Some(line) = &mut self.line
                && period >= PERIOD_NS
            {
                let ended = progress.ended();
                let rate = u128::from(ended - last) * 1_000_000_000 / u128::from(period);
                let (figure, done, all) = (&self.figure, self.done, self.all);
                line.draw(&format!("afar  {figure}  load {done} of {all}: {what}  {rate} IOPS"));
                (last_ns, last) = (now_ns, ended);
            }
        }
        Ok(())
    }
}

impl Load {
    fn config(&self, disk_bytes: u64) -> LoadConfig {
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
