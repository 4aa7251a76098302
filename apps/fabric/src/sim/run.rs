//! One simulation, with a progress line, until it ends or Ctrl-C ends it.

use console::{Progress as Parts, clock};
use netsim::{Observed, Outcome, PortSeries, Progress, Trace, simulate_observed};
use sys::clock::{monotonic_ns, thread_ns};
use sys::event::Signals;

use super::setup::Setup;

const PERIOD_NS: u64 = 500_000_000;

/// What a simulation gave, and the processor time it took.
#[derive(Debug)]
pub struct Run {
    pub outcome: Outcome,
    /// What ports did over time, if requested.
    pub ports: Option<PortSeries>,
    pub trace: Option<Trace>,
    pub cpu_ns: u64,
}

/// What a run is watched with.
pub struct Looker<'a> {
    /// Where Ctrl-C arrives.
    pub signals: &'a Signals,
    /// The progress line.
    pub progress: Parts,
}

impl Looker<'_> {
    /// Simulates with a progress line; the error is `Stopped` after a signal.
    ///
    /// # Errors
    /// If there is no result.
    pub(super) fn run(&mut self, setup: &Setup) -> Result<Run, netsim::SimError> {
        let (began_ns, flow_count) = (monotonic_ns(), setup.flows.len());
        let mut last_ns = began_ns;
        let mut watch = |progress: &Progress| {
            let now_ns = monotonic_ns();
            if now_ns - last_ns >= PERIOD_NS {
                last_ns = now_ns;
                self.progress.draw(&text(progress, flow_count, now_ns - began_ns));
            }
            self.signals.next().is_none()
        };
        let run = run(setup, &mut watch);
        self.progress.close();
        run
    }
}

/// Simulates until all flows have finished, or until `watch` returns false.
///
/// # Errors
/// If there is no result, or a flow never finishes that the run has to wait for.
pub(crate) fn run(setup: &Setup, watch: netsim::Watch<'_>) -> Result<Run, netsim::SimError> {
    let run = run_stranded(setup, watch)?;
    let outcome = match setup.observe.span.filter(|_| setup.observe.until_span_ended) {
        Some(span) => run.outcome.complete_within(&setup.flows, span)?,
        None => run.outcome.complete()?,
    };
    Ok(Run { outcome, ..run })
}

/// Simulates; flows that never finish are left out of the result.
///
/// # Errors
/// If there is no result.
pub fn run_stranded(setup: &Setup, watch: netsim::Watch<'_>) -> Result<Run, netsim::SimError> {
    let before_ns = thread_ns();
    let Setup { fabric, protocol, flows, observe, .. } = setup;
    let observed = simulate_observed(fabric, *protocol, flows, *observe, watch)?;
    let Observed { outcome, ports, trace } = observed;
    Ok(Run { outcome, ports, trace, cpu_ns: thread_ns() - before_ns })
}

/// The progress line: flows that have ended, events per second, and time left.
fn text(progress: &Progress, flow_count: usize, elapsed_ns: u64) -> String {
    let share = f64::from(progress.ended_count) / flow_count as f64;
    let elapsed_s = elapsed_ns as f64 / 1e9;
    let left = if share > 0.0 {
        let seconds = elapsed_s * (1.0 - share) / share;
        format!("{} left", clock(std::time::Duration::from_secs_f64(seconds.clamp(0.0, 1e9))))
    } else {
        "time left unknown".to_owned()
    };
    format!(
        "sim  {:.0} %  {} of {flow_count} flows  {:.1} M events/s  {left}",
        share * 100.0,
        progress.ended_count,
        progress.event_count as f64 / 1e6 / elapsed_s,
    )
}

#[cfg(test)]
mod tests {
    use measure::Instant;

    use super::*;

    #[test]
    fn the_line_says_what_is_left() {
        let at = |ended_count| Progress {
            now: Instant::ZERO,
            ended_count,
            event_count: 8_000_000,
            received_packets: 0,
        };
        assert_eq!(
            text(&at(25), 100, 2_000_000_000),
            "sim  25 %  25 of 100 flows  4.0 M events/s  6 s left"
        );
        assert!(text(&at(0), 100, 1_000_000_000).ends_with("time left unknown"));
    }
}
