//! The engine: a fault goes in, and what has to be done about it comes out.
//!
//! ```text
//! Event ─► Engine::handle ─► Residency, Policy, Link ─► Engine::poll_action ─► Action
//!                                                   └─► Engine::poll_timeout ─► Tick
//! ```
//!
//! # Drain rule
//!
//! The engine decides, its caller acts. After every [`Engine::handle`]:
//!
//! 1. call [`Engine::poll_action`] until it answers `None`, and perform the actions in that
//!    order: an eviction comes before the resolution that needs its frame;
//! 2. ask [`Engine::poll_timeout`], and handle [`Event::Tick`] at that time unless another event
//!    comes first. The answer changes with `handle` only.
//!
//! # Design notes
//!
//! - A page that was given up is remote, and its next touch a fetch, even if nobody ever wrote to
//!   it: a trace does not tell what was in memory before it began.
//! - A page in flight occupies a frame from the moment its fetch is reserved, but becomes a
//!   candidate for eviction only when it has arrived.
//! - A dirty page occupies its frame until its write-back is acknowledged; the write-back travels
//!   over the same link as fetches. A fault that comes meanwhile, on any page, waits for a frame;
//!   one on the very page waits for the write-back, since a fetch could overtake it.
//! - The link is reserved when a frame is there, never ahead of time: a reservation in the future
//!   would make other faults queue behind an idle link. This is why a stalled fault needs the
//!   clock to come back to it.
//! - A page is neither given up nor probed in the same call that resolves it, if there is a
//!   choice: random replacement would take a page back before the program has used it.
//! - If every frame is pinned and none is about to become free, a fault is granted a frame beyond
//!   the budget and counted, because the program would hang otherwise.

mod config;
mod counters;
mod event;
mod flags;
mod transfers;

use std::collections::VecDeque;

use measure::{Bytes, Direction, Instant, Link, Pages};

use crate::page::{PageIndex, PageStates, span};
use crate::prefetch::Prefetcher;
use crate::residency::{Admission, PageState, Residency, Victim};

pub use config::{EngineConfig, References, WriteBack};
pub use counters::{Counters, Latencies};
pub use event::{Action, Event, PageStatus, ResolveKind};
use flags::{DIRTY, DRAINING, IN_FLIGHT, PREFETCHED, REMOTE, WAITING};
use transfers::{End, Transfers};

/// The pure engine; see the [module](self).
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    residency: Residency,
    link: Link,
    prefetcher: Prefetcher,
    pages: PageStates,
    transfers: Transfers,
    waiting: VecDeque<Waiting>,
    // Pages resolved since the last call, which the program had no chance to use yet.
    fresh: Vec<PageIndex>,
    actions: VecDeque<Action>,
    counters: Counters,
    latencies: Latencies,
    now: Instant,
}

/// A fault without a frame.
#[derive(Clone, Debug)]
struct Waiting {
    page: PageIndex,
    write: bool,
    at: Instant,
    // When it began to wait; later than `at` if the event came out of order.
    since: Instant,
    // When further faults on the same page happened.
    joined: Vec<Instant>,
}

impl Engine {
    /// An engine that has seen nothing.
    #[must_use]
    pub fn new(config: EngineConfig) -> Self {
        let build = match config.references {
            References::SoftFaults => Residency::new,
            References::Exact => Residency::told_all,
        };
        Self {
            residency: build(config.residency),
            link: Link::seeded(config.link.clone(), config.residency.seed),
            prefetcher: Prefetcher::new(config.prefetch),
            config,
            pages: PageStates::default(),
            transfers: Transfers::default(),
            waiting: VecDeque::new(),
            fresh: Vec::new(),
            actions: VecDeque::new(),
            counters: Counters::default(),
            latencies: Latencies::default(),
            now: Instant::ZERO,
        }
    }

