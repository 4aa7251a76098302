//! Restoring the budgets: how much local memory there is, and who has to leave.
//!
//! ```text
//! memory in use -> limit -> free frames too few -> victims -> state word REMOTE
//!               -> credit, drop, write-protect
//! ```
//!
//! Write-protection tells dirty pages from clean ones. It is renewed after a page has been dropped,
//! when that needs no TLB shoot-down, and not at all for a page that was fetched by a write: it
//! will probably be written again, and a second fault to find that out would cost more than the
//! fetch. Such a page counts as dirty until it is fetched by a read once.
//!
//! With the BPF trap a frame is given to the next fault when its old page is on the way out, at
//! most one batch before it is gone: that batch is how far resident memory may exceed the budget. A
//! fault that finds no frame goes through, and its processor is held (`super::throttle`).
//! With the userfaultfd trap a frame is given when the page has gone.

use std::sync::atomic::Ordering;

use measure::{LocalSize, Pages};
use paging::residency::Admission;

use super::arena::{Arena, Pending};
use super::config::{BudgetScope, TrapKind};
use super::members::Holding;
use super::nearby;
use super::protocol::command;
use super::regions::PAGE;
use super::supervisor::Supervisor;
use super::word::{State, Word};

const UNLIMITED: i64 = i64::MAX / 4;
// More pages than a process has.
const PAGES_MANY: u64 = u32::MAX as u64;

