//! What the program says about its memory: `madvise`, `mlock`, `afar_place`.

use std::sync::atomic::Ordering;

use measure::Pages;
use paging::regions::PAGE;
use paging::word::{State, Word};
use sys::seccomp::Notification;

use super::RunError;
use super::arena::Arena;
use super::calls::round_up;
use super::events::TABLE_FULL;
use super::populate::Then;
use super::supervisor::Supervisor;
use sys::hint;
use sys::maps;
use sys::nr;
use tables::ADDRESS_TOP;

const ENOMEM: i64 = 12;
const EINVAL: i64 = 22;
const MCL_ONFAULT: u64 = 4;
const MLOCK_ONFAULT: u64 = 1;

// The parts of a range that are managed memory and that the program may write to.
fn writable(tid: u32, start: u64, end: u64) -> Vec<(u64, u64)> {
    const PROT_WRITE: u64 = 2;
    let mappings = maps::read(tid, start, end).into_iter();
    let writable = mappings.filter(|one| one.ours && one.protection & PROT_WRITE != 0);
    writable.map(|one| (one.start.max(start), one.end.min(end))).collect()
}

impl Supervisor<'_> {
    pub(crate) fn madvise(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let [start, bytes, advice, ..] = call.args;
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return Ok(());
        };
        let (Some(bytes), true) = (round_up(bytes), start.is_multiple_of(PAGE)) else {
            return Ok(self.kernel.listener.proceed(call.id)?);
        };
        let end = start.saturating_add(bytes);
        let pieces = arena.space.regions.pieces(start, end);
        if pieces.is_empty() || pieces.iter().any(|piece| piece.traits.foreign) {
            return Ok(self.kernel.listener.proceed(call.id)?);
        }
        let covered = arena.space.regions.covers(start, end);
        match advice {
            hint::DONTNEED | hint::FREE if arena.pins_any(start, bytes) => {
                return Ok(self.kernel.listener.answer(call.id, -EINVAL)?);
            }
            hint::DONTNEED | hint::FREE | hint::DONTNEED_LOCKED => {
                for piece in pieces {
                    self.empty(slot, piece.start, piece.bytes());
                }
            }
            // What the kernel answers for private memory.
            hint::REMOVE => return Ok(self.kernel.listener.answer(call.id, -EINVAL)?),
            hint::WIPEONFORK => arena.space.regions.mark(start, end, |t| t.wipe_on_fork = true),
            hint::KEEPONFORK => arena.space.regions.mark(start, end, |t| t.wipe_on_fork = false),
            hint::DONTFORK => arena.space.regions.mark(start, end, |t| t.not_on_fork = true),
            hint::DOFORK => arena.space.regions.mark(start, end, |t| t.not_on_fork = false),
            // Hints: huge pages are off in an arena, and what leaves it is the policy's business.
            hint::WILLNEED
            | hint::MERGEABLE
            | hint::UNMERGEABLE
            | hint::HUGEPAGE
            | hint::NOHUGEPAGE
            | hint::COLD
            | hint::PAGEOUT
            | hint::COLLAPSE => {}
            hint::POPULATE_READ | hint::POPULATE_WRITE => {
                return self.populate_on_advice(slot, call, (start, end), covered);
            }
            _ => return Ok(self.kernel.listener.proceed(call.id)?),
        }
        Ok(self.kernel.listener.answer(call.id, if covered { 0 } else { -ENOMEM })?)
    }

    fn populate_on_advice(
        &mut self,
        slot: usize,
        call: &Notification,
        (start, end): (u64, u64),
        covered: bool,
    ) -> Result<(), RunError> {
        const PROT_READ: u64 = 1;
        const PROT_WRITE: u64 = 2;
        let write = call.args[2] == hint::POPULATE_WRITE;
        let needed = if write { PROT_WRITE } else { PROT_READ };
        let mappings = maps::read(call.tid, start, end);
        if mappings.iter().any(|mapping| mapping.protection & needed == 0) {
            // The kernel refuses it.
            return Ok(self.kernel.listener.proceed(call.id)?);
        }
        let Some(arena) = &self.people.arenas[slot] else {
            return Ok(());
        };
        let pieces = arena.space.regions.pieces(start, end);
        let ranges = pieces.iter().map(|piece| (piece.start, piece.end));
        let then = Then::Answer(if covered { 0 } else { -ENOMEM });
        self.populate(slot, (call.id, call.tid), ranges, write, then);
        Ok(())
    }

    /// Acts on `mlock` and its relatives: pins or unpins pages, and populates those to be resident.
    pub(crate) fn lock(&mut self, slot: usize, call: &Notification) -> Result<(), RunError> {
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return Ok(());
        };
        let on_fault = match i64::from(call.nr) {
            nr::MLOCKALL => call.args[0] & MCL_ONFAULT != 0,
            nr::MLOCK2 => call.args[2] & MLOCK_ONFAULT != 0,
            _ => false,
        };
        let (ranges, pin) = match i64::from(call.nr) {
            nr::MLOCKALL => {
                // MCL_CURRENT locks memory that is mapped, MCL_FUTURE memory that will be.
                arena.space.lock_all = call.args[0] & 2 != 0;
                arena.space.populate_all = arena.space.lock_all && !on_fault;
                let all = arena.space.regions.all();
                let given = all.iter().filter(|piece| !piece.traits.in_stock);
                (given.map(|piece| (piece.start, piece.end)).collect(), call.args[0] & 1 != 0)
            }
            nr::MUNLOCKALL => {
                (arena.space.lock_all, arena.space.populate_all) = (false, false);
                (vec![(0, ADDRESS_TOP)], false)
            }
            number => {
                let [start, bytes, ..] = call.args;
                let end = start.saturating_add(bytes.max(1)).min(ADDRESS_TOP);
                let pieces = arena.space.regions.pieces(start / PAGE * PAGE, end);
                let ranges: Vec<(u64, u64)> =
                    pieces.iter().map(|piece| (piece.start, piece.end)).collect();
                (ranges, number != nr::MUNLOCK)
            }
        };
        for &(start, end) in &ranges {
            if pin {
                arena.pin(start, end - start);
            } else {
                arena.unpin(start, end - start);
            }
        }
        self.books.members.touch(slot);
        if pin && !on_fault {
            // The kernel brings all of these pages, without faults.
            let writable = ranges.iter().flat_map(|&(start, end)| writable(call.tid, start, end));
            self.populate(slot, (call.id, call.tid), writable, true, Then::Proceed);
            return Ok(());
        }
        Ok(self.kernel.listener.proceed(call.id)?)
    }

    /// Pins new memory if all of it is to be locked. Returns whether it is to be populated, too.
    pub(crate) fn pin_new(&mut self, slot: usize, start: u64, bytes: u64) -> bool {
        let Some(arena) = self.people.arenas[slot].as_mut().filter(|arena| arena.space.lock_all)
        else {
            return false;
        };
        arena.pin(start, bytes);
        arena.space.populate_all
    }

    // Acts on `afar_place`: moves the pages of a range to another tier.
    pub(crate) fn place(&mut self, tgid: u32, call: &Notification) -> Result<(), RunError> {
        let [_, _, start, bytes, name, _] = call.args;
        let packed = |tier: &super::config::Tier| super::pack_name(&tier.name) == name;
        let tier = self.config.tiers.iter().position(packed);
        let slot = self.people.slots.get(&tgid).copied();
        let (Some(tier), Some(slot)) = (tier, slot) else {
            return Ok(self.kernel.listener.answer(call.id, -EINVAL)?);
        };
        let Some(mut arena) = self.people.arenas[slot].take() else {
            return Ok(());
        };
        let end = start.saturating_add(bytes);
        let (first, last) = (start / PAGE * PAGE, end.next_multiple_of(PAGE));
        let pieces = arena.space.regions.pieces(first, last);
        let is_ours = !pieces.is_empty() && !pieces.iter().any(|piece| piece.traits.foreign);
        let inside = bytes > 0 && is_ours && arena.space.regions.covers(first, last);
        let result = if inside {
            self.set_tier(&mut arena, first, last, tier);
            0
        } else {
            -EINVAL
        };
        let budget = arena.budget;
        self.people.arenas[slot] = Some(arena);
        self.tally(slot);
        self.update_budget(budget);
        Ok(self.kernel.listener.answer(call.id, result)?)
    }

    fn set_tier(&mut self, arena: &mut Arena, start: u64, end: u64, tier: usize) {
        let bits = u32::try_from(tier).unwrap_or(0);
        for address in (start..end).step_by(4096) {
            let Ok(cell) = self.kernel.tables.pages.make_word(arena.slot, address) else {
                self.books.totals.lost(TABLE_FULL, (end - address) / PAGE);
                return;
            };
            // A page that leaves one tier's memory does not leave the other's.
            let change = |word: u32| {
                let word = Word(word);
                let leaves = word.ticket().is_some();
                Some(if leaves { word.unmapped() } else { word }.with_tier(bits).0)
            };
            let before = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
            let Ok(before) = before.map(Word) else { continue };
            if before.tier() == tier || before.state() == State::Absent {
                continue;
            }
            // Pages touched while nothing was limited are counted by the trap alone.
            let counted = &mut arena.populated[before.tier()];
            *counted = counted.saturating_sub(1);
            arena.populated[tier] += 1;
            if let Some(page) = arena.page(address).filter(|_| before.resident()) {
                arena.tiers[before.tier()].discard(page, Pages::new(1));
                arena.tiers[tier].admit(page, paging::residency::Admission::Found);
                self.kernel.tables.lane(arena.budget, before.tier()).credit(1);
                self.kernel.tables.lane(arena.budget, tier).credit(-1);
            }
        }
    }
}