    /// Takes in an event that is known at `now`. Follow the drain rule of the [module](self).
    pub fn handle(&mut self, event: Event, now: Instant) {
        self.fresh.clear();
        match event {
            // Not further than the fault: what happens between it and `now` comes after it.
            Event::Fault { at, .. } => self.advance(at.min(now)),
            _ => self.advance(now),
        }
        match event {
            Event::Fault { page, write, at } => self.fault(page, write, at.min(now)),
            Event::Written { page } => self.mark_written(page),
            Event::Discard { first, count } => self.discard(first, count),
            Event::Pin { first, count } => self.residency.pin(first, count),
            Event::Unpin { first, count } => self.residency.unpin(first, count),
            Event::Rename { from, to, count } => self.rename(from, to, count),
            Event::Retune { budget, link } => {
                if let Some(budget) = budget {
                    self.residency.set_budget(budget);
                }
                if let Some(link) = link {
                    self.link.retune(link);
                }
            }
            Event::Tick => {}
        }
        self.grant_frames();
        self.make_room();
    }

    /// An access in [`References::Exact`] mode. Returns whether `page` is accessible, in which
    /// case there is nothing more to do; if not, the access is a fault.
    ///
    /// Also answers with [`References::SoftFaults`], where it tells the policy nothing.
    pub fn reference(&mut self, page: PageIndex, write: bool, now: Instant) -> bool {
        self.advance(now);
        if !matches!(self.residency.state(page), PageState::Active | PageState::Pinned) {
            return false;
        }
        if self.config.references == References::Exact {
            self.residency.soft_fault(page);
            self.note_use(page);
        }
        if write {
            self.mark_written(page);
        }
        true
    }

