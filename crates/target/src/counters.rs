//! What a shard has done, for others to read while it works.

use std::sync::atomic::{AtomicU64, Ordering};

/// Written by one shard, read by anybody.
#[derive(Debug, Default)]
pub struct Counters {
    /// Reads that have ended well, and their bytes.
    pub reads: AtomicU64,
    /// See `reads`.
    pub read_bytes: AtomicU64,
    /// Writes that have ended well, and their bytes.
    pub writes: AtomicU64,
    /// See `writes`.
    pub write_bytes: AtomicU64,
    /// Commands of any kind that have failed.
    pub failures: AtomicU64,
    /// Connections that are open.
    pub connections: AtomicU64,
    /// Connections that ended because of what the peer sent.
    pub violations: AtomicU64,
    /// Connections that ended because data did not come that their peers were asked for.
    pub late_data: AtomicU64,
    /// Connections that ended because their peers did not read what they were sent.
    pub unread: AtomicU64,
    /// Bytes of memory that data and answers on their way take.
    pub lent_bytes: AtomicU64,
    /// Times that a command has had to wait for memory.
    pub memory_waits: AtomicU64,
    /// Times that the shard has slept.
    pub sleeps: AtomicU64,
    /// Processor time of the shard in nanoseconds, what the kernel did for it included, without the
    /// time that it looked for work and found none; up to 10 ms of work old.
    pub busy_ns: AtomicU64,
    /// Reads and writes in the sums below, all zero if the target does not trace.
    pub traced: AtomicU64,
    /// From when a command was taken up to when its device is done, in nanoseconds.
    pub device_ns: AtomicU64,
    /// From then until the shard has noticed, in nanoseconds.
    pub late_ns: AtomicU64,
    /// From then until the kernel has the answer, in nanoseconds.
    pub answer_ns: AtomicU64,
}

/// Adds to a counter that nobody else writes.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
}

/// As [`add`], the other way.
pub(crate) fn subtract(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_sub(count), Ordering::Relaxed);
}
