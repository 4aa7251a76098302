//! The supervisor's steps of `mremap`.

use std::sync::atomic::Ordering;

use measure::Pages;
use paging::regions::{PAGE, Traits};
use paging::word::{State, Word};
use sys::remote::Remote;
use sys::seccomp::Notification;

use super::Move;
use crate::RunError;
use crate::arena::{Arena, manageable};
use crate::calls::round_up;
use crate::events::TABLE_FULL;
use crate::pending::Pending;
use crate::protocol::command;
use crate::request::MapRequest;
use crate::supervisor::Supervisor;
use sys::maps;
use tables::SEGMENT;
use tables::{ADDRESS_MIN, ADDRESS_TOP};

const EAGAIN: i64 = 11;
const ENOMEM: i64 = 12;
const EFAULT: i64 = 14;
const EEXIST: i64 = 17;
const EINVAL: i64 = 22;
const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;
const MREMAP_DONTUNMAP: u64 = 4;
const MAP_PRIVATE: u64 = 2;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
/// First address behind those that a program can have.
const PROGRAM_TOP: u64 = 0x7fff_ffff_f000;
// Bytes of one copy to unmanaged memory.
const CARRY_BYTES: usize = 1 << 20;
// Places tried before giving up, when something else sits where memory is thought to be free.
const ATTEMPTS_MAX: u32 = 8;
/// Reported loss: pages that moved to where no memory is managed.
const OUT_OF_REACH: &str = "memory moved to an address where none is managed";

