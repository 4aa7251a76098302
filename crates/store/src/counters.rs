//! Counters of a server: live ones while it serves, and its outcome at the end.

use std::sync::atomic::{AtomicU64, Ordering};

use measure::{Duration, Histogram};

use crate::command::Operation;
use crate::statistics::StoreCounters;

/// Live counters, which any thread may read while a server serves.
#[derive(Debug, Default)]
pub struct Counters {
    done: [AtomicU64; 8],
    failed: [AtomicU64; 8],
    connections: AtomicU64,
}

/// Latencies and errors of one operation.
#[derive(Debug, Clone, Default)]
pub struct OperationTally {
    /// Time from a command's arrival until a thread began it.
    pub waited: Histogram,
    /// Time from then until its answer was ready: the configured processor time, and RocksDB.
    pub served: Histogram,
    /// Commands that failed.
    pub error_count: u64,
}

/// All that a server has done.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub(crate) operations: [OperationTally; 8],
    /// How long it served.
    pub elapsed: Duration,
    /// Connections that were accepted.
    pub connection_count: u64,
    /// Connections that were closed at once, because there were too many.
    pub turned_away_count: u64,
    /// Requests that were no command of this server, or named an invalid cursor.
    pub refused_count: u64,
    /// Connections that were closed because they violated the protocol or a limit.
    pub violation_count: u64,
    /// The first violation.
    pub first_violation: Option<String>,
    /// The first error of a command that failed.
    pub first_error: Option<String>,
    /// RocksDB's own counters.
    pub store: StoreCounters,
}

impl Counters {
    /// Commands done until now.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// How many commands of `operation` succeeded, and how many failed.
    #[must_use]
    pub fn of(&self, operation: Operation) -> (u64, u64) {
        let at = operation.index();
        (self.done[at].load(Ordering::Relaxed), self.failed[at].load(Ordering::Relaxed))
    }

    /// Connections accepted until now.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    // Counts a command as done or as failed.
    pub(crate) fn count(&self, operation: Operation, is_done: bool) {
        let counts = if is_done { &self.done } else { &self.failed };
        counts[operation.index()].fetch_add(1, Ordering::Relaxed);
    }

    // Counts a connection.
    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }
}

impl OperationTally {
    // Adds the tally of another thread.
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

    /// The tally of `operation`.
    #[must_use]
    pub const fn of(&self, operation: Operation) -> &OperationTally {
        &self.operations[operation.index()]
    }

    /// How many commands succeeded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.operations.iter().map(|operation| operation.served.count()).sum()
    }

    // Adds the tallies of one thread.
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

/// The tallies of one thread, boxed: a histogram is large, and most threads do two operations.
#[derive(Debug, Default)]
pub(crate) struct Work {
    operations: [Option<Box<OperationTally>>; 8],
    first_error: Option<String>,
}

impl Work {
    /// Records a command that succeeded with its waiting and serving time, or that failed.
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
