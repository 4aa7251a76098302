//! What a load has measured.

use measure::{Duration, Histogram};
use sys::usage::Usage;

use backend::JobTimes;

use super::checks::Checks;
use super::depths::Depths;
use super::under_way::Times;

/// Of reads, or of writes.
#[derive(Debug, Clone, Default)]
pub struct OperationTally {
    /// From when a request was made until the kernel was given it, with all that were made at that
    /// time. Nothing for those that were answered as they were made, by a device of this process.
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

/// What became of connections that were lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Losses {
    /// Requests whose connection was lost: whether they were done is not known.
    pub uncertain_count: u64,
    /// Times that a connection was lost and found again.
    pub reconnect_count: u64,
    /// Times that a device was found again and had been opened anew meanwhile, as far as its target
    /// says so.
    pub reopen_count: u64,
}

impl Losses {
    const fn merge(&mut self, other: &Self) {
        self.uncertain_count += other.uncertain_count;
        self.reconnect_count += other.reconnect_count;
        self.reopen_count += other.reopen_count;
    }
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
    /// Flushes, which are not among the requests.
    pub flushes: OperationTally,
    /// Connections that were lost.
    pub losses: Losses,
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
    /// What reads have brought, where that is known.
    pub checks: Checks,
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
            flushes: OperationTally::default(),
            losses: Losses::default(),
            unmade_count: 0,
            elapsed: Duration::ZERO,
            usage: Usage::default(),
            depths: Depths::default(),
            times: JobTimes::default(),
            checks: Checks::default(),
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

    /// Requests and flushes that failed.
    #[must_use]
    pub fn failure_count(&self) -> u64 {
        let requests: u64 = self.operations().map(|of| of.failure_count).iter().sum();
        requests + self.flushes.failure_count
    }

    /// Reads, writes and trims.
    #[must_use]
    pub const fn operations(&self) -> [&OperationTally; 3] {
        [&self.reads, &self.writes, &self.trims]
    }

    /// Processor time of the jobs.
    #[must_use]
    pub const fn processor_time(&self) -> Duration {
        Duration::from_ns(self.usage.processor_ns())
    }

    /// Counts what another has counted.
    pub fn merge(&mut self, other: &Self) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.trims.merge(&other.trims);
        self.flushes.merge(&other.flushes);
        self.losses.merge(&other.losses);
        self.unmade_count += other.unmade_count;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.usage = self.usage.plus(&other.usage);
        self.depths.merge(&other.depths);
        self.times.merge(&other.times);
        self.checks.merge(&other.checks);
        if self.first_failure.is_none() {
            self.first_failure.clone_from(&other.first_failure);
        }
    }
}
