//! Restoring the budgets: how much local memory there is, and which pages leave.
//!
//! ```text
//! memory in use -> limit -> frames that can be had too few -> pages on probation leave
//!               -> others are unmapped, and on probation once the helper says so
//! ```
//!
//! A frame can be had if it is free, or if its page is leaving (`super::outgoing`). With a link
//! that takes time all frames are in use and the next pages are leaving; without one, half a batch
//! to a batch is kept free, because taking a page's frame is most of what a fault would then cost.
//!
//! Write-protection tells dirty pages from clean ones. It is renewed when a page is about to leave,
//! when that needs no TLB shoot-down, and not at all for a page that was fetched by a write: it
//! will probably be written again, and a second fault to find that out would cost more than the
//! fetch. Such a page counts as dirty until it is fetched by a read once. The BPF trap sees a write
//! to a protected page as a fault; with userfaultfd the page map is asked before the page leaves.
//!
//! Only unmapped pages give their frames up, so resident memory exceeds the budget only by faults
//! of the BPF trap that find no frame and go through, and their processor is held
//! (`super::throttle`). With the userfaultfd trap such a fault waits.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use measure::{LocalSize, Pages};

use paging::PageIndex;
use paging::common::Front;
use paging::members::Holding;
use paging::probation::Room;
use paging::regions::runs;
use paging::residency::Residency;
use paging::turns::Givers;
use paging::word::{State, Word};

use super::arena::Arena;
use super::config::{BudgetScope, TrapKind};
use super::nearby;
use super::pending::Pending;
use super::protocol::command;
use super::supervisor::Supervisor;

const UNLIMITED: i64 = i64::MAX / 4;
// Pages of a budget from which on some are unmapped ahead of need.
const AHEAD_FROM: u64 = 32;
// Ranges of one message to a helper.
const PROBES_MAX: u64 = 255;
// Stands for "no limit": more pages than a process has.
const PAGES_MANY: u64 = u32::MAX as u64;

/// The residencies of all processes in one tier, in which their budget has `limit` pages.
struct Tier<'a> {
    arenas: &'a mut [Option<Arena>],
    tier: usize,
    limit: Pages,
}

impl Givers for Tier<'_> {
    fn giver(&mut self, slot: usize) -> Option<(&mut Residency, u64)> {
        let arena = self.arenas[slot].as_mut().filter(|arena| arena.helper.ready)?;
        let most = if arena.is_stuck() {
            0
        } else {
            PROBES_MAX.saturating_sub(arena.helper.awaited.dropping())
        };
        let residency = &mut arena.tiers[self.tier];
        if residency.budget() != self.limit {
            residency.set_budget(self.limit);
        }
        Some((residency, most))
    }
}

