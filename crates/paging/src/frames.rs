//! A policy that sees every access, as it cannot in a running program.

use crate::page::PageIndex;
use crate::policy::{Policy, PolicyKind};

/// A policy with a fixed number of frames and without time: a fault evicts its victim.
#[derive(Debug)]
pub struct Frames {
    policy: Box<dyn Policy>,
    capacity: usize,
    faults: u64,
}

impl Frames {
    /// Frames without a page. `capacity` is at least one.
    #[must_use]
    pub fn new(kind: PolicyKind, capacity: usize, seed: u64) -> Self {
        Self { policy: kind.build(capacity, seed), capacity, faults: 0 }
    }

    /// Accesses `page`, which makes it local.
    pub fn access(&mut self, page: PageIndex) {
        if self.policy.contains(page) {
            self.policy.touch(page);
            return;
        }
        self.faults += 1;
        if self.policy.len() >= self.capacity {
            self.policy.victim();
        }
        self.policy.insert(page);
    }

    /// How many accesses were to pages that were not local, first touches included.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        self.faults
    }
}
