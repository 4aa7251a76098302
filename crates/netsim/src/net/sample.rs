//! Samples the length of one queue at regular intervals.

use measure::{Duration, Instant};

use crate::port::Port;

/// Which queue to sample, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Samples {
    /// The link whose port is sampled, by its index in the topology.
    pub link: u32,
    /// The time between samples; the first is at the start.
    pub every: Duration,
}

/// Samples taken so far, and when the next is due.
#[derive(Debug)]
pub(crate) struct Sampler {
    samples: Samples,
    next: Instant,
    pub(crate) queued_bytes: Vec<u64>,
}

impl Sampler {
    pub(crate) const fn new(samples: Samples) -> Self {
        Self { samples, next: Instant::ZERO, queued_bytes: Vec::new() }
    }

    /// Takes the samples due before `at`, the time of the next event.
    pub(super) fn look_until(&mut self, at: Instant, ports: &[Port]) {
        let queued_bytes = ports[self.samples.link as usize].queued_bytes;
        while self.next < at {
            self.queued_bytes.push(queued_bytes);
            self.next = self.next + self.samples.every;
        }
    }
}
