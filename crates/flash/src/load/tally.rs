//! What a load has measured.

use measure::{Duration, Histogram};

use crate::jobs::JobTimes;

use super::stamp::Wrong;

/// Of reads, or of writes.
#[derive(Debug, Clone, Default)]
pub struct OperationTally {
    /// From when a request was made, or was to be made, until it had ended.
    pub latency: Histogram,
    /// Bytes moved.
    pub bytes: u64,
    /// Requests that failed.
    pub failure_count: u64,
}

/// Sums over all requests, also those of the ramp: where their time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadTimes {
    /// Requests that were made.
    pub made: u64,
    /// From when they were made until the kernel had them, in nanoseconds. In a closed loop with
    /// one request under way, the answer before is taken apart then.
    pub host_ns: u64,
    /// Of a device of this process: its part.
    pub jobs: JobTimes,
}

/// Of all requests after the ramp.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Reads.
    pub reads: OperationTally,
    /// Writes.
    pub writes: OperationTally,
    /// Requests whose connection was lost: whether they were done is not known.
    pub uncertain_count: u64,
    /// Times that a connection was lost and found again.
    pub reconnect_count: u64,
    /// Time in which they were counted.
    pub elapsed: Duration,
    /// Processor time of the jobs then.
    pub processor_time: Duration,
    /// Where the time went, if the load traces; all zero if not.
    pub times: LoadTimes,
    /// Requests that ended in each second.
    pub seconds: Vec<u64>,
    /// Reads that brought what had never been written, or nothing where something had been.
    pub lost_count: u64,
    /// Reads that brought what belongs elsewhere.
    pub misdirected_count: u64,
    /// Reads that brought parts of several writes.
    pub torn_count: u64,
    /// Reads that brought an older write.
    pub stale_count: u64,
    /// The first failure, in words.
    pub first_failure: Option<String>,
    pub(super) began_ns: u64,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Tally {
    pub(super) fn new(began_ns: u64) -> Self {
        Self {
            reads: OperationTally::default(),
            writes: OperationTally::default(),
            uncertain_count: 0,
            reconnect_count: 0,
            elapsed: Duration::from_ps(0),
            processor_time: Duration::from_ps(0),
            times: LoadTimes::default(),
            seconds: Vec::new(),
            lost_count: 0,
            misdirected_count: 0,
            torn_count: 0,
            stale_count: 0,
            first_failure: None,
            began_ns,
        }
    }

    /// Requests that ended well.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.reads.latency.count() + self.writes.latency.count()
    }

    /// Requests that failed.
    #[must_use]
    pub const fn failure_count(&self) -> u64 {
        self.reads.failure_count + self.writes.failure_count
    }

    /// Reads that brought the wrong bytes.
    #[must_use]
    pub const fn wrong_count(&self) -> u64 {
        self.lost_count + self.misdirected_count + self.torn_count + self.stale_count
    }

    pub(super) fn add_second(&mut self, now_ns: u64) {
        let second = now_ns.saturating_sub(self.began_ns) / SECOND_NS;
        let second = usize::try_from(second).unwrap_or(usize::MAX);
        // A load of years would have no such list; nobody runs it.
        if second >= self.seconds.len() && second < 1 << 24 {
            self.seconds.resize(second + 1, 0);
        }
        if let Some(count) = self.seconds.get_mut(second) {
            *count += 1;
        }
    }

    pub(super) const fn add_wrong(&mut self, wrong: Wrong) {
        let count = match wrong {
            Wrong::Lost => &mut self.lost_count,
            Wrong::Misdirected => &mut self.misdirected_count,
            Wrong::Torn => &mut self.torn_count,
            Wrong::Stale => &mut self.stale_count,
        };
        *count += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (own, its) in [(&mut self.reads, &other.reads), (&mut self.writes, &other.writes)] {
            own.latency.merge(&its.latency);
            own.bytes += its.bytes;
            own.failure_count += its.failure_count;
        }
        self.uncertain_count += other.uncertain_count;
        self.reconnect_count += other.reconnect_count;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.processor_time = self.processor_time.saturating_add(other.processor_time);
        self.times.made += other.times.made;
        self.times.host_ns += other.times.host_ns;
        self.times.jobs.merge(&other.times.jobs);
        self.seconds.resize(self.seconds.len().max(other.seconds.len()), 0);
        for (own, its) in self.seconds.iter_mut().zip(&other.seconds) {
            *own += its;
        }
        self.lost_count += other.lost_count;
        self.misdirected_count += other.misdirected_count;
        self.torn_count += other.torn_count;
        self.stale_count += other.stale_count;
        if self.first_failure.is_none() {
            self.first_failure.clone_from(&other.first_failure);
        }
    }
}
