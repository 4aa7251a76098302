//! How the supervisor serves faults that userfaultfd reports.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use blades::Wanted;
use measure::Direction;
use paging::page::PageIndex;
use paging::prefetch::Prefetcher;
use paging::regions::PAGE;
use paging::word::{State, Word};
use sys::userfault::Fault;

use super::{ARRIVED, Ahead, Due, FETCH, FETCH_FRAME, NEW_FRAME, SPIN_NS, Touch};
use crate::RunError;
use crate::arena::Arena;
use crate::config::TrapKind;
use crate::events::TABLE_FULL;
use crate::supervisor::Supervisor;
use tables::NoWord;
use tables::{FaultEvent, FaultKind};

impl Supervisor<'_> {
    /// Serves all faults that userfaultfd reports for `slot`.
    pub(crate) fn next_faults(&mut self, slot: usize) {
        while let Some(fault) = self.next_fault(slot) {
            let Some(arena) = &self.people.arenas[slot] else {
                return;
            };
            let touch = Touch {
                slot,
                budget: arena.budget,
                tier: 0,
                address: fault.address / PAGE * PAGE,
                write: fault.write,
                minor: fault.minor,
                tid: fault.tid,
                since_ns: self.now_ns(),
            };
            let far = self.faults.far.as_mut();
            if far.is_some_and(|far| far.has_asked(touch.slot, touch.address)) {
                continue;
            }
            match self.config.trap {
                TrapKind::Userfault => self.touch(touch),
                TrapKind::Bpf => self.touch_frozen(&touch),
            }
        }
        self.resolve_due();
    }

    fn next_fault(&self, slot: usize) -> Option<Fault> {
        self.people.arenas[slot].as_ref()?.fault.as_ref()?.next()
    }

    /// Serves a fault according to the state of its page.
    pub(crate) fn touch(&mut self, touch: Touch) {
        let cell = match self.kernel.tables.pages.make_word(touch.slot, touch.address) {
            Ok(cell) => cell,
            Err(NoWord::Closed) => return self.resolve(&touch),
            Err(NoWord::Full) => {
                self.books.totals.lost(TABLE_FULL, 1);
                return self.resolve(&touch);
            }
        };
        let word = Word(cell.load(Ordering::Acquire));
        match word.state() {
            State::Absent | State::Remote => {
                let tier = word.tier().min(self.config.tiers.len() - 1);
                let touch = Touch { tier, ..touch };
                match self.claim_frame(touch.budget, tier) {
                    Some(free_ps) => self.admit(touch, word, free_ps),
                    None => self.faults.waiting.stalled.push_back(touch),
                }
                self.books.members.short(touch.budget);
            }
            State::Foreign => self.resolve(&touch),
            State::Local | State::Probation => {
                let arena = self.people.arenas[touch.slot].as_ref();
                let word = arena.map_or(word, |arena| arena.with_writes(touch.address, word));
                cell.store(word.made_local(touch.write).0, Ordering::Release);
                // The page may have come after its fault, and left for probation since.
                let is_here = self.is_far() && word.state() == State::Probation;
                self.resolve(&Touch { minor: touch.minor || is_here, ..touch });
                if word.state() == State::Probation {
                    self.log(&touch, FaultKind::Soft, 0, 0, 0);
                    self.touched_remembered(&touch);
                }
            }
            State::Prefetched if self.is_far() => {
                cell.store(word.made_local(touch.write).0, Ordering::Release);
                // The page may have come after its fault, which then says that it is missing.
                self.resolve(&Touch { minor: true, ..touch });
                let measured = self.now_ns().saturating_sub(touch.since_ns);
                self.log(&touch, FaultKind::Arrived, 0, 0, measured);
                self.touched_remembered(&touch);
            }
            State::Prefetched => {
                let at =
                    self.faults.waiting.arrivals.remove(&(touch.slot, touch.address)).unwrap_or(0);
                cell.store(word.with_state(State::Fetching).0, Ordering::Release);
                let requested_ns = at.saturating_sub(touch.since_ns);
                let at = at.saturating_sub(self.config.constant_ns);
                self.wait_until(at, Due { touch, kind: ARRIVED, wait_ns: 0, requested_ns });
            }
            // The page is fetched for another thread, or ahead; its arrival wakes all who wait.
            State::Fetching => {
                let far = self.faults.far.as_mut();
                if !far.is_some_and(|far| far.joins(touch)) {
                    self.books.totals.joined_count += 1;
                }
                self.touched_remembered(&touch);
            }
        }
    }

    /// Serves, without a frame, the oldest fault of a budget from which no page can be evicted:
    /// more memory may be locked than the budget has.
    pub(crate) fn serve_without_frame(&mut self, budget: usize, tier: usize) {
        let Some(touch) = self.faults.waiting.take(budget, tier) else { return };
        let Some(cell) = self.kernel.tables.pages.word(touch.slot, touch.address) else { return };
        let word = Word(cell.load(Ordering::Acquire));
        if matches!(word.state(), State::Absent | State::Remote) {
            self.kernel.tables.lane(budget, tier).credit(-1);
            self.admit(touch, word, 0);
        } else {
            self.touch(touch);
        }
        self.resolve_due();
    }

    // Gives a fault a frame that is free at `free_ps`: creates or fetches its page then.
    fn admit(&mut self, touch: Touch, word: Word, free_ps: u64) {
        let Some(cell) = self.kernel.tables.pages.word(touch.slot, touch.address) else {
            return;
        };
        let is_new = word.state() == State::Absent;
        cell.store(word.with_state(State::Fetching).0, Ordering::Release);
        let free = free_ps.div_ceil(1000);
        if free > self.now_ns() {
            let kind = if is_new { NEW_FRAME } else { FETCH_FRAME };
            self.wait_until(free, Due { touch, kind, wait_ns: 0, requested_ns: 0 });
        } else if is_new {
            self.create(&touch);
        } else {
            self.fetch(touch, word.tier());
        }
    }

    // Creates a new page for a fault that has a frame.
    fn create(&mut self, touch: &Touch) {
        let stalled = self.now_ns().saturating_sub(touch.since_ns);
        if let Some(cell) = self.kernel.tables.pages.word(touch.slot, touch.address) {
            // A new page has no copy anywhere else: it is dirty from birth.
            let word = Word(cell.load(Ordering::Acquire));
            cell.store(word.with_state(State::Local).with_dirty(true).0, Ordering::Release);
        }
        let arena = self.people.arenas[touch.slot].as_ref();
        let is_there = arena.is_some_and(|arena| arena.is_held() && arena.creates(touch.address));
        self.resolve(&Touch { minor: touch.minor || is_there, ..*touch });
        self.log(touch, FaultKind::FirstTouch, stalled, 0, 0);
    }

    /// Records a fetch from the blade that has ended.
    pub(crate) fn fetched(&mut self, touch: &Touch) {
        let now = self.now_ns();
        let measured = now.saturating_sub(touch.since_ns);
        if touch.tid != 0 {
            self.faults.far.iter_mut().for_each(|far| far.took(measured, now));
        }
        self.log(touch, FaultKind::Fetch, 0, 0, measured);
    }

    /// Records a page that was fetched ahead, and the first thread that waited for it.
    pub(crate) fn fetched_ahead(&mut self, touch: &Touch, joined: Option<Touch>) {
        self.log(touch, FaultKind::Prefetch, 0, 0, 0);
        if let Some(joined) = joined {
            let measured = self.now_ns().saturating_sub(joined.since_ns);
            self.log(&joined, FaultKind::Arrived, 0, 0, measured);
        }
    }

    // Fetches the page of a fault that has a frame, and pages ahead of it.
    fn fetch(&mut self, touch: Touch, tier: usize) {
        let now = self.now_ns();
        if self.is_far() {
            self.fetch_far(touch, Wanted::Now);
            return self.prefetch(&touch, now);
        }
        let stalled = now.saturating_sub(touch.since_ns);
        let (sent, ready) = self.reserve_fetch(tier, now);
        let page_ns = self.kernel.tables.link(tier).page_ps().load(Ordering::Relaxed) / 1000;
        let wait_ns = sent.saturating_sub(page_ns).saturating_sub(now) + stalled;
        let requested_ns = ready.saturating_sub(touch.since_ns);
        self.prefetch(&touch, now);
        // The supervisor's own work on the fault is part of the delay, not on top of it.
        let ready = ready.saturating_sub(self.config.constant_ns);
        self.wait_until(ready, Due { touch, kind: FETCH, wait_ns, requested_ns });
    }

    /// Reserves the link for one page. Returns when its last bit has been sent, and when the page
    /// is here, in nanoseconds of the run.
    pub(crate) fn reserve_fetch(&self, tier: usize, now_ns: u64) -> (u64, u64) {
        let profile = self.kernel.tables.profile(tier);
        let (sent, ready) =
            self.kernel.tables.link(tier).reserve(Direction::Fetch, now_ns * 1000, profile);
        (sent / 1000, ready / 1000)
    }

    // Fetches the pages that are predicted to follow one, while frames are free.
    fn prefetch(&mut self, touch: &Touch, now: u64) {
        if self.fetch_remembered(touch, now) {
            return;
        }
        let prefetch = self.config.prefetch;
        let prefetcher = self.faults.waiting.prefetchers.entry(touch.slot);
        let prefetcher = prefetcher.or_insert_with(|| Prefetcher::new(prefetch));
        // The prefetcher looks at distances only, so higher bits of the number do not matter.
        let number = touch.address / PAGE % (u64::from(PageIndex::MAX.get()) + 1);
        let Ok(page) = PageIndex::try_from(number) else { return };
        let distance = |ahead: PageIndex| i64::from(ahead.get()) - i64::from(page.get());
        let distances: Vec<i64> = prefetcher.on_fault(page).map(distance).collect();
        for distance in distances {
            let address = touch.address.checked_add_signed(distance * PAGE.cast_signed());
            let Some(address) = address else { continue };
            if self.fetch_ahead(&Touch { address, ..*touch }, now) == Ahead::NoFrame {
                return;
            }
        }
    }

    /// Fetches a page before it is touched, if it is remote and a frame is free. `ahead` has its
    /// address, and the fault that caused this.
    pub(crate) fn fetch_ahead(&mut self, ahead: &Touch, now: u64) -> Ahead {
        let (slot, address) = (ahead.slot, ahead.address);
        let budget = self.people.arenas[slot].as_ref().map(|arena| arena.budget);
        let cell = self.kernel.tables.pages.word(slot, address);
        let (Some(budget), Some(cell)) = (budget, cell) else { return Ahead::NotFar };
        let word = Word(cell.load(Ordering::Acquire));
        if word.state() != State::Remote {
            return Ahead::NotFar;
        }
        let is_far = self.is_far();
        if is_far && self.faults.waiting.any() {
            // Others need its frame.
            return Ahead::NoFrame;
        }
        let Some(free_ps) = self.claim_frame(budget, word.tier()) else { return Ahead::NoFrame };
        if is_far {
            self.set_word(slot, address, word.with_state(State::Fetching));
            let place = (slot, budget, word.tier());
            self.fetch_far(Touch::of_nobody(place, address, now), Wanted::Ahead);
            return Ahead::Comes;
        }
        self.set_word(slot, address, word.with_state(State::Prefetched));
        let (_, ready) = self.reserve_fetch(word.tier(), now.max(free_ps / 1000));
        self.faults.waiting.arrivals.insert((slot, address), ready);
        self.log(ahead, FaultKind::Prefetch, 0, ready.saturating_sub(now), 0);
        Ahead::Comes
    }

    // Sets the deadline of a fault.
    fn wait_until(&mut self, at_ns: u64, due: Due) {
        self.faults.waiting.sequence += 1;
        self.faults.waiting.due.push(Reverse((at_ns, self.faults.waiting.sequence, due)));
    }

    /// Resolves every fault whose deadline has come, and sets the timer for the next.
    pub(crate) fn resolve_due(&mut self) {
        if self.faults.waiting.is_nothing_due() {
            return;
        }
        self.credit_owed();
        while let Some(Reverse((at, _, due))) = self.faults.waiting.due.peek().copied() {
            let now = self.now_ns();
            if at > now + SPIN_NS {
                break;
            }
            if at > now {
                std::hint::spin_loop();
                continue;
            }
            self.faults.waiting.due.pop();
            if self.take_frame(&due) {
                continue;
            }
            if let Some(cell) = self.kernel.tables.pages.word(due.touch.slot, due.touch.address) {
                let word = Word(cell.load(Ordering::Acquire));
                if word.state() != State::Fetching {
                    // The page was emptied or moved meanwhile.
                    self.touch(Touch { since_ns: now, ..due.touch });
                    continue;
                }
                cell.store(word.made_local(due.touch.write).0, Ordering::Release);
            }
            self.resolve(&due.touch);
            let kind = if due.kind == FETCH { FaultKind::Fetch } else { FaultKind::Arrived };
            let measured = self.now_ns().saturating_sub(due.touch.since_ns);
            self.log(&due.touch, kind, due.wait_ns, due.requested_ns, measured);
        }
        self.await_next();
    }

    /// Wakes the supervisor when the next fault is due, or the next frame free.
    pub(crate) fn await_next(&self) {
        let fault =
            self.faults.waiting.due.peek().map(|Reverse((at, ..))| at.saturating_sub(SPIN_NS / 2));
        let frame = self.faults.waiting.owed.first().map(|one| one.0);
        if let Some(at) = fault.into_iter().chain(frame).min() {
            let epoch = self.kernel.tables.epoch_ns().load(Ordering::Relaxed);
            let _valid = self.kernel.deadline.at(epoch + at);
        }
    }

    // Frees the frames whose write-backs are acknowledged by now.
    fn credit_owed(&mut self) {
        let now = self.now_ns();
        while let Some(&one) = self.faults.waiting.owed.first()
            && one.0 <= now
        {
            self.faults.waiting.owed.remove(&one);
            self.kernel.tables.lane(one.1, one.2).credit(1);
            self.books.members.short(one.1);
        }
    }

    // Goes on with a fault whose frame is free. Returns false if it did not wait for one.
    fn take_frame(&mut self, due: &Due) -> bool {
        if due.kind != NEW_FRAME && due.kind != FETCH_FRAME {
            return false;
        }
        let (slot, now) = (due.touch.slot, self.now_ns());
        let word = self.kernel.tables.pages.word(slot, due.touch.address);
        let word = word.map(|cell| Word(cell.load(Ordering::Acquire)));
        self.books.totals.stalled(now.saturating_sub(due.touch.since_ns));
        match word.filter(|word| word.state() == State::Fetching) {
            Some(_) if due.kind == NEW_FRAME => self.create(&due.touch),
            Some(word) => self.fetch(due.touch, word.tier()),
            // The page was emptied or moved meanwhile.
            None => self.touch(Touch { since_ns: now, ..due.touch }),
        }
        true
    }

    /// Serves faults that wait for a frame, in order.
    pub(crate) fn serve_waiting(&mut self) {
        for _ in 0..self.faults.waiting.stalled.len() {
            let Some(touch) = self.faults.waiting.stalled.pop_front() else {
                break;
            };
            let before = self.faults.waiting.stalled.len();
            self.touch(touch);
            if self.faults.waiting.stalled.len() == before {
                self.books.totals.stalled(self.now_ns().saturating_sub(touch.since_ns));
            }
        }
        self.resolve_due();
    }

    /// Maps or creates a fault's page, unless a fork holds the fault or the page has left.
    pub(crate) fn resolve(&mut self, touch: &Touch) {
        if self.detains(touch) {
            return;
        }
        if self.has_left(touch) {
            // If mapped now, the page would leave while it is used.
            return self.touch(*touch);
        }
        self.preserve(touch.slot, touch.address, touch.address + PAGE);
        let Some(arena) = &self.people.arenas[touch.slot] else {
            return;
        };
        let Some(fault) = &arena.fault else { return };
        debug_assert!(!self.has_left(touch), "{touch:?} would map a page that is not here");
        let address = touch.address;
        // A page whose contents exist is mapped; one that has none is created. Errors mean that the
        // range or the process is gone, and then nobody waits.
        let mapped = match touch.minor {
            true if self.is_clean(arena, address) => fault.map_protected(address, 4096),
            true => fault.map(address, 4096),
            false => fault.zero(address, 4096),
        };
        if let Err(error) = mapped
            && error.errno() == Some(14)
        {
            self.resolve_missing(touch);
        }
        self.answer_asks(touch);
    }

    // Whether a page is no longer local. The BPF trap maps pages without the supervisor.
    fn has_left(&self, touch: &Touch) -> bool {
        let cell = self.kernel.tables.pages.word(touch.slot, touch.address);
        let state = cell.map(|cell| Word(cell.load(Ordering::Acquire)).state());
        let is_here = state.is_none_or(|state| matches!(state, State::Local | State::Foreign));
        self.config.trap == TrapKind::Userfault && !is_here
    }

    // Whether a page is clean, so that its next write is to be tracked.
    fn is_clean(&self, arena: &Arena, address: u64) -> bool {
        let cell = self.kernel.tables.pages.word(arena.slot, address);
        let word = cell.map(|cell| Word(cell.load(Ordering::Acquire)));
        let is_clean = |word: Word| word.state() == State::Local && !word.dirty();
        arena.helper.writes.is_some() && word.is_some_and(is_clean)
    }

    /// Ends the spins for a page that is mapped, or is to be touched again.
    pub(crate) fn answer_asks(&mut self, touch: &Touch) {
        self.faults.asks.iter_mut().for_each(|asks| asks.answer(touch.slot, touch.address));
    }

    // Resolves a fault whose page was to be mapped but has no contents. If the page was emptied
    // meanwhile, it is new; a page that is far, or should be local, must never become zeros.
    fn resolve_missing(&mut self, touch: &Touch) {
        let cell = self.kernel.tables.pages.word(touch.slot, touch.address);
        let state = cell.map(|cell| Word(cell.load(Ordering::Acquire)).state());
        match state.filter(|_| self.is_far()) {
            Some(State::Remote) => return self.touch(*touch),
            // Its arrival wakes both threads.
            Some(State::Fetching) => return,
            Some(State::Local | State::Probation | State::Prefetched) => {
                self.fatal.get_or_insert(RunError::Lost("a page of the program"));
                return;
            }
            Some(State::Absent | State::Foreign) | None => {}
        }
        let fault = self.people.arenas[touch.slot].as_ref().and_then(|arena| arena.fault.as_ref());
        if let Some(fault) = fault {
            let _gone = fault.zero(touch.address, 4096);
        }
    }

    // Records a fault of `kind` with its times in nanoseconds.
    fn log(&mut self, touch: &Touch, kind: FaultKind, wait: u64, requested: u64, measured: u64) {
        let short = |ns: u64| u32::try_from(ns).unwrap_or(u32::MAX);
        let page =
            self.people.arenas[touch.slot].as_mut().and_then(|arena| arena.page(touch.address));
        let Some(page) = page else { return };
        let event = FaultEvent {
            time_ns: touch.since_ns,
            address: touch.address,
            page,
            slot: touch.slot,
            tid: touch.tid,
            kind,
            write: touch.write,
            wait_ns: short(wait),
            requested_ns: short(requested),
            measured_ns: short(measured),
        };
        self.keep_measured(&event, measured);
    }
}
