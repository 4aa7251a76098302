//! A run under the swap engine.

use std::ffi::OsString;

use measure::{Bytes, Fraction, LinkConfig, LocalSize};

/// Smallest budget of a group: the kernel accounts for memory in batches per processor, and a
/// program's stack and page tables count too.
pub const SWAP_BUDGET_MIN: Bytes = Bytes::new(4 << 20);

/// A run under the swap engine.
#[derive(Debug, Clone)]
pub struct SwapConfig {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// Local memory; `None` for no limit.
    pub local: Option<LocalSize>,
    /// What a fraction of local memory is a fraction of; `None` for what is in use at each moment.
    pub of: Option<Bytes>,
    /// What lies between.
    pub link: LinkConfig,
    /// Seed of every random choice.
    pub seed: u64,
    /// Hand every fault to [`Observer::faults`](farmem::Observer::faults).
    pub record: bool,
    /// What `vm.page-cluster` is to be while it runs; `None` leaves it.
    pub page_cluster: Option<u64>,
    /// The command that runs [`keep`](super::keep) with its standard input and output.
    pub keeper: Vec<OsString>,
}

impl SwapConfig {
    /// The smallest budget of local memory, if a share of the memory is to be far.
    pub(super) fn share_min(&self) -> Option<Bytes> {
        let is_share = match self.local {
            Some(LocalSize::Fraction(share)) => share != Fraction::ONE,
            _ => false,
        };
        (is_share && self.of.is_none()).then_some(SWAP_BUDGET_MIN)
    }
}
