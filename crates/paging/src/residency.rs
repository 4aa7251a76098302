//! Which pages are local, under one budget.
//!
//! ```text
//!            admit          probe_batch            leave_batch             left
//!  absent ──────────► active ─────────► probation ────────────► leaving ─────────► absent
//!                     ▲  │ ▲ ◄── soft_fault ─┴──────────────────────┘
//!                  unpin pin
//!                     │  ▼
//!                    pinned
//! ```
//!
//! Memory has no accessed bit that a supervisor can read. What stands in for it is *probation*: a
//! page is unmapped but keeps its frame, so it is still local and still counted. If the program
//! touches it, the fault costs no delay and tells the policy of a reference; if it is still
//! untouched when its turn comes, it is put in order of *leaving*, and has its frame until a fault
//! needs one. So no frame is kept free: the policy has all of the budget.
//!
//! The share of the budget on probation is adapted to how often it is touched
//! ([`Probation`](crate::policy::Probation)). A policy that ignores references has only as much
//! on probation as is about to leave.
//!
//! Nothing here maps or unmaps: the caller does what the batches say, and reports what the
//! program did. A page is in exactly one of the five states; all but absent pages are resident and
//! count against the budget. Pinned pages are never victims, every other resident page eventually
//! is. [`evict_batch`](Residency::evict_batch) is for callers that give a page up in one step.

use measure::{Fraction, Pages};

use crate::common::Common;
pub use crate::local::{Admission, PageState, Victim};
use crate::page::{PageIndex, PageStates, Ranges, span};
use crate::policy::{Places, Policy, PolicyKind, Queue};
use crate::probation::Room;

mod shared;

// The states as the table holds them; zero is what a page starts with.
const ABSENT: u8 = 0;
const ACTIVE: u8 = 1;
const PROBATION: u8 = 2;
const PINNED: u8 = 3;
const LEAVING: u8 = 4;

// The notes of pages on probation.
const UNMAPPING: u8 = 0;
const UNMAPPED: u8 = 1;

/// How local memory is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidencyConfig {
    /// The order in which pages are given up.
    pub policy: PolicyKind,
    /// Frames of local memory.
    pub budget: Pages,
    /// Frames to keep free so that a fault need not wait for an eviction: the size of an
    /// eviction batch. At most half the budget is kept free.
    pub headroom: Pages,
    /// Pages to have on probation at least, so that as many can leave at any time; at most half
    /// the budget, rounded up.
    pub ready: Pages,
    /// The share of the budget on probation; `None` for the policy's own, which is adapted
    /// ([`Probation`](crate::policy::Probation)). Policies that ignore references have none
    /// but [`ready`](Self::ready).
    pub probation: Option<Fraction>,
    /// Where random choices come from.
    pub seed: u64,
}

/// The resident pages of one program, their order, and the budget they share.
#[derive(Debug)]
pub struct Residency {
    policy: Box<dyn Policy>,
    config: ResidencyConfig,
    common: Common,
    states: PageStates,
    // The policy holds the active pages; these are its former victims, oldest first.
    probation: Queue,
    probation_places: Places,
    leaving: u64,
    pins: Ranges<u32>,
    pinned: u64,
    peak: u64,
    admitted: [u64; 4],
}

impl Residency {
    /// A residency without pages, under a budget of its own.
    #[must_use]
    pub fn new(config: ResidencyConfig) -> Self {
        Self::under(config, Common::of(config.policy, config.probation))
    }

    /// As [`new`](Self::new), under a budget that others share.
    #[must_use]
    pub fn under(config: ResidencyConfig, common: Common) -> Self {
        let capacity = usize::try_from(config.budget.get()).unwrap_or(usize::MAX);
        let mut residency = Self {
            policy: config.policy.build(capacity, config.seed),
            config,
            common,
            states: PageStates::default(),
            probation: Queue::new(1),
            probation_places: Places::default(),
            leaving: 0,
            pins: Ranges::default(),
            pinned: 0,
            peak: 0,
            admitted: [0; 4],
        };
        residency.policy.follow(&residency.common.stamps);
        residency.probation.follow(&residency.common.stamps);
        residency.set_budget(config.budget);
        residency
    }

