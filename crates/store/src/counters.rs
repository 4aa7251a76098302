//! What a server has done: while it serves, and in the end.

use std::sync::atomic::{AtomicU64, Ordering};

use measure::{Duration, Histogram};

use crate::command::Operation;
use crate::statistics::StoreCounters;

/// What anybody may look at while a server serves.
#[derive(Debug, Default)]
pub struct Counters {
    done: [AtomicU64; 8],
    failed: [AtomicU64; 8],
    connections: AtomicU64,
}

/// What became of one operation.
#[derive(Debug, Clone, Default)]
pub struct OperationTally {
    /// From when a command had arrived until a thread had it.
    pub waited: Histogram,
    /// From then until its answer was there: the processor time that was asked for, and RocksDB.
    pub served: Histogram,
    /// Commands that RocksDB has not done.
    pub error_count: u64,
}

/// What a server has done in all.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub(crate) operations: [OperationTally; 8],
    /// How long it served.
    pub elapsed: Duration,
    /// Connections that were taken.
    pub connection_count: u64,
    /// Connections that were not, because there were too many.
    pub turned_away_count: u64,
    /// Requests that are no command of this server.
    pub refused_count: u64,
    /// Connections that were ended for what they sent, or sent too much of.
    pub violation_count: u64,
    /// What the first of them sent.
    pub first_violation: Option<String>,
    /// What RocksDB says first of what it has not done.
    pub first_error: Option<String>,
    /// What RocksDB has counted.
    pub store: StoreCounters,
}

impl Counters {
    /// Commands done until now.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Commands of one operation that were done, and that RocksDB has not done.
    #[must_use]
    pub fn of(&self, operation: Operation) -> (u64, u64) {
        let at = operation.index();
        (self.done[at].load(Ordering::Relaxed), self.failed[at].load(Ordering::Relaxed))
    }

    /// Connections taken until now.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, operation: Operation, is_done: bool) {
        let counts = if is_done { &self.done } else { &self.failed };
        counts[operation.index()].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }
}

impl OperationTally {
    fn merge(&mut self, other: &Self) {
        self.waited.merge(&other.waited);
        self.served.merge(&other.served);
        self.error_count += other.error_count;
    }
}

impl Outcome {
    pub(crate) fn new() -> Self {
        Self {
            operations: std::array::from_fn(|_| OperationTally::default()),
            elapsed: Duration::ZERO,
            connection_count: 0,
            turned_away_count: 0,
            refused_count: 0,
            violation_count: 0,
            first_violation: None,
            first_error: None,
            store: StoreCounters::default(),
        }
    }

    /// Of one operation.
    #[must_use]
    pub const fn of(&self, operation: Operation) -> &OperationTally {
        &self.operations[operation.index()]
    }

    /// Commands that were done.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.operations.iter().map(|operation| operation.served.count()).sum()
    }

    pub(crate) fn merge(&mut self, other: &Work) {
        for (mine, theirs) in self.operations.iter_mut().zip(&other.operations) {
            if let Some(theirs) = theirs {
                mine.merge(theirs);
            }
        }
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
    }
}

/// What one thread has done. A histogram is large, and most threads do two operations.
#[derive(Debug, Default)]
pub(crate) struct Work {
    operations: [Option<Box<OperationTally>>; 8],
    first_error: Option<String>,
}

impl Work {
    /// A command was done, or RocksDB says why not.
    pub(crate) fn count(
        &mut self,
        operation: Operation,
        (waited, served): (Duration, Duration),
        error: Option<&str>,
    ) {
        let tally = self.operations[operation.index()].get_or_insert_default();
        match error {
            None => {
                tally.waited.record(waited);
                tally.served.record(served);
            }
            Some(error) => {
                tally.error_count += 1;
                self.first_error.get_or_insert_with(|| error.to_owned());
            }
        }
    }
}
