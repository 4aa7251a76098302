//! The terms of a lease of memory to hosts, and how much of it is in use.
//! [`crate::kinds::lease`] has the hosts' disks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use measure::Duration;

/// Bytes of a piece, the unit in which memory is counted.
pub(crate) const PIECE: u64 = 4096;

/// Leased memory and the terms of its lease.
#[derive(Debug, Clone)]
pub struct Lease {
    ttl: Duration,
    quota: u64,
    pub(crate) block_shift: u8,
    pub(crate) room: Arc<Room>,
}

/// The memory of all views together, in bytes.
#[derive(Debug)]
pub(crate) struct Room {
    total: u64,
    used: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl Lease {
    /// A lease of `total` bytes, of which each host has at most `quota` until it has been
    /// disconnected for `ttl`. Both sizes are rounded down to pieces of 4096 bytes.
    #[must_use]
    pub fn new(ttl: Duration, total: u64, quota: u64, block_shift: u8) -> Self {
        let [total, quota] = [total, quota].map(|bytes| bytes / PIECE * PIECE);
        let (used, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { ttl, quota, block_shift, room: Arc::new(Room { total, used, refused }) }
    }

    /// How long a view outlives the last connection of its host.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Bytes of a view.
    #[must_use]
    pub const fn quota_bytes(&self) -> u64 {
        self.quota
    }

    /// The most bytes of memory that all views may have together.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.room.total
    }

    /// Bytes of memory that all views have now.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.room.used.load(Ordering::Relaxed)
    }

    /// How many writes found no memory.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.room.refused.load(Ordering::Relaxed)
    }
}

impl Room {
    /// Allocates `bytes`. Returns whether they were available.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|after| *after <= self.total)
        });
        taken.is_ok()
    }

    /// Releases `bytes`.
    pub(crate) fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
