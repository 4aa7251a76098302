//! A run under the swap engine.

use std::ffi::OsString;

use measure::{Bytes, Fraction, LinkConfig, LocalSize};

/// Smallest budget of a group: the kernel accounts for memory in batches per processor, and a
/// program's stack and page tables count too.
pub const SWAP_BUDGET_MIN: Bytes = Bytes::new(4 << 20);

/// The configuration of a run under the swap engine.
#[derive(Debug, Clone)]
pub struct SwapConfig {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// Local memory; `None` for no limit.
    pub local: Option<LocalSize>,
    /// The memory that a fraction relates to; `None` for what is in use at each moment.
    pub of: Option<Bytes>,
    /// The link between local memory and swap space.
    pub link: LinkConfig,
    /// Seed of every random choice.
    pub seed: u64,
    /// Whether every fault is passed to [`Observer::faults`](farmem::Observer::faults).
    pub record: bool,
    /// The value of `vm.page-cluster` during the run; `None` leaves it unchanged.
    pub page_cluster: Option<u64>,
    /// The command that runs [`keep`](super::keep) with its standard input and output.
    pub keeper: Vec<OsString>,
}

impl SwapConfig {
    /// The smallest budget, if local memory is a share of the memory in use; else `None`.
    pub(super) fn share_min(&self) -> Option<Bytes> {
        let is_share = match self.local {
            Some(LocalSize::Fraction(share)) => share != Fraction::ONE,
            _ => false,
        };
        (is_share && self.of.is_none()).then_some(SWAP_BUDGET_MIN)
    }
}