    /// `page` became local. Returns whether it was absent before.
    ///
    /// A page inside a pinned range becomes pinned. Admitting a resident page is a reference to
    /// it, as when two threads fault on a page at once, unless it is a prefetch.
    pub fn admit(&mut self, page: PageIndex, how: Admission) -> bool {
        if self.state(page) != PageState::Absent {
            if how != Admission::Prefetch {
                self.soft_fault(page);
            }
            return false;
        }
        if !self.pins.is_empty() && self.pins.contains(page.get()) {
            self.states.set(page, PINNED);
            self.pinned += 1;
        } else {
            self.states.set(page, ACTIVE);
            if self.common.share.is_any() {
                self.policy.insert_unseen(page);
            } else {
                self.policy.insert(page);
            }
        }
        self.admitted[how as usize] += 1;
        if how == Admission::Fetch {
            self.common.share.fetched();
        }
        self.peak = self.peak.max(self.resident().get());
        true
    }

    /// The program touched `page` and it was still local. Returns whether it was on probation or
    /// leaving; it is active again.
    ///
    /// An absent page is left alone: the report of a touch can arrive after the page was given
    /// up.
    pub fn soft_fault(&mut self, page: PageIndex) -> bool {
        match self.state(page) {
            PageState::Probation | PageState::Leaving => {
                self.take_from_queues(page);
                self.states.set(page, ACTIVE);
                self.policy.restore(page);
                self.common.share.touched();
                true
            }
            PageState::Active => {
                self.policy.touch(page);
                false
            }
            PageState::Absent | PageState::Pinned => false,
        }
    }

    /// The program freed `count` pages from `first` on: they are neither resident nor pinned any
    /// more. Takes time for the pages that are resident, not for those in the range.
    ///
    /// What a policy remembers of pages it already gave up stays: finding those would take a
    /// walk over the whole range, and they are hints only.
    pub fn discard(&mut self, first: PageIndex, count: Pages) {
        let range = span(first, count);
        if !self.pins.is_empty() {
            self.pins.remove(range.clone());
        }
        let mut from = range.start;
        while let Some(page) = self.states.next_occupied(from, range.end) {
            self.take_from_queues(page);
            self.states.set(page, ABSENT);
            from = page.get() + 1;
        }
    }

    /// Locks a range into local memory (`mlock`): its pages that are resident, and those that
    /// become so, are not given up until [`unpin`](Self::unpin) or [`discard`](Self::discard).
    /// Pinning twice is pinning once.
    pub fn pin(&mut self, first: PageIndex, count: Pages) {
        let range = span(first, count);
        self.pins.insert(range.clone());
        let mut from = range.start;
        while let Some(page) = self.states.next_occupied(from, range.end) {
            self.take_from_queues(page);
            self.states.set(page, PINNED);
            self.pinned += 1;
            from = page.get() + 1;
        }
        self.resize_policy();
    }

    /// Whether any of `count` pages from `first` on is pinned, resident or not.
    #[must_use]
    pub fn pins_any(&self, first: PageIndex, count: Pages) -> bool {
        !self.pins.within(span(first, count)).is_empty()
    }

    /// Undoes [`pin`](Self::pin) for a range. Its pages are the policy's newest.
    pub fn unpin(&mut self, first: PageIndex, count: Pages) {
        let range = span(first, count);
        for pins in self.pins.within(range.clone()) {
            let mut from = pins.start;
            while let Some(page) = self.states.next_occupied(from, pins.end) {
                self.take_from_queues(page);
                self.states.set(page, ACTIVE);
                self.policy.insert(page);
                from = page.get() + 1;
            }
        }
        self.pins.remove(range);
        self.resize_policy();
    }