impl Supervisor<'_> {
    /// The budget that a new process draws on.
    pub(crate) fn budget_for(&self, slot: usize) -> usize {
        match self.config.scope {
            BudgetScope::Process => slot,
            BudgetScope::Tree => 0,
        }
    }

    /// Recomputes the limits of `budget` from the memory in use and the configuration.
    pub(crate) fn update_budget(&mut self, budget: usize) {
        let mut any = self.config.record;
        for tier in 0..self.config.tiers.len() {
            let limit = self.limit(budget, tier);
            any |= limit.is_some();
            let before = std::mem::replace(&mut self.books.accounts[budget][tier].limit, limit);
            let ceiling = before.unwrap_or(PAGES_MANY);
            let account = &mut self.books.accounts[budget][tier];
            account.ceiling = account.ceiling.max(ceiling);
            let lane = self.kernel.tables.lane(budget, tier);
            match (before, limit) {
                (Some(before), Some(now)) if before == now => continue,
                (Some(before), Some(now)) => lane.credit(now.cast_signed() - before.cast_signed()),
                (_, None) => lane.set_free(UNLIMITED),
                (None, Some(now)) => {
                    let resident = self.books.members.resident(budget, tier);
                    lane.set_free(now.cast_signed() - resident.cast_signed());
                }
            }
            let batch = limit.map_or(0, |limit| self.config.batch(limit));
            let low = batch / 2 + self.books.accounts[budget][tier].margin.pages();
            lane.set_low(if limit.is_some() { low.cast_signed() } else { i64::MIN });
        }
        self.set_unlimited(budget, !any);
    }

    /// Enters the pages of the process in `slot` into the sums of its budget.
    pub(crate) fn tally(&mut self, slot: usize) {
        let unlogged = self.unlogged(slot);
        let now = self.people.arenas[slot].as_mut().map(|arena| {
            let (ready, is_stuck) = (arena.helper.ready, arena.is_stuck());
            let front = |one: &mut Residency| one.front(is_stuck);
            let fronts = arena.tiers.iter_mut();
            let fronts = fronts.map(|one| if ready { front(one) } else { Front::default() });
            let fronts = fronts.collect();
            let resident: Vec<u64> = arena.tiers.iter().map(|tier| tier.resident().get()).collect();
            Holding {
                budget: arena.budget,
                populated: arena.populated.clone(),
                fronts,
                dropping: arena.helper.awaited.dropping(),
                pages: arena.pages(unlogged),
                local_pages: resident.iter().sum::<u64>() + arena.unlogged_pages(unlogged),
                resident,
            }
        });
        self.books.members.settle(slot, now);
    }

    // The limit of a budget in one tier, in pages; `None` for no limit.
    fn limit(&self, budget: usize, tier: usize) -> Option<u64> {
        let local = self.config.tiers[tier].local?;
        let pages = match (local, self.config.of) {
            (LocalSize::Bytes(bytes), _) => Pages::from_bytes_floor(bytes).get(),
            (LocalSize::Fraction(share), Some(of)) => Pages::from_bytes_floor(share.of(of)).get(),
            (LocalSize::Fraction(share), None) if share == measure::Fraction::ONE => return None,
            (LocalSize::Fraction(share), None) => {
                let used = self.books.members.populated(budget, tier);
                // Of little memory, a share would be less than the trap can hold.
                let least = self.config.trap.budget_min().get();
                share.of_pages(Pages::new(used)).get().max(least)
            }
        };
        Some(pages.max(1))
    }

    // Sets whether `budget` has no limit, so that the trap only counts first touches.
    fn set_unlimited(&mut self, budget: usize, unlimited: bool) {
        let flag = self.books.members.unlimited(budget);
        if std::mem::replace(flag, unlimited) == unlimited {
            return;
        }
        let slots: Vec<usize> = self.books.members.of(budget).iter().copied().collect();
        for slot in slots {
            let flag = self.kernel.tables.proc(slot);
            let before = flag.unlimited().swap(u32::from(unlimited), Ordering::AcqRel);
            if before == 1 && !unlimited {
                // Pages touched until now were not logged.
                self.find_unlogged(slot);
            }
        }
    }

    /// Makes room in every budget that is short of free frames.
    pub(crate) fn restore_budgets(&mut self) {
        self.depart_between_asks();
        self.hear_doorbell();
        let touched = self.books.members.take_touched();
        for &slot in &touched {
            self.tally(slot);
            if let Some(budget) = self.people.arenas[slot].as_ref().map(|arena| arena.budget) {
                self.books.members.short(budget);
            }
        }
        let tiers = self.config.tiers.len();
        for budget in self.books.members.take_short() {
            if self.books.members.of(budget).is_empty() {
                continue;
            }
            self.update_budget(budget);
            for tier in 0..tiers {
                self.restore(budget, tier);
            }
        }
    }

    // Starts evictions of one tier if its free frames, with those on their way, are too few.
    fn restore(&mut self, budget: usize, tier: usize) {
        let Some(limit) = self.books.accounts[budget][tier].limit else {
            return;
        };
        self.settle_outgoing(budget, tier);
        self.make_up(budget, tier);
        self.keep_margin(budget, tier, limit);
        let free = self.kernel.tables.lane(budget, tier).free();
        let resident = limit.cast_signed().saturating_sub(free);
        self.check_promise(budget, tier, u64::try_from(resident).unwrap_or(0), limit);
        let batch = self.config.batch(limit);
        let margin = self.books.accounts[budget][tier].margin.pages();
        // The doorbell rings at half a batch. Until it would ring again nothing more is done: few
        // large evictions interrupt the program less often than many small ones.
        let low = (batch / 2 + margin).cast_signed();
        let stalled = self.faults.waiting.frames(budget, tier) + self.populates_short(budget, tier);
        let is_timed = self.is_timed(tier) || self.is_far();
        let outgoing = if is_timed { self.outgoing_count(budget, tier) } else { 0 };
        if stalled == 0 && free >= 0 && free + i64::from(outgoing) > low {
            return;
        }
        let short = u64::try_from(stalled + (-free).max(0)).unwrap_or(0);
        self.refill(budget, tier, (batch, short));
        let kept = if is_timed { margin } else { batch + margin };
        // The trap gives no page's frame away that leaves for a blade, and needs none kept free.
        if !self.is_far() && (!is_timed || free <= (margin / 2).cast_signed()) {
            let wanted = kept.cast_signed() - free;
            self.free_frames(budget, tier, u64::try_from(wanted).unwrap_or(0));
            self.refill(budget, tier, (batch, short));
        }
        self.note_relief(budget, tier, stalled);
    }

    // Whether a fault of this tier takes time, so that its frame may be one that is leaving.
    fn is_timed(&self, tier: usize) -> bool {
        self.config.trap == TrapKind::Userfault || tables::delays(&self.config.tiers[tier].link)
    }

    // Starts evictions of a tier until `batch` are on their way, and unmaps the pages that are
    // next, to see whether they are used; `short` faults have no frame.
    fn refill(&mut self, budget: usize, tier: usize, (batch, short): (u64, u64)) {
        // Processes whose pages have left or were touched since the last tally.
        for slot in self.books.members.touched().clone() {
            self.tally(slot);
        }
        let frames = self.books.accounts[budget][tier].limit.unwrap_or(PAGES_MANY);
        let limit = Pages::new(frames);
        let outgoing = u64::from(self.outgoing_count(budget, tier));
        let wanted = batch.max(1).saturating_sub(outgoing);
        if self.is_far() || self.has_ring(budget, tier) {
            let mut all = Tier { arenas: &mut self.people.arenas, tier, limit };
            let leaving = self.books.members.leave((budget, tier), &mut all, wanted, outgoing > 0);
            match self.is_far() {
                true => self.send_far(tier, leaving),
                false => self.send_out((budget, tier), leaving),
            }
        }
        // Unmaps the pages that leave next, and as many behind them. With a few pages of local
        // memory none is unmapped before a fault needs its frame.
        let ahead = if frames < AHEAD_FROM { 0 } else { self.config.batch(frames) * 2 };
        let free = frames.saturating_sub(self.books.members.resident(budget, tier));
        let room = Room { frames, free, ready: ahead.max(short) };
        let mut all = Tier { arenas: &mut self.people.arenas, tier, limit };
        let mut probed: BTreeMap<usize, Vec<PageIndex>> = BTreeMap::new();
        for (slot, page) in self.books.members.probe((budget, tier), &mut all, room) {
            probed.entry(slot).or_default().push(page);
        }
        for (slot, pages) in probed {
            self.unmap(slot, tier, pages);
            self.tally(slot);
        }
    }

    // Lets faults go on without a frame where memory is locked, or the helper stopped.
    fn note_relief(&mut self, budget: usize, tier: usize, stalled: i64) {
        let lane = self.kernel.tables.lane(budget, tier);
        let is_wanted = stalled > 0 || lane.free() < 0;
        let is_short = is_wanted && lane.free() <= 0 && self.outgoing_count(budget, tier) == 0;
        let coming = self.books.members.dropping(budget) + self.faults.waiting.owed(budget, tier);
        let is_coming = coming > 0 && !lane.is_unrelieved();
        lane.set_unrelieved(is_short && !is_coming);
        if is_short && !is_coming {
            self.books.totals.unrelieved |= self.books.members.dropping(budget) == 0;
            for _ in 0..stalled.max(1) {
                self.serve_without_frame(budget, tier);
            }
        }
    }

    /// Notes that the helper of `slot` was stopped with pages to drop. Whoever stopped it may wait
    /// for one of them: until it goes on, faults proceed without a frame.
    pub(crate) fn helper_stopped(&mut self, slot: usize) {
        let Some(budget) = self.people.arenas[slot].as_ref().map(|arena| arena.budget) else {
            return;
        };
        for tier in 0..self.config.tiers.len() {
            self.kernel.tables.lane(budget, tier).set_unrelieved(true);
        }
        self.books.totals.stopped = true;
        self.books.members.touch(slot);
        self.books.members.short(budget);
    }

    // Adapts the margin of free frames: faults that found no frame show how late evictions come.
    fn keep_margin(&mut self, budget: usize, tier: usize, limit: u64) {
        if self.config.trap != TrapKind::Bpf {
            return;
        }
        let batch = self.config.batch(limit);
        let lane = self.kernel.tables.lane(budget, tier);
        let margin = &mut self.books.accounts[budget][tier].margin;
        let before = margin.pages();
        let pages = margin.look(lane.free(), limit, batch, sys::clock::monotonic_ns());
        if pages != before {
            lane.set_low((batch / 2 + pages).cast_signed());
        }
    }

    // Notes by how much resident pages exceed the budget: by a batch on its way out and, on each
    // processor, one fault without a frame, after which the processor is held. A budget that has
    // just shrunk cannot be met at once: the excess must only not grow.
    fn check_promise(&mut self, budget: usize, tier: usize, resident: u64, limit: u64) {
        let processors = match self.config.trap {
            TrapKind::Bpf => self.processors,
            TrapKind::Userfault => 0,
        };
        let batch = self.config.batch(limit).max(1) + processors;
        let ceiling = &mut self.books.accounts[budget][tier].ceiling;
        let allowed = (*ceiling).max(limit);
        *ceiling = resident.min(allowed).max(limit);
        self.books.totals.peak(resident, limit, allowed, batch);
    }

    // Has the helper unmap `pages` of one process (probation), to see whether they are used.
    fn unmap(&mut self, slot: usize, tier: usize, pages: Vec<PageIndex>) {
        let Some(mut arena) = self.people.arenas[slot].take() else {
            return;
        };
        let (mut dropped, mut flushed) = (Vec::new(), Vec::new());
        for &page in &pages {
            let address = arena.address(page);
            match self.make_probation(slot, address) {
                Some(before) => {
                    dropped.push(address);
                    if before.dirty() {
                        flushed.push(address);
                    }
                }
                // The page is being fetched, or has gone.
                None => self.stays(&mut arena, tier, page),
            }
        }
        nearby::place(&mut arena, &self.kernel.tables, runs(flushed).len());
        let pending = Pending::Drop { pages, tier, unprotected: Vec::new() };
        self.send_drop(&mut arena, dropped, pending);
        self.people.arenas[slot] = Some(arena);
    }

    /// Has the helper unmap the pages at `addresses`.
    pub(crate) fn send_drop(&mut self, arena: &mut Arena, addresses: Vec<u64>, pending: Pending) {
        let operands: Vec<u64> =
            runs(addresses).into_iter().flat_map(|(start, bytes)| [start, bytes]).collect();
        if operands.is_empty() {
            self.gone(arena, pending);
        } else if arena.command(command::DROP, &operands, pending).is_err() {
            // The process ends or executes another program; its frames go with it.
            arena.helper.ready = false;
        } else if let Some(throttle) = &self.kernel.throttle {
            throttle.helper_works(arena.slot, arena.helper.thread);
        }
    }

    /// Acts on a helper's report that it has dropped pages: they are unmapped, on probation.
    pub(crate) fn gone(&self, arena: &mut Arena, pending: Pending) {
        let Pending::Drop { pages, tier, unprotected } = pending else {
            return;
        };
        pages.into_iter().for_each(|page| arena.tiers[tier].unmapped(page));
        self.protect(arena, unprotected);
    }

    // Marks a local page as unmapped. Returns its state word before; `None` if it was not local.
    fn make_probation(&self, slot: usize, address: u64) -> Option<Word> {
        // A prefetched page that is watched is local, and was never mapped.
        let is_here = |state| state == State::Local || self.is_far() && state == State::Prefetched;
        let unmap = |word: u32| {
            let word = Word(word);
            is_here(word.state()).then(|| word.unmapped().0)
        };
        let cell = self.kernel.tables.pages.word(slot, address)?;
        cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, unmap).ok().map(Word)
    }
}
