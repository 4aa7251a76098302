//! Answering the program's system calls for memory.
//!
//! ```text
//! mmap    new memory            place -> helper maps it there -> watch -> answer the address
//!         little of it          from the stock, mapped before
//! mremap  grow                  in place by the kernel itself, else a new place and a copy
//! munmap, madvise DONTNEED/FREE forget the contents; zeros from now on
//! mlock                         resident, and no victim
//! brk                           the heap does not grow: allocators turn to mmap
//! ```
//!
//! An address is given out again only where nothing is mapped; its memory then reads as zeros.

use paging::regions::{PAGE, Traits};
use sys::seccomp::Notification;

use super::RunError;
use super::arena::manageable;
use super::events::TABLE_FULL;
use super::pending::Pending;
use super::populate::Then;
use super::request::MapRequest;
use super::supervisor::Supervisor;
use tables::{ADDRESS_TOP, LOOK_FROM, SEGMENT};

const EAGAIN: i64 = 11;
const EEXIST: i64 = 17;
const EINVAL: i64 = 22;

const PROT_WRITE: u64 = 2;
const MAP_PRIVATE: u64 = 2;
const MAP_TYPE: u64 = 0xf;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_SPECIAL: u64 = 0x40 | 0x100 | 0x2_0000 | 0x4_0000;
const MAP_LOCKED: u64 = 0x2000;
const MAP_POPULATE: u64 = 0x8000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
// Places tried before giving up, when something else sits where memory is thought to be free.
const ATTEMPTS_MAX: u32 = 8;
/// Reported loss: mappings that the kernel placed, because managed address space had no room.
const NO_ROOM: &str = "no room for new memory";

