//! Runs loads on disks, one after another or together, with a live line; Ctrl-C stops the running
//! loads and skips the rest. For `afar bench` and `afar reproduce`.

use std::time::Duration;

use console::Progress as Parts;
use diskload::{Device, LoadConfig, LoadError, Progress, Tally};
use sys::clock::monotonic_ns;
use sys::event::{Poll, Signals};

/// Runs loads and shows their progress in a live line.
pub struct Session {
    signals: Signals,
    poll: Poll,
    parts: Parts,
    interrupted: bool,
}

/// An observer of running loads.
pub trait Watch {
    /// The text of the live line after `ended` requests, at `per_second` requests a second.
    fn line(&mut self, ended: u64, per_second: u64) -> String;

    /// Called when the first load begins to count, with the requests of all loads so far, and again
    /// when the last has ended. Loads that end before they count cause the second call only.
    fn look(&mut self, ended: u64) {
        let _ = ended;
    }
}

// How often a session checks whether loads have ended.
const LOOK_NS: u64 = 20_000_000;
// How often the live line changes.
const PERIOD_NS: u64 = 500_000_000;

impl Session {
    /// Takes over Ctrl-C. Call it before any thread is started, so that no thread is interrupted.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new() -> sys::Result<Self> {
        let signals = console::interrupts()?;
        let poll = Poll::new()?;
        poll.add(&signals, 0)?;
        Ok(Self { signals, poll, parts: Parts::new("load", 1), interrupted: false })
    }

    /// Whether Ctrl-C was pressed.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Starts a count of `all` parts in the live line, each called a `part`.
    pub fn expect(&mut self, part: &'static str, all: usize) {
        self.parts.restart(part, all, 0);
    }

    /// Counts one more part as ended; `what` describes it and its result.
    pub fn end_part(&mut self, what: &str) {
        self.parts.end(what);
    }

    /// Erases the live line for good.
    pub fn end_line(&mut self) {
        self.parts.close();
    }

    /// Erases the live line until it is shown again.
    pub fn end_drawn(&mut self) {
        self.parts.clear();
    }

    /// Shows `line` and waits until `has_ended` returns true or Ctrl-C is pressed.
    ///
    /// # Errors
    /// When the kernel fails to wait.
    pub fn wait(&mut self, line: &str, has_ended: impl Fn() -> bool) -> sys::Result<()> {
        let mut ready = Vec::new();
        self.parts.show(line);
        while !self.interrupted && !has_ended() {
            self.poll.wait(Some(Duration::from_nanos(LOOK_NS)), &mut ready)?;
            self.interrupted = self.signals.next().is_some();
        }
        Ok(())
    }

    /// Runs `loads` together. Returns the tally of each, in their order.
    ///
    /// # Errors
    /// When a load fails or the kernel fails to wait.
    pub fn run(
        &mut self,
        loads: &[(LoadConfig, Device)],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Tally>, LoadError> {
        let progress = Progress::default();
        let counted =
            |(config, _): &(LoadConfig, _)| config.delay.saturating_add(config.ramp).as_ns();
        let counted_ns = loads.iter().map(counted).min().unwrap_or(0);
        if counted_ns == 0 {
            watch.look(0);
        }
        self.parts.begin(longest_s(loads));
        let tallies = std::thread::scope(|scope| {
            let progress = &progress;
            let workers: Vec<_> = loads
                .iter()
                .map(|(config, device)| {
                    scope.spawn(move || diskload::run(config, device, progress))
                })
                .collect();
            let watched = self.watch(counted_ns, progress, watch, || {
                workers.iter().all(std::thread::ScopedJoinHandle::is_finished)
            });
            // Loads still run only if watching them failed.
            progress.stop();
            let joined = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
            let tallies: Result<Vec<Tally>, LoadError> = joined
                .map(|ended| ended.unwrap_or_else(|p| std::panic::resume_unwind(p)))
                .collect();
            watched?;
            tallies
        })?;
        watch.look(progress.ended());
        Ok(tallies)
    }

    // Updates the live line and watches for Ctrl-C until `has_ended` returns true.
    fn watch(
        &mut self,
        counted_ns: u64,
        progress: &Progress,
        watch: &mut dyn Watch,
        has_ended: impl Fn() -> bool,
    ) -> sys::Result<()> {
        let counted_at = monotonic_ns().saturating_add(counted_ns);
        let mut is_counting = counted_ns == 0;
        let (mut last_ns, mut last) = (monotonic_ns(), 0);
        let mut ready = Vec::new();
        while !has_ended() {
            let now_ns = monotonic_ns();
            if !is_counting && now_ns >= counted_at {
                is_counting = true;
                watch.look(progress.ended());
            }
            let sleep_ns = match is_counting {
                true => LOOK_NS,
                false => LOOK_NS.min(counted_at - now_ns),
            };
            self.poll.wait(Some(Duration::from_nanos(sleep_ns)), &mut ready)?;
            if self.signals.next().is_some() {
                self.interrupted = true;
                progress.stop();
            }
            let now_ns = monotonic_ns();
            let period = now_ns - last_ns;
            if period >= PERIOD_NS {
                let ended = progress.ended();
                let rate = u128::from(ended - last) * 1_000_000_000 / u128::from(period);
                self.parts.show(&watch.line(ended, u64::try_from(rate).unwrap_or(u64::MAX)));
                (last_ns, last) = (now_ns, ended);
            }
        }
        Ok(())
    }
}

/// The runtime of the longest load in seconds; `None` if any load has no time limit.
fn longest_s(loads: &[(LoadConfig, Device)]) -> Option<f64> {
    let ends = loads.iter().map(|(config, _)| {
        let all = config.delay.saturating_add(config.ramp).saturating_add(config.runtime?);
        Some(all.as_ns() as f64 / 1e9)
    });
    ends.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}
