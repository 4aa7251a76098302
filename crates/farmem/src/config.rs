//! The configuration of a run, as plain data.

use std::ffi::OsString;

use measure::{Bytes, Duration, Fraction, LinkConfig, LocalSize, PAGE_BYTES, Pages};
use paging::policy::PolicyKind;
use paging::prefetch::Prefetch;
use paging::reuse::SamplerConfig;
use paging::write_back::WriteBack;

/// How page faults are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrapKind {
    /// A BPF program on the page-fault tracepoints: about 1 µs of its own; needs `CAP_BPF` and
    /// `CAP_PERFMON`.
    Bpf,
    /// userfaultfd: about 10 µs of its own; needs only access to `/dev/userfaultfd`. Exact for
    /// budgets of any size.
    Userfault,
}

impl TrapKind {
    /// The least budget of a share of memory: one instruction may need several pages at once.
    pub(crate) const fn budget_min(self) -> Pages {
        match self {
            Self::Bpf => BPF_BUDGET_MIN,
            Self::Userfault => Pages::new(16),
        }
    }

    /// The name that users know the trap by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::Userfault => "userfaultfd",
        }
    }
}

/// Which processes share one budget of local memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BudgetScope {
    /// Each process has its own.
    #[default]
    Process,
    /// One for the program and all its descendants.
    Tree,
}

/// One kind of far memory and the local memory in front of it.
#[derive(Debug, Clone)]
pub struct Tier {
    /// At most eight bytes, as in `afar_place(…, "slow")`. The first tier is the default.
    pub name: String,
    /// Local memory for pages of this tier; `None` for no limit.
    pub local: Option<LocalSize>,
    /// The link between local and far memory.
    pub link: LinkConfig,
}

/// The configuration of one run.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// How faults are noticed.
    pub trap: TrapKind,
    /// Longest spin of a fault for a page on a blade, before userfaultfd puts its thread to sleep;
    /// `None` for no spin. Needs what [`TrapKind::Bpf`] needs, beside [`TrapKind::Userfault`].
    pub spin_max: Option<Duration>,
    /// The processor that the supervisor stays on; `None` leaves it to the kernel.
    pub processor: Option<usize>,
    /// Tiers, at least one and at most eight.
    pub tiers: Vec<Tier>,
    /// The memory that fractions in `tiers` relate to; `None` for the memory in use at each moment.
    pub of: Option<Bytes>,
    /// Which processes share a budget.
    pub scope: BudgetScope,
    /// Decides which page leaves next.
    pub policy: PolicyKind,
    /// Which pages are fetched ahead of use.
    pub prefetch: Prefetch,
    /// The most pages on their way out at a time; `None` for [`batch`] alone.
    pub in_flight: Option<u64>,
    /// Which pages use the link when they leave; frames of others are free at once. Pages that are
    /// far for real are sent if they have changed.
    pub write_back: WriteBack,
    /// Share of local memory unmapped to see whether it is used; `None` for the policy's default.
    pub probation: Option<Fraction>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Log the time of every fault and hand it to [`Observer::faults`](super::Observer::faults).
    pub record: bool,
    /// Watch how a sample of pages is used and answer that as
    /// [`Outcome::touches`](super::Outcome::touches); with [`record`](Self::record), whose events
    /// it is made of and which the observer then does not see.
    pub watch: Option<SamplerConfig>,
    /// Nanoseconds of a fault that are the kernel's own, taken off every requested delay: what a
    /// fetch costs when none is requested, as measured before the run.
    pub constant_ns: u64,
    /// [`Outcome::pace`](super::Outcome::pace) of the run in which `constant_ns` was
    /// measured: while the processor is slower or faster than then, so is the constant. 0 keeps it
    /// as it is.
    pub reference: u64,
}

/// How long before its time the BPF trap lets a fetched page be mapped, in nanoseconds: enough for
/// the kernel to map it, with interruptions that have waited meanwhile. The thread waits for the
/// rest afterwards, so that a delay does not depend on how long the kernel took; another thread
/// that touches the page then has it early by at most this.
pub(crate) const LEAD_NS: u64 = 4_000;
/// Smallest budget of the BPF trap; below it a batch of evictions would be most of it.
pub const BPF_BUDGET_MIN: Pages = Pages::new(256);
/// Longest round trip the BPF trap delays by: it waits with interrupts off.
pub const BPF_DELAY_MAX_NS: u64 = 1_000_000;
// Fewer than a ring of outgoing pages holds.
const BATCH_MAX: u64 = 120;

impl RunConfig {
    /// The smallest budget to which a share of memory is rounded up, where a tier has a share of
    /// the memory in use; `None` where none has. A share of less memory than that is all of it.
    pub(crate) fn share_min(&self) -> Option<Bytes> {
        let is_share = |tier: &Tier| match tier.local {
            Some(LocalSize::Fraction(share)) => share != Fraction::ONE,
            _ => false,
        };
        let any = self.of.is_none() && self.tiers.iter().any(is_share);
        any.then(|| Bytes::new(self.trap.budget_min().get() * PAGE_BYTES))
    }

    /// How many pages may be on their way out at a time, for a budget of `limit` pages.
    #[must_use]
    pub fn batch(&self, limit: u64) -> u64 {
        batch(limit).min(self.in_flight.unwrap_or(u64::MAX)).max(1)
    }
}

/// [`RunConfig::batch`] without the limit of `in_flight`.
#[must_use]
pub fn batch(limit: u64) -> u64 {
    // Enough for the faults of some 50 µs, in which the supervisor answers.
    let least = (limit / 8).min(64);
    (limit / 32).max(least).clamp(1, BATCH_MAX)
}

/// A tier's name as a register holds it: its first eight bytes, the first one lowest.
#[must_use]
pub fn pack_name(name: &str) -> u64 {
    name.bytes().take(8).rev().fold(0, |packed, byte| packed << 8 | u64::from(byte))
}