impl Supervisor<'_> {
    pub(crate) fn mremap(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let [from, old, new, flags, ..] = call.args;
        let Some(new) = round_up(new) else {
            let errno = if new == 0 { EINVAL } else { ENOMEM };
            return Ok(self.kernel.listener.answer(call.id, -errno)?);
        };
        let Some(arena) = self.people.arenas[slot].as_ref() else {
            return Ok(());
        };
        let pieces = arena.space.regions.pieces(from, from.saturating_add(old.max(1)));
        if pieces.is_empty() || pieces.iter().any(|piece| piece.traits.foreign) {
            return self.move_foreign(slot, call, new);
        }
        // Length 0 copies a shared mapping, and managed memory is private to the program.
        let Some(old) = round_up(old) else {
            return Ok(self.kernel.listener.answer(call.id, -EINVAL)?);
        };
        if !is_well_formed(call, old, new) {
            return Ok(self.kernel.listener.answer(call.id, -EINVAL)?);
        }
        if !arena.space.regions.covers(from, from + old) {
            return Ok(self.kernel.listener.answer(call.id, -EFAULT)?);
        }
        if flags & MREMAP_DONTUNMAP != 0 && (self.is_cut(slot) || self.is_emptying(slot)) {
            self.forking.postponed.push(*call);
            return Ok(());
        }
        if flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) != 0 {
            return self.move_elsewhere(slot, call, (from, old), new);
        }
        match self.resize(slot, call, old, new)? {
            Resized::Done => Ok(()),
            Resized::Moves(None) => Ok(self.kernel.listener.answer(call.id, -ENOMEM)?),
            Resized::Moves(Some(place)) => {
                let protection = protection(call.tid, from, PAGE).unwrap_or(3);
                self.start_move(slot, call, (from, old), (place, new), protection)
            }
        }
    }

    // Moves a region to a place of the program's choice, or away from one that stays mapped.
    fn move_elsewhere(
        &mut self,
        slot: usize,
        call: &Notification,
        (from, old): (u64, u64),
        new: u64,
    ) -> Result<(), RunError> {
        let [_, _, _, flags, to, _] = call.args;
        let Some(protection) = protection(call.tid, from, old) else {
            return Ok(self.kernel.listener.answer(call.id, -EFAULT)?);
        };
        if flags & MREMAP_FIXED != 0 {
            self.clear_place(slot, to, new);
            return self.start_move(slot, call, (from, old), (to, new), protection);
        }
        match self.place_near(slot, to, new) {
            Some(place) => self.start_move(slot, call, (from, old), (place, new), protection),
            None => Ok(self.kernel.listener.answer(call.id, -ENOMEM)?),
        }
    }

    // Frees the place that a region is to move to, with all that is mapped there.
    fn clear_place(&mut self, slot: usize, to: u64, bytes: u64) {
        self.release(slot, to, to + bytes, None);
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return;
        };
        if is_managed(to, bytes) {
            arena.space.regions.map(to, to + bytes, Traits::default());
        } else if let Some((start, end)) = manageable(to, to + bytes) {
            arena.make_foreign(&self.kernel.tables, start, end - start);
        }
    }

    // Reserves a new place, at `hint` if that is free; `None` if there is no room.
    fn place_near(&mut self, slot: usize, hint: u64, bytes: u64) -> Option<u64> {
        let arena = self.people.arenas[slot].as_mut()?;
        if is_managed(hint, bytes) && arena.space.regions.place_at(hint, bytes) {
            return Some(hint);
        }
        arena.space.regions.place(bytes)
    }

    // Shrinks a region, or grows it in place, or finds a place to move it to.
    fn resize(
        &mut self,
        slot: usize,
        call: &Notification,
        old: u64,
        new: u64,
    ) -> Result<Resized, RunError> {
        let [from, _, _, flags, ..] = call.args;
        if new <= old {
            self.release(slot, from + new, from + old, Some(call.tid));
            self.kernel.listener.proceed(call.id)?;
            return Ok(Resized::Done);
        }
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return Ok(Resized::Done);
        };
        if arena.space.regions.extend(from + old, from + new) {
            let unopened = arena.open(&self.kernel.tables, from + old, new - old);
            self.books.totals.lost(TABLE_FULL, unopened);
            // The mapping grows over the same file, so the kernel can do it.
            self.kernel.listener.proceed(call.id)?;
            return Ok(Resized::Done);
        }
        let moves = flags & MREMAP_MAYMOVE != 0;
        Ok(Resized::Moves(moves.then(|| arena.space.regions.place(new)).flatten()))
    }

    fn start_move(
        &mut self,
        slot: usize,
        call: &Notification,
        (from, old_bytes): (u64, u64),
        (to, new_bytes): (u64, u64),
        protection: u64,
    ) -> Result<(), RunError> {
        let flags = call.args[3];
        let fixed = flags & MREMAP_FIXED != 0;
        let pieces = self.people.arenas[slot]
            .as_ref()
            .map(|arena| arena.space.regions.pieces(from, from + 1));
        let moving = Move {
            id: call.id,
            thread: call.tid,
            from,
            old_bytes,
            to,
            new_bytes,
            request: MapRequest { protection, fixed, only_there: false, populates: false },
            attempts: 0,
            traits: pieces.and_then(|p| p.first().map(|p| p.traits)).unwrap_or_default(),
            keeps_old: flags & MREMAP_DONTUNMAP != 0,
            out: !is_managed(to, new_bytes),
        };
        self.prepare_place(slot, moving)
    }

    // Has the helper map memory at the new place.
    fn prepare_place(&mut self, slot: usize, moving: Move) -> Result<(), RunError> {
        let Move { to, new_bytes, request, traits, .. } = moving;
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return Ok(());
        };
        if !moving.out {
            arena.space.regions.mark(to, to + new_bytes, |of_new| *of_new = traits);
            return self.send_map(slot, to, new_bytes, request, Pending::Move(moving));
        }
        // Ordinary memory of the program, as it would have without afar.
        let operands = [to, new_bytes, request.protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED];
        if arena.command(command::MAP, &operands, Pending::Move(moving)).is_err() {
            // The process ends, and the caller with it.
            self.kernel.listener.answer(moving.id, -EAGAIN)?;
        }
        Ok(())
    }

    // Lets the kernel move unmanaged memory, maybe over managed memory, which is emptied.
    fn move_foreign(&mut self, slot: usize, call: &Notification, new: u64) -> Result<(), RunError> {
        let [from, old, _, flags, to, _] = call.args;
        let old = round_up(old).unwrap_or(0);
        let pieces = self.people.arenas[slot]
            .as_ref()
            .map(|arena| arena.space.regions.pieces(from, from + old));
        if pieces.is_some_and(|pieces| pieces.iter().any(|piece| !piece.traits.foreign)) {
            // A range that is partly managed is not one mapping.
            return Ok(self.kernel.listener.answer(call.id, -EFAULT)?);
        }
        let fixed = flags & MREMAP_FIXED != 0;
        // A call that the kernel refuses must have no effect.
        if !is_well_formed(call, old, new) || fixed && protection(call.tid, from, old).is_none() {
            return Ok(self.kernel.listener.proceed(call.id)?);
        }
        if let Some((start, end)) = manageable(to, to.saturating_add(new)).filter(|_| fixed) {
            self.empty(slot, start, end - start);
            if let Some(arena) = self.people.arenas[slot].as_mut() {
                arena.make_foreign(&self.kernel.tables, start, end - start);
            }
        }
        let stays = flags & MREMAP_DONTUNMAP != 0 || old == 0 || new <= old && !fixed;
        if !stays {
            // What it maps in managed address space is found when memory is to be placed there.
            self.release(slot, from, from.saturating_add(old), Some(call.tid));
        }
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    /// Goes on after the helper has mapped the new place of a region, or has failed to.
    pub(crate) fn place_prepared(
        &mut self,
        slot: usize,
        mut moving: Move,
        result: i64,
    ) -> Result<(), RunError> {
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return Ok(());
        };
        if result < 0 && !moving.out {
            arena.call_off(&self.kernel.tables, moving.to, moving.new_bytes);
        }
        if result == -EEXIST && moving.attempts < ATTEMPTS_MAX {
            arena.avoid_obstacles(&self.kernel.tables, moving.to, moving.new_bytes);
            if let Some(to) = arena.space.regions.place(moving.new_bytes) {
                (moving.to, moving.attempts) = (to, moving.attempts + 1);
                return self.prepare_place(slot, moving);
            }
        }
        if result < 0 {
            let errno = if result == -EEXIST { -ENOMEM } else { result };
            return Ok(self.kernel.listener.answer(moving.id, errno)?);
        }
        if moving.keeps_old {
            // What other threads write to the old place before they see it empty must move.
            return if self.begin_move(slot, moving) {
                Ok(())
            } else {
                self.move_now(slot, moving)
            };
        }
        // A thread that touches the old place after that faults.
        let operands = [moving.from, moving.old_bytes];
        if arena.command(command::UNMAP, &operands, Pending::Vacate(moving)).is_err() {
            self.kernel.listener.answer(moving.id, -EAGAIN)?;
        }
        Ok(())
    }

    /// Moves the contents of a region whose old place no thread can touch any more.
    pub(crate) fn move_now(&mut self, slot: usize, moving: Move) -> Result<(), RunError> {
        let Move { id, from, old_bytes, to, new_bytes, .. } = moving;
        if moving.out {
            self.bring_all(slot, from, old_bytes)?;
        }
        let Some(mut arena) = self.people.arenas[slot].take() else {
            return Ok(());
        };
        let bytes = moving.kept_bytes();
        let copied = if moving.out {
            let (pages, copied) = carry_out(&arena, from, to, bytes);
            self.books.totals.lost(OUT_OF_REACH, pages);
            copied
        } else {
            let copied = arena.memory.copy_to(&arena.memory, from, to, bytes);
            self.move_words(&mut arena, from, to, bytes);
            self.move_far(slot, from, to, bytes);
            copied
        };
        let tgid = arena.tgid;
        self.people.arenas[slot] = Some(arena);
        if let Err(error) = copied {
            // The process must not go on without its memory.
            let _gone = sys::process::kill(tgid, crate::signal::SIGKILL);
            self.books.totals.warn(&format!("process {tgid} was ended: {error}"));
            return Ok(());
        }
        if moving.keeps_old {
            self.empty(slot, from, old_bytes);
        } else {
            self.release(slot, from, from + old_bytes, None);
        }
        if !moving.out {
            self.watch(slot, to, new_bytes);
        }
        Ok(self.kernel.listener.answer(id, to.cast_signed())?)
    }

    // Whether a region is being moved whose old place stays mapped.
    fn is_emptying(&self, slot: usize) -> bool {
        let keeps = |pending: &Pending| matches!(pending, Pending::Move(one) if one.keeps_old);
        self.people.arenas[slot].as_ref().is_some_and(|arena| arena.helper.awaited.any(keeps))
    }

    // Moves the state words of a region. A page that was mapped is unmapped, but keeps its state.
    fn move_words(&mut self, arena: &mut Arena, from: u64, to: u64, bytes: u64) {
        let slot = arena.slot;
        let (mut moved, mut coming) = (Vec::new(), 0);
        let is_far = self.is_far();
        self.kernel.tables.pages.each_word(slot, from, from + bytes, |address, cell| {
            let take = |word: u32| {
                let is_empty = matches!(Word(word).state(), State::Absent | State::Foreign);
                (!is_empty).then_some(0)
            };
            // A fault may take the frame of a page that is leaving at this moment.
            let taken = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
            let Ok(word) = taken.map(Word) else { return };
            moved.push(match word.state() {
                // Its frame is freed: the page is fetched again when it is touched.
                State::Fetching if is_far => {
                    coming += 1;
                    (address, word.with_state(State::Remote))
                }
                // The fault that fetches it has its frame, and will find the page gone.
                State::Fetching => (address, word.with_state(State::Local)),
                State::Probation => (address, word.unmapped()),
                _ => (address, word),
            });
        });
        self.kernel.tables.lane(arena.budget, 0).credit(coming);
        let mut unmanaged = 0;
        let mut now_at = Vec::new();
        for (address, word) in &moved {
            if word.state() == State::Remote
                && let Some(page) = arena.page(*address)
            {
                // The page has just left.
                let tier = word.tier().min(arena.tiers.len() - 1);
                arena.tiers[tier].left(page);
            }
        }
        for (address, word) in moved {
            let target = address - from + to;
            match (self.kernel.tables.pages.make_word(slot, target), arena.page(target)) {
                (Ok(cell), Some(page)) => {
                    cell.store(word.0, Ordering::Release);
                    now_at.push(page);
                }
                _ => unmanaged += 1,
            }
        }
        self.books.totals.lost(TABLE_FULL, unmanaged);
        rename(arena, from, to, bytes);
        for pins in arena.space.pinned.within(from..from + bytes) {
            arena.space.pinned.insert(pins.start - from + to..pins.end - from + to);
        }
        arena.space.pinned.remove(from..from + bytes);
        if let Some(sampler) = &mut self.upkeep.sampler {
            let spans = arena.space.segments.spans(from, from + bytes);
            let now = sys::clock::monotonic_ns();
            let epoch = self.kernel.tables.epoch_ns().load(Ordering::Relaxed);
            for span in spans {
                sampler.freed(slot, span.first, span.count, now.saturating_sub(epoch));
            }
        }
        self.rewatch(slot, arena.tgid, &now_at);
    }
}