    /// The content of `count` pages moved from `from` on to `to` on (`mremap`), with its age, its
    /// state and its pins. What was at the target is discarded first.
    ///
    /// The two ranges do not overlap, as `mremap` demands.
    pub fn rename(&mut self, from: PageIndex, to: PageIndex, count: Pages) {
        if from == to {
            return;
        }
        let source = span(from, count);
        debug_assert!(
            source.end <= to.get() || span(to, count).end <= from.get(),
            "pages {from} and {to} are nearer to each other than the {count} to be moved"
        );
        self.discard(to, count);
        let distance = i64::from(to.get()) - i64::from(from.get());
        let mut next = source.start;
        while let Some(page) = self.states.next_occupied(next, source.end) {
            next = page.get() + 1;
            // Beyond the last page there is nothing to move to; `discard` below drops the rest.
            let Some(target) = page.offset(distance) else {
                break;
            };
            let state = self.states.set(page, ABSENT);
            self.states.set(target, state);
            match state {
                ACTIVE => self.policy.rename(page, target),
                // The helper will not unmap it at its new address: it is unmapped.
                PROBATION => {
                    self.probation.replace(&mut self.probation_places, page, target);
                    self.unmapped(target);
                }
                // The order of leaving names addresses, so this page is no longer in it.
                LEAVING => {
                    self.leaving -= 1;
                    self.states.set(target, PROBATION);
                    self.probation.push_front(&mut self.probation_places, target, UNMAPPED);
                }
                _ => {}
            }
        }
        for pins in self.pins.within(source.clone()) {
            let length = Pages::new(u64::from(pins.end - pins.start));
            if let Some(target) = PageIndex::new(pins.start).offset(distance) {
                self.pins.insert(span(target, length));
            }
        }
        self.discard(from, count);
    }

    /// How many pages must leave so that the headroom is free. Pins may leave fewer that can.
    #[must_use]
    pub fn over_target(&self) -> Pages {
        self.resident().saturating_sub(self.config.budget.saturating_sub(self.headroom()))
    }

    /// Gives up to `max` pages up and appends them to `victims`: those longest on probation
    /// first, then the policy's choice. Returns how many.
    pub fn evict_batch(&mut self, victims: &mut Vec<Victim>, max: Pages) -> Pages {
        let mut taken = 0;
        while taken < max.get() {
            let victim =
                if let Some((page, _)) = self.probation.pop_front(&mut self.probation_places) {
                    Victim { page, mapped: false }
                } else if let Some(page) = self.policy.victim() {
                    Victim { page, mapped: true }
                } else {
                    break;
                };
            let before = self.states.set(victim.page, ABSENT);
            debug_assert!(matches!(before, ACTIVE | PROBATION), "a victim was in state {before}");
            victims.push(victim);
            taken += 1;
        }
        Pages::new(taken)
    }

    /// Puts up to `max` active pages on probation, to be unmapped by the caller, and appends them
    /// to `pages`. Returns how many: as many as probation is short of its share, but never so many
    /// that fewer pages are active than on probation, and none while so much memory is free that
    /// nothing will be given up soon.
    pub fn probe_batch(&mut self, pages: &mut Vec<PageIndex>, max: Pages) -> Pages {
        let room = Room {
            frames: self.config.budget.get(),
            free: self.free().saturating_sub(self.headroom()).get(),
            ready: self.config.ready.get(),
        };
        let waiting = self.on_probation().get();
        let wanted = self.common.share.wanted(room, self.policy.len() as u64, waiting);
        let mut taken = 0;
        while taken < wanted.min(max.get()) {
            let Some(page) = self.policy.victim() else {
                break;
            };
            self.put_on_probation(page);
            pages.push(page);
            taken += 1;
        }
        Pages::new(taken)
    }

    fn put_on_probation(&mut self, page: PageIndex) {
        self.states.set(page, PROBATION);
        self.probation.push_back(&mut self.probation_places, page, UNMAPPING);
    }

    /// Notes that `page`, which [`probe_batch`](Self::probe_batch) returned, is unmapped. Only then
    /// may it leave.
    pub fn unmapped(&mut self, page: PageIndex) {
        if self.states.get(page) == PROBATION {
            self.probation_places.change_note(page, |_| UNMAPPED);
        }
    }

    /// Puts up to `max` pages in order of leaving, those longest on probation first, and appends
    /// them to `pages`. Returns how many. Each [leaves](Self::left) or
    /// [is touched](Self::soft_fault) later.
    pub fn leave_batch(&mut self, pages: &mut Vec<PageIndex>, max: Pages) -> Pages {
        let mut taken = 0;
        while taken < max.get()
            && let Some(page) = self.leave_next(u64::MAX)
        {
            pages.push(page);
            taken += 1;
        }
        Pages::new(taken)
    }

    /// Makes `page` absent, which has given its frame up. Returns whether it was leaving; otherwise
    /// nothing changes.
    pub fn left(&mut self, page: PageIndex) -> bool {
        let leaves = self.states.get(page) == LEAVING;
        if leaves {
            self.leaving -= 1;
            self.states.set(page, ABSENT);
        }
        leaves
    }

