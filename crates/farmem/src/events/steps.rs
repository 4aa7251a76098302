//! How the supervisor reads the trap's log, and scans for pages that came without a fault.

use std::sync::atomic::Ordering;

use paging::residency::Admission;
use paging::word::{State, Word};

use super::{SCAN_UNUSED, Scan, TABLE_FULL, URGENT, revive};
use crate::arena::Arena;
use crate::supervisor::Supervisor;
use tables::ADDRESS_TOP;
use tables::SEGMENT;
use tables::{FaultEvent, FaultKind};

impl Supervisor<'_> {
    /// Processes every event that is in the log now. Later ones wait for the next call: threads
    /// that fault as fast as they can would keep the supervisor here for ever.
    pub(crate) fn drain_events(&mut self) {
        let until = self.kernel.tables.logged_count().load(Ordering::Acquire);
        while self.kernel.tables.taken_count() < until
            && let Some(mut event) = self.kernel.tables.next_event()
        {
            if !self.number(&mut event) {
                continue;
            }
            self.note(&event);
            if self.upkeep.sampler.is_some() {
                self.watched(&event);
            }
            self.upkeep.ends.push(event, self.kernel.tables.taken_count() - 1);
        }
        self.tell_ends(self.now_ns());
        if self.kernel.tables.event_lost().load(Ordering::Acquire) > 0 {
            let lost = self.kernel.tables.event_lost().swap(0, Ordering::AcqRel);
            self.books.totals.lost_count += lost;
            let live: Vec<usize> = self.books.members.live().iter().copied().collect();
            for slot in live {
                self.find_unlogged(slot);
            }
        }
        if self.kernel.tables.stock_empty().load(Ordering::Acquire) > 0 {
            let count = self.kernel.tables.stock_empty().swap(0, Ordering::AcqRel);
            self.books.totals.lost(TABLE_FULL, count);
        }
    }

    /// Records the fetch times that are known at `now_ns`.
    pub(crate) fn tell_ends(&mut self, now_ns: u64) {
        let mut recorded = Vec::new();
        let tables = &self.kernel.tables;
        let end_of = |place, tid| tables.end_of(place, tid);
        while let Some(event) = self.upkeep.ends.pop(end_of, now_ns) {
            self.books.totals.ended(&event, u64::from(event.measured_ns));
            if self.config.record && self.upkeep.sampler.is_none() {
                recorded.push(event);
            }
        }
        if !recorded.is_empty() {
            self.observer.faults(&recorded);
        }
    }

    /// Reads the doorbell: which budgets are short of frames.
    pub(crate) fn hear_doorbell(&mut self) {
        let Some(doorbell) = &mut self.kernel.doorbell else {
            return;
        };
        let members = &mut self.books.members;
        doorbell.answer(|number| {
            if let Some(budget) = (number as usize).checked_sub(1) {
                members.short(budget);
            }
        });
        if self.kernel.tables.bell_lost().swap(0, Ordering::AcqRel) > 0 {
            self.touch_all();
        }
    }

    /// Marks every process as changed.
    pub(crate) fn touch_all(&mut self) {
        for slot in self.books.members.live().clone() {
            self.books.members.touch(slot);
        }
    }

    // Gives the page of an event its number. Returns false if its memory is no longer managed.
    fn number(&mut self, event: &mut FaultEvent) -> bool {
        let Some(arena) = self.people.arenas.get_mut(event.slot).and_then(Option::as_mut) else {
            return false;
        };
        if let Some(page) = arena.space.segments.find(event.address) {
            event.page = page;
            return true;
        }
        if self.kernel.tables.pages.leaf(event.slot, event.address).is_none() {
            return false;
        }
        let page = arena.page(event.address);
        match page {
            Some(page) => event.page = page,
            None => self.books.totals.lost(TABLE_FULL, 1),
        }
        page.is_some()
    }

    /// Applies one event to the residency of its process.
    pub(crate) fn note(&mut self, event: &FaultEvent) {
        self.settle_outgoing_of(event.slot);
        let Some(arena) = self.people.arenas.get_mut(event.slot).and_then(Option::as_mut) else {
            return;
        };
        self.books.members.touch(event.slot);
        let tier = if arena.tiers.len() == 1 {
            0
        } else {
            let word = self.kernel.tables.pages.word(event.slot, event.address);
            word.map_or(0, |cell| Word(cell.load(Ordering::Acquire)).tier())
                .min(arena.tiers.len() - 1)
        };
        let residency = &mut arena.tiers[tier];
        match event.kind {
            FaultKind::FirstTouch => {
                arena.populated[tier] += 1;
                residency.admit(event.page, Admission::FirstTouch);
            }
            FaultKind::Fetch => {
                arena.fetch_count += 1;
                residency.admit(event.page, Admission::Fetch);
            }
            FaultKind::Prefetch => {
                residency.admit(event.page, Admission::Prefetch);
                let ready_ns = event.time_ns + u64::from(event.requested_ns);
                self.faults.arrivals.push_back((ready_ns, event.slot, event.address));
            }
            FaultKind::Soft | FaultKind::Arrived => {
                residency.soft_fault(event.page);
            }
            // The page has left before this is logged.
            FaultKind::WriteBack => {}
        }
        self.books.totals.note(event, tier);
    }

    /// Processes one event that is not in the log.
    pub(crate) fn keep(&mut self, event: &FaultEvent) {
        self.keep_measured(event, u64::from(event.measured_ns));
    }

    /// As [`keep`](Self::keep), for a fault that may have taken longer than an event can hold.
    pub(crate) fn keep_measured(&mut self, event: &FaultEvent, measured_ns: u64) {
        self.note(event);
        self.books.totals.ended(event, measured_ns);
        if self.upkeep.sampler.is_some() {
            self.watched(event);
        } else if self.config.record {
            self.observer.faults(std::slice::from_ref(event));
        }
    }

    /// Marks prefetched pages that have arrived, before the time in their words wraps.
    pub(crate) fn note_arrivals(&mut self) {
        let now = self.now_ns();
        while let Some(&(ready_ns, slot, address)) = self.faults.arrivals.front() {
            if ready_ns > now {
                return;
            }
            self.faults.arrivals.pop_front();
            if let Some(cell) = self.kernel.tables.pages.word(slot, address) {
                let there = |word: u32| Word(word).arrived(ready_ns).map(|word| word.0);
                // A page that has been touched or dropped meanwhile has another word.
                let _gone = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, there);
            }
        }
    }

    /// Admits resident pages that residency does not know of, as the log did not have them.
    pub(crate) fn find_unlogged(&mut self, slot: usize) {
        self.settle_outgoing_of(slot);
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return;
        };
        self.books.members.touch(slot);
        let mut populated = vec![0; arena.tiers.len()];
        let mut unnumbered = 0;
        self.kernel.tables.pages.each_word(slot, 0, ADDRESS_TOP, |address, cell| {
            let word = Word(cell.load(Ordering::Acquire));
            let tier = word.tier().min(populated.len() - 1);
            if !matches!(word.state(), State::Absent | State::Foreign) {
                populated[tier] += 1;
            }
            if word.resident() {
                match arena.page(address) {
                    Some(page) => {
                        arena.tiers[tier].admit(page, Admission::Found);
                    }
                    None => unnumbered += 1,
                }
            }
        });
        arena.counted(populated);
        if unnumbered > 0 {
            self.books.totals.lost(TABLE_FULL, unnumbered);
        }
        let direct = self.kernel.tables.proc(slot).first_touch_count().swap(0, Ordering::AcqRel);
        self.books.totals.first_touch_count += direct;
    }

    /// Scans for pages that are mapped though their word says that they are not: the kernel brought
    /// them for itself (direct I/O, pinned buffers, another process), without a fault that a trap
    /// sees. Scans a few steps of one process at a time, because faults wait for the supervisor
    /// meanwhile; where pages were found, the scan goes on at once.
    pub(crate) fn scan_unseen(&mut self, steps: usize) {
        let (at, from) = self.upkeep.scan.at;
        let Some(slot) = self.books.members.live().range(at..).next().copied() else {
            let found = std::mem::take(&mut self.upkeep.scan.found);
            self.upkeep.scan = Scan { is_urgent: found >= URGENT, ..Scan::default() };
            return;
        };
        let from = if slot == at { from } else { 0 };
        let Some(mut arena) = self.people.arenas[slot].take() else {
            return;
        };
        // Pages on their way out may still be mapped.
        let idle = arena.helper.awaited.dropping() == 0 && arena.helper.ready;
        let limited = self.books.accounts[arena.budget].iter().any(|one| one.limit.is_some());
        let next = if idle && limited { self.scan_slice(&mut arena, from, steps) } else { None };
        self.upkeep.scan.at = next.map_or((slot + 1, 0), |next| (slot, next));
        self.people.arenas[slot] = Some(arena);
    }

    // Scans `steps` of a process from an address on. Returns where to go on, if it does.
    fn scan_slice(&mut self, arena: &mut Arena, from: u64, steps: usize) -> Option<u64> {
        let mut at = from;
        for _ in 0..steps {
            let piece = arena.space.regions.next_managed(at)?;
            // Where nothing was ever touched there is hardly anything to be found.
            let used = self.kernel.tables.pages.next_leaf(arena.slot, piece.start, ADDRESS_TOP);
            let used = used.unwrap_or(ADDRESS_TOP).max(piece.start);
            let most =
                if used == piece.start { SEGMENT } else { SCAN_UNUSED.min(used - piece.start) };
            at = piece.end.min(piece.start + most);
            self.scan_range(arena, piece.start, at);
        }
        Some(at)
    }

    // Finds unseen pages in a range, marks them local, and takes their frames off the budget.
    fn scan_range(&mut self, arena: &mut Arena, start: u64, end: u64) {
        let Ok(map) = sys::pagemap::PageMap::open(arena.helper.thread) else {
            return;
        };
        let mut found = Vec::new();
        // A process that ends meanwhile has no pages to find.
        let _ended = map.present(start, end, |start, end| {
            for address in (start..end).step_by(4096) {
                let revived =
                    self.kernel.tables.pages.make_word(arena.slot, address).ok().and_then(revive);
                found.extend(revived.map(|before| (address, before)));
            }
        });
        for (address, before) in found {
            let tier = before.tier().min(arena.tiers.len() - 1);
            if before.state() == State::Absent {
                arena.populated[tier] += 1;
            } else {
                // The page has come over the link, though no thread waited for it.
                self.reserve_fetch(tier, self.now_ns());
            }
            if let Some(page) = arena.page(address) {
                // A page that was leaving had its frame, and has left.
                arena.tiers[tier].left(page);
                arena.tiers[tier].admit(page, Admission::Found);
            }
            self.kernel.tables.lane(arena.budget, tier).credit(-1);
            self.books.totals.unseen_count += 1;
            self.upkeep.scan.found += 1;
            self.upkeep.scan.is_urgent |= self.upkeep.scan.found >= URGENT;
            self.books.members.touch(arena.slot);
        }
    }
}
