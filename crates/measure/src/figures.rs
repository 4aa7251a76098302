//! What a run with far memory has measured.

use serde::{Deserialize, Serialize};

use crate::conservation::LinkUse;
use crate::histogram::LatencySummary;

/// What was measured in a run with far memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figures {
    /// From start to exit of the program.
    pub elapsed_ns: u64,
    /// Faults by kind.
    pub faults: FaultCounts,
    /// Bytes fetched from far memory, prefetched ones included.
    pub fetched_bytes: u64,
    /// Bytes written back to far memory.
    pub written_back_bytes: u64,
    /// What each link carried against what it could, nearest tier first.
    #[serde(default)]
    pub links: Vec<LinkUse>,
    /// Share of evicted pages that were dirty, 0 to 1; `None` if it was not observed.
    pub dirty_share: Option<f64>,
    /// How long fetches took.
    pub fault_latency: FaultLatency,
    /// What afar's own work took beside the delays.
    #[serde(default)]
    pub mechanism: MechanismTime,
    /// Faults that had to wait for local memory.
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
    /// Achieved beyond requested delays, all fetches of all threads together.
    pub late_ns: u64,
    /// Soft faults, at what a fault without a delay took in the calibration; 0 without one.
    pub soft_ns: u64,
    /// Processor time of the supervisor.
    pub supervisor_ns: u64,
    /// How long a processor had interrupts off at most while a thread waited; 0 where threads
    /// sleep.
    pub interrupts_off_max_ns: u64,
    /// How often a processor had them off for longer than 20 µs.
    pub interrupts_off_long_count: u64,
    /// Spins of threads for pages that are far for real; `None` where no thread spins for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spins: Option<Spins>,
}

/// How often threads kept their processor while they waited for a page that is far for real.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spins {
    /// The thread was told within the time it may spin: nearly always that its page is here.
    pub answered_count: u64,
    /// It was not, and slept until its page was here.
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
    /// First use of a page, which fetches nothing.
    pub first_touch_count: u64,
    /// Faults on a page in far memory, which pay the link.
    pub fetch_count: u64,
    /// Faults on a page that was still local, which pay nothing.
    pub soft_count: u64,
    /// Pages fetched ahead of a fault.
    pub prefetch_count: u64,
    /// Prefetched pages that were then used.
    pub prefetch_used_count: u64,
    /// Pages that became local without a fault that was seen.
    pub silent_count: u64,
    /// Faults on a page whose fetch was already under way.
    pub duplicate_count: u64,
}

/// What an order of first fetches was good for: recorded in one run, replayed in the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remembered {
    /// The order was replayed; if not, it was recorded.
    pub is_replayed: bool,
    /// Pages in the order.
    pub page_count: u64,
    /// First fetches that found no room in it when it was recorded.
    pub dropped_count: u64,
    /// Its pages whose first fetch was ahead of their use.
    pub ahead_count: u64,
    /// Its pages whose first fetch was on demand: something waited for them.
    pub demand_count: u64,
    /// Pages fetched ahead because of it, again and again where they left meanwhile.
    pub prefetch_count: u64,
    /// Those of them that were watched, one of each window.
    pub watched_count: u64,
    /// Watched pages that were used before they left.
    pub used_count: u64,
    /// Watched pages that left before they were used.
    pub unused_count: u64,
}

/// How long fetches took, in parts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultLatency {
    /// From trap to resumption.
    pub total: LatencySummary,
    /// Queueing on the link.
    pub wait: LatencySummary,
    /// Putting the page on the link.
    pub transfer: LatencySummary,
    /// What the mechanism itself added.
    pub overhead: LatencySummary,
    /// The delay the link asked for.
    pub requested: LatencySummary,
    /// The delay that was achieved.
    pub achieved: LatencySummary,
    /// The whole distribution of `total`, as [`Histogram::bins`](crate::Histogram::bins):
    /// pairs of nanoseconds and count. Left out of the JSON when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub total_bins: Vec<(u64, u64)>,
}

/// Faults that found no free local page and waited for an eviction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StallCounts {
    /// How many.
    pub stall_count: u64,
    /// How long, in sum.
    pub stall_ns_total: u64,
    /// The longest.
    pub stall_ns_max: u64,
}

/// Whether local memory stayed within its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetHeld {
    /// The local memory that was promised.
    pub budget_bytes: u64,
    /// The most that was local at once.
    pub peak_resident_bytes: u64,
    /// How much one eviction frees, by which the peak may pass the budget.
    pub batch_bytes: u64,
    /// Whether the peak stayed within budget and batch.
    pub held: bool,
}