    /// Changes the budget. If it shrinks, [`over_target`](Self::over_target) says what has to go.
    pub fn set_budget(&mut self, budget: Pages) {
        self.config.budget = budget;
        self.resize_policy();
    }

    /// The residency of a child after `fork`, under a budget of its own: the same pages in the same
    /// order. Pins are not inherited (`mlock(2)`), so pinned pages are the newest active ones.
    #[must_use]
    pub fn clone_for_fork(&self) -> Self {
        let mut child = self.clone_beside();
        child.common.share = self.common.share.copy();
        child
    }

    /// As [`clone_for_fork`](Self::clone_for_fork), under the budget that its parent is under: the
    /// child's pages are as old as those they are copies of.
    #[must_use]
    pub fn clone_beside(&self) -> Self {
        let mut child = Self {
            policy: self.policy.boxed_clone(),
            config: self.config,
            common: self.common.clone(),
            states: self.states.clone(),
            probation: self.probation.clone(),
            probation_places: self.probation_places.clone(),
            leaving: self.leaving,
            pins: self.pins.clone(),
            pinned: self.pinned,
            peak: self.resident().get(),
            admitted: [0; 4],
        };
        child.unpin(PageIndex::new(0), Pages::new(u64::MAX));
        child.recall();
        child
    }

    // Puts leaving pages of a new child back on probation, as the ring has only its parent's.
    // Nothing is mapped in a child yet, so its pages on probation are unmapped.
    fn recall(&mut self) {
        let mut waiting = self.on_probation().get();
        let mut next = 0;
        while waiting > 0
            && let Some(page) = self.states.next_occupied(next, u32::MAX)
        {
            match self.states.get(page) {
                LEAVING => {
                    self.leaving -= 1;
                    waiting -= 1;
                    self.states.set(page, PROBATION);
                    self.probation.push_front(&mut self.probation_places, page, UNMAPPED);
                }
                PROBATION => {
                    waiting -= 1;
                    self.unmapped(page);
                }
                _ => {}
            }
            next = page.get() + 1;
        }
    }

    /// The state of `page`.
    #[must_use]
    pub fn state(&self, page: PageIndex) -> PageState {
        match self.states.get(page) {
            ACTIVE => PageState::Active,
            PROBATION => PageState::Probation,
            LEAVING => PageState::Leaving,
            PINNED => PageState::Pinned,
            _ => PageState::Absent,
        }
    }

    /// How many pages have a frame.
    #[must_use]
    pub fn resident(&self) -> Pages {
        let waiting = self.probation.len() as u64 + self.leaving;
        Pages::new(self.policy.len() as u64 + waiting + self.pinned)
    }

    /// How many resident pages are not mapped: on probation, or leaving.
    #[must_use]
    pub fn on_probation(&self) -> Pages {
        Pages::new(self.probation.len() as u64 + self.leaving)
    }

    /// How many resident pages are pinned.
    #[must_use]
    pub fn pinned(&self) -> Pages {
        Pages::new(self.pinned)
    }

    /// The most pages that were resident at once.
    #[must_use]
    pub fn peak(&self) -> Pages {
        Pages::new(self.peak)
    }

    /// How many pages became local in the way `how` so far.
    #[must_use]
    pub fn admitted(&self, how: Admission) -> u64 {
        self.admitted[how as usize]
    }

    /// The frames of the budget.
    #[must_use]
    pub fn budget(&self) -> Pages {
        self.config.budget
    }

    /// Frames of the budget that no page occupies.
    #[must_use]
    pub fn free(&self) -> Pages {
        self.config.budget.saturating_sub(self.resident())
    }

    /// Frames to be kept free: what was configured, but at most half the budget.
    #[must_use]
    pub fn headroom(&self) -> Pages {
        self.config.headroom.min(Pages::new(self.config.budget.get() / 2))
    }

    /// Takes a resident page out of the queue it is in, leaving its state to be set.
    fn take_from_queues(&mut self, page: PageIndex) {
        match self.states.get(page) {
            ACTIVE => self.policy.remove(page),
            PROBATION => self.probation.remove(&mut self.probation_places, page),
            LEAVING => self.leaving -= 1,
            PINNED => self.pinned -= 1,
            _ => {}
        }
    }

    fn resize_policy(&mut self) {
        let frames = self.config.budget.get().saturating_sub(self.pinned);
        self.policy.resize(usize::try_from(frames).unwrap_or(usize::MAX));
    }
}
