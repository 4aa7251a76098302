//! Memory that is leased to hosts: on which terms, and how much of it they have.
//! [`crate::kinds::lease`] has their disks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use measure::Duration;

/// What is counted, in bytes.
pub(crate) const PIECE: u64 = 4096;

/// Memory that is leased, and on which terms.
#[derive(Debug, Clone)]
pub struct Lease {
    ttl: Duration,
    quota: u64,
    pub(crate) block_shift: u8,
    pub(crate) room: Arc<Room>,
}

/// What all views have together, in bytes.
#[derive(Debug)]
pub(crate) struct Room {
    total: u64,
    used: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl Lease {
    /// `total` bytes, of which each host has `quota` at most, until it has been gone for `ttl`.
    /// Both are cut off to whole pieces of 4096 bytes.
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

    /// Bytes of memory that all views have together, at most.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.room.total
    }

    /// Bytes of memory that all views have now.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.room.used.load(Ordering::Relaxed)
    }

    /// Writes that have found no memory.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.room.refused.load(Ordering::Relaxed)
    }
}

impl Room {
    /// Takes so many bytes, if they are there.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|after| *after <= self.total)
        });
        taken.is_ok()
    }

    /// Gives so many back.
    pub(crate) fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
