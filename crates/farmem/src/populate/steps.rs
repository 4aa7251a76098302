//! How the supervisor populates memory, some pages at a time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use paging::regions::PAGE;
use paging::word::{State, Word};

use super::{AHEAD_NS, PAGES_AT_ONCE, Populate, Then};
use crate::RunError;
use crate::events::TABLE_FULL;
use crate::far::Brought;
use crate::supervisor::Supervisor;
use tables::NoWord;
use tables::{FaultEvent, FaultKind};

impl Supervisor<'_> {
    /// Begins to populate `ranges` (start and end) for the call `id` of `thread`.
    pub(crate) fn populate(
        &mut self,
        slot: usize,
        (id, thread): (u64, u32),
        ranges: impl IntoIterator<Item = (u64, u64)>,
        write: bool,
        then: Then,
    ) {
        self.faults.populates.push(Populate {
            id,
            thread,
            slot,
            ranges: ranges.into_iter().collect(),
            write,
            then,
            ready_ns: self.now_ns(),
            short: None,
            is_awaited: false,
        });
    }

    /// Goes on with all populates, and ends the calls whose pages are here.
    pub(crate) fn advance_populates(&mut self) -> Result<(), RunError> {
        for mut one in std::mem::take(&mut self.faults.populates) {
            self.populate_some(&mut one);
            if !one.ranges.is_empty() || self.now_ns() < one.ready_ns {
                self.faults.populates.push(one);
                continue;
            }
            match one.then {
                Then::Answer(result) => self.kernel.listener.answer(one.id, result)?,
                Then::Proceed => self.kernel.listener.proceed(one.id)?,
            }
        }
        Ok(())
    }

    /// How long until a populate needs the supervisor; `None` if there is none.
    pub(crate) fn populates_due(&self) -> Option<Duration> {
        let now = self.now_ns();
        let due = |one: &Populate| match one.ranges.is_empty() {
            // The blade's answer wakes the supervisor.
            _ if one.is_awaited => AHEAD_NS,
            true => one.ready_ns.saturating_sub(now),
            false => one.ready_ns.saturating_sub(now + AHEAD_NS),
        };
        self.faults.populates.iter().map(due).min().map(Duration::from_nanos)
    }

    /// How many populates wait for a frame of one budget and tier.
    pub(crate) fn populates_short(&self, budget: usize, tier: usize) -> i64 {
        let short = |one: &&Populate| one.short == Some((budget, tier));
        i64::try_from(self.faults.populates.iter().filter(short).count()).unwrap_or(i64::MAX)
    }

    fn populate_some(&mut self, one: &mut Populate) {
        if self.people.arenas[one.slot].is_none() {
            one.ranges.clear();
        }
        let Some((start, end)) = one.ranges.pop_front() else {
            return;
        };
        let stop = end.min(start + PAGES_AT_ONCE * PAGE);
        let mut at = start;
        while at < stop && one.ready_ns <= self.now_ns() + AHEAD_NS && self.populate_page(one, at) {
            at += PAGE;
        }
        if at < end {
            one.ranges.push_front((at, end));
        }
    }

    // Populates one page. Returns false if it has to wait for a frame or for the blade.
    fn populate_page(&mut self, one: &mut Populate, address: u64) -> bool {
        let Some(arena) = &self.people.arenas[one.slot] else {
            return true;
        };
        let cell = match self.kernel.tables.pages.make_word(one.slot, address) {
            Ok(cell) => cell,
            Err(NoWord::Closed) => return true,
            Err(NoWord::Full) => {
                self.books.totals.lost(TABLE_FULL, 1);
                return true;
            }
        };
        let before = Word(cell.load(Ordering::Acquire));
        let (budget, tier) = (arena.budget, before.tier().min(arena.tiers.len() - 1));
        one.is_awaited = false;
        if self.is_far() && matches!(before.state(), State::Remote | State::Fetching) {
            let brought = self.bring(one.slot, address, false);
            one.short = (brought == Brought::NoFrame).then_some((budget, tier));
            one.is_awaited = true;
            return false;
        }
        let (after, kind) = match before.state() {
            State::Absent => {
                (before.with_state(State::Local).with_dirty(true), FaultKind::FirstTouch)
            }
            State::Remote => (before.made_local(one.write), FaultKind::Fetch),
            _ => return true,
        };
        let change = |cell: &AtomicU32| {
            cell.compare_exchange(before.0, after.0, Ordering::AcqRel, Ordering::Acquire)
        };
        let proc = self.kernel.tables.proc(one.slot);
        if kind == FaultKind::FirstTouch && proc.unlimited().load(Ordering::Acquire) != 0 {
            if change(cell).is_ok() {
                proc.first_touch_count().fetch_add(1, Ordering::AcqRel);
            }
            return true;
        }
        let now = self.now_ns();
        let frame = self.claim_frame(budget, tier);
        one.short = frame.is_none().then_some((budget, tier));
        let lane = self.kernel.tables.lane(budget, tier);
        if frame.is_none() {
            self.books.members.short(budget);
            if !lane.is_unrelieved() {
                return false;
            }
            lane.credit(-1);
        }
        let cell = self.kernel.tables.pages.word(one.slot, address);
        if cell.is_none_or(|cell| change(cell).is_err()) {
            // A thread has touched it just now.
            lane.credit(1);
            return true;
        }
        one.ready_ns = one.ready_ns.max(frame.unwrap_or(0) / 1000);
        let requested_ns = if kind == FaultKind::Fetch {
            let asked_ns = one.ready_ns.max(now);
            (_, one.ready_ns) = self.reserve_fetch(tier, asked_ns);
            one.ready_ns - asked_ns
        } else {
            0
        };
        self.populated(one, address, kind, requested_ns);
        true
    }

    // Records a populated page as a fault of `kind`.
    fn populated(&mut self, one: &Populate, address: u64, kind: FaultKind, requested_ns: u64) {
        let page = self.people.arenas[one.slot].as_mut().and_then(|arena| arena.page(address));
        let Some(page) = page else {
            self.books.totals.lost(TABLE_FULL, 1);
            return;
        };
        self.keep(&FaultEvent {
            time_ns: self.now_ns(),
            address,
            page,
            slot: one.slot,
            tid: one.thread,
            kind,
            write: one.write,
            wait_ns: 0,
            requested_ns: u32::try_from(requested_ns).unwrap_or(u32::MAX),
            // The thread does not wait for each page by itself.
            measured_ns: 0,
        });
    }
}
