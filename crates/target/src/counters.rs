//! Counters of a shard, which other threads read while it works.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that one shard writes and any thread reads.
#[derive(Debug, Default)]
pub struct Counters {
    /// Reads that have succeeded, and their bytes.
    pub reads: AtomicU64,
    /// See `reads`.
    pub read_bytes: AtomicU64,
    /// Writes that have succeeded, and their bytes.
    pub writes: AtomicU64,
    /// See `writes`.
    pub write_bytes: AtomicU64,
    /// Commands of any kind that have failed.
    pub failures: AtomicU64,
    /// Connections that are open.
    pub connections: AtomicU64,
    /// Connections that ended because their peers violated the protocol.
    pub violations: AtomicU64,
    /// Connections that ended because requested data did not come in time.
    pub late_data: AtomicU64,
    /// Connections that ended because their peers did not read what they were sent.
    pub unread: AtomicU64,
    /// Bytes of memory that data and answers in transit take.
    pub lent_bytes: AtomicU64,
    /// Times that a command has had to wait for memory.
    pub memory_waits: AtomicU64,
    /// Times that the shard has slept.
    pub sleeps: AtomicU64,
    /// Processor time of the shard in nanoseconds, kernel time included, time spent polling in vain
    /// excluded; up to 10 ms of work old.
    pub busy_ns: AtomicU64,
    /// Reads and writes in the sums below; all are zero if the target does not trace.
    pub traced: AtomicU64,
    /// Sum of the times from taking a command until its device has finished, in nanoseconds.
    pub device_ns: AtomicU64,
    /// Sum of the times from the device's end until the shard has noticed, in nanoseconds.
    pub late_ns: AtomicU64,
    /// Sum of the times from then until the kernel has the answer, in nanoseconds.
    pub answer_ns: AtomicU64,
}

/// Adds to a counter of which the caller is the only writer.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
}

/// Subtracts from a counter of which the caller is the only writer.
pub(crate) fn subtract(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_sub(count), Ordering::Relaxed);
}
