//! What a load has measured.

use measure::{Duration, Histogram};
use sys::usage::Usage;

use backend::JobTimes;

use super::depths::Depths;
use super::stamp::Wrong;
use super::under_way::Times;

/// Of reads, or of writes.
#[derive(Debug, Clone, Default)]
pub struct OperationTally {
    /// From when a request was made until the kernel was given it, with all that were made at that
    /// time. In a closed loop with one request under way, the answer before is taken apart then.
    /// Nothing for those that were answered as they were made, by a device of this process.
    pub submission: Histogram,
    /// From then until it had ended.
    pub completion: Histogram,
    /// From when a request was made, or was to be made, until it had ended.
    pub latency: Histogram,
    /// Bytes moved.
    pub bytes: u64,
    /// Requests that failed.
    pub failure_count: u64,
    /// Requests that ended in each second.
    pub seconds: Vec<u64>,
}

/// Of all requests after the ramp.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Reads.
    pub reads: OperationTally,
    /// Writes.
    pub writes: OperationTally,
    /// Requests that gave room back.
    pub trims: OperationTally,
    /// Requests whose connection was lost: whether they were done is not known.
    pub uncertain_count: u64,
    /// Times that a connection was lost and found again.
    pub reconnect_count: u64,
    /// Requests that were to be made and were not before time was over: in an open loop, what
    /// the device was behind by.
    pub unmade_count: u64,
    /// Time in which they were counted.
    pub elapsed: Duration,
    /// What the jobs' threads used then.
    pub usage: Usage,
    /// How many requests were under way then.
    pub depths: Depths,
    /// If the load traces, what a device of this process did with the time of all requests, also
    /// those of the ramp; all zero if not.
    pub times: JobTimes,
    /// Reads whose bytes were compared with what they had to be.
    pub checked_count: u64,
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
}

const SECOND_NS: u64 = 1_000_000_000;

impl OperationTally {
    /// Counts a request that ended well, so long after counting began.
    pub(super) fn add(&mut self, times: &Times, bytes: u64, since_ns: u64) {
        self.submission.record(times.submission);
        self.completion.record(times.completion);
        self.latency.record(times.latency);
        self.bytes += bytes;
        let second = usize::try_from(since_ns / SECOND_NS).unwrap_or(usize::MAX);
        // A load of years would have no such list; nobody runs it.
        if second >= self.seconds.len() && second < 1 << 24 {
            self.seconds.resize(second + 1, 0);
        }
        if let Some(count) = self.seconds.get_mut(second) {
            *count += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.submission.merge(&other.submission);
        self.completion.merge(&other.completion);
        self.latency.merge(&other.latency);
        self.bytes += other.bytes;
        self.failure_count += other.failure_count;
        self.seconds.resize(self.seconds.len().max(other.seconds.len()), 0);
        for (own, its) in self.seconds.iter_mut().zip(&other.seconds) {
            *own += its;
        }
    }
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            reads: OperationTally::default(),
            writes: OperationTally::default(),
            trims: OperationTally::default(),
            uncertain_count: 0,
            reconnect_count: 0,
            unmade_count: 0,
            elapsed: Duration::ZERO,
            usage: Usage::default(),
            depths: Depths::default(),
            times: JobTimes::default(),
            checked_count: 0,
            lost_count: 0,
            misdirected_count: 0,
            torn_count: 0,
            stale_count: 0,
            first_failure: None,
        }
    }

    /// Requests that ended well.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.operations().map(|of| of.latency.count()).iter().sum()
    }

    /// Requests per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.count() as f64 * 1e9 / self.elapsed.as_ns_f64().max(1.0)
    }

    /// Requests that failed.
    #[must_use]
    pub fn failure_count(&self) -> u64 {
        self.operations().map(|of| of.failure_count).iter().sum()
    }

    /// Reads, writes and trims.
    #[must_use]
    pub const fn operations(&self) -> [&OperationTally; 3] {
        [&self.reads, &self.writes, &self.trims]
    }

    /// Reads that brought the wrong bytes.
    #[must_use]
    pub const fn wrong_count(&self) -> u64 {
        self.lost_count + self.misdirected_count + self.torn_count + self.stale_count
    }

    /// Processor time of the jobs.
    #[must_use]
    pub const fn processor_time(&self) -> Duration {
        Duration::from_ns(self.usage.processor_ns())
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

    /// Counts what another has counted.
    pub fn merge(&mut self, other: &Self) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.trims.merge(&other.trims);
        self.uncertain_count += other.uncertain_count;
        self.reconnect_count += other.reconnect_count;
        self.unmade_count += other.unmade_count;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.usage = self.usage.plus(&other.usage);
        self.depths.merge(&other.depths);
        self.times.merge(&other.times);
        self.checked_count += other.checked_count;
        self.lost_count += other.lost_count;
        self.misdirected_count += other.misdirected_count;
        self.torn_count += other.torn_count;
        self.stale_count += other.stale_count;
        if self.first_failure.is_none() {
            self.first_failure.clone_from(&other.first_failure);
        }
    }
}