impl Supervisor<'_> {
    /// Acts on `mmap`: private memory comes from the helper or the stock, else from the kernel.
    pub(crate) fn mmap(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let [address, bytes, protection, flags, ..] = call.args;
        let Some(bytes) = round_up(bytes) else {
            return Ok(self.kernel.listener.proceed(call.id)?);
        };
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return Ok(());
        };
        let fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0;
        let end = address.saturating_add(bytes);
        let inside = manageable(address, end) == Some((address, end));
        let ordinary = flags & MAP_TYPE == MAP_PRIVATE
            && flags & MAP_ANONYMOUS != 0
            && flags & (MAP_SPECIAL | MAP_LOCKED) == 0;
        // A call that the kernel refuses must have no effect.
        let typed = matches!(flags & MAP_TYPE, 1..=3);
        if !typed || fixed && !address.is_multiple_of(PAGE) {
            return Ok(self.kernel.listener.answer(call.id, -EINVAL)?);
        }
        if !ordinary || fixed && !inside {
            return self.foreign(slot, call, bytes);
        }
        let loader = arena.image.loader.as_mut().filter(|_| address == 0);
        if loader.is_some_and(|loader| loader.takes(call.return_to, bytes)) {
            return Ok(self.kernel.listener.proceed(call.id)?);
        }
        if self.answers_from_stock(slot, call, bytes)? {
            return Ok(());
        }
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return Ok(());
        };
        let replace = fixed && flags & MAP_FIXED_NOREPLACE == 0;
        let hint = address.next_multiple_of(PAGE);
        let start = if replace {
            self.empty(slot, address, bytes);
            let Some(arena) = self.people.arenas[slot].as_mut() else {
                return Ok(());
            };
            arena.space.regions.map(address, address + bytes, Traits::default());
            Some(address)
        } else if inside && hint + bytes <= ADDRESS_TOP && arena.space.regions.place_at(hint, bytes)
        {
            Some(hint)
        } else if fixed {
            return Ok(self.kernel.listener.answer(call.id, -EEXIST)?);
        } else {
            arena.space.regions.place(bytes)
        };
        let Some(start) = start else {
            // The kernel maps it as ordinary, unmanaged memory.
            self.books.totals.lost(NO_ROOM, 1);
            return Ok(self.kernel.listener.proceed(call.id)?);
        };
        let populates = flags & MAP_POPULATE != 0;
        let request = MapRequest { protection, fixed: replace, only_there: fixed, populates };
        let (id, thread) = (call.id, call.tid);
        let pending = Pending::Map { id, thread, start, bytes, attempts: 0, request };
        self.send_map(slot, start, bytes, request, pending)
    }

    /// Opens a range for management, and has the helper map it; `pending` goes on after its reply.
    pub(crate) fn send_map(
        &mut self,
        slot: usize,
        start: u64,
        bytes: u64,
        request: MapRequest,
        pending: Pending,
    ) -> Result<(), RunError> {
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return Ok(());
        };
        let id = match &pending {
            Pending::Map { id, .. } => *id,
            Pending::Move(moving) => moving.id,
            _ => return Ok(()),
        };
        let unopened = arena.open(&self.kernel.tables, start, bytes);
        self.books.totals.lost(TABLE_FULL, unopened);
        if arena.map(start, bytes, request, pending).is_err() {
            // The process ends, and the caller with it.
            arena.call_off(&self.kernel.tables, start, bytes);
            self.kernel.listener.answer(id, -EAGAIN)?;
        }
        Ok(())
    }

    // Has the kernel map unmanaged memory at a chosen address; discards managed memory there.
    fn foreign(&mut self, slot: usize, call: &Notification, bytes: u64) -> Result<(), RunError> {
        let [address, _, _, flags, ..] = call.args;
        let replace = flags & MAP_FIXED != 0 && flags & MAP_FIXED_NOREPLACE == 0;
        let range = manageable(address, address.saturating_add(bytes));
        let Some((start, end)) = range.filter(|_| address > 0) else {
            return Ok(self.kernel.listener.proceed(call.id)?);
        };
        let is_free = |regions: &paging::regions::Regions| regions.is_free(start, end);
        if !replace
            && !self.people.arenas[slot].as_ref().is_some_and(|arena| is_free(&arena.space.regions))
        {
            // The kernel refuses the call, or chooses another place.
            return Ok(self.kernel.listener.proceed(call.id)?);
        }
        if replace {
            if !mappable(call) {
                return Ok(self.kernel.listener.proceed(call.id)?);
            }
            self.empty(slot, start, end - start);
        }
        if let Some(arena) = self.people.arenas[slot].as_mut() {
            arena.make_foreign(&self.kernel.tables, start, end - start);
        }
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    /// Discards the contents of a range, slice by slice, as faults wait meanwhile.
    pub(crate) fn empty(&mut self, slot: usize, start: u64, bytes: u64) {
        let end = start + bytes;
        let mut at = start;
        self.note_peak(slot);
        self.books.members.touch(slot);
        while let Some(from) = self.next_used(slot, at, end) {
            let stop = (from / SEGMENT * SEGMENT + SEGMENT).min(end);
            self.preserve(slot, from, stop);
            self.settle_outgoing_of(slot);
            let Some(arena) = self.people.arenas[slot].as_mut() else {
                return;
            };
            let credits = arena.empty(&self.kernel.tables, from, stop - from);
            self.forget_far(slot, from, stop);
            self.credit(slot, &credits);
            self.unwatch(slot, from, stop);
            at = stop;
            if at < end {
                self.drain_events();
                self.restore_budgets();
            }
        }
        // An unused range needs no copying later either.
        self.preserve(slot, start, end);
    }

    /// The first page of `at..end` that has contents, by its state word or by memory in the file
    /// (which direct I/O leaves without a fault that the trap sees).
    pub(crate) fn next_used(&self, slot: usize, at: u64, end: u64) -> Option<u64> {
        if at >= end {
            return None;
        }
        let arena = self.people.arenas[slot].as_ref()?;
        let data = arena.memory.next_data(at, end).ok().flatten();
        let data = data.map(|from| from / PAGE * PAGE);
        let word = self.kernel.tables.pages.next_used(slot, at, end);
        data.into_iter().chain(word).min().map(|from| from.max(at))
    }

    // Adds free frames to the budget of `slot`, per tier.
    fn credit(&self, slot: usize, frames: &[i64]) {
        let Some(arena) = &self.people.arenas[slot] else {
            return;
        };
        for (tier, &frames) in frames.iter().enumerate() {
            self.kernel.tables.lane(arena.budget, tier).credit(frames);
        }
    }

    /// Acts on `munmap`: discards managed memory, and lets the kernel unmap it.
    pub(crate) fn munmap(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let (start, bytes) = (call.args[0], round_up(call.args[1]));
        if let Some(bytes) = bytes.filter(|_| start.is_multiple_of(PAGE)) {
            self.look_at_unmanaged(slot, start, bytes);
            self.release(slot, start, start.saturating_add(bytes), Some(call.tid));
        }
        // The kernel unmaps the range for the caller; only then is it used again.
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    /// Samples a process before a large unmanaged range is unmapped.
    fn look_at_unmanaged(&mut self, slot: usize, start: u64, bytes: u64) {
        let Some(arena) = &self.people.arenas[slot] else { return };
        let managed = |(start, end)| -> u64 {
            let pieces = arena.space.regions.pieces(start, end);
            let ours = pieces.iter().filter(|piece| !piece.traits.foreign);
            ours.map(|piece| piece.bytes()).sum()
        };
        let range = manageable(start, start.saturating_add(bytes));
        if bytes - range.map_or(0, managed).min(bytes) >= LOOK_FROM {
            let tgid = arena.tgid;
            // A process that has ended has no memory.
            let _there = self.sample(tgid);
        }
    }

    /// Frees the contents and the addresses of a range. With `unmapper`, the addresses stay
    /// reserved until that thread has unmapped them.
    pub(crate) fn release(&mut self, slot: usize, start: u64, end: u64, unmapper: Option<u32>) {
        let Some((start, end)) = manageable(start, end) else {
            return;
        };
        let Some(arena) = &self.people.arenas[slot] else {
            return;
        };
        let pieces = arena.space.regions.pieces(start, end);
        if pieces.is_empty() {
            return;
        }
        for piece in pieces.iter().filter(|piece| !piece.traits.foreign) {
            self.empty(slot, piece.start, piece.bytes());
        }
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return;
        };
        arena.space.pinned.remove(start..end);
        match unmapper {
            Some(tid) => {
                arena.space.regions.vacate(start, end);
                arena.space.leaving.push((tid, start, end));
            }
            None => arena.space.regions.unmap(start, end),
        }
        arena.close(&self.kernel.tables, start, end);
    }

    /// Goes on with a call after the helper's reply `result` to the command of `pending`.
    pub(crate) fn mapped(&mut self, slot: usize, pending: Pending, result: i64) {
        let answered = match pending {
            Pending::Map { id, thread, start, bytes, attempts, request } => {
                self.new_memory(slot, (id, thread), (start, bytes), (attempts, request), result)
            }
            Pending::Stock { start } => {
                self.stocked(slot, start, result);
                Ok(())
            }
            Pending::Move(moving) => self.place_prepared(slot, moving, result),
            Pending::Vacate(moving) => self.move_now(slot, moving),
            Pending::Follow { id } => self.kernel.listener.proceed(id).map_err(RunError::from),
            Pending::Freeze => {
                self.froze(slot);
                Ok(())
            }
            Pending::Drop { .. } => Ok(()),
        };
        if let Err(error) = answered {
            self.books.totals.warn(&error.to_string());
        }
    }

    // Answers an `mmap` with the memory that the helper mapped, or tries another place.
    fn new_memory(
        &mut self,
        slot: usize,
        (id, thread): (u64, u32),
        (start, bytes): (u64, u64),
        (attempts, request): (u32, MapRequest),
        result: i64,
    ) -> Result<(), RunError> {
        if result >= 0 {
            self.watch(slot, start, bytes);
            let locked = self.pin_new(slot, start, bytes);
            if (request.populates || locked) && request.protection & PROT_WRITE != 0 {
                let then = Then::Answer(start.cast_signed());
                self.populate(slot, (id, thread), [(start, start + bytes)], true, then);
                return Ok(());
            }
            return Ok(self.kernel.listener.answer(id, start.cast_signed())?);
        }
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return Ok(());
        };
        arena.call_off(&self.kernel.tables, start, bytes);
        if result != -EEXIST || request.fixed || request.only_there {
            return Ok(self.kernel.listener.answer(id, result)?);
        }
        // The program itself has mapped something there. Look elsewhere, past it.
        arena.avoid_obstacles(&self.kernel.tables, start, bytes);
        let next = (attempts < ATTEMPTS_MAX).then(|| arena.space.regions.place(bytes)).flatten();
        match next {
            Some(next) => {
                let attempts = attempts + 1;
                let pending = Pending::Map { id, thread, start: next, bytes, attempts, request };
                self.send_map(slot, next, bytes, request, pending)
            }
            None => {
                // The program did not choose the address, so it must not hear that it is taken.
                self.books.totals.lost(NO_ROOM, 1);
                Ok(self.kernel.listener.proceed(id)?)
            }
        }
    }
}

// Whether the kernel would grant this `mmap`: tries the same mapping in the supervisor.
fn mappable(call: &Notification) -> bool {
    let [_, bytes, protection, flags, descriptor, offset] = call.args;
    let file = if flags & MAP_ANONYMOUS == 0 {
        let number = u32::try_from(descriptor & 0xffff_ffff).unwrap_or(u32::MAX);
        let Ok(file) = sys::process::descriptor_of(call.tid, number) else {
            return false;
        };
        Some(file)
    } else {
        None
    };
    let elsewhere = flags & !(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_POPULATE | MAP_LOCKED);
    sys::memory::try_map(bytes, protection, elsewhere, file.as_ref(), offset).is_ok()
}

/// `bytes` in whole pages; `None` for 0 and for more than the address space.
pub(crate) fn round_up(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(PAGE).filter(|&bytes| bytes > 0 && bytes <= ADDRESS_TOP)
}
