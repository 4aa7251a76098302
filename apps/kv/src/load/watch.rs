//! Runs a load with a live line; Ctrl-C ends it, and what was measured remains.

use std::time::Duration;

use ::load::{LoadConfig, LoadError, Progress, Tally, Values};
use console::Line;
use sys::clock::monotonic_ns;
use sys::event::{Poll, Signals};

const PERIOD: Duration = Duration::from_millis(500);

/// Runs loads one after another.
pub(crate) struct Watched {
    signals: Signals,
    poll: Poll,
    line: Option<Line>,
}

/// The result of a load.
pub(crate) struct Loaded {
    pub(crate) tally: Tally,
    pub(crate) is_interrupted: bool,
}

impl Watched {
    /// Takes signals over. To be called before any thread is started, so that none is interrupted.
    ///
    /// # Errors
    /// When the kernel is out of descriptors.
    pub(crate) fn new() -> Result<Self, LoadError> {
        let signals = console::interrupts()?;
        let poll = Poll::new()?;
        poll.add(&signals, 0)?;
        Ok(Self { signals, poll, line: Line::if_watched() })
    }

    /// Stores every record of the workload.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(crate) fn fill(&mut self, config: &LoadConfig) -> Result<Loaded, LoadError> {
        let progress = Progress::default();
        let records = config.workload.record_count;
        let shown = |answered: u64, _rate| {
            format!("afar  filling: {} % of {records} records", answered * 100 / records)
        };
        self.during(|| ::load::fill(config, &progress), &progress, shown)
    }

    /// Runs a load on a store that has `values`; `what` begins the live line.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(crate) fn load(
        &mut self,
        config: &LoadConfig,
        values: Option<&Values>,
        what: &str,
    ) -> Result<Loaded, LoadError> {
        let progress = Progress::default();
        let gap = if what.is_empty() { "" } else { "  " };
        let shown =
            |answered: u64, rate: u64| format!("afar  {what}{gap}{answered} requests  {rate}/s");
        self.during(|| ::load::run_on(config, values, &progress), &progress, shown)
    }

    // Runs `work` on a thread, and draws what `shown` makes of answered requests and their rate.
    fn during(
        &mut self,
        work: impl FnOnce() -> Result<Tally, LoadError> + Send,
        progress: &Progress,
        shown: impl Fn(u64, u64) -> String,
    ) -> Result<Loaded, LoadError> {
        let Self { signals, poll, line } = self;
        let stop = progress.stop();
        let mut is_interrupted = false;
        let tally = std::thread::scope(|scope| {
            let worker = scope.spawn(work);
            let (mut last_ns, mut last) = (monotonic_ns(), 0);
            let mut ready = Vec::new();
            while !worker.is_finished() {
                // Short, so that the end of a short load is seen at once.
                poll.wait(Some(PERIOD / 50), &mut ready)?;
                if signals.next().is_some() {
                    is_interrupted = true;
                    stop.stop();
                }
                let now = monotonic_ns();
                let period = now - last_ns;
                if let Some(line) = line
                    && u128::from(period) >= PERIOD.as_nanos()
                {
                    let answered = progress.answered();
                    let rate = u128::from(answered - last) * 1_000_000_000 / u128::from(period);
                    line.draw(&shown(answered, u64::try_from(rate).unwrap_or(u64::MAX)));
                    (last_ns, last) = (now, answered);
                }
            }
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        if let Some(line) = line {
            line.clear();
        }
        Ok(Loaded { tally, is_interrupted })
    }
}
