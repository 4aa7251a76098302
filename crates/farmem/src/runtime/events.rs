//! Taking the trap's log, and finding what it does not show.

use std::sync::atomic::Ordering;

use super::arena::Arena;
use super::regions::PAGE;
use super::shared::{ARENA_BYTES, FaultEvent, FaultKind};
use super::supervisor::Supervisor;
use super::word::{State, Word};
use crate::page::PageIndex;
use crate::residency::Admission;

// Addresses looked at in one go.
const SCAN_BYTES: u64 = 16 << 20;

impl Supervisor<'_> {
    /// Takes every event that is in the log.
    pub(crate) fn drain_events(&mut self) {
        let mut recorded = Vec::new();
        while let Some(event) = self.tables.next_event() {
            self.note(&event);
            if self.sampler.is_some() {
                self.watched(&event);
            } else if self.config.record {
                recorded.push(event);
            }
        }
        if !recorded.is_empty() {
            self.observer.faults(&recorded);
        }
        if self.tables.event_lost().load(Ordering::Acquire) > 0 {
            let lost = self.tables.event_lost().swap(0, Ordering::AcqRel);
            self.totals.lost_count += lost;
            for slot in 0..self.arenas.len() {
                self.find_unlogged(slot);
            }
        }
    }

    /// Brings residency up to date with one event.
    pub(crate) fn note(&mut self, event: &FaultEvent) {
        let Some(arena) = self.arenas.get_mut(event.slot).and_then(Option::as_mut) else {
            return;
        };
        let tier = if arena.tiers.len() == 1 {
            0
        } else {
            let word = self.tables.word(event.slot, event.page);
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
                self.arrivals.push_back((ready_ns, event.slot, event.page));
            }
            FaultKind::Soft | FaultKind::Arrived => {
                residency.soft_fault(event.page);
            }
        }
        self.totals.note(event);
    }

    /// Notes that pages which were fetched ahead have arrived, before the time in their words
    /// could be taken for one to come.
    pub(crate) fn note_arrivals(&mut self) {
        let now = self.now_ns();
        while let Some(&(ready_ns, slot, page)) = self.arrivals.front() {
            if ready_ns > now {
                return;
            }
            self.arrivals.pop_front();
            if let Some(cell) = self.tables.word(slot, page) {
                let there = |word: u32| Word(word).arrived(ready_ns).map(|word| word.0);
                // A page that has been touched or dropped meanwhile has another word.
                let _gone = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, there);
            }
        }
    }

    /// Admits resident pages that residency does not know of: the log overflowed, or did not log
    /// until now.
    pub(crate) fn find_unlogged(&mut self, slot: usize) {
        let Some(arena) = self.arenas[slot].as_mut() else {
            return;
        };
        let mut populated = vec![0; arena.tiers.len()];
        let pages = ARENA_BYTES / PAGE;
        self.tables.each_word(slot, PageIndex::new(0), pages, |page, cell| {
            let word = Word(cell.load(Ordering::Acquire));
            let tier = word.tier().min(populated.len() - 1);
            if word.state() != State::Absent {
                populated[tier] += 1;
            }
            if word.resident() {
                arena.tiers[tier].admit(page, Admission::Found);
            }
        });
        arena.counted(populated);
        let direct = self.tables.proc(slot).first_touch_count().swap(0, Ordering::AcqRel);
        self.totals.first_touch_count += direct;
    }

    /// Looks for pages that are mapped though their word says remote: the kernel brought them back
    /// for itself (direct I/O, pinned buffers), without a fault that a trap sees. A slice of one
    /// arena at a time, because faults wait for the supervisor meanwhile.
    pub(crate) fn scan_unseen(&mut self) {
        let (slot, from) = self.scanned;
        let Some(mut arena) = self.arenas[slot].take() else {
            self.scanned = ((slot + 1) % self.arenas.len(), 0);
            return;
        };
        // Pages on their way out may still be mapped.
        let idle = arena.dropping == 0 && arena.ready;
        let limited = self.budgets[arena.budget].iter().any(Option::is_some);
        let end = arena.base + ARENA_BYTES;
        let pieces = arena.regions.pieces(arena.base + from, end);
        let piece = pieces.iter().find(|piece| !piece.traits.foreign).filter(|_| limited);
        self.scanned = match piece {
            None => ((slot + 1) % self.arenas.len(), 0),
            Some(piece) => {
                let stop = piece.end.min(piece.start + SCAN_BYTES);
                if idle {
                    self.scan(&mut arena, piece.start, stop);
                }
                (slot, stop - arena.base)
            }
        };
        self.arenas[slot] = Some(arena);
    }

    fn scan(&mut self, arena: &mut Arena, start: u64, end: u64) {
        let Ok(map) = sys::pagemap::PageMap::open(arena.helper) else {
            return;
        };
        let mut found = Vec::new();
        // A process that ends meanwhile has nothing to be found.
        let _ended = map.present(start, end, |start, end| {
            let (first, count) = (arena.page(start), (end - start) / PAGE);
            self.tables.each_word(arena.slot, first, count, |page, cell| {
                if revive(cell) {
                    found.push(page);
                }
            });
        });
        for page in found {
            let cell = self.tables.word(arena.slot, page);
            let tier = cell.map_or(0, |cell| Word(cell.load(Ordering::Acquire)).tier());
            arena.tiers[tier].admit(page, Admission::Found);
            self.tables.lane(arena.budget, tier).credit(-1);
            self.totals.unseen_count += 1;
        }
    }
}

// Whether the word said remote; it says local now.
fn revive(cell: &std::sync::atomic::AtomicU32) -> bool {
    let revive = |word: u32| {
        let word = Word(word);
        // Nothing is known of writes to it, so they are assumed.
        (word.state() == State::Remote).then(|| word.with_state(State::Local).with_dirty(true).0)
    };
    cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, revive).is_ok()
}
