//! Answering the program's memory calls.
//!
//! ```text
//! mmap    new memory            place -> helper maps the memory file there -> watch -> answer the address
//! mremap  grow                  in place by the kernel itself, else a new place and a copy
//! munmap, madvise DONTNEED/FREE forget the contents; zeros from now on
//! mlock                         resident, and no victim
//! brk                           the heap does not grow: allocators turn to mmap
//! ```

use std::sync::atomic::Ordering;

use measure::Pages;
use sys::seccomp::Notification;

use super::RunError;
use super::arena::{Arena, MapRequest, Pending, maps};
use super::filter::nr;
use super::protocol::{self, command};
use super::regions::{PAGE, Traits};
use super::shared::{ARENA_BASE, ARENA_BYTES, ARENA_SHIFT, PROCS_MAX, State, Word};
use super::supervisor::Supervisor;

const EAGAIN: i64 = 11;
const ENOMEM: i64 = 12;
const EFAULT: i64 = 14;
const EEXIST: i64 = 17;
const EINVAL: i64 = 22;

const MAP_PRIVATE: u64 = 2;
const MAP_TYPE: u64 = 0xf;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_SPECIAL: u64 = 0x40 | 0x100 | 0x2_0000 | 0x4_0000;
const MAP_LOCKED: u64 = 0x2000;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const MREMAP_MAYMOVE: u64 = 1;
// Places tried before giving up, when something else sits where the arena is thought to be free.
const ATTEMPTS_MAX: u32 = 8;

mod advice {
    pub(super) const WILLNEED: u64 = 3;
    pub(super) const DONTNEED: u64 = 4;
    pub(super) const FREE: u64 = 8;
    pub(super) const REMOVE: u64 = 9;
    pub(super) const DONTFORK: u64 = 10;
    pub(super) const DOFORK: u64 = 11;
    pub(super) const MERGEABLE: u64 = 12;
    pub(super) const UNMERGEABLE: u64 = 13;
    pub(super) const HUGEPAGE: u64 = 14;
    pub(super) const NOHUGEPAGE: u64 = 15;
    pub(super) const WIPEONFORK: u64 = 18;
    pub(super) const KEEPONFORK: u64 = 19;
    pub(super) const COLD: u64 = 20;
    pub(super) const PAGEOUT: u64 = 21;
    pub(super) const DONTNEED_LOCKED: u64 = 24;
    pub(super) const COLLAPSE: u64 = 25;
}

