//! Noise: what else the machine did while a run was measured. It is observed beside the run, not
//! deduced from its result.
//!
//! Two things take a run's processor time: other guests of the machine, which the hypervisor
//! reports as stolen time, and other programs of this machine. The time of the latter is that of
//! all processors, less this program's and its children's, less the kernel threads'.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sys::processors::ProcessorTime;

/// How much noise a run may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// The share of the processor time wanted that other guests may take, 0 to 1.
    pub stolen_max: f64,
    /// The share of the processors that other programs may keep busy, 0 to 1.
    pub others_max: f64,
}

/// Other programs' time is counted in ticks of 10 ms: less than this is no disturbance.
const OTHERS_LEAST: Duration = Duration::from_millis(30);

/// The noise during a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// The share of the processor time wanted that went to other guests, 0 to 1.
    pub stolen: f64,
    /// The share of all processors' time that other programs of this machine used, 0 to 1.
    pub others: f64,
    /// The share of the time in which something waited for a processor, 0 to 1 (pressure stall
    /// information, `some`); a program with more threads than there are processors waits for
    /// itself.
    pub pressure: f64,
    /// How often a thread of the run was made to give its processor away.
    pub preempted_count: u64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    at: Instant,
    processors: ProcessorTime,
    ours: sys::usage::Usage,
    pressure: Duration,
}

impl Reading {
    /// Reads the counters.
    #[must_use]
    pub fn now() -> Self {
        Self {
            at: Instant::now(),
            processors: ProcessorTime::with_kernel_threads(),
            ours: sys::usage::of_this_process_and_children(),
            pressure: sys::processors::pressure(),
        }
    }

    /// The noise from `self` until now. Children count once they have ended and were waited for.
    #[must_use]
    pub fn until_now(&self) -> Noise {
        self.until_now_beside(Duration::ZERO)
    }

    /// The same where other processes of this machine belong to the run, too, such as the target of
    /// a load: their processor time meanwhile is no other program's.
    #[must_use]
    pub fn until_now_beside(&self, theirs: Duration) -> Noise {
        let now = Self::now();
        let elapsed = now.at - self.at;
        let programs = now.processors.programs_since(self.processors);
        let ours = now.ours.processor_ns().saturating_sub(self.ours.processor_ns());
        let others = programs.saturating_sub(Duration::from_nanos(ours)).saturating_sub(theirs);
        let all = elapsed.as_secs_f64() * self.processors.count() as f64;
        let pressure = now.pressure.saturating_sub(self.pressure);
        let share = |part: Duration, whole: f64| match part.as_secs_f64() / whole {
            share if share.is_finite() => share.min(1.0),
            _ => 0.0,
        };
        Noise {
            stolen: now.processors.stolen_since(self.processors),
            others: if others < OTHERS_LEAST { 0.0 } else { share(others, all) },
            pressure: share(pressure, elapsed.as_secs_f64()),
            preempted_count: now
                .ours
                .involuntary_switches
                .saturating_sub(self.ours.involuntary_switches),
        }
    }
}

impl Noise {
    /// What disturbed the run, as a clause of a sentence; `None` if the noise is within
    /// `tolerance`.
    #[must_use]
    pub fn disturbance(&self, tolerance: Tolerance) -> Option<String> {
        if self.stolen > tolerance.stolen_max {
            return Some(format!(
                "other guests of the machine took {:.0} % of the processor time that it wanted",
                self.stolen * 100.0
            ));
        }
        (self.others > tolerance.others_max).then(|| {
            format!(
                "other programs kept {:.0} % of the processors busy while it ran",
                self.others * 100.0
            )
        })
    }

    /// Shares of time that the noise took, summed up to compare runs: 0 is a quiet machine.
    #[must_use]
    pub fn taken(&self) -> f64 {
        self.stolen + self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbance_is_above_its_limit() {
        let quiet = Noise { stolen: 0.05, others: 0.05, pressure: 0.9, preempted_count: 9 };
        let tolerance = Tolerance { stolen_max: 0.05, others_max: 0.05 };
        assert_eq!(quiet.disturbance(tolerance), None);
        let stolen = Noise { stolen: 0.2, ..quiet }.disturbance(tolerance).expect("it is");
        assert!(stolen.contains("20 %"), "{stolen}");
        let all = Tolerance { stolen_max: 1.0, others_max: 1.0 };
        assert_eq!(Noise { stolen: 0.2, others: 1.0, ..quiet }.disturbance(all), None);
        assert_eq!(Noise { stolen: 0.25, others: 0.5, ..quiet }.taken(), 0.75);
        let others = Noise { others: 0.2, ..quiet }.disturbance(tolerance).expect("it is");
        assert!(others.starts_with("other programs kept 20 %"), "{others}");
    }

    // A child that was not waited for is another program.
    #[test]
    fn another_programs_time_is_seen() {
        let before = Reading::now();
        let mut command = std::process::Command::new("sh");
        sys::process::die_with_caller(&mut command);
        let mut other = command.args(["-c", "while :; do :; done"]).spawn().expect("there is a sh");
        let used = || sys::usage::of_process(other.id()).map_or(0, |usage| usage.processor_ns());
        while used() < 200_000_000 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let noise = before.until_now();
        assert!(noise.others > 0.0, "{noise:?}");
        let beside = before.until_now_beside(Duration::from_secs(3600));
        assert_eq!(beside.others, 0.0, "what belongs to the run is no other program's");
        other.kill().expect("it is ours");
        other.wait().expect("it is ours");
    }

    // What this program and those that it waits for do is no noise.
    #[test]
    fn a_reading_of_no_time_has_no_noise() {
        let noise = Reading::now().until_now();
        assert_eq!(noise.others, 0.0);
    }
}
