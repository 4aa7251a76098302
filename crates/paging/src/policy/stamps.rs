//! Ages of pages that are comparable between processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers that pages draw when they come to a queue: who has a lower one came before.
///
/// Policies that draw from the same stamps are one, if the page with the lowest is the first to go.
/// Clones draw from the same.
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
    /// Bits of a stamp. A million pages a second draw them for 19 hours to either end; from then
    /// on what is drawn is all of one age, and processes take turns by their slots.
    pub(crate) const BITS: u32 = 37;
    const FIRST: u64 = 1 << (Self::BITS - 1);
    const LAST: u64 = (1 << Self::BITS) - 1;

    /// That of a page which comes last.
    pub(crate) fn newest(&self) -> u64 {
        let newest = &self.counters.newest;
        let stamp = (newest.load(Ordering::Relaxed) + 1).min(Self::LAST);
        newest.store(stamp, Ordering::Relaxed);
        stamp
    }

    /// That of a page which goes before all others.
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
