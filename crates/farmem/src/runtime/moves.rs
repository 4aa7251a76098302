//! Growing, shrinking and moving memory: `mremap`.
//!
//! A page's place in the memory file is its address, so a region that moves is copied: a new place,
//! the contents, the state words, then the old place is unmapped. Regions that have room behind
//! them grow without that.

use std::sync::atomic::Ordering;

use measure::Pages;
use sys::seccomp::Notification;

use super::RunError;
use super::arena::{Arena, MapRequest, Pending, maps};
use super::calls::round_up;
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
        if !arena.contains(from) || pieces.iter().any(|piece| piece.traits.foreign) {
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
            if !arena.contains(to) || !to.is_multiple_of(PAGE) {
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
        let request = MapRequest { protection, fixed };
        let pending = Pending::Move { id, from, old_bytes, to, new_bytes };
        self.send_map(slot, to, new_bytes, request, pending)
    }

    // Something that is not ours moves into the arena, out of it or within it; the kernel does
    // that.
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
        let into = flags & MREMAP_FIXED != 0 && arena.contains(to) && to.is_multiple_of(PAGE);
        let (out, grows) = (arena.contains(from), new > old);
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
            arena.regions.unmap(to, to + new_bytes);
            self.arenas[slot] = Some(arena);
            return Ok(self.listener.answer(id, result)?);
        }
        let bytes = old_bytes.min(new_bytes);
        let copied = arena.memory.copy_to(&arena.memory, from - arena.base, to - arena.base, bytes);
        self.move_words(&mut arena, from, to, bytes / PAGE);
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
    fn move_words(&mut self, arena: &mut Arena, from: u64, to: u64, count: u64) {
        let (first, target) = (arena.page(from), arena.page(to));
        let distance = i64::from(target.get()) - i64::from(first.get());
        let mut moved = Vec::new();
        self.tables.each_word(arena.slot, first, count, |page, cell| {
            let word = Word(cell.swap(0, Ordering::AcqRel));
            if word.state() != State::Absent {
                moved.push((page, word));
            }
        });
        let mut now_at = Vec::new();
        for (page, word) in moved {
            let Some(page) = page.offset(distance) else {
                continue;
            };
            now_at.push(page);
            match self.tables.make_word(arena.slot, page) {
                Some(cell) => cell.store(word.0, Ordering::Release),
                None => {
                    self.totals.warn_once("page-state table is full: some pages are not managed")
                }
            }
        }
        for residency in &mut arena.tiers {
            residency.rename(first, target, Pages::new(count));
        }
        self.unwatch(arena.slot, first, count);
        self.rewatch(arena.slot, arena.tgid, &now_at);
    }
}
