//! What an engine counts and times.

use measure::{Histogram, Instant, Transfer};

/// What happened so far, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Faults that were the first touch of a page.
    pub first_touch_count: u64,
    /// Faults on remote pages.
    pub fetch_count: u64,
    /// Faults on pages on probation.
    pub soft_count: u64,
    /// Faults on pages whose resolution was under way or just over.
    pub joined_count: u64,
    /// Pages fetched ahead.
    pub prefetch_count: u64,
    /// Pages fetched ahead and then used, as far as that shows: unless every reference is known,
    /// the use of a page that arrived in time and never was on probation does not.
    pub prefetch_used_count: u64,
    /// Clean pages given up.
    pub evict_clean_count: u64,
    /// Dirty pages given up.
    pub evict_dirty_count: u64,
    /// Faults that found no free frame and had to wait for one.
    pub stall_count: u64,
    /// Faults granted a frame beyond the budget because every frame was pinned.
    pub overcommit_count: u64,
}

/// How long faults took, in parts.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Per fetch: from the fault to the start of its transfer, waiting for a frame included.
    pub wait: Histogram,
    /// Per fetch: putting the page on the link.
    pub transfer: Histogram,
    /// Per fetch, and per fault that joined one under way: from the fault to its resolution.
    pub total: Histogram,
    /// Per stalled fault: from the fault to a free frame.
    pub stall: Histogram,
}

impl Latencies {
    /// A fault that happened at `at` is resolved by `transfer`.
    pub(super) fn record_fetch(&mut self, at: Instant, transfer: &Transfer) {
        self.wait.record(transfer.start.saturating_since(at));
        self.transfer.record(transfer.transfer);
        self.record_total(at, transfer.ready);
    }

    /// A fault that happened at `at` is resolved at `ready_at`.
    pub(super) fn record_total(&mut self, at: Instant, ready_at: Instant) {
        self.total.record(ready_at.saturating_since(at));
    }
}
