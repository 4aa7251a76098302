use measure::{Duration, Histogram};
use workload::Operation;

/// What became of the requests of one operation.
#[derive(Debug, Clone, Default)]
pub struct OperationTally {
    /// Times of those that were answered as asked, from when they were meant to be sent.
    pub latency: Histogram,
    /// Records that were asked for and not there.
    pub missing_count: u64,
    /// Requests that the server refused.
    pub refused_count: u64,
    /// Values that are not what was stored; only when checked.
    pub wrong_count: u64,
}

/// What became of all requests.
#[derive(Debug, Clone)]
pub struct Tally {
    operations: [OperationTally; 5],
    /// Requests without an answer: their connection failed, or the answer took too long.
    pub lost_count: u64,
    /// Connections that failed.
    pub failed_connections: u64,
    /// The first thing that went wrong.
    pub first_trouble: Option<String>,
    /// From the first request that counts to the last answer.
    pub elapsed: Duration,
    /// Requests answered as asked in each second from the first that counts.
    pub seconds: Vec<u64>,
    /// What the client beside the load felt, if there was one; in nothing else here.
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

    /// Of one operation.
    #[must_use]
    pub const fn of(&self, operation: Operation) -> &OperationTally {
        &self.operations[operation.index()]
    }

    pub(crate) const fn of_mut(&mut self, operation: Operation) -> &mut OperationTally {
        &mut self.operations[operation.index()]
    }

    /// Counts an answer for its second, `after` the first request that counts.
    pub(crate) fn answered(&mut self, after: Duration) {
        let second = usize::try_from(after.as_ns() / SECOND_NS).unwrap_or(usize::MAX);
        if second >= self.seconds.len() {
            self.seconds.resize(second + 1, 0);
        }
        self.seconds[second] += 1;
    }

    pub(crate) fn trouble(&mut self, what: impl FnOnce() -> String) {
        self.first_trouble.get_or_insert_with(what);
    }

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

    /// Requests that were answered as asked.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.operations.iter().map(|operation| operation.latency.count()).sum()
    }

    /// Requests answered as asked, per second.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        if self.elapsed.is_zero() {
            return 0.0;
        }
        self.count() as f64 / self.elapsed.as_ns_f64() * 1e9
    }
}
