//! Looks at a queue now and then.

use measure::{Duration, Instant};

use super::Net;

/// Which queue to look at, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// The link of the port, by its place in the topology.
    pub link: u32,
    /// From one look to the next; the first is at the start.
    pub every: Duration,
}

/// A watch, and what it has seen.
#[derive(Debug)]
pub(crate) struct Watching {
    watch: Watch,
    next: Instant,
    pub(crate) queued_bytes: Vec<u64>,
}

impl Watching {
    pub(crate) const fn new(watch: Watch) -> Self {
        Self { watch, next: Instant::ZERO, queued_bytes: Vec::new() }
    }
}

impl Net<'_> {
    /// Looks at the queue as it was until `at`, when something happens.
    pub(crate) fn look_until(&mut self, at: Instant) {
        let Some(watching) = &mut self.watch else { return };
        let queued_bytes = self.ports[watching.watch.link as usize].queued_bytes;
        while watching.next < at {
            watching.queued_bytes.push(queued_bytes);
            watching.next = watching.next + watching.watch.every;
        }
    }
}
