//! A target's counters: the live line, the summary at the end, and the trace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use measure::Bytes;
use sys::clock::monotonic_ns;
use target::Counters;

/// Counters at one time.
pub(crate) struct Look {
    at_ns: u64,
    requests: u64,
    bytes: u64,
    connections: u64,
}

// The sum of one counter over all shards.
fn sum(counters: &[Arc<Counters>], of: impl Fn(&Counters) -> &AtomicU64) -> u64 {
    counters.iter().map(|shard| of(shard).load(Ordering::Relaxed)).sum()
}

impl Look {
    /// Reads the counters now.
    pub(crate) fn at(counters: &[Arc<Counters>]) -> Self {
        Self {
            at_ns: monotonic_ns(),
            requests: sum(counters, |c| &c.reads) + sum(counters, |c| &c.writes),
            bytes: sum(counters, |c| &c.read_bytes) + sum(counters, |c| &c.write_bytes),
            connections: sum(counters, |c| &c.connections),
        }
    }

    /// The live line: connections, and rates since `last`.
    pub(crate) fn since(&self, last: &Self) -> String {
        let period = u128::from((self.at_ns - last.at_ns).max(1));
        let rate = |count: u64| u128::from(count) * 1_000_000_000 / period;
        let mb = rate(self.bytes - last.bytes) / 1_000_000;
        let iops = rate(self.requests - last.requests);
        format!("afar  {} connections  {iops} IOPS  {mb} MB/s", self.connections)
    }
}

/// The prefix of the trace's line.
pub const TRACE: &str = "afar: trace ";

/// The trace's line: where the time of commands went, as JSON.
pub(crate) fn trace(counters: &[Arc<Counters>]) -> String {
    let record = serde_json::json!({
        "count": sum(counters, |c| &c.traced),
        "device_ns": sum(counters, |c| &c.device_ns),
        "late_ns": sum(counters, |c| &c.late_ns),
        "answer_ns": sum(counters, |c| &c.answer_ns),
    });
    format!("{TRACE}{record}\n")
}

/// The summary since the start of the target.
pub(crate) fn summary(counters: &[Arc<Counters>]) -> String {
    let [reads, writes] = [sum(counters, |c| &c.reads), sum(counters, |c| &c.writes)];
    let [read, written] = [
        Bytes::new(sum(counters, |c| &c.read_bytes)),
        Bytes::new(sum(counters, |c| &c.write_bytes)),
    ];
    let failures = sum(counters, |c| &c.failures);
    let violations = sum(counters, |c| &c.violations);
    format!(
        "afar: served {reads} reads ({read}) and {writes} writes ({written}); {failures} commands \
         failed, {violations} connections broke the protocol\n"
    )
}