impl Supervisor<'_> {
    /// Acts on one system call.
    pub(crate) fn call(&mut self, call: Notification) -> Result<(), RunError> {
        let Some(tgid) = self.process_of(call.tid) else {
            return Ok(self.listener.proceed(call.id)?);
        };
        let number = i64::from(call.nr);
        if number == nr::PRCTL {
            return self.own_call(tgid, &call);
        }
        self.forget_executed(tgid);
        let Some(slot) = self.slot_of(tgid, &call) else {
            self.totals.stranger(tgid);
            return Ok(self.listener.proceed(call.id)?);
        };
        match number {
            nr::MMAP => self.mmap(slot, &call),
            nr::MUNMAP => self.munmap(slot, &call),
            nr::MREMAP => self.mremap(slot, &call),
            nr::MADVISE => self.madvise(slot, &call),
            nr::BRK => {
                let end = self.arenas[slot]
                    .as_ref()
                    .map_or(0, |arena| arena.program_break);
                Ok(self.listener.answer(call.id, end.cast_signed())?)
            }
            nr::MLOCK | nr::MLOCK2 | nr::MUNLOCK | nr::MLOCKALL | nr::MUNLOCKALL => {
                self.lock(slot, &call)
            }
            nr::CLONE | nr::FORK => self.fork(slot, &call),
            _ => Ok(self.listener.proceed(call.id)?),
        }
    }

    fn own_call(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        match call.args[1] {
            protocol::HELLO => self.greet(tgid, call),
            protocol::FORKED => self.greet_forked(tgid, call),
            protocol::PLACE => self.place(tgid, call),
            _ => Ok(self.listener.answer(call.id, -EINVAL)?),
        }
    }

    /// The process that thread `tid` belongs to.
    fn process_of(&mut self, tid: u32) -> Option<u32> {
        if let Some(&tgid) = self.processes.get(&tid)
            && sys::process::is_thread_of(tid, tgid)
        {
            return Some(tgid);
        }
        let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
        let tgid = status
            .lines()
            .find_map(|line| line.strip_prefix("Tgid:"))?
            .trim()
            .parse()
            .ok()?;
        self.processes.insert(tid, tgid);
        Some(tgid)
    }

    // The helper dies when its process executes another program, and its socket closes before that program's first
    // instruction.
    fn forget_executed(&mut self, tgid: u32) {
        if let Some(&slot) = self.slots.get(&tgid) {
            self.next_replies(slot);
        }
    }

    fn slot_of(&self, tgid: u32, call: &Notification) -> Option<usize> {
        if let Some(&slot) = self.slots.get(&tgid) {
            return self.arenas[slot]
                .as_ref()
                .is_some_and(|arena| arena.ready)
                .then_some(slot);
        }
        // A child of vfork that has not executed anything yet shares its parent's memory.
        let address = call.args[0];
        let slot = usize::try_from(address.checked_sub(ARENA_BASE)? >> ARENA_SHIFT).ok()?;
        let owner = self
            .arenas
            .get(slot)
            .filter(|_| slot < PROCS_MAX)?
            .as_ref()?;
        let frees = matches!(i64::from(call.nr), nr::MUNMAP | nr::MADVISE);
        (frees && parent_of(tgid) == Some(owner.tgid)).then_some(slot)
    }

    fn mmap(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let [address, bytes, protection, flags, ..] = call.args;
        let Some(bytes) = round_up(bytes) else {
            return Ok(self.listener.proceed(call.id)?);
        };
        let Some(arena) = self.arenas[slot].as_mut() else {
            return Ok(());
        };
        let fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0;
        let inside = arena.contains(address) && arena.contains(address.saturating_add(bytes - 1));
        let ordinary = flags & MAP_TYPE == MAP_PRIVATE
            && flags & MAP_ANONYMOUS != 0
            && flags & (MAP_SPECIAL | MAP_LOCKED) == 0;
        if !ordinary {
            return self.foreign(slot, call, fixed && inside, bytes);
        }
        if fixed && !inside {
            return Ok(self.listener.proceed(call.id)?);
        }
        let replace = fixed && flags & MAP_FIXED_NOREPLACE == 0;
        let start = if replace {
            self.empty(slot, address, bytes);
            let Some(arena) = self.arenas[slot].as_mut() else {
                return Ok(());
            };
            arena
                .regions
                .map(address, address + bytes, Traits::default());
            Some(address)
        } else if inside && address.is_multiple_of(PAGE) && arena.regions.place_at(address, bytes) {
            Some(address)
        } else if fixed {
            return Ok(self.listener.answer(call.id, -EEXIST)?);
        } else {
            arena.regions.place(bytes)
        };
        let Some(start) = start else {
            // Larger than what is left of the arena: ordinary memory of the program's own.
            self.totals
                .warn_once("arena is full: new memory is not managed");
            return Ok(self.listener.proceed(call.id)?);
        };
        let request = MapRequest {
            protection,
            fixed: replace,
        };
        let pending = Pending::Map {
            id: call.id,
            start,
            bytes,
            attempts: 0,
            request,
        };
        self.send_map(slot, start, bytes, request, pending)
    }

    fn send_map(
        &mut self,
        slot: usize,
        start: u64,
        bytes: u64,
        request: MapRequest,
        pending: Pending,
    ) -> Result<(), RunError> {
        let Some(arena) = self.arenas[slot].as_mut() else {
            return Ok(());
        };
        let (Pending::Map { id, .. } | Pending::Move { id, .. }) = pending else {
            return Ok(());
        };
        if arena.map(start, bytes, request, pending).is_err() {
            // The process is on its way out; so is the caller.
            arena.regions.unmap(start, start + bytes);
            self.listener.answer(id, -EAGAIN)?;
        }
        Ok(())
    }

    // Something that is not ours is mapped into the arena, over addresses that may have been.
    fn foreign(
        &mut self,
        slot: usize,
        call: &Notification,
        inside: bool,
        bytes: u64,
    ) -> Result<(), RunError> {
        if inside {
            let start = call.args[0];
            self.empty(slot, start, bytes);
            if let Some(arena) = self.arenas[slot].as_mut() {
                arena.make_foreign(&self.tables, start, bytes);
            }
        }
        Ok(self.listener.proceed(call.id)?)
    }

    /// Forgets the contents of a range, a slice at a time, because faults wait for the supervisor meanwhile.
    pub(crate) fn empty(&mut self, slot: usize, start: u64, bytes: u64) {
        const SLICE: u64 = 2 << 20;
        let end = start + bytes;
        let mut at = start;
        // Memory below this holds nothing, whatever the state words say.
        let mut data = start;
        while at < end {
            let Some(arena) = self.arenas[slot].as_mut() else {
                return;
            };
            let stop = (at / SLICE * SLICE + SLICE).min(end);
            if data <= at {
                let next = arena
                    .memory
                    .next_populated(at - arena.base, end - arena.base);
                data = next
                    .ok()
                    .flatten()
                    .map_or(end, |(next, _)| arena.base + next);
            }
            if data >= stop && !self.tables.has_leaf(slot, arena.page(at)) {
                at = stop;
                continue;
            }
            let credits = arena.empty(&self.tables, at, stop - at);
            self.credit(slot, &credits);
            at = stop;
            if at < end {
                self.drain_events();
                self.restore_budgets();
            }
        }
    }

    fn credit(&self, slot: usize, frames: &[i64]) {
        let Some(arena) = &self.arenas[slot] else {
            return;
        };
        for (tier, &frames) in frames.iter().enumerate() {
            self.tables.lane(arena.budget, tier).credit(frames);
        }
    }

    fn munmap(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let (start, bytes) = (call.args[0], round_up(call.args[1]));
        if let Some(bytes) = bytes.filter(|_| start.is_multiple_of(PAGE)) {
            self.release(slot, start, start.saturating_add(bytes));
        }
        // The caller unmaps it; a range is used again only when nothing is mapped there any more.
        Ok(self.listener.proceed(call.id)?)
    }

    /// Frees the contents and the addresses of a range.
    fn release(&mut self, slot: usize, start: u64, end: u64) {
        let Some(arena) = &self.arenas[slot] else {
            return;
        };
        let (base, limit) = (arena.base, arena.base + ARENA_BYTES);
        for piece in arena.regions.pieces(start.max(base), end.min(limit)) {
            self.empty(slot, piece.start, piece.bytes());
        }
        let Some(arena) = self.arenas[slot].as_mut() else {
            return;
        };
        let (start, end) = (start.max(base), end.min(limit));
        arena.regions.unmap(start, end);
        const SEGMENT: u64 = 2 << 20;
        let first = (start - base) / SEGMENT * SEGMENT;
        let mut at = first;
        while at < end - base {
            if arena
                .regions
                .pieces(base + at, base + at + SEGMENT)
                .is_empty()
            {
                self.tables
                    .release_leaf(slot, usize::try_from(at / SEGMENT).unwrap_or(0));
            }
            at += SEGMENT;
        }
    }

    fn mremap(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let [from, old, new, flags, to, _] = call.args;
        let (Some(old), Some(new)) = (round_up(old), round_up(new)) else {
            return Ok(self.listener.answer(call.id, -EINVAL)?);
        };
        let Some(arena) = self.arenas[slot].as_mut() else {
            return Ok(());
        };
        let pieces = arena.regions.pieces(from, from.saturating_add(old));
        if !arena.contains(from) || pieces.iter().any(|piece| piece.traits.foreign) {
            return Ok(self.listener.proceed(call.id)?);
        }
        if !from.is_multiple_of(PAGE) || flags & !MREMAP_MAYMOVE & !2 != 0 {
            return Ok(self.listener.answer(call.id, -EINVAL)?);
        }
        if !arena.regions.covers(from, from + old) {
            return Ok(self.listener.answer(call.id, -EFAULT)?);
        }
        const MREMAP_FIXED: u64 = 2;
        if flags & MREMAP_FIXED != 0 {
            if !arena.contains(to) || !to.is_multiple_of(PAGE) {
                return Ok(self.listener.answer(call.id, -EINVAL)?);
            }
            self.release(slot, to, to + new);
            let Some(arena) = self.arenas[slot].as_mut() else {
                return Ok(());
            };
            arena.regions.map(to, to + new, Traits::default());
            return self.start_move(slot, call.id, (from, old), (to, new), true);
        }
        if new <= old {
            self.release(slot, from + new, from + old);
            return Ok(self.listener.proceed(call.id)?);
        }
        if arena.regions.extend(from + old, from + new) {
            // The mapping grows over the same file, so the kernel can do it.
            return Ok(self.listener.proceed(call.id)?);
        }
        let place = (flags & MREMAP_MAYMOVE != 0)
            .then(|| arena.regions.place(new))
            .flatten();
        match place {
            Some(to) => self.start_move(slot, call.id, (from, old), (to, new), false),
            None => Ok(self.listener.answer(call.id, -ENOMEM)?),
        }
    }

    fn start_move(
        &mut self,
        slot: usize,
        id: u64,
        (from, old_bytes): (u64, u64),
        (to, new_bytes): (u64, u64),
        fixed: bool,
    ) -> Result<(), RunError> {
        let tgid = self.arenas[slot].as_ref().map_or(0, |arena| arena.tgid);
        let protection = maps::read(tgid, from, from + PAGE)
            .first()
            .map_or(3, |m| m.protection);
        let request = MapRequest { protection, fixed };
        let pending = Pending::Move {
            id,
            from,
            old_bytes,
            to,
            new_bytes,
        };
        self.send_map(slot, to, new_bytes, request, pending)
    }

    /// The helper has done its part of a call.
    pub(crate) fn mapped(&mut self, slot: usize, pending: Pending, result: i64) {
        let answered = match pending {
            Pending::Map {
                id,
                start,
                bytes,
                attempts,
                request,
            } => self.new_memory(slot, id, (start, bytes), (attempts, request), result),
            Pending::Move {
                id,
                from,
                old_bytes,
                to,
                new_bytes,
            } => self.moved(slot, id, (from, old_bytes), (to, new_bytes), result),
            Pending::Vacate {
                id,
                from,
                old_bytes,
                to,
            } => {
                self.release(slot, from, from + old_bytes);
                self.listener
                    .answer(id, to.cast_signed())
                    .map_err(RunError::from)
            }
            Pending::Drop { .. } => Ok(()),
        };
        if let Err(error) = answered {
            self.totals.warn(&error.to_string());
        }
    }

    fn new_memory(
        &mut self,
        slot: usize,
        id: u64,
        (start, bytes): (u64, u64),
        (attempts, request): (u32, MapRequest),
        result: i64,
    ) -> Result<(), RunError> {
        if result >= 0 {
            self.watch(slot, start, bytes);
            self.pin_new(slot, start, bytes);
            return Ok(self.listener.answer(id, start.cast_signed())?);
        }
        let Some(arena) = self.arenas[slot].as_mut() else {
            return Ok(());
        };
        if result == -EEXIST && !request.fixed && attempts < ATTEMPTS_MAX {
            // A range that another thread is about to unmap: look elsewhere, and give it back after that.
            let next = arena.regions.place(bytes);
            arena.regions.unmap(start, start + bytes);
            if let Some(next) = next {
                let attempts = attempts + 1;
                let pending = Pending::Map {
                    id,
                    start: next,
                    bytes,
                    attempts,
                    request,
                };
                return self.send_map(slot, next, bytes, request, pending);
            }
        } else {
            arena.regions.unmap(start, start + bytes);
        }
        Ok(self.listener.answer(id, result)?)
    }

    fn moved(
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
        let copied = arena
            .memory
            .copy_to(&arena.memory, from - arena.base, to - arena.base, bytes);
        self.move_words(&mut arena, from, to, bytes / PAGE);
        let pending = Pending::Vacate {
            id,
            from,
            old_bytes,
            to,
        };
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
        self.tables
            .each_word(arena.slot, first, count, |page, cell| {
                let word = Word(cell.swap(0, Ordering::AcqRel));
                if word.state() != State::Absent {
                    moved.push((page, word));
                }
            });
        for (page, word) in moved {
            let Some(page) = page.offset(distance) else {
                continue;
            };
            match self.tables.make_word(arena.slot, page) {
                Some(cell) => cell.store(word.0, Ordering::Release),
                None => self
                    .totals
                    .warn_once("page-state table is full: some pages are not managed"),
            }
        }
        for residency in &mut arena.tiers {
            residency.rename(first, target, Pages::new(count));
        }
    }

    fn madvise(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let [start, bytes, advice, ..] = call.args;
        let Some(arena) = self.arenas[slot].as_mut() else {
            return Ok(());
        };
        let (Some(bytes), true) = (round_up(bytes), start.is_multiple_of(PAGE)) else {
            return Ok(self.listener.proceed(call.id)?);
        };
        let end = start.saturating_add(bytes);
        let pieces = arena.regions.pieces(start, end);
        if pieces.iter().any(|piece| piece.traits.foreign) {
            return Ok(self.listener.proceed(call.id)?);
        }
        let covered = arena.regions.covers(start, end);
        match advice {
            advice::DONTNEED | advice::FREE | advice::DONTNEED_LOCKED => {
                for piece in pieces {
                    self.empty(slot, piece.start, piece.bytes());
                }
            }
            // What the kernel answers for private memory.
            advice::REMOVE => return Ok(self.listener.answer(call.id, -EINVAL)?),
            advice::WIPEONFORK => arena.regions.mark(start, end, |t| t.wipe_on_fork = true),
            advice::KEEPONFORK => arena.regions.mark(start, end, |t| t.wipe_on_fork = false),
            advice::DONTFORK => arena.regions.mark(start, end, |t| t.not_on_fork = true),
            advice::DOFORK => arena.regions.mark(start, end, |t| t.not_on_fork = false),
            // Hints: huge pages are off in an arena, and what leaves it is the policy's business.
            advice::WILLNEED
            | advice::MERGEABLE
            | advice::UNMERGEABLE
            | advice::HUGEPAGE
            | advice::NOHUGEPAGE
            | advice::COLD
            | advice::PAGEOUT
            | advice::COLLAPSE => {}
            _ => return Ok(self.listener.proceed(call.id)?),
        }
        Ok(self
            .listener
            .answer(call.id, if covered { 0 } else { -ENOMEM })?)
    }

    fn lock(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let Some(arena) = self.arenas[slot].as_mut() else {
            return Ok(());
        };
        let (first, count, pin) = match i64::from(call.nr) {
            nr::MLOCKALL => {
                // MCL_CURRENT locks what is there, MCL_FUTURE what will be.
                arena.lock_all = call.args[0] & 2 != 0;
                (
                    arena.page(arena.base),
                    Pages::new(ARENA_BYTES / PAGE),
                    call.args[0] & 1 != 0,
                )
            }
            nr::MUNLOCKALL => {
                arena.lock_all = false;
                (
                    arena.page(arena.base),
                    Pages::new(ARENA_BYTES / PAGE),
                    false,
                )
            }
            number => {
                let [start, bytes, ..] = call.args;
                let count = Pages::new(bytes.div_ceil(PAGE).max(1));
                (arena.page(start), count, number != nr::MUNLOCK)
            }
        };
        for residency in &mut arena.tiers {
            if pin {
                residency.pin(first, count);
            } else {
                residency.unpin(first, count);
            }
        }
        Ok(self.listener.proceed(call.id)?)
    }

    fn pin_new(&mut self, slot: usize, start: u64, bytes: u64) {
        if let Some(arena) = self.arenas[slot].as_mut().filter(|arena| arena.lock_all) {
            let first = arena.page(start);
            arena
                .tiers
                .iter_mut()
                .for_each(|tier| tier.pin(first, Pages::new(bytes / PAGE)));
        }
    }

    // `afar_place`: pages of the range belong to another tier from now on.
    fn place(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        let [_, _, start, bytes, name, _] = call.args;
        let packed = |tier: &super::config::Tier| super::pack_name(&tier.name) == name;
        let tier = self.config.tiers.iter().position(packed);
        let slot = self.slots.get(&tgid).copied();
        let (Some(tier), Some(slot)) = (tier, slot) else {
            return Ok(self.listener.answer(call.id, -EINVAL)?);
        };
        let Some(mut arena) = self.arenas[slot].take() else {
            return Ok(());
        };
        let end = start.saturating_add(bytes);
        let inside = bytes > 0 && arena.contains(start) && arena.contains(end - 1);
        let result = if inside {
            self.set_tier(&mut arena, start / PAGE * PAGE, end, tier);
            0
        } else {
            -EINVAL
        };
        let budget = arena.budget;
        self.arenas[slot] = Some(arena);
        self.update_budget(budget);
        Ok(self.listener.answer(call.id, result)?)
    }

    fn set_tier(&mut self, arena: &mut Arena, start: u64, end: u64, tier: usize) {
        let bits = u32::try_from(tier).unwrap_or(0);
        for address in (start..end).step_by(4096) {
            let page = arena.page(address);
            let Some(cell) = self.tables.make_word(arena.slot, page) else {
                self.totals
                    .warn_once("page-state table is full: some pages are not managed");
                return;
            };
            let before = Word(cell.load(Ordering::Acquire));
            let change = |word: u32| Some(Word(word).with_tier(bits).0);
            let _always = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
            if before.tier() == tier || before.state() == State::Absent {
                continue;
            }
            arena.populated[before.tier()] -= 1;
            arena.populated[tier] += 1;
            if before.resident() {
                arena.tiers[before.tier()].discard(page, Pages::new(1));
                arena.tiers[tier].admit(page, crate::residency::Admission::Found);
                self.tables.lane(arena.budget, before.tier()).credit(1);
                self.tables.lane(arena.budget, tier).credit(-1);
            }
        }
    }
}

fn round_up(bytes: u64) -> Option<u64> {
    bytes
        .checked_next_multiple_of(PAGE)
        .filter(|&bytes| bytes > 0 && bytes <= ARENA_BYTES)
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))?
        .trim()
        .parse()
        .ok()
}
