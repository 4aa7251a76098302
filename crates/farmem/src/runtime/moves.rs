//! Growing, shrinking and moving memory: `mremap`.
//!
//! A page's place in the memory file is its address, so a region that moves is copied: a new place,
//! the contents, the state words, then the old place is unmapped. Regions that have room behind
//! them grow without that.

use std::sync::atomic::Ordering;

use measure::Pages;
use sys::seccomp::Notification;

use super::RunError;
use super::arena::{Arena, MapRequest, Pending, manageable, maps};
use super::calls::round_up;
use super::events::TABLE_FULL;
use super::page_table::SEGMENT;
use super::protocol::command;
use super::regions::{PAGE, Traits};
use super::supervisor::Supervisor;
use super::word::{State, Word};

const EAGAIN: i64 = 11;
const ENOMEM: i64 = 12;
const EFAULT: i64 = 14;
const EINVAL: i64 = 22;
const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;

impl Supervisor<'_> {
    pub(crate) fn mremap(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let [from, old, new, flags, to, _] = call.args;
        let Some(new) = round_up(new) else {
            let errno = if new == 0 { EINVAL } else { ENOMEM };
            return Ok(self.listener.answer(call.id, -errno)?);
        };
        // Length 0 copies a shared mapping, and there are none from the program's point of view.
        let Some(old) = round_up(old) else {
            return Ok(self.listener.answer(call.id, -EINVAL)?);
        };
        let Some(arena) = self.arenas[slot].as_mut() else {
            return Ok(());
        };
        let pieces = arena.regions.pieces(from, from.saturating_add(old));
        if pieces.is_empty() || pieces.iter().any(|piece| piece.traits.foreign) {
            return self.move_foreign(slot, call, old, new);
        }
        let known = flags & !(MREMAP_MAYMOVE | MREMAP_FIXED) == 0;
        let contradictory = flags & MREMAP_FIXED != 0
            && (flags & MREMAP_MAYMOVE == 0 || from < to + new && to < from + old);
        if !from.is_multiple_of(PAGE) || !known || contradictory {
            return Ok(self.listener.answer(call.id, -EINVAL)?);
        }
        if !arena.regions.covers(from, from + old) {
            return Ok(self.listener.answer(call.id, -EFAULT)?);
        }
        if flags & MREMAP_FIXED != 0 {
            let end = to.saturating_add(new);
            if manageable(to, end) != Some((to, end)) || !to.is_multiple_of(PAGE) {
                return Ok(self.listener.answer(call.id, -EINVAL)?);
            }
            self.release(slot, to, to + new, None);
            let Some(arena) = self.arenas[slot].as_mut() else {
                return Ok(());
            };
            arena.regions.map(to, to + new, Traits::default());
            return self.start_move(slot, call, (from, old), (to, new), true);
        }
        if new <= old {
            self.release(slot, from + new, from + old, Some(call.tid));
            return Ok(self.listener.proceed(call.id)?);
        }
        if arena.regions.extend(from + old, from + new) {
            let unopened = arena.open(&self.tables, from + old, new - old);
            self.totals.lost(TABLE_FULL, unopened);
            // The mapping grows over the same file, so the kernel can do it.
            return Ok(self.listener.proceed(call.id)?);
        }
        let place = (flags & MREMAP_MAYMOVE != 0).then(|| arena.regions.place(new)).flatten();
        match place {
            Some(to) => self.start_move(slot, call, (from, old), (to, new), false),
            None => Ok(self.listener.answer(call.id, -ENOMEM)?),
        }
    }

    fn start_move(
        &mut self,
        slot: usize,
        call: &Notification,
        (from, old_bytes): (u64, u64),
        (to, new_bytes): (u64, u64),
        fixed: bool,
    ) -> Result<(), RunError> {
        let id = call.id;
        // By thread: the first thread of a process may have ended before the others.
        let mapping = maps::read(call.tid, from, from + PAGE);
        let protection = mapping.first().map_or(3, |mapping| mapping.protection);
        let request = MapRequest { protection, fixed, only_there: false };
        let pending = Pending::Move { id, from, old_bytes, to, new_bytes };
        self.send_map(slot, to, new_bytes, request, pending)
    }

    // Something that is not ours moves over something that is, or has a place that we know; the
    // kernel does that.
    fn move_foreign(
        &mut self,
        slot: usize,
        call: &Notification,
        old: u64,
        new: u64,
    ) -> Result<(), RunError> {
        let [from, _, _, flags, to, _] = call.args;
        let Some(arena) = self.arenas[slot].as_ref() else {
            return Ok(());
        };
        let end = to.saturating_add(new);
        let inside = manageable(to, end) == Some((to, end)) && to.is_multiple_of(PAGE);
        let into = flags & MREMAP_FIXED != 0 && inside;
        let (out, grows) = (!arena.regions.pieces(from, from + old).is_empty(), new > old);
        if out && flags & MREMAP_FIXED == 0 && grows {
            // It would have to move, and where to is not ours to say.
            return Ok(self.listener.answer(call.id, -ENOMEM)?);
        }
        if into && old > 0 {
            self.empty(slot, to, new);
            if let Some(arena) = self.arenas[slot].as_mut() {
                arena.make_foreign(&self.tables, to, new);
            }
        }
        if out && flags & MREMAP_FIXED != 0 {
            self.release(slot, from, from + old, Some(call.tid));
        }
        Ok(self.listener.proceed(call.id)?)
    }

    pub(crate) fn moved(
        &mut self,
        slot: usize,
        id: u64,
        (from, old_bytes): (u64, u64),
        (to, new_bytes): (u64, u64),
        result: i64,
    ) -> Result<(), RunError> {
        let Some(mut arena) = self.arenas[slot].take() else {
            return Ok(());
        };
        if result < 0 {
            arena.call_off(&self.tables, to, new_bytes);
            self.arenas[slot] = Some(arena);
            return Ok(self.listener.answer(id, result)?);
        }
        let bytes = old_bytes.min(new_bytes);
        let copied = arena.memory.copy_to(&arena.memory, from, to, bytes);
        self.move_words(&mut arena, from, to, bytes);
        let pending = Pending::Vacate { id, from, old_bytes, to };
        let sent = arena.command(command::UNMAP, &[from, old_bytes], pending);
        self.arenas[slot] = Some(arena);
        self.watch(slot, to, new_bytes);
        if sent.is_err() {
            self.listener.answer(id, -EAGAIN)?;
        }
        Ok(copied?)
    }

    // A page keeps its state at its new address; one that was mapped is merely unmapped now.
    fn move_words(&mut self, arena: &mut Arena, from: u64, to: u64, bytes: u64) {
        let slot = arena.slot;
        let mut moved = Vec::new();
        self.tables.pages.each_word(slot, from, from + bytes, |address, cell| {
            let word = Word(cell.load(Ordering::Acquire));
            if !matches!(word.state(), State::Absent | State::Foreign) {
                cell.store(0, Ordering::Release);
                moved.push((address, word));
            }
        });
        let mut unmanaged = 0;
        let mut now_at = Vec::new();
        for (address, word) in moved {
            let target = address - from + to;
            match (self.tables.pages.make_word(slot, target), arena.page(target)) {
                (Ok(cell), Some(page)) => {
                    cell.store(word.0, Ordering::Release);
                    now_at.push(page);
                }
                _ => unmanaged += 1,
            }
        }
        self.totals.lost(TABLE_FULL, unmanaged);
        rename(arena, from, to, bytes);
        for pins in arena.pinned.within(from..from + bytes) {
            arena.pinned.insert(pins.start - from + to..pins.end - from + to);
        }
        arena.pinned.remove(from..from + bytes);
        if let Some(sampler) = &mut self.sampler {
            let spans = arena.segments.spans(from, from + bytes);
            let now = sys::clock::monotonic_ns();
            let epoch = self.tables.epoch_ns().load(Ordering::Relaxed);
            for span in spans {
                sampler.freed(slot, span.first, span.count, now.saturating_sub(epoch));
            }
        }
        self.rewatch(slot, arena.tgid, &now_at);
    }
}

// Pages keep their age, their state and their pins under the numbers of their new addresses.
fn rename(arena: &mut Arena, from: u64, to: u64, bytes: u64) {
    for span in arena.segments.spans(from, from + bytes) {
        let mut at = 0;
        while at < span.count {
            // As far as the numbers of the new addresses are in a row, too.
            let target = span.address + at * PAGE - from + to;
            let room = (SEGMENT - target % SEGMENT) / PAGE;
            let count = room.min(span.count - at);
            let source = span.first.offset(at.cast_signed());
            if let (Some(source), Some(target)) = (source, arena.segments.find(target)) {
                for residency in &mut arena.tiers {
                    residency.rename(source, target, Pages::new(count));
                }
            }
            at += count;
        }
    }
}