impl Supervisor<'_> {
    /// The budget that a new process draws on.
    pub(crate) fn budget_for(&self, slot: usize) -> usize {
        match self.config.scope {
            BudgetScope::Process => slot,
            BudgetScope::Tree => 0,
        }
    }

    /// Brings the limits of `budget` up to date with the memory in use and the configuration.
    pub(crate) fn update_budget(&mut self, budget: usize) {
        let mut any = self.config.record;
        for tier in 0..self.config.tiers.len() {
            let limit = self.limit(budget, tier);
            any |= limit.is_some();
            let before = std::mem::replace(&mut self.budgets[budget][tier], limit);
            let ceiling = before.unwrap_or(PAGES_MANY);
            self.ceilings[budget][tier] = self.ceilings[budget][tier].max(ceiling);
            let lane = self.tables.lane(budget, tier);
            match (before, limit) {
                (Some(before), Some(now)) if before == now => continue,
                (Some(before), Some(now)) => lane.credit(now.cast_signed() - before.cast_signed()),
                (_, None) => lane.set_free(UNLIMITED),
                (None, Some(now)) => {
                    let resident = self.members.resident(budget, tier);
                    lane.set_free(now.cast_signed() - resident.cast_signed());
                }
            }
            let headroom = limit.map_or(0, |limit| self.config.batch(limit));
            let low = headroom / 2 + self.margins[budget][tier].pages();
            lane.set_low(if limit.is_some() { low.cast_signed() } else { i64::MIN });
        }
        self.set_unlimited(budget, !any);
    }

    /// Enters what the process in `slot` has where its budget is summed up.
    pub(crate) fn tally(&mut self, slot: usize) {
        let now = self.arenas[slot].as_ref().map(|arena| {
            let unlogged = self.unlogged(slot);
            let resident: Vec<u64> = arena.tiers.iter().map(|tier| tier.resident().get()).collect();
            Holding {
                budget: arena.budget,
                populated: arena.populated.clone(),
                dropping: arena.dropping,
                pages: arena.pages(unlogged),
                local_pages: resident.iter().sum::<u64>() + arena.unlogged_pages(unlogged),
                resident,
            }
        });
        self.members.settle(slot, now);
    }

    fn limit(&self, budget: usize, tier: usize) -> Option<u64> {
        let local = self.config.tiers[tier].local?;
        let pages = match (local, self.config.of) {
            (LocalSize::Bytes(bytes), _) => Pages::from_bytes_floor(bytes).get(),
            (LocalSize::Fraction(share), Some(of)) => Pages::from_bytes_floor(share.of(of)).get(),
            (LocalSize::Fraction(share), None) if share == measure::Fraction::ONE => return None,
            (LocalSize::Fraction(share), None) => {
                let used = self.members.populated(budget, tier);
                // A share of little memory is less than the trap can hold.
                let least = self.config.trap.budget_min().get();
                share.of_pages(Pages::new(used)).get().max(least)
            }
        };
        Some(pages.max(1))
    }

    // A process of a shared budget may use what the others leave.
    fn size_residency(&mut self, slot: usize, tier: usize) {
        let Some(arena) = self.arenas[slot].as_mut() else { return };
        let limit = self.budgets[arena.budget][tier].unwrap_or(PAGES_MANY);
        let residency = &mut arena.tiers[tier];
        let total = self.members.resident(arena.budget, tier);
        let others = total.saturating_sub(residency.resident().get());
        let share = Pages::new(limit.saturating_sub(others).max(1));
        if residency.budget() != share {
            residency.set_budget(share);
        }
    }

    fn set_unlimited(&mut self, budget: usize, unlimited: bool) {
        let flag = self.members.unlimited(budget);
        if std::mem::replace(flag, unlimited) == unlimited {
            return;
        }
        let slots: Vec<usize> = self.members.of(budget).iter().copied().collect();
        for slot in slots {
            let flag = self.tables.proc(slot);
            let before = flag.unlimited().swap(u32::from(unlimited), Ordering::AcqRel);
            if before == 1 && !unlimited {
                // Pages touched until now were not logged.
                self.find_unlogged(slot);
            }
        }
    }

    /// Makes room in every budget that is short of free frames.
    pub(crate) fn restore_budgets(&mut self) {
        self.hear_doorbell();
        let touched = self.members.take_touched();
        for &slot in &touched {
            self.tally(slot);
            if let Some(budget) = self.arenas[slot].as_ref().map(|arena| arena.budget) {
                self.members.short(budget);
            }
        }
        let tiers = self.config.tiers.len();
        for budget in self.members.take_short() {
            if self.members.of(budget).is_empty() {
                continue;
            }
            self.update_budget(budget);
            for tier in 0..tiers {
                self.restore(budget, tier);
            }
        }
    }

    fn restore(&mut self, budget: usize, tier: usize) {
        let Some(limit) = self.budgets[budget][tier] else {
            return;
        };
        let batch = self.config.batch(limit);
        self.keep_margin(budget, tier, limit);
        let margin = self.margins[budget][tier].pages().cast_signed();
        loop {
            let free = self.tables.lane(budget, tier).free();
            let resident = limit.cast_signed().saturating_sub(free);
            self.check_promise(budget, tier, u64::try_from(resident).unwrap_or(0), limit);
            let stalled = self.waiting.frames(budget, tier) + self.populates_short(budget, tier);
            let wanted = batch.cast_signed() + margin - free + stalled;
            // The doorbell rings at half a batch. Until it would ring again nothing more is done:
            // few large evictions interrupt the program less often than many small ones.
            if stalled == 0 && free > (batch / 2).cast_signed() + margin {
                return;
            }
            let Ok(wanted) = u64::try_from(wanted) else {
                return;
            };
            if wanted == 0 {
                return;
            }
            let dropping = self.members.dropping(budget);
            // Half a batch at a time: while one waits for a processor to notice (a stalled fault
            // holds interrupts off), the next can release that fault.
            let chunk = batch.div_ceil(2).max(1);
            if dropping + chunk > batch.max(1) {
                if self.tables.lane(budget, tier).is_unrelieved() {
                    self.serve_without_frame(budget, tier);
                }
                return;
            }
            let is_ready = |slot: &usize| self.arenas[*slot].as_ref().is_some_and(|one| one.ready);
            let slot = self.members.fullest(budget, tier).find(is_ready);
            let evicted = slot.map_or(0, |slot| {
                self.size_residency(slot, tier);
                let evicted = self.evict(slot, tier, wanted.min(chunk));
                self.tally(slot);
                evicted
            });
            let none_left = evicted == 0 && dropping == 0;
            self.tables.lane(budget, tier).set_unrelieved(none_left);
            if none_left && slot.is_some() {
                self.totals.unrelieved = true;
                self.serve_without_frame(budget, tier);
            }
            if evicted == 0 {
                return;
            }
        }
    }

    /// The helper of `slot` is stopped, by a tracer or a signal, with pages to drop. Whoever
    /// stopped it may be waiting for one of them: nobody waits for frames until it goes on.
    pub(crate) fn helper_stopped(&mut self, slot: usize) {
        let Some(budget) = self.arenas[slot].as_ref().map(|arena| arena.budget) else { return };
        for tier in 0..self.config.tiers.len() {
            self.tables.lane(budget, tier).set_unrelieved(true);
        }
        self.totals.stopped = true;
        self.members.short(budget);
    }

    // Faults that went through without a frame say how late evictions come on this machine.
    fn keep_margin(&mut self, budget: usize, tier: usize, limit: u64) {
        if self.config.trap != TrapKind::Bpf {
            return;
        }
        let batch = self.config.batch(limit);
        let lane = self.tables.lane(budget, tier);
        let margin = &mut self.margins[budget][tier];
        let before = margin.pages();
        let pages = margin.look(lane.free(), limit, batch, sys::clock::monotonic_ns());
        if pages != before {
            lane.set_low((batch / 2 + pages).cast_signed());
        }
    }

    // Resident pages never exceed the budget by more than a batch on its way out, and on each
    // processor one fault that found no frame, after which the processor is held. A budget that has
    // just shrunk, because the program freed memory or was retuned, cannot be held at once: it is
    // enough that the excess does not grow.
    fn check_promise(&mut self, budget: usize, tier: usize, resident: u64, limit: u64) {
        let processors = match self.config.trap {
            TrapKind::Bpf => self.processors,
            TrapKind::Userfault => 0,
        };
        let batch = self.config.batch(limit).max(1) + processors;
        let ceiling = &mut self.ceilings[budget][tier];
        let allowed = (*ceiling).max(limit);
        *ceiling = resident.min(allowed).max(limit);
        self.totals.peak(resident, limit, allowed, batch);
    }

    /// Gives up to `wanted` pages of one arena up; answers how many.
    fn evict(&mut self, slot: usize, tier: usize, wanted: u64) -> u64 {
        let Some(mut arena) = self.arenas[slot].take() else {
            return 0;
        };
        let (mut victims, mut probes) = (Vec::new(), Vec::new());
        arena.tiers[tier].evict_batch(&mut victims, Pages::new(wanted));
        arena.tiers[tier].probe_batch(&mut probes, Pages::new(wanted.max(8)));
        let (mut dropped, mut unprotected) = (Vec::new(), Vec::new());
        let (mut evicted, mut dirty) = (0, 0);
        let mut flushed = Vec::new();
        for victim in victims {
            let address = arena.address(victim.page);
            match self.make_remote(slot, address) {
                Ok(before) => {
                    evicted += 1;
                    dirty += u64::from(before.dirty());
                    if before.dirty() && !before.write_fetched() {
                        unprotected.push(address);
                    }
                    if victim.mapped {
                        dropped.push(address);
                        if before.dirty() {
                            flushed.push(address);
                        }
                    }
                }
                // Touched since: it stays, as the newest.
                Err(Some(State::Fetching)) => {
                    arena.tiers[tier].admit(victim.page, Admission::Found);
                }
                // Given back.
                Err(_) => {}
            }
        }
        for page in probes {
            let address = arena.address(page);
            if let Some(before) = self.make_probation(slot, address) {
                dropped.push(address);
                if before.dirty() {
                    flushed.push(address);
                }
            }
        }
        self.totals.evicted(dirty, evicted - dirty);
        self.reserve_write_back(tier, dirty);
        if self.config.trap == TrapKind::Bpf {
            self.tables.lane(arena.budget, tier).credit(evicted.cast_signed());
        }
        let pending = Pending::Drop { pages: evicted, tier, unprotected };
        nearby::place(&mut arena, &self.tables, runs(flushed).len());
        self.send_drop(&mut arena, dropped, pending);
        self.arenas[slot] = Some(arena);
        evicted
    }

    /// Has the helper drop the pages at `addresses`.
    pub(crate) fn send_drop(&mut self, arena: &mut Arena, addresses: Vec<u64>, pending: Pending) {
        let operands: Vec<u64> =
            runs(addresses).into_iter().flat_map(|(start, bytes)| [start, bytes]).collect();
        if operands.is_empty() {
            self.gone(arena, pending);
        } else if arena.command(command::DROP, &operands, pending).is_err() {
            // The process is ending or executing another program; its frames go with it.
            arena.ready = false;
        } else if let Some(throttle) = &self.throttle {
            throttle.helper_works(arena.slot, arena.helper);
        }
    }

    /// Pages have been dropped.
    pub(crate) fn gone(&self, arena: &Arena, pending: Pending) {
        let Pending::Drop { pages, tier, unprotected } = pending else {
            return;
        };
        if self.config.trap == TrapKind::Userfault {
            self.tables.lane(arena.budget, tier).credit(pages.cast_signed());
        }
        let Some(fault) = arena.fault.as_ref().filter(|fault| fault.tracks_writes()) else {
            return;
        };
        for (start, bytes) in runs(unprotected) {
            // A range that was unmapped meanwhile needs no protection.
            let _unmapped = fault.write_protect(start, bytes);
            self.tables.pages.each_word(arena.slot, start, start + bytes, |_address, cell| {
                let tracked = |word: u32| {
                    let word = Word(word);
                    let gone = matches!(word.state(), State::Remote | State::Probation);
                    gone.then(|| word.with_untracked(false).0)
                };
                // A page that is back already was taken for dirty.
                let _back = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, tracked);
            });
        }
    }

    // The word before; else the state that is in the way, if there is a word.
    fn make_remote(&self, slot: usize, address: u64) -> Result<Word, Option<State>> {
        let cell = self.tables.pages.word(slot, address).ok_or(None)?;
        let leave = |word: u32| {
            let word = Word(word);
            let resident =
                matches!(word.state(), State::Local | State::Probation | State::Prefetched);
            let untracked = word.dirty() || word.untracked();
            let remote = word.with_state(State::Remote).with_dirty(false);
            resident.then(|| remote.with_untracked(untracked).0)
        };
        let before = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, leave);
        before.map(Word).map_err(|word| Some(Word(word).state()))
    }

    fn make_probation(&self, slot: usize, address: u64) -> Option<Word> {
        let unmap = |word: u32| {
            let word = Word(word);
            (word.state() == State::Local).then(|| word.with_state(State::Probation).0)
        };
        let cell = self.tables.pages.word(slot, address)?;
        cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, unmap).ok().map(Word)
    }
}

/// Neighbouring pages as ranges: first address, bytes.
fn runs(mut pages: Vec<u64>) -> Vec<(u64, u64)> {
    pages.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::with_capacity(pages.len());
    for page in pages {
        match runs.last_mut() {
            Some((start, bytes)) if *start + *bytes == page => *bytes += PAGE,
            _ => runs.push((page, PAGE)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_neighbours_whatever_their_order() {
        let pages = [7, 3, 4, 9, 8, 1].map(|page| page * PAGE).to_vec();
        let expected = [(1, 1), (3, 2), (7, 3)].map(|(page, count)| (page * PAGE, count * PAGE));
        assert_eq!(runs(pages), expected);
        assert_eq!(runs(vec![]), []);
    }
}