/// The outcome of resizing a region.
enum Resized {
    /// The kernel shrinks the region, or grows it in place.
    Done,
    /// The region has to move to this place; `None` if it cannot.
    Moves(Option<u64>),
}

// Whether the kernel accepts the arguments of this `mremap`.
fn is_well_formed(call: &Notification, old: u64, new: u64) -> bool {
    let [from, _, _, flags, to, _] = call.args;
    let moves = flags & MREMAP_MAYMOVE != 0;
    let leaves = flags & MREMAP_DONTUNMAP != 0;
    if !from.is_multiple_of(PAGE)
        || flags & !(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP) != 0
    {
        return false;
    }
    if flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) == 0 {
        return true;
    }
    let possible = to.is_multiple_of(PAGE) && new <= PROGRAM_TOP && to <= PROGRAM_TOP - new;
    let apart = || to >= from + old || from >= to + new;
    moves && possible && apart() && (!leaves || old == new)
}

// The protection of a range; `None` if it is not all mapped and alike. Read by thread: the first
// thread of a process may have ended before the others.
fn protection(tid: u32, start: u64, bytes: u64) -> Option<u64> {
    let mappings = maps::read(tid, start, start + bytes.max(1));
    let (first, last) = (mappings.first()?, mappings.last()?);
    let alike = |pair: &[maps::Mapping]| {
        pair[0].end == pair[1].start && pair[0].protection == pair[1].protection
    };
    let whole = first.start <= start && last.end >= start + bytes;
    (whole && mappings.windows(2).all(alike)).then_some(first.protection)
}

