//! A policy that is told of every access, as no running program tells it.

use crate::page::PageIndex;
use crate::policy::{Policy, PolicyKind};

/// A policy alone, without time: at most so many local pages, given up when another has to come.
#[derive(Debug)]
pub struct Frames {
    policy: Box<dyn Policy>,
    capacity: usize,
    faults: u64,
}

impl Frames {
    /// No page is local. `capacity` is at least one.
    #[must_use]
    pub fn new(kind: PolicyKind, capacity: usize, seed: u64) -> Self {
        Self { policy: kind.build(capacity, seed), capacity, faults: 0 }
    }

    /// Accesses `page`, which is local then.
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

    /// Accesses to pages that were not local, first touches included.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        self.faults
    }
}
