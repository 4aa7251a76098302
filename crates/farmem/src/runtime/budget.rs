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

use super::arena::{Arena, Pending};
use super::config::{BudgetScope, TrapKind};
use super::nearby;
use super::protocol::command;
use super::regions::PAGE;
use super::supervisor::Supervisor;
use super::word::{State, Word};
use crate::page::PageIndex;
use crate::residency::Admission;

const UNLIMITED: i64 = i64::MAX / 4;
// More pages than an arena has.
const PAGES_MANY: u64 = u32::MAX as u64;
// A share of memory is never less than this: one instruction may need several pages at once.
const USERFAULT_SHARE_MIN: u64 = 16;

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
                    let resident = self.resident(budget, tier);
                    lane.set_free(now.cast_signed() - resident.cast_signed());
                }
            }
            let headroom = limit.map_or(0, |limit| self.config.batch(limit));
            let low = headroom / 2 + self.margins[budget][tier].pages();
            lane.set_low(if limit.is_some() { low.cast_signed() } else { i64::MIN });
            self.size_residencies(budget, tier, limit);
        }
        self.set_unlimited(budget, !any);
    }

    fn limit(&self, budget: usize, tier: usize) -> Option<u64> {
        let local = self.config.tiers[tier].local?;
        let pages = match (local, self.config.of) {
            (LocalSize::Bytes(bytes), _) => Pages::from_bytes_floor(bytes).get(),
            (LocalSize::Fraction(share), Some(of)) => Pages::from_bytes_floor(share.of(of)).get(),
            (LocalSize::Fraction(share), None) if share == measure::Fraction::ONE => return None,
            (LocalSize::Fraction(share), None) => {
                let used: u64 = self.members(budget).map(|arena| arena.populated[tier]).sum();
                self.least(share.of_pages(Pages::new(used)).get())
            }
        };
        Some(pages.max(1))
    }

    // A share of little memory is less than the trap can hold.
    fn least(&self, pages: u64) -> u64 {
        match self.config.trap {
            TrapKind::Bpf => pages.max(super::config::BPF_BUDGET_MIN.get()),
            TrapKind::Userfault => pages.max(USERFAULT_SHARE_MIN),
        }
    }

    fn members(&self, budget: usize) -> impl Iterator<Item = &Arena> {
        self.arenas.iter().flatten().filter(move |arena| arena.budget == budget)
    }

    fn resident(&self, budget: usize, tier: usize) -> u64 {
        self.members(budget).map(|arena| arena.tiers[tier].resident().get()).sum()
    }

    // A process of a shared budget may use what the others leave.
    fn size_residencies(&mut self, budget: usize, tier: usize, limit: Option<u64>) {
        let limit = limit.unwrap_or(PAGES_MANY);
        let total = self.resident(budget, tier);
        for arena in self.arenas.iter_mut().flatten().filter(|arena| arena.budget == budget) {
            let residency = &mut arena.tiers[tier];
            let others = total - residency.resident().get();
            let share = Pages::new(limit.saturating_sub(others).max(1));
            if residency.budget() != share {
                residency.set_budget(share);
            }
        }
    }

    fn set_unlimited(&mut self, budget: usize, unlimited: bool) {
        let slots: Vec<usize> = self.members(budget).map(|arena| arena.slot).collect();
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
        let mut seen = [false; super::shared::PROCS_MAX];
        for slot in 0..self.arenas.len() {
            let Some(budget) = self.arenas[slot].as_ref().map(|arena| arena.budget) else {
                continue;
            };
            if std::mem::replace(&mut seen[budget], true) {
                continue;
            }
            self.update_budget(budget);
            for tier in 0..self.config.tiers.len() {
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
            let stalled = self.waiting.frames(budget, tier);
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
            let dropping: u64 = self.members(budget).map(|arena| arena.dropping).sum();
            // Half a batch at a time: while one waits for a processor to notice (a stalled fault
            // holds interrupts off), the next can release that fault.
            let chunk = batch.div_ceil(2).max(1);
            if dropping + chunk > batch.max(1) {
                return;
            }
            let fullest = self.members(budget).filter(|arena| arena.ready);
            let slot =
                fullest.max_by_key(|arena| arena.tiers[tier].resident()).map(|arena| arena.slot);
            let evicted = slot.map_or(0, |slot| self.evict(slot, tier, wanted.min(chunk)));
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
            match self.make_remote(slot, victim.page) {
                Some(before) => {
                    evicted += 1;
                    dirty += u64::from(before.dirty());
                    if before.dirty() && !before.write_fetched() {
                        unprotected.push(victim.page);
                    }
                    if victim.mapped {
                        dropped.push(victim.page);
                        if before.dirty() {
                            flushed.push(victim.page);
                        }
                    }
                }
                // Touched since: it stays, as the newest.
                None => {
                    arena.tiers[tier].admit(victim.page, Admission::Found);
                }
            }
        }
        for page in probes {
            if let Some(before) = self.make_probation(slot, page) {
                dropped.push(page);
                if before.dirty() {
                    flushed.push(page);
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

    pub(crate) fn send_drop(&mut self, arena: &mut Arena, pages: Vec<PageIndex>, pending: Pending) {
        let operands: Vec<u64> = runs(pages)
            .into_iter()
            .flat_map(|(first, count)| [arena.address(first), count * PAGE])
            .collect();
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
        for (first, count) in runs(unprotected) {
            // A range that was unmapped meanwhile needs no protection.
            let _unmapped = fault.write_protect(arena.address(first), count * PAGE);
            self.tables.each_word(arena.slot, first, count, |_page, cell| {
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

    fn make_remote(&self, slot: usize, page: PageIndex) -> Option<Word> {
        let cell = self.tables.word(slot, page)?;
        let leave = |word: u32| {
            let word = Word(word);
            let resident =
                matches!(word.state(), State::Local | State::Probation | State::Prefetched);
            let untracked = word.dirty() || word.untracked();
            let remote = word.with_state(State::Remote).with_dirty(false);
            resident.then(|| remote.with_untracked(untracked).0)
        };
        let before = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, leave).ok()?;
        Some(Word(before))
    }

    fn make_probation(&self, slot: usize, page: PageIndex) -> Option<Word> {
        let unmap = |word: u32| {
            let word = Word(word);
            (word.state() == State::Local).then(|| word.with_state(State::Probation).0)
        };
        let cell = self.tables.word(slot, page)?;
        cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, unmap).ok().map(Word)
    }
}

/// Neighbouring pages as ranges.
fn runs(mut pages: Vec<PageIndex>) -> Vec<(PageIndex, u64)> {
    pages.sort_unstable();
    let mut runs: Vec<(PageIndex, u64)> = Vec::with_capacity(pages.len());
    for page in pages {
        match runs.last_mut() {
            Some((first, count)) if u64::from(first.get()) + *count == u64::from(page.get()) => {
                *count += 1;
            }
            _ => runs.push((page, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_neighbours_whatever_their_order() {
        let pages = [7, 3, 4, 9, 8, 1].map(PageIndex::new).to_vec();
        let expected = [(1, 1), (3, 2), (7, 3)].map(|(page, n)| (PageIndex::new(page), n));
        assert_eq!(runs(pages), expected);
        assert_eq!(runs(vec![]), []);
    }
}
