//! Ages of pages that are comparable between processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers that pages get when they enter a queue: a lower one is older.
///
/// Policies with the same stamps act as one, if the page with the lowest stamp is the first to go.
/// Clones share their stamps.
#[derive(Clone, Debug)]
pub struct Stamps {
    counters: Arc<Counters>,
}

#[derive(Debug)]
struct Counters {
    newest: AtomicU64,
    oldest: AtomicU64,
}

impl Stamps {
    /// Bits of a stamp. At a million pages a second they last for 19 hours in either direction;
    /// after that all new stamps are equal, and processes take turns by their slots.
    pub(crate) const BITS: u32 = 37;
    const FIRST: u64 = 1 << (Self::BITS - 1);
    const LAST: u64 = (1 << Self::BITS) - 1;

    /// A stamp newer than all others.
    pub(crate) fn newest(&self) -> u64 {
        let newest = &self.counters.newest;
        let stamp = (newest.load(Ordering::Relaxed) + 1).min(Self::LAST);
        newest.store(stamp, Ordering::Relaxed);
        stamp
    }

    /// A stamp older than all others.
    pub(crate) fn oldest(&self) -> u64 {
        let oldest = &self.counters.oldest;
        let stamp = oldest.load(Ordering::Relaxed).saturating_sub(1);
        oldest.store(stamp, Ordering::Relaxed);
        stamp
    }
}

impl Default for Stamps {
    fn default() -> Self {
        let counter = || AtomicU64::new(Self::FIRST);
        Self { counters: Arc::new(Counters { newest: counter(), oldest: counter() }) }
    }
}