    /// The next thing to do; `None` once all is done that follows from the events so far.
    #[must_use]
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When a [`Event::Tick`] is due: a fault waits for a frame, and one may become free then.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.waiting.is_empty() {
            return None;
        }
        self.transfers.next_end()
    }

    /// Where `page` is.
    #[must_use]
    pub fn status(&self, page: PageIndex) -> PageStatus {
        if let Some(ready_at) = self.transfers.fetch_of(page) {
            return PageStatus::InFlight { ready_at };
        }
        match self.residency.state(page) {
            PageState::Active | PageState::Pinned => PageStatus::Local,
            PageState::Probation | PageState::Leaving => PageStatus::Probation,
            PageState::Absent if self.pages.get(page) & REMOTE != 0 => PageStatus::Remote,
            PageState::Absent => PageStatus::Absent,
        }
    }

    /// The counts so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The distributions so far.
    #[must_use]
    pub const fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// The local memory.
    #[must_use]
    pub const fn residency(&self) -> &Residency {
        &self.residency
    }

    /// Frames in use: resident pages, pages in flight, and pages whose write-back is under way.
    #[must_use]
    pub fn frames_in_use(&self) -> Pages {
        Pages::new(self.staying() + self.transfers.write_back_count() as u64)
    }

    /// Ends every transfer that is over by `now`, at its own time.
    fn advance(&mut self, now: Instant) {
        while let Some((time, end)) = self.transfers.pop_due(now) {
            self.now = self.now.max(time);
            match end {
                End::WrittenBack(page) => {
                    self.pages.set(page, self.pages.get(page) & !DRAINING);
                }
                End::Fetched(page) => {
                    let flags = self.pages.get(page) & !IN_FLIGHT;
                    self.pages.set(page, flags);
                    let ahead = flags & PREFETCHED != 0;
                    let how = if ahead { Admission::Prefetch } else { Admission::Fetch };
                    self.residency.admit(page, how);
                    self.fresh.push(page);
                }
            }
            self.grant_frames();
        }
        self.now = self.now.max(now);
    }

    fn fault(&mut self, page: PageIndex, write: bool, at: Instant) {
        let flags = self.pages.get(page);
        if flags & WAITING != 0 {
            self.counters.joined_count += 1;
            let same = self.waiting.iter_mut().find(|waiting| waiting.page == page);
            let same = same.expect("a page is marked as waited for while it is in the queue");
            same.write |= write;
            same.joined.push(at);
            return;
        }
        if let Some(ready_at) = self.transfers.fetch_of(page) {
            self.latencies.record_total(at, ready_at);
            self.resolve_joined(page, ready_at);
        } else {
            match self.residency.state(page) {
                PageState::Absent => {
                    self.pages.set(page, flags | WAITING);
                    self.waiting.push_back(Waiting {
                        page,
                        write,
                        at,
                        since: self.now,
                        joined: Vec::new(),
                    });
                    return;
                }
                PageState::Probation | PageState::Leaving => {
                    self.residency.soft_fault(page);
                    self.fresh.push(page);
                    self.counters.soft_count += 1;
                    self.resolve(page, at, ResolveKind::Soft);
                }
                // Resolved between the fault and now.
                PageState::Active | PageState::Pinned => self.resolve_joined(page, at),
            }
        }
        self.note_use(page);
        if write {
            self.mark_written(page);
        }
    }

    /// Serves the faults that wait for a frame, first come first served, as far as frames go.
    fn grant_frames(&mut self) {
        while let Some(next) = self.next_waiting() {
            if !self.claim_frame() {
                return;
            }
            let waiting = self.waiting.remove(next).expect("the position was just found");
            self.grant(&waiting);
        }
    }

    /// The first fault that waits for nothing but a frame.
    fn next_waiting(&self) -> Option<usize> {
        self.waiting.iter().position(|waiting| self.pages.get(waiting.page) & DRAINING == 0)
    }

    /// Whether there is a frame for a waiting fault, now that victims were found if need be.
    fn claim_frame(&mut self) -> bool {
        if self.free() == 0 {
            self.make_room();
        }
        if self.free() == 0 && self.transfers.next_end().is_none() {
            // Nothing will become free by itself.
            self.fresh.clear();
            self.make_room();
        }
        let stuck = self.free() == 0 && self.transfers.next_end().is_none();
        self.counters.overcommit_count += u64::from(stuck);
        stuck || self.free() > 0
    }

    /// Serves one fault that has a frame.
    fn grant(&mut self, waiting: &Waiting) {
        let stalled = self.now.saturating_since(waiting.since);
        if !stalled.is_zero() {
            self.counters.stall_count += 1;
            self.latencies.stall.record(stalled);
        }
        let page = waiting.page;
        let dirty = if waiting.write { DIRTY } else { 0 };
        let flags = self.pages.get(page) & !WAITING | dirty;
        self.pages.set(page, flags);
        if flags & REMOTE == 0 {
            self.residency.admit(page, Admission::FirstTouch);
            self.fresh.push(page);
            self.counters.first_touch_count += 1;
            self.resolve(page, self.now, ResolveKind::FirstTouch);
            for _ in &waiting.joined {
                self.resolve(page, self.now, ResolveKind::Joined);
            }
        } else {
            self.fetch(waiting, dirty);
        }
    }

    fn fetch(&mut self, waiting: &Waiting, dirty: u8) {
        let page = waiting.page;
        let transfer = self.link.reserve(self.now, Bytes::PAGE, Direction::Fetch);
        self.put_in_flight(page, dirty, transfer.ready);
        self.counters.fetch_count += 1;
        self.latencies.record_fetch(waiting.at, &transfer);
        self.resolve(page, transfer.ready, ResolveKind::Fetch);
        for &at in &waiting.joined {
            self.latencies.record_total(at, transfer.ready);
            self.resolve(page, transfer.ready, ResolveKind::Joined);
        }
        self.prefetch(page);
    }

    /// Fetches ahead of a fault that was just served. Takes free frames and the policy's victims,
    /// but at most half the budget, and never from a fault that waits.
    fn prefetch(&mut self, fault: PageIndex) {
        let half = self.residency.budget().get() / 2;
        for page in self.prefetcher.on_fault(fault) {
            let in_flight = self.transfers.fetch_count();
            if !self.waiting.is_empty()
                || in_flight >= self.config.prefetch_in_flight_max
                || in_flight as u64 >= half
            {
                return;
            }
            if self.pages.get(page) != REMOTE {
                continue;
            }
            if self.free() == 0 {
                self.evict(1);
            }
            if self.free() == 0 {
                return;
            }
            let transfer = self.link.reserve(self.now, Bytes::PAGE, Direction::Fetch);
            self.put_in_flight(page, PREFETCHED, transfer.ready);
            self.counters.prefetch_count += 1;
            self.resolve(page, transfer.ready, ResolveKind::Prefetch);
        }
    }

    /// Gives up and probes what is needed for the headroom and the faults that wait.
    fn make_room(&mut self) {
        if self.config.references == References::SoftFaults {
            self.probe();
        }
        let wanted = self.residency.headroom().get() + self.waiting.len() as u64;
        let target = self.residency.budget().get().saturating_sub(wanted);
        self.evict(self.staying().saturating_sub(target));
    }

    fn probe(&mut self) {
        let mut pages = Vec::new();
        self.residency.probe_batch(&mut pages, self.residency.budget());
        for page in pages {
            if self.fresh.contains(&page) {
                self.residency.soft_fault(page);
            } else {
                self.actions.push_back(Action::Probe { page });
            }
        }
    }

    fn evict(&mut self, count: u64) {
        if count == 0 {
            return;
        }
        let mut victims = Vec::new();
        self.residency.evict_batch(&mut victims, Pages::new(count));
        for Victim { page, mapped } in victims {
            if mapped && self.fresh.contains(&page) {
                self.residency.reinstate(page);
                continue;
            }
            let dirty = self.pages.get(page) & DIRTY != 0;
            let mut free_at = self.now;
            let mut flags = REMOTE;
            if dirty {
                self.counters.evict_dirty_count += 1;
                if self.config.write_back == WriteBack::Charged {
                    free_at = self.link.reserve(self.now, Bytes::PAGE, Direction::WriteBack).ready;
                    flags |= DRAINING;
                    self.transfers.start_write_back(page, free_at);
                }
            } else {
                self.counters.evict_clean_count += 1;
            }
            self.pages.set(page, flags);
            self.actions.push_back(Action::Evict { page, dirty, free_at });
        }
    }

    fn put_in_flight(&mut self, page: PageIndex, flags: u8, ready_at: Instant) {
        self.pages.set(page, IN_FLIGHT | flags);
        self.transfers.start_fetch(page, ready_at);
    }

    fn resolve(&mut self, page: PageIndex, ready_at: Instant, kind: ResolveKind) {
        self.actions.push_back(Action::Resolve { page, ready_at, kind });
    }

    fn resolve_joined(&mut self, page: PageIndex, ready_at: Instant) {
        self.counters.joined_count += 1;
        self.resolve(page, ready_at, ResolveKind::Joined);
    }

    /// Notes that a page which may have been fetched ahead was worth it.
    fn note_use(&mut self, page: PageIndex) {
        let flags = self.pages.get(page);
        if flags & PREFETCHED != 0 {
            self.counters.prefetch_used_count += 1;
            self.pages.set(page, flags & !PREFETCHED);
        }
    }

    fn mark_written(&mut self, page: PageIndex) {
        let flags = self.pages.get(page);
        // Anything else was given up or freed before the write was reported.
        if flags & IN_FLIGHT != 0 || self.residency.state(page) != PageState::Absent {
            self.pages.set(page, flags | DIRTY);
        }
    }

    fn discard(&mut self, first: PageIndex, count: Pages) {
        self.residency.discard(first, count);
        let range = span(first, count);
        let mut from = range.start;
        while let Some(page) = self.pages.next_occupied(from, range.end) {
            from = page.get() + 1;
            self.transfers.abandon(page);
            // A fault that waits is still to be resolved, with a new page.
            self.pages.set(page, self.pages.get(page) & WAITING);
        }
    }

    fn rename(&mut self, from: PageIndex, to: PageIndex, count: Pages) {
        if from == to {
            return;
        }
        self.discard(to, count);
        self.residency.rename(from, to, count);
        let range = span(from, count);
        let distance = i64::from(to.get()) - i64::from(from.get());
        let mut next = range.start;
        while let Some(page) = self.pages.next_occupied(next, range.end) {
            next = page.get() + 1;
            let abandoned = self.transfers.abandon(page);
            let flags = self.pages.set(page, self.pages.get(page) & WAITING);
            let moved = if abandoned { REMOTE } else { flags & (REMOTE | DIRTY | PREFETCHED) };
            if let Some(target) = page.offset(distance) {
                self.pages.set(target, self.pages.get(target) & WAITING | moved);
            }
        }
    }

    /// Frames in use that nothing is about to free.
    fn staying(&self) -> u64 {
        self.residency.resident().get() + self.transfers.fetch_count() as u64
    }

    fn free(&self) -> u64 {
        self.residency.budget().saturating_sub(self.frames_in_use()).get()
    }
}
