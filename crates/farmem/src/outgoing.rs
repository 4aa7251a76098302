//! Pages on their way out of local memory, in order.
//!
//! ```text
//! probation ─► protect, reserve the write-back, ticket ─► ring ─► the next fault without a frame
//!                                                          │
//!                                              touched ◄───┴─► settle: left, or stays
//! ```
//!
//! An outgoing page is unmapped, and local until a fault takes its frame: one compare-and-exchange
//! of its word, from probation to remote, in the trap. So no frame is kept free for faults to come,
//! and local memory never exceeds the budget. Its contents are on their way to far memory
//! meanwhile, and its frame is free when far memory has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use blades::PAGE_BYTES;
use measure::Pages;
use paging::regions::{PAGE, runs};
use paging::word::{State, Word};
use paging::write_back::WriteBack;
use paging::{PageIndex, PageState};

use super::arena::Arena;
use super::supervisor::Supervisor;
use paging::outgoing::{LEFT, Outgoing, Ring, STAYS, ticket};
use tables::{FaultEvent, FaultKind};

/// Slot of an entry whose process has ended.
const NOBODY: usize = usize::MAX;

impl Supervisor<'_> {
    // The ring in a node.
    fn ring(&self, node: u32) -> Ring<'_> {
        Ring::of(self.kernel.tables.pages.ring(node))
    }

    /// How many pages of a lane are on their way out and still have their frames.
    pub(crate) fn outgoing_count(&self, budget: usize, tier: usize) -> u32 {
        if let Some(far) = &self.faults.far {
            return far.leaving_of(budget, tier);
        }
        let lane = self.kernel.tables.lane(budget, tier);
        lane.placed().load(Ordering::Acquire).wrapping_sub(lane.taken().load(Ordering::Acquire))
    }

    /// Notes which outgoing pages have left, and which were touched and stay.
    ///
    /// Call it before an event of the log is applied: a page leaves before it is fetched again.
    pub(crate) fn settle_outgoing(&mut self, budget: usize, tier: usize) {
        let lane = self.kernel.tables.lane(budget, tier);
        let taken = lane.taken().load(Ordering::Acquire);
        while self.books.accounts[budget][tier].outgoing.settled != taken {
            let Outgoing { node: Some(node), settled, .. } =
                self.books.accounts[budget][tier].outgoing
            else {
                return;
            };
            let entry = self.ring(node).entry(settled);
            let outcome = entry.outcome.swap(0, Ordering::AcqRel);
            if outcome == 0 {
                // The fault that took the entry has not written its outcome yet.
                return;
            }
            let one = &mut self.books.accounts[budget][tier].outgoing;
            one.settled = settled.wrapping_add(1);
            let Some((slot, page)) = one.placed.pop_front() else { return };
            let Some(arena) = self.people.arenas.get_mut(slot).and_then(Option::as_mut) else {
                continue;
            };
            let residency = &mut arena.tiers[tier];
            if outcome == LEFT {
                if residency.left(page) {
                    self.books.totals.evicted();
                }
            } else if residency.state(page) == PageState::Leaving {
                // The page's fault is in the log, or the page has moved.
                residency.soft_fault(page);
            }
            self.books.members.touch(slot);
        }
    }

    /// As `settle_outgoing`, for all tiers of the budget of `slot`.
    pub(crate) fn settle_outgoing_of(&mut self, slot: usize) {
        if let Some(budget) = self.people.arenas[slot].as_ref().map(|arena| arena.budget) {
            (0..self.config.tiers.len()).for_each(|tier| self.settle_outgoing(budget, tier));
        }
    }

    /// Takes the frame of the next outgoing page, as the trap does. Returns when the frame is free,
    /// in picoseconds of the run; `None` if no page is leaving.
    fn take_outgoing(&self, budget: usize, tier: usize) -> Option<u64> {
        let node = self.books.accounts[budget][tier].outgoing.node?;
        let lane = self.kernel.tables.lane(budget, tier);
        loop {
            let placed = lane.placed().load(Ordering::Acquire);
            let next = |taken: u32| (taken != placed).then(|| taken.wrapping_add(1));
            let taken =
                lane.taken().fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()?;
            let entry = self.ring(node).entry(taken);
            let word = self.kernel.tables.pages.word_of(entry.page.load(Ordering::Acquire));
            let free_ps = entry.free_ps.load(Ordering::Acquire);
            let leave = |word: u32| {
                let leaves = Word(word).ticket() == Some(ticket(taken));
                leaves.then(|| Word(word).with_state(State::Remote).with_dirty(false).0)
            };
            let left = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, leave).is_ok();
            entry.outcome.store(if left { LEFT } else { STAYS }, Ordering::Release);
            if left {
                return Some(free_ps);
            }
        }
    }

    /// Claims a frame. Returns when it is free, in picoseconds of the run; `None` if there is none.
    pub(crate) fn claim_frame(&mut self, budget: usize, tier: usize) -> Option<u64> {
        let lane = self.kernel.tables.lane(budget, tier);
        if lane.free() > 0 {
            lane.credit(-1);
            return Some(0);
        }
        if self.is_far() {
            return self.give_frame(budget, tier).then_some(0);
        }
        self.take_outgoing(budget, tier)
    }

    /// Frees up to `wanted` frames for faults to come, each when its write-back is acknowledged.
    pub(crate) fn free_frames(&mut self, budget: usize, tier: usize, wanted: u64) {
        let owed = self.faults.waiting.owed(budget, tier);
        for _ in owed..wanted {
            let Some(free_ps) = self.take_outgoing(budget, tier) else { break };
            if free_ps > self.now_ps() {
                self.faults.waiting.owe(free_ps.div_ceil(1000), budget, tier);
            } else {
                self.kernel.tables.lane(budget, tier).credit(1);
            }
        }
        self.settle_outgoing(budget, tier);
        self.await_next();
    }

    /// Puts the pages that residencies chose to leave into the ring of `lane`, in order.
    pub(crate) fn send_out(&mut self, lane: (usize, usize), pages: Vec<(usize, PageIndex)>) {
        // Pages whose writes are to be noticed from now on are protected before they can be taken.
        let (mut going, mut unprotected) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
        let slots: BTreeSet<usize> = pages.iter().map(|one| one.0).collect();
        for (slot, page) in pages {
            let Some(address) = self.people.arenas[slot].as_ref().map(|arena| arena.address(page))
            else {
                continue;
            };
            match self.clean(slot, address) {
                Some(before) => {
                    let arena = self.people.arenas[slot].as_ref();
                    let before = arena.map_or(before, |arena| arena.with_writes(address, before));
                    going.push(((slot, page), address, before.dirty()));
                    if before.dirty() && !before.write_fetched() {
                        unprotected.entry(slot).or_default().push(address);
                    }
                }
                None => self.stays_in(slot, lane.1, page),
            }
        }
        for (slot, addresses) in unprotected {
            self.people.arenas[slot].as_ref().inspect(|arena| self.protect(arena, addresses));
        }
        for ((slot, page), address, is_dirty) in going {
            let is_dirty = is_dirty && self.has_changed(slot, address);
            if !self.enlist((slot, page), address, lane, is_dirty) {
                self.stays_in(slot, lane.1, page);
            }
        }
        slots.into_iter().for_each(|slot| self.tally(slot));
    }

    // Whether a page differs from what was sent last. A later write finds it unmapped.
    fn has_changed(&mut self, slot: usize, address: u64) -> bool {
        let Some(sent) = self.faults.sent.as_mut() else { return true };
        let mut bytes = [0; PAGE_BYTES];
        let arena = self.people.arenas[slot].as_ref();
        let read = arena.map(|arena| arena.memory.read_at(&mut bytes, address).is_ok());
        read != Some(true) || sent.changes((slot, address / PAGE), &bytes)
    }

    /// As [`stays`](Self::stays), for the process in `slot`.
    pub(crate) fn stays_in(&mut self, slot: usize, tier: usize, page: PageIndex) {
        if let Some(mut arena) = self.people.arenas[slot].take() {
            self.stays(&mut arena, tier, page);
            self.people.arenas[slot] = Some(arena);
        }
    }

    /// Corrects the residency of a page that is no longer on probation.
    pub(crate) fn stays(&self, arena: &mut Arena, tier: usize, page: PageIndex) {
        let word = self.kernel.tables.pages.word(arena.slot, arena.address(page));
        let word = word.map_or(Word(0), |cell| Word(cell.load(Ordering::Acquire)));
        if word.resident() {
            // Touched, with a fault in the log; or never unmapped, in a child of fork.
            arena.tiers[tier].soft_fault(page);
        } else {
            arena.tiers[tier].discard(page, Pages::new(1));
        }
    }

    /// Makes a ring for a lane that has none. Returns false if no node is free.
    pub(crate) fn has_ring(&mut self, budget: usize, tier: usize) -> bool {
        let one = &mut self.books.accounts[budget][tier].outgoing;
        if one.node.is_none() {
            one.node = self.kernel.tables.pages.take_ring();
            let node = one.node.unwrap_or(0);
            self.kernel.tables.lane(budget, tier).outgoing().store(node, Ordering::Release);
        }
        one.node.is_some()
    }

    // Marks a page on probation as clean, before its contents are sent. Returns its word before;
    // `None` if it is no longer on probation.
    fn clean(&self, slot: usize, address: u64) -> Option<Word> {
        let cell = self.kernel.tables.pages.word(slot, address)?;
        let clean = |word: u32| {
            let word = Word(word);
            let untracked = word.dirty() || word.untracked();
            (word.state() == State::Probation)
                .then(|| word.with_dirty(false).with_untracked(untracked).0)
        };
        cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, clean).ok().map(Word)
    }

    // Adds a page to its lane's ring, and reserves its write-back if it is dirty. Returns false if
    // the page is no longer on probation, or has no room.
    fn enlist(
        &mut self,
        whose: (usize, PageIndex),
        address: u64,
        (budget, tier): (usize, usize),
        is_dirty: bool,
    ) -> bool {
        let Some(node) = self.books.accounts[budget][tier].outgoing.node else { return false };
        let lane = self.kernel.tables.lane(budget, tier);
        let number = lane.placed().load(Ordering::Relaxed);
        let Some((reference, cell)) = self.kernel.tables.pages.reference(whose.0, address) else {
            return false;
        };
        let issue = |word: u32| {
            let word = Word(word);
            (word.state() == State::Probation).then(|| word.with_ticket(ticket(number)).0)
        };
        if cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, issue).is_err() {
            return false;
        }
        let takes_time = is_dirty && self.config.write_back != WriteBack::Free;
        let free_ps = if takes_time { self.reserve_write_back(tier) } else { 0 };
        let entry = self.ring(node).entry(number);
        entry.page.store(reference, Ordering::Relaxed);
        entry.outcome.store(0, Ordering::Relaxed);
        entry.free_ps.store(free_ps, Ordering::Relaxed);
        lane.placed().store(number.wrapping_add(1), Ordering::Release);
        if is_dirty {
            self.written_back(whose, address, tier);
        }
        self.books.accounts[budget][tier].outgoing.placed.push_back(whose);
        true
    }

    /// Counts a write-back, and reports it to the observer where faults are recorded.
    pub(crate) fn written_back(
        &mut self,
        (slot, page): (usize, PageIndex),
        address: u64,
        tier: usize,
    ) {
        self.books.totals.written_back(1, tier);
        if !self.config.record || self.upkeep.sampler.is_some() {
            return;
        }
        let event = FaultEvent {
            time_ns: self.now_ns(),
            address,
            page,
            slot,
            tid: 0,
            kind: FaultKind::WriteBack,
            write: false,
            wait_ns: 0,
            requested_ns: 0,
            measured_ns: 0,
        };
        self.observer.faults(std::slice::from_ref(&event));
    }

    // Write-protects pages that are unmapped, so that no TLB shoot-down is needed.
    pub(crate) fn protect(&self, arena: &Arena, addresses: Vec<u64>) {
        let Some(fault) = arena.fault.as_ref().filter(|fault| fault.tracks_writes()) else {
            return;
        };
        for (start, bytes) in runs(addresses) {
            // A range that was unmapped meanwhile needs no protection.
            let _unmapped = fault.write_protect(start, bytes);
            self.kernel.tables.pages.each_word(
                arena.slot,
                start,
                start + bytes,
                |_address, cell| {
                    let tracked = |word: u32| {
                        let word = Word(word);
                        let gone = matches!(word.state(), State::Remote | State::Probation);
                        gone.then(|| word.with_untracked(false).0)
                    };
                    // A page that is mapped again already counts as dirty.
                    let _back = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, tracked);
                },
            );
        }
    }

    /// Takes the pages of a process that has ended off the rings.
    pub(crate) fn withdraw(&mut self, slot: usize, budget: usize) {
        for tier in 0..self.config.tiers.len() {
            let Some(node) = self.books.accounts[budget][tier].outgoing.node else { continue };
            self.settle_outgoing(budget, tier);
            let first = self.books.accounts[budget][tier].outgoing.settled;
            for place in 0..self.books.accounts[budget][tier].outgoing.placed.len() {
                if self.books.accounts[budget][tier].outgoing.placed[place].0 != slot {
                    continue;
                }
                let number = first.wrapping_add(u32::try_from(place).unwrap_or(0));
                let entry = self.ring(node).entry(number);
                let cell = self.kernel.tables.pages.word_of(entry.page.load(Ordering::Acquire));
                let own = |word: u32| {
                    let own = Word(word).ticket() == Some(ticket(number));
                    own.then(|| Word(word).with_state(State::Probation).0)
                };
                let _taken = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, own);
            }
            self.settle_outgoing(budget, tier);
            let one = &mut self.books.accounts[budget][tier].outgoing;
            one.placed.iter_mut().filter(|one| one.0 == slot).for_each(|one| one.0 = NOBODY);
            if self.books.members.of(budget).iter().all(|&other| other == slot) {
                self.faults.waiting.forget_budget(budget);
                let lane = self.kernel.tables.lane(budget, tier);
                lane.outgoing().store(0, Ordering::Release);
                lane.taken().store(0, Ordering::Release);
                lane.placed().store(0, Ordering::Release);
                self.kernel.tables.pages.give_ring(node);
                self.books.accounts[budget][tier].outgoing = Outgoing::default();
            }
        }
    }
}
