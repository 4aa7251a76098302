//! The results of a load.

use measure::{Duration, Histogram};
use sys::usage::Usage;

use backend::JobTimes;

use super::checks::Checks;
use super::depths::Depths;
use super::under_way::Times;

/// The results of all requests of one operation.
#[derive(Debug, Clone, Default)]
pub struct OperationTally {
    /// From when a request was made until it was handed to the kernel together with all others of
    /// that time. Zero if a device of this process answered at once.
    pub submission: Histogram,
    /// From the hand-over to the kernel until the request had ended.
    pub completion: Histogram,
    /// From when a request was made, or was to be made, until it had ended.
    pub latency: Histogram,
    /// Bytes moved.
    pub bytes: u64,
    /// Requests that failed.
    pub failure_count: u64,
    /// Successful requests in each second.
    pub seconds: Vec<u64>,
}

/// Lost connections and their consequences.
#[derive(Debug, Clone, Copy, Default)]
pub struct Losses {
    /// Requests whose connection was lost, so that they may or may not have been executed.
    pub uncertain_count: u64,
    /// How often a lost connection was reestablished.
    pub reconnect_count: u64,
    /// How often the target had reopened the device meanwhile, if the target reports that.
    pub reopen_count: u64,
}

impl Losses {
    /// Adds the losses of another job.
    const fn merge(&mut self, other: &Self) {
        self.uncertain_count += other.uncertain_count;
        self.reconnect_count += other.reconnect_count;
        self.reopen_count += other.reopen_count;
    }
}

/// The results of all requests after the ramp.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Reads.
    pub reads: OperationTally,
    /// Writes.
    pub writes: OperationTally,
    /// Trims.
    pub trims: OperationTally,
    /// Flushes, which are not among the requests.
    pub flushes: OperationTally,
    /// Connections that were lost.
    pub losses: Losses,
    /// Requests of an open loop that arrived before time was over and were never made, because the
    /// device was too slow.
    pub unmade_count: u64,
    /// The time for which requests were counted.
    pub elapsed: Duration,
    /// What the jobs' threads used in that time.
    pub usage: Usage,
    /// How many requests were outstanding in that time.
    pub depths: Depths,
    /// Where a device of this process spent the time of all requests, those of the ramp included;
    /// all zero unless the load traces.
    pub times: JobTimes,
    /// The results of verified reads.
    pub checks: Checks,
    /// The first failure, in words.
    pub first_failure: Option<String>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl OperationTally {
    /// Counts a successful request that ended `since_ns` after counting began.
    pub(super) fn add(&mut self, times: &Times, bytes: u64, since_ns: u64) {
        self.submission.record(times.submission);
        self.completion.record(times.completion);
        self.latency.record(times.latency);
        self.bytes += bytes;
        let second = usize::try_from(since_ns / SECOND_NS).unwrap_or(usize::MAX);
        // Later seconds are left out: after 2^24 of them, half a year.
        if second >= self.seconds.len() && second < 1 << 24 {
            self.seconds.resize(second + 1, 0);
        }
        if let Some(count) = self.seconds.get_mut(second) {
            *count += 1;
        }
    }

    /// Adds the results of another job.
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

    /// How many requests succeeded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.operations().map(|of| of.latency.count()).iter().sum()
    }

    /// Successful requests per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.count() as f64 * 1e9 / self.elapsed.as_ns_f64().max(1.0)
    }

    /// How many requests and flushes failed.
    #[must_use]
    pub fn failure_count(&self) -> u64 {
        let requests: u64 = self.operations().map(|of| of.failure_count).iter().sum();
        requests + self.flushes.failure_count
    }

    /// The results of reads, writes and trims.
    #[must_use]
    pub const fn operations(&self) -> [&OperationTally; 3] {
        [&self.reads, &self.writes, &self.trims]
    }

    /// Processor time of all jobs.
    #[must_use]
    pub const fn processor_time(&self) -> Duration {
        Duration::from_ns(self.usage.processor_ns())
    }

    /// Adds the results of another job.
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