// Whether all of a range can be managed.
fn is_managed(start: u64, bytes: u64) -> bool {
    start >= ADDRESS_MIN && start.saturating_add(bytes) <= ADDRESS_TOP
}

// Copies a region to unmanaged memory. Returns how many pages it wrote, even if it fails.
fn carry_out(arena: &Arena, from: u64, to: u64, bytes: u64) -> (u64, Result<(), sys::Error>) {
    let mut pages = 0;
    let mut carry = || {
        let remote = Remote::open(arena.helper.thread)?;
        let mut buffer = vec![0; CARRY_BYTES];
        let (mut at, end) = (from, from + bytes);
        while let Some((start, stop)) = arena.memory.next_populated(at, end, CARRY_BYTES as u64)? {
            let left = usize::try_from(stop - start).unwrap_or(CARRY_BYTES);
            arena.memory.read_at(&mut buffer[..left], start)?;
            remote.write(&buffer[..left], start - from + to)?;
            pages += left as u64 / PAGE;
            at = start + left as u64;
        }
        Ok(())
    };
    let carried = carry();
    (pages, carried)
}

// Renumbers the pages of a moved region; residencies keep their age, state and pins.
fn rename(arena: &mut Arena, from: u64, to: u64, bytes: u64) {
    for span in arena.space.segments.spans(from, from + bytes) {
        let mut at = 0;
        while at < span.count {
            // One run of pages whose new numbers are consecutive, too.
            let target = span.address + at * PAGE - from + to;
            let room = (SEGMENT - target % SEGMENT) / PAGE;
            let count = room.min(span.count - at);
            let source = span.first.offset(at.cast_signed());
            if let (Some(source), Some(target)) = (source, arena.space.segments.find(target)) {
                for residency in &mut arena.tiers {
                    residency.rename(source, target, Pages::new(count));
                }
            }
            at += count;
        }
    }
}
