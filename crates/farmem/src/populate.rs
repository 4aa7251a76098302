//! Memory that a call populates in place of touches: `madvise(MADV_POPULATE_READ)` and `_WRITE`,
//! `mmap(MAP_POPULATE)`, `mlock`.
//!
//! ```text
//! call held -> page by page: state word, frame, link -> the last page is here: answer,
//!                                                       or the kernel goes on
//! ```
//!
//! DESIGN NOTES
//!
//! * The kernel populates memory without page faults that a trap would see. So the pages are
//!   counted here as if the caller had touched one after the other: each remote page takes its time
//!   on the link, each page a frame, and the caller waits until the last one is here.
//! * Pages are local then, but not mapped, unless the kernel locks them: the first touch of each
//!   costs an ordinary minor fault. `mincore` answers that new ones are not in memory before that.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use paging::regions::PAGE;
use paging::word::{State, Word};

use super::RunError;
use super::events::TABLE_FULL;
use super::page_table::NoWord;
use super::shared::{FaultEvent, FaultKind};
use super::supervisor::Supervisor;

/// Pages that are populated at a time: others wait for the supervisor meanwhile.
const PAGES_AT_ONCE: u64 = 64;
/// How far ahead of its time a page may be asked for.
const AHEAD_NS: u64 = 1_000_000;

/// What becomes of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It has this result.
    Answer(i64),
    /// The kernel does it, too.
    Proceed,
}

/// Memory that is being populated.
#[derive(Debug)]
pub(crate) struct Populate {
    /// The call, and its thread.
    pub(crate) id: u64,
    pub(crate) thread: u32,
    pub(crate) slot: usize,
    /// What is left, in bytes.
    pub(crate) ranges: VecDeque<(u64, u64)>,
    /// As by writes.
    pub(crate) write: bool,
    pub(crate) then: Then,
    /// When the last page so far is here, in nanoseconds of the run.
    ready_ns: u64,
    /// Budget and tier in which a page waits for a frame.
    short: Option<(usize, usize)>,
}

impl Supervisor<'_> {
    /// Populates `ranges` (first address, first behind) for the call `id` of `thread`.
    pub(crate) fn populate(
        &mut self,
        slot: usize,
        (id, thread): (u64, u32),
        ranges: impl IntoIterator<Item = (u64, u64)>,
        write: bool,
        then: Then,
    ) {
        self.populates.push(Populate {
            id,
            thread,
            slot,
            ranges: ranges.into_iter().collect(),
            write,
            then,
            ready_ns: self.now_ns(),
            short: None,
        });
    }

    /// Goes on with everything that is being populated.
    pub(crate) fn advance_populates(&mut self) -> Result<(), RunError> {
        for mut one in std::mem::take(&mut self.populates) {
            self.populate_some(&mut one);
            if !one.ranges.is_empty() || self.now_ns() < one.ready_ns {
                self.populates.push(one);
                continue;
            }
            match one.then {
                Then::Answer(result) => self.listener.answer(one.id, result)?,
                Then::Proceed => self.listener.proceed(one.id)?,
            }
        }
        Ok(())
    }

    /// How long nothing that is being populated needs the supervisor; none if nothing is.
    pub(crate) fn populates_due(&self) -> Option<Duration> {
        let now = self.now_ns();
        let due = |one: &Populate| match one.ranges.is_empty() {
            true => one.ready_ns.saturating_sub(now),
            false => one.ready_ns.saturating_sub(now + AHEAD_NS),
        };
        self.populates.iter().map(due).min().map(Duration::from_nanos)
    }

    /// Pages that wait for a frame of one budget before they can be populated.
    pub(crate) fn populates_short(&self, budget: usize, tier: usize) -> i64 {
        let short = |one: &&Populate| one.short == Some((budget, tier));
        i64::try_from(self.populates.iter().filter(short).count()).unwrap_or(i64::MAX)
    }

    fn populate_some(&mut self, one: &mut Populate) {
        if self.arenas[one.slot].is_none() {
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

    // Answers whether the page has been dealt with; otherwise it waits for a frame.
    fn populate_page(&mut self, one: &mut Populate, address: u64) -> bool {
        let Some(arena) = &self.arenas[one.slot] else {
            return true;
        };
        let cell = match self.tables.pages.make_word(one.slot, address) {
            Ok(cell) => cell,
            Err(NoWord::Closed) => return true,
            Err(NoWord::Full) => {
                self.totals.lost(TABLE_FULL, 1);
                return true;
            }
        };
        let before = Word(cell.load(Ordering::Acquire));
        let (after, kind) = match before.state() {
            State::Absent => {
                (before.with_state(State::Local).with_dirty(true), FaultKind::FirstTouch)
            }
            State::Remote => (before.made_local(one.write), FaultKind::Fetch),
            _ => return true,
        };
        let change =
            || cell.compare_exchange(before.0, after.0, Ordering::AcqRel, Ordering::Acquire);
        let proc = self.tables.proc(one.slot);
        if kind == FaultKind::FirstTouch && proc.unlimited().load(Ordering::Acquire) != 0 {
            if change().is_ok() {
                proc.first_touch_count().fetch_add(1, Ordering::AcqRel);
            }
            return true;
        }
        let now = self.now_ns();
        let (budget, tier) = (arena.budget, before.tier().min(arena.tiers.len() - 1));
        let frame = self.claim_frame(budget, tier);
        one.short = frame.is_none().then_some((budget, tier));
        let lane = self.tables.lane(budget, tier);
        if frame.is_none() {
            self.members.short(budget);
            if !lane.is_unrelieved() {
                return false;
            }
            lane.credit(-1);
        }
        if change().is_err() {
            // Somebody has touched it just now.
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

    fn populated(&mut self, one: &Populate, address: u64, kind: FaultKind, requested_ns: u64) {
        let page = self.arenas[one.slot].as_mut().and_then(|arena| arena.page(address));
        let Some(page) = page else {
            self.totals.lost(TABLE_FULL, 1);
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
            // Nobody waits for a single one of them.
            measured_ns: 0,
        });
    }
}
