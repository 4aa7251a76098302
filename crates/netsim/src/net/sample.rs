//! Looks at a queue now and then.

use measure::{Duration, Instant};

use crate::port::Port;

/// Which queue to look at, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Samples {
    /// The link of the port, by its place in the topology.
    pub link: u32,
    /// From one look to the next; the first is at the start.
    pub every: Duration,
}

/// Samples to be taken, and those that have been.
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

    /// Looks at the queue as it was until `at`, when something happens.
    pub(super) fn look_until(&mut self, at: Instant, ports: &[Port]) {
        let queued_bytes = ports[self.samples.link as usize].queued_bytes;
        while self.next < at {
            self.queued_bytes.push(queued_bytes);
            self.next = self.next + self.samples.every;
        }
    }
}
