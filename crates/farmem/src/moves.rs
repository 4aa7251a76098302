//! Growing, shrinking and moving memory: `mremap`.
//!
//! A page's place in the memory file is its address, so a region that moves is copied:
//!
//! ```text
//! new place mapped -> old place unmapped -> contents, state words -> answer
//!                  -> old place frozen (MREMAP_DONTUNMAP) -> contents, state words -> thaw
//! ```
//!
//! Regions that have room behind them grow in place. At an address where no memory can be managed,
//! the new place is ordinary memory of the program, and the pages that move there are counted.

mod steps;

use paging::regions::Traits;

use super::request::MapRequest;

/// A region on its way to another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    /// The `mremap` call, and the thread that makes it.
    pub(crate) id: u64,
    pub(crate) thread: u32,
    pub(crate) from: u64,
    pub(crate) old_bytes: u64,
    to: u64,
    new_bytes: u64,
    request: MapRequest,
    /// How many places were tried before.
    attempts: u32,
    traits: Traits,
    /// The old place stays mapped, and is empty (`MREMAP_DONTUNMAP`).
    keeps_old: bool,
    /// The new place is where no memory is managed.
    out: bool,
}

impl Move {
    /// The range that the region leaves.
    pub(crate) const fn old_range(&self) -> (u64, u64) {
        (self.from, self.from + self.old_bytes)
    }

    // Bytes that both the old and the new region have.
    fn kept_bytes(&self) -> u64 {
        self.old_bytes.min(self.new_bytes)
    }
}
