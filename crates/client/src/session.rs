//! Loads on disks: one after another or together, with a live line, until they end or Ctrl-C ends
//! those that run and all that were to follow; for `afar bench` and `afar reproduce`.

use std::time::Duration;

use console::Line;
use diskload::{Device, LoadConfig, LoadError, Progress, Tally};
use sys::clock::monotonic_ns;
use sys::event::{Poll, Signals};

/// See the module's description.
pub struct Session {
    signals: Signals,
    poll: Poll,
    line: Option<Line>,
    interrupted: bool,
}

/// What looks on while loads run.
pub trait Watch {
    /// The live line, after so many requests and at this rate.
    fn line(&mut self, ended: u64, per_second: u64) -> String;

    /// Called when the first load begins to count, after so many requests of all of them, and again
    /// when the last has ended; only then if they ended before.
    fn look(&mut self, ended: u64) {
        let _ = ended;
    }
}

const LOOK_NS: u64 = 20_000_000;
const PERIOD_NS: u64 = 500_000_000;

impl Session {
    /// Before any thread is started, so that none of them is interrupted. Nothing is drawn if
    /// `quiet`.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    pub fn new(quiet: bool) -> sys::Result<Self> {
        let signals = console::interrupts()?;
        let poll = Poll::new()?;
        poll.add(&signals, 0)?;
        let line = if quiet { None } else { Line::if_watched() };
        Ok(Self { signals, poll, line, interrupted: false })
    }

    /// Whether Ctrl-C was pressed.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Erases the line.
    pub fn end_line(&mut self) {
        self.line = None;
    }

    /// Erases what the line says; there is more to come.
    pub fn end_drawn(&mut self) {
        if self.line.take().is_some() {
            self.line = Line::if_watched();
        }
    }

    /// Waits until something has ended, with this line; the wish to stop ends it, too.
    ///
    /// # Errors
    /// When the kernel cannot wait.
    pub fn wait(&mut self, line: &str, has_ended: impl Fn() -> bool) -> sys::Result<()> {
        let mut ready = Vec::new();
        if let Some(drawn) = &mut self.line {
            drawn.draw(line);
        }
        while !self.interrupted && !has_ended() {
            self.poll.wait(Some(Duration::from_nanos(LOOK_NS)), &mut ready)?;
            self.interrupted = self.signals.next().is_some();
        }
        Ok(())
    }

    /// Runs loads together; what each has measured, in their order.
    ///
    /// # Errors
    /// When one cannot begin.
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
            // Only if it could not be watched is there anything left to stop.
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
            if let Some(line) = &mut self.line
                && period >= PERIOD_NS
            {
                let ended = progress.ended();
                let rate = u128::from(ended - last) * 1_000_000_000 / u128::from(period);
                line.draw(&watch.line(ended, u64::try_from(rate).unwrap_or(u64::MAX)));
                (last_ns, last) = (now_ns, ended);
            }
        }
        Ok(())
    }
}
