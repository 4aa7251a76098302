//! What a run with far memory has measured.

use serde::{Deserialize, Serialize};

use crate::conservation::LinkUse;
use crate::histogram::LatencySummary;

/// What was measured in a run with far memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// Time from start to exit of the program, in nanoseconds.
    pub elapsed_ns: u64,
    /// Faults and page movements by kind.
    pub faults: FaultCounts,
    /// Bytes fetched from far memory, prefetched ones included.
    pub fetched_bytes: u64,
    /// Bytes written back to far memory.
    pub written_back_bytes: u64,
    /// What each link carried and could carry, nearest tier first.
    #[serde(default)]
    pub links: Vec<LinkUse>,
    /// Share of evicted pages that were dirty, 0 to 1; `None` if not observed.
    pub dirty_share: Option<f64>,
    /// Latency of fetches, in parts.
    pub fault_latency: FaultLatency,
    /// Time of afar's own work, beyond the delays; all 0 with the swap engine.
    #[serde(default)]
    pub mechanism: MechanismTime,
    /// Faults that had to wait for a free frame of local memory.
    pub stall: StallCounts,
    /// Whether local memory stayed within its budget.
    pub budget: BudgetHeld,
    /// The most memory under management at once, local and far.
    pub managed_peak_bytes: u64,
}

/// What the mechanism of far memory took beyond the delays that were asked for. A real network
/// would not take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MechanismTime {
    /// Time by which fetches exceeded their requested delays, in nanoseconds, over all threads; 0
    /// with pages on a blade.
    pub late_ns: u64,
    /// Time of soft faults in nanoseconds, each at the calibrated cost of a fault without delay; 0
    /// without a calibration.
    pub soft_ns: u64,
    /// Processor time of the supervisor, in nanoseconds.
    pub supervisor_ns: u64,
    /// Longest time that a processor had interrupts off while a thread waited, in nanoseconds; 0 if
    /// threads sleep.
    pub interrupts_off_max_ns: u64,
    /// Number of times that a processor had interrupts off for longer than 20 µs.
    pub interrupts_off_long_count: u64,
    /// Spins of threads for pages on a blade; `None` if threads do not spin for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spins: Option<Spins>,
}

/// How often threads kept their processor while they waited for a page on a blade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spins {
    /// Spins that ended in time, nearly always because the page had arrived.
    pub answered_count: u64,
    /// Spins that expired; the thread slept until its page had arrived.
    pub expired_count: u64,
}

impl Spins {
    /// The share of spins that expired; 0 of none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
    pub fn expired_share(self) -> f64 {
        let all = self.answered_count + self.expired_count;
        self.expired_count as f64 / all.max(1) as f64
    }
}

impl MechanismTime {
    /// What the program's threads waited for, as a share of `elapsed_ns`; above 1 if many did.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
    pub fn share(&self, elapsed_ns: u64) -> f64 {
        let own = self.late_ns.saturating_add(self.soft_ns);
        own as f64 / elapsed_ns.max(1) as f64
    }
}

/// Faults and page movements by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultCounts {
    /// First touches of a page, which fetch nothing.
    pub first_touch_count: u64,
    /// Fetches: faults on a page in far memory, which use the link.
    pub fetch_count: u64,
    /// Soft faults: faults on a page that was still local, which fetch nothing.
    pub soft_count: u64,
    /// Pages prefetched: fetched ahead of a fault.
    pub prefetch_count: u64,
    /// Prefetched pages that were used later.
    pub prefetch_used_count: u64,
    /// Pages that became local without a fault that afar saw, as for direct I/O.
    pub silent_count: u64,
    /// Faults on a page whose fetch was already on its way.
    pub duplicate_count: u64,
}

/// What an order of first fetches is good for: recorded in one run, replayed in the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remembered {
    /// Whether the order was replayed (if true) or recorded (if false).
    pub is_replayed: bool,
    /// Number of pages in the order.
    pub page_count: u64,
    /// First fetches that were not recorded because the order was full; 0 if replayed.
    pub dropped_count: u64,
    /// Pages of the order whose first fetch was a prefetch; 0 if recorded.
    pub ahead_count: u64,
    /// Pages of the order whose first fetch was on demand, so that a thread waited; 0 if recorded.
    pub demand_count: u64,
    /// Prefetches by the order; a page counts again if it was evicted meanwhile.
    pub prefetch_count: u64,
    /// Prefetched pages that were watched for their use: one of each window.
    pub watched_count: u64,
    /// Watched pages that were used before they were evicted.
    pub used_count: u64,
    /// Watched pages that were evicted before they were used.
    pub unused_count: u64,
}

/// Latency of fetches, in parts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultLatency {
    /// Latency of a whole fetch, from trap to resumption of the thread.
    pub total: LatencySummary,
    /// Wait of a fetch for the link and for a free frame.
    pub wait: LatencySummary,
    /// Time to transfer a page over the link, by its bandwidth.
    pub transfer: LatencySummary,
    /// Time by which a fetch exceeded its requested delay: the cost of the mechanism.
    pub overhead: LatencySummary,
    /// Delay that the link requested for a fetch.
    pub requested: LatencySummary,
    /// Delay that a fetch achieved: the same as `total`.
    pub achieved: LatencySummary,
    /// Distribution of `total`: pairs of the longest latency in a bin, in nanoseconds, and the
    /// number of fetches; left out if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub total_bins: Vec<(u64, u64)>,
}

/// Faults that found no free local page and waited for an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StallCounts {
    /// Number of faults that waited for a free frame; with the swap engine, of times that the limit
    /// of memory was reached.
    pub stall_count: u64,
    /// Time that faults waited for a free frame in all, in nanoseconds; 0 with the swap engine.
    pub stall_ns_total: u64,
    /// Longest time that a fault waited for a free frame, in nanoseconds; 0 with the swap engine.
    pub stall_ns_max: u64,
}

/// Whether local memory stayed within its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetHeld {
    /// Budget of local memory at the peak of local memory.
    pub budget_bytes: u64,
    /// Peak of local memory under one budget.
    pub peak_resident_bytes: u64,
    /// Bytes that one eviction frees, by which local memory may exceed the budget.
    pub batch_bytes: u64,
    /// Whether local memory never exceeded the budget by more than one batch of evictions.
    pub held: bool,
}
