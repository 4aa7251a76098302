//! How much of local memory is on probation.
//!
//! The share follows the cost of touches of pages on probation. With less on probation, LRU and
//! CLOCK see fewer references, and become FIFO in the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use measure::{Fraction, Pages};

use crate::policy::{PolicyKind, Probation};

/// Fetches after which the share is adapted.
const ADAPT_FETCHES: u32 = 512;
/// The step by which the share is adapted, in thousandths of the budget.
const ADAPT_STEP: u32 = 20;

/// The share of the budget on probation: fixed, or adapted to its cost. Clones share one state.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    adapts: Option<Probation>,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    // In thousandths.
    share: AtomicU32,
    // Since it was last adapted.
    fetched: AtomicU32,
    touched: AtomicU32,
}

impl Share {
    /// A share of nothing.
    pub(crate) fn none() -> Self {
        Self::fixed(0)
    }

    // A share in thousandths that does not adapt.
    fn fixed(share: u32) -> Self {
        let state = State { share: share.into(), fetched: 0.into(), touched: 0.into() };
        Self { adapts: None, state: Arc::new(state) }
    }

    /// The share of `policy`, unless another is `given`; nothing for a policy that ignores
    /// references.
    pub(crate) fn of(policy: PolicyKind, given: Option<Fraction>) -> Self {
        let Some(own) = policy.probation() else { return Self::none() };
        let given = given.map(|share| share.of_pages(Pages::new(1000)).get());
        match given.and_then(|share| u32::try_from(share).ok()) {
            Some(share) => Self::fixed(share),
            None => Self { adapts: Some(own), ..Self::fixed(own.initial) },
        }
    }

    /// A copy with a state of its own.
    pub(crate) fn copy(&self) -> Self {
        let of = |from: &AtomicU32| AtomicU32::new(from.load(Ordering::Relaxed));
        let State { share, fetched, touched } = &*self.state;
        let state = State { share: of(share), fetched: of(fetched), touched: of(touched) };
        Self { adapts: self.adapts, state: Arc::new(state) }
    }

    fn thousandths(&self) -> u32 {
        self.state.share.load(Ordering::Relaxed)
    }

    /// Whether anything is to be on probation.
    pub(crate) fn is_any(&self) -> bool {
        self.thousandths() > 0
    }

    /// The share of `pages`.
    pub(crate) fn of_pages(&self, pages: u64) -> u64 {
        u64::from(self.thousandths()).saturating_mul(pages) / 1000
    }

    /// How many of `active` pages are to go on probation when `waiting` ones are on it: as many as
    /// probation is short of its share, but never so many that fewer are active than on probation,
    /// and none while so much memory is free that nothing will be given up soon.
    pub(crate) fn wanted(&self, room: Room, active: u64, waiting: u64) -> u64 {
        let most = self.of_pages(room.frames).max(room.ready.min(room.frames.div_ceil(2)));
        let all = active + waiting;
        // A share of little is half of it, unless more than half is wanted.
        let share = most.min(all.div_ceil(2).max(self.of_pages(all)));
        if room.free <= most { share.saturating_sub(waiting) } else { 0 }
    }

    /// Counts a touch of a page on probation.
    pub(crate) fn touched(&self) {
        let touched = &self.state.touched;
        touched.store(touched.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts a fetch, and adapts the share after every 512.
    pub(crate) fn fetched(&self) {
        let State { share, fetched, touched } = &*self.state;
        let count = fetched.load(Ordering::Relaxed) + 1;
        fetched.store(count % ADAPT_FETCHES, Ordering::Relaxed);
        if count < ADAPT_FETCHES {
            return;
        }
        let touches = touched.swap(0, Ordering::Relaxed);
        let Some(own) = self.adapts else { return };
        let now = share.load(Ordering::Relaxed);
        let is_cheap = touches * 100 < count * own.touches;
        let next = if is_cheap { now + ADAPT_STEP } else { now - ADAPT_STEP };
        share.store(next.clamp(own.least, own.most), Ordering::Relaxed);
    }
}

/// The frames of a budget.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// How many frames the budget has.
    pub frames: u64,
    /// How many frames are free, beyond those that are kept free.
    pub free: u64,
    /// The least number of pages to have on probation; at most half the frames.
    pub ready: u64,
}
