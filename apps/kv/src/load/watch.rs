//! A load at work: a live line, and Ctrl-C ends it with what was measured.

use std::time::Duration;

use ::load::{LoadError, Progress, Tally};
use console::Line;
use sys::clock::monotonic_ns;
use sys::event::{Poll, Signals};

use crate::load::plan::Plan;

const PERIOD: Duration = Duration::from_millis(500);

/// Fills the store if asked to and runs the load. Answers whether it was interrupted.
///
/// # Errors
/// When the server cannot be reached.
pub(crate) fn run(plan: &Plan) -> Result<(Tally, bool), LoadError> {
    // Before any thread is started, so that none of them is interrupted.
    let signals = console::interrupts()?;
    let mut poll = Poll::new()?;
    poll.add(&signals, 0)?;
    let mut line = Line::if_watched();
    if plan.fill {
        let progress = Progress::default();
        let records = plan.config.workload.record_count;
        let shown = |answered: u64, _rate| {
            format!("afar  filling: {} % of {records} records", answered * 100 / records)
        };
        let filling = || ::load::fill(&plan.config, &progress);
        let (filled, interrupted) =
            watched(filling, &progress, &signals, &mut poll, &mut line, shown)?;
        if interrupted || filled.lost_count > 0 || filled.first_trouble.is_some() {
            return Ok((filled, interrupted));
        }
    }
    let progress = Progress::default();
    let shown = |answered: u64, rate: u64| format!("afar  {answered} requests  {rate}/s");
    let loading = || ::load::run(&plan.config, &progress);
    watched(loading, &progress, &signals, &mut poll, &mut line, shown)
}

fn watched(
    work: impl FnOnce() -> Result<Tally, LoadError> + Send,
    progress: &Progress,
    signals: &Signals,
    poll: &mut Poll,
    line: &mut Option<Line>,
    shown: impl Fn(u64, u64) -> String,
) -> Result<(Tally, bool), LoadError> {
    let stop = progress.stop();
    let mut interrupted = false;
    let tally = std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        let (mut last_ns, mut last) = (monotonic_ns(), 0);
        let mut ready = Vec::new();
        while !worker.is_finished() {
            // Short, so that a short load does not take longer to watch than to run.
            poll.wait(Some(PERIOD / 50), &mut ready)?;
            if signals.next().is_some() {
                interrupted = true;
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
    Ok((tally, interrupted))
}
