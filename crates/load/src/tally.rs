use measure::{Duration, Histogram};
use workload::Operation;

/// The results of all requests of one operation.
#[derive(Debug, Clone, Default)]
pub struct OperationTally {
    /// Times of successful requests, from when they were meant to be sent.
    pub latency: Histogram,
    /// Requested records that the server does not have.
    pub missing_count: u64,
    /// Requests that the server answered with an error.
    pub refused_count: u64,
    /// Values that differ from what was stored; 0 if values are not checked.
    pub wrong_count: u64,
}

/// The results of all requests.
#[derive(Debug, Clone)]
pub struct Tally {
    operations: [OperationTally; 5],
    /// Requests without an answer: their connection failed, or the answer took too long.
    pub lost_count: u64,
    /// Connections that failed.
    pub failed_connections: u64,
    /// A description of the first error.
    pub first_trouble: Option<String>,
    /// From the end of the warm-up to the last answer.
    pub elapsed: Duration,
    /// Successful requests in each second from the end of the warm-up on.
    pub seconds: Vec<u64>,
    /// The results of the probe, if there was one; no other field includes them.
    pub probe: Option<Box<Self>>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            operations: std::array::from_fn(|_| OperationTally::default()),
            lost_count: 0,
            failed_connections: 0,
            first_trouble: None,
            elapsed: Duration::ZERO,
            seconds: Vec::new(),
            probe: None,
        }
    }

    /// The results of one operation.
    #[must_use]
    pub const fn of(&self, operation: Operation) -> &OperationTally {
        &self.operations[operation.index()]
    }

    /// The results of one operation, to be changed.
    pub(crate) const fn of_mut(&mut self, operation: Operation) -> &mut OperationTally {
        &mut self.operations[operation.index()]
    }

    /// Counts an answer that came `after` the end of the warm-up, in its second.
    pub(crate) fn answered(&mut self, after: Duration) {
        let second = usize::try_from(after.as_ns() / SECOND_NS).unwrap_or(usize::MAX);
        if second >= self.seconds.len() {
            self.seconds.resize(second + 1, 0);
        }
        self.seconds[second] += 1;
    }

    /// Keeps the description of an error if it is the first.
    pub(crate) fn trouble(&mut self, what: impl FnOnce() -> String) {
        self.first_trouble.get_or_insert_with(what);
    }

    /// Adds the results of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.operations.iter_mut().zip(&other.operations) {
            mine.latency.merge(&theirs.latency);
            mine.missing_count += theirs.missing_count;
            mine.refused_count += theirs.refused_count;
            mine.wrong_count += theirs.wrong_count;
        }
        self.lost_count += other.lost_count;
        self.failed_connections += other.failed_connections;
        if self.first_trouble.is_none() {
            self.first_trouble.clone_from(&other.first_trouble);
        }
        self.elapsed = self.elapsed.max(other.elapsed);
        let seconds = self.seconds.len().max(other.seconds.len());
        self.seconds.resize(seconds, 0);
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            *mine += theirs;
        }
    }

    /// How many requests succeeded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.operations.iter().map(|operation| operation.latency.count()).sum()
    }

    /// Successful requests per second.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        if self.elapsed.is_zero() {
            return 0.0;
        }
        self.count() as f64 / self.elapsed.as_ns_f64() * 1e9
    }
}
