//! Watching how a sample of pages is used while all memory is local.
//!
//! ```text
//! log ─► Sampler ─► due ─► state word PROBATION ─► drop, write-protect
//! ```
//!
//! A page that is to be watched is unmapped like one on probation, and marked clean: the next touch
//! is a soft fault, the next write sets the dirty bit again. So when a page is watched again, it is
//! known whether a touch was a write, or was followed by one.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use paging::page::PageIndex;
use paging::reuse::{Due, Touch, TouchKind};
use paging::word::{State, Word};

use super::nearby;
use super::pending::Pending;
use super::supervisor::Supervisor;
use tables::{FaultEvent, FaultKind};

/// Pages in one message to a helper: each may be a range of its own.
const DROP_MAX: usize = 200;
/// Most messages at a time, and unanswered ones: a slow helper must not be flooded.
const MESSAGES_MAX: usize = 4;

impl Supervisor<'_> {
    /// Passes an event of the log to the sampler.
    pub(crate) fn watched(&mut self, event: &FaultEvent) {
        let Some(sampler) = &mut self.upkeep.sampler else {
            return;
        };
        let kind = match event.kind {
            FaultKind::FirstTouch => TouchKind::First,
            FaultKind::Soft => TouchKind::Again,
            // No page is remote in such a run.
            FaultKind::Fetch | FaultKind::Prefetch | FaultKind::Arrived | FaultKind::WriteBack => {
                return;
            }
        };
        sampler.touched(Touch {
            time_ns: event.time_ns,
            slot: event.slot,
            page: event.page,
            tid: event.tid,
            kind,
            write: event.write,
        });
    }

    /// Tells the sampler that the program has freed a range.
    pub(crate) fn unwatch(&mut self, slot: usize, start: u64, end: u64) {
        let now = self.now_ns();
        let (Some(sampler), Some(arena)) = (&mut self.upkeep.sampler, &self.people.arenas[slot])
        else {
            return;
        };
        for span in arena.space.segments.spans(start, end) {
            sampler.freed(slot, span.first, span.count, now);
        }
    }

    /// Tells the sampler that moved pages were touched, though not for the first time.
    pub(crate) fn rewatch(&mut self, slot: usize, tid: u32, pages: &[PageIndex]) {
        let time_ns = self.now_ns();
        let Some(sampler) = &mut self.upkeep.sampler else {
            return;
        };
        for &page in pages {
            let kind = TouchKind::Again;
            sampler.touched(Touch { time_ns, slot, page, tid, kind, write: true });
        }
    }

    /// Unmaps the pages that are to be watched.
    pub(crate) fn watch_due(&mut self) {
        let now = self.now_ns();
        let Some(sampler) = &mut self.upkeep.sampler else {
            return;
        };
        let arenas = &self.people.arenas;
        let is_busy = |slot: &usize| {
            arenas[*slot].as_ref().is_some_and(|arena| arena.helper.awaited.len() >= MESSAGES_MAX)
        };
        if self.books.members.live().iter().any(is_busy) {
            return;
        }
        let mut by_slot: BTreeMap<usize, Vec<Due>> = BTreeMap::new();
        for due in sampler.due(now, DROP_MAX * MESSAGES_MAX) {
            by_slot.entry(due.slot).or_default().push(due);
        }
        for (slot, due) in by_slot {
            for some in due.chunks(DROP_MAX) {
                self.watch_some(slot, some);
            }
        }
    }

    fn watch_some(&mut self, slot: usize, due: &[Due]) {
        let Some(mut arena) = self.people.arenas[slot].take() else {
            return;
        };
        let (mut dropped, mut unprotected) = (Vec::new(), Vec::new());
        for due in due {
            let address = arena.address(due.page);
            let Some(before) = self.make_watched(slot, address) else {
                continue;
            };
            dropped.push(address);
            if !arena.with_writes(address, before).dirty() {
                continue;
            }
            if let Some(sampler) = &mut self.upkeep.sampler {
                sampler.written(due);
            }
            // Always, unlike at an eviction: what is seen must not depend on the touch before.
            unprotected.push(address);
        }
        if !dropped.is_empty() {
            nearby::place(&mut arena, &self.kernel.tables, unprotected.len());
            let pending = Pending::Drop { pages: Vec::new(), tier: 0, unprotected };
            self.send_drop(&mut arena, dropped, pending);
        }
        self.people.arenas[slot] = Some(arena);
    }

    // Marks a local page as on probation and clean. Returns its word before; `None` if not local.
    fn make_watched(&self, slot: usize, address: u64) -> Option<Word> {
        let unmap = |word: u32| {
            let word = Word(word);
            let untracked = word.dirty() || word.untracked();
            let watched = word.with_state(State::Probation).with_dirty(false);
            (word.state() == State::Local).then(|| watched.with_untracked(untracked).0)
        };
        let cell = self.kernel.tables.pages.word(slot, address)?;
        cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, unmap).ok().map(Word)
    }
}
