//! How the supervisor fetches pages from a blade. How they leave: `out`.

use std::sync::atomic::Ordering;

use blades::{Answer, PAGE_BYTES, Page, Wanted};
use paging::blade::{Arrival, Token};
use paging::regions::PAGE;
use paging::word::{State, Word};

use super::{Brought, Coming, Far, RUN_PAGES, sum};
use crate::RunError;
use crate::arena::Arena;
use crate::state::Faults;
use crate::supervisor::Supervisor;
use crate::userfault_trap::Touch;

impl Supervisor<'_> {
    /// Whether pages leave for a blade.
    pub(crate) const fn is_far(&self) -> bool {
        self.faults.far.is_some()
    }

    /// Serves the blade's answers and reports its news, once it has rung or is due.
    pub(crate) fn hear_blade(&mut self) -> Result<(), RunError> {
        self.serve()?;
        let news = self.faults.far.as_mut().map(|far| far.blade.news());
        for text in news.into_iter().flatten() {
            self.books.totals.warn(&text);
            self.observer.news(&text);
        }
        self.serve_waiting();
        Ok(())
    }

    /// Acts on the next answer of the blade. Returns whether there was one.
    pub(super) fn take_answer(&mut self) -> Result<bool, RunError> {
        let Some(answer) = self.faults.far.as_mut().and_then(Far::next) else { return Ok(false) };
        let Some(first) = self.answered(answer)? else { return Ok(true) };
        if first.0.is_awaited() {
            return self.land(first.0, &first.1).map(|()| true);
        }
        let mut run = vec![first];
        while run.len() < RUN_PAGES
            && let Some(next) = self.next_of(&run)?
        {
            run.push(next);
        }
        self.land_run(run).map(|()| true)
    }

    // Acts on an answer: a write-back is acknowledged, or a page has come, which is to be put in
    // place.
    fn answered(&mut self, answer: Answer) -> Result<Option<(Coming, Page)>, RunError> {
        let Answer { token, result } = answer;
        let page = result.map_err(RunError::Blade)?;
        let Some(far) = self.faults.far.as_mut() else { return Ok(None) };
        if let Some((budget, _)) = far.leavers.acknowledged(token) {
            // The blade has the page: its frame can be had.
            self.books.members.short(budget);
            return Ok(None);
        }
        match page {
            Some(page) => Ok(self.came(token, &page)?.map(|coming| (coming, page))),
            None => Ok(None),
        }
    }

    // The next answer if it is the page that follows a run of pages fetched ahead, and nobody waits
    // for it.
    fn next_of(&mut self, run: &[(Coming, Page)]) -> Result<Option<(Coming, Page)>, RunError> {
        let Some((last, _)) = run.last() else { return Ok(None) };
        let Some(far) = self.faults.far.as_mut() else { return Ok(None) };
        let Some(answer) = far.next() else { return Ok(None) };
        let follows = |next: &Coming| {
            let (touch, next) = (last.touch, next.touch);
            (touch.slot, touch.address + PAGE) == (next.slot, next.address)
        };
        let next = far.coming.get(&answer.token);
        if next.is_some_and(|next| !next.is_awaited() && follows(next)) {
            return self.answered(answer);
        }
        far.held = Some(answer);
        Ok(None)
    }

    /// Requests a page from the blade; it has a frame already. `touch` is the fault that needs it.
    pub(crate) fn fetch_far(&mut self, touch: Touch, wanted: Wanted) {
        let Some(far) = self.faults.far.as_mut() else { return };
        let Some((token, place)) = far.places.fetch((touch.slot, touch.address / PAGE)) else {
            self.fatal.get_or_insert(RunError::Lost("the place of a page on the blade"));
            return;
        };
        if let Some(order) = &mut far.order {
            order.fetched((touch.slot, touch.address / PAGE), wanted == Wanted::Ahead);
        }
        far.coming.insert(token, Coming { touch, wanted, joined: None, asked: 0 });
        far.blade.read(token, place, wanted);
    }

    // Verifies a page that has come. Returns what it is for; `None` if it is for nobody.
    fn came(&mut self, token: Token, bytes: &[u8; PAGE_BYTES]) -> Result<Option<Coming>, RunError> {
        let Some(far) = self.faults.far.as_mut() else { return Ok(None) };
        let is_zeros = || bytes.iter().all(|&byte| byte == 0);
        let arrival = far.places.arrived(token, sum(bytes), is_zeros);
        if let Some(Err(lost)) = &arrival
            && far.blade.distrusts(token, &lost.to_string())
        {
            return Ok(None);
        }
        let Some(coming) = far.coming.remove(&token) else { return Ok(None) };
        let touch = coming.touch;
        match arrival {
            None => Ok(None),
            Some(Err(lost)) => {
                let (tgid, address) = (self.tgid(touch.slot), touch.address);
                Err(RunError::BladeLost { tgid, address, lost })
            }
            Some(Ok(Arrival::Nobody)) => {
                // The page was emptied or moved meanwhile; a thread that waits touches it again.
                self.wake_again(&touch);
                Ok(None)
            }
            Some(Ok(Arrival::Page(_))) => Ok(Some(coming)),
        }
    }

    // Puts neighbours in place that were fetched ahead.
    fn land_run(&mut self, run: Vec<(Coming, Page)>) -> Result<(), RunError> {
        let Some((first, _)) = run.first() else { return Ok(()) };
        let (slot, start) = (first.touch.slot, first.touch.address);
        // A child must not get what its parent has from here on.
        self.preserve(slot, start, start + run.len() as u64 * PAGE);
        let Some(mut bytes) = self.faults.far.as_mut().map(Far::take_room) else { return Ok(()) };
        bytes.iter_mut().zip(&run).for_each(|(bytes, (_, page))| *bytes = **page);
        let is_any_watched = run.iter().any(|(coming, _)| self.is_watched(coming));
        let arena = self.people.arenas[slot].as_ref().filter(|_| run.len() > 1 && !is_any_watched);
        let mapped = arena.map_or(0, |arena| arena.maps_run(&bytes[..run.len()], start));
        self.faults.far.iter_mut().for_each(|far| far.bytes = std::mem::take(&mut bytes));
        for (number, (coming, page)) in run.into_iter().enumerate() {
            match number < mapped {
                true => self.landed(&coming, true),
                // The others one by one: pages that are there already stay as they are.
                false => self.land(coming, &page)?,
            }
        }
        Ok(())
    }

    // Whether a page that nobody waits for is to stay unmapped until it is touched.
    fn is_watched(&self, coming: &Coming) -> bool {
        let Touch { slot, address, .. } = coming.touch;
        let order = self.faults.far.as_ref().and_then(|far| far.order.as_ref());
        // A thread may wait for a watched page that was moved, and moved back.
        !coming.is_awaited() && order.is_some_and(|order| order.watches((slot, address / PAGE)))
    }

    // Puts a verified page into the memory file, and maps it unless it is watched.
    fn land(&mut self, coming: Coming, bytes: &[u8; PAGE_BYTES]) -> Result<(), RunError> {
        let Touch { slot, address, .. } = coming.touch;
        // A child must not get what its parent has from here on.
        self.preserve(slot, address, address + PAGE);
        let Some(arena) = self.people.arenas[slot].as_ref() else { return Ok(()) };
        let is_mapped = !self.is_watched(&coming) && arena.maps(bytes, address);
        if !is_mapped {
            arena.memory.write_at(bytes, address)?;
        }
        self.landed(&coming, is_mapped);
        Ok(())
    }

    // Enters a page that is in the memory file, and answers those who wait for it.
    fn landed(&mut self, coming: &Coming, is_mapped: bool) {
        let is_watched = self.is_watched(coming);
        let &Coming { touch, wanted, joined, .. } = coming;
        if let Some(cell) = self.kernel.tables.pages.word(touch.slot, touch.address) {
            let word = Word(cell.load(Ordering::Acquire));
            // Writes to the page are not tracked; its contents show them when it leaves.
            let local = word.made_local(touch.write).with_dirty(true);
            let unmapped = local.with_state(State::Prefetched);
            cell.store(if is_watched { unmapped } else { local }.0, Ordering::Release);
        }
        match is_mapped {
            true => self.answer_asks(&touch),
            false if is_watched => {}
            false => self.resolve(&Touch { minor: true, ..touch }),
        }
        match wanted {
            Wanted::Now => self.fetched(&touch),
            Wanted::Ahead => self.fetched_ahead(&touch, joined),
        }
    }

    // Wakes the threads that wait for a page, which touch it again.
    fn wake_again(&mut self, touch: &Touch) {
        self.answer_asks(touch);
        let arena = self.people.arenas[touch.slot].as_ref();
        if let Some(fault) = arena.and_then(|arena| arena.fault.as_ref()) {
            // Without its process nobody waits.
            let _gone = fault.wake(touch.address, PAGE);
        }
    }

    /// Fetches a page that the supervisor or the kernel needs; with `must`, even beyond the budget.
    pub(crate) fn bring(&mut self, slot: usize, address: u64, must: bool) -> Brought {
        let Some(cell) = self.kernel.tables.pages.word(slot, address) else {
            return Brought::Here;
        };
        let word = Word(cell.load(Ordering::Acquire));
        match word.state() {
            State::Fetching => return Brought::Comes,
            State::Remote => {}
            _ => return Brought::Here,
        }
        let Some(arena) = &self.people.arenas[slot] else { return Brought::Here };
        let (budget, tier) = (arena.budget, word.tier().min(arena.tiers.len() - 1));
        if self.claim_frame(budget, tier).is_none() {
            self.books.members.short(budget);
            let lane = self.kernel.tables.lane(budget, tier);
            if !must && !lane.is_unrelieved() {
                return Brought::NoFrame;
            }
            lane.credit(-1);
        }
        self.set_word(slot, address, word.with_state(State::Fetching));
        let now = self.now_ns();
        let touch = Touch::of_nobody((slot, budget, tier), address / PAGE * PAGE, now);
        self.fetch_far(touch, Wanted::Now);
        Brought::Comes
    }

    /// Whether a whole range is local, so that the supervisor can access it. Fetches what is not.
    pub(crate) fn is_here(&mut self, slot: usize, start: u64, bytes: u64) -> bool {
        let Some(far) = &self.faults.far else { return true };
        let first = start / PAGE;
        let last = start.saturating_add(bytes.saturating_sub(1)) / PAGE;
        // Includes pages on their way.
        let away = far.places.within((slot, first), last - first + 1);
        for &(_, page) in &away {
            self.bring(slot, page * PAGE, true);
        }
        away.is_empty()
    }

    /// Fetches a whole range, and waits for it: for memory that moves where none is managed.
    ///
    /// # Errors
    /// As [`hear_blade`](Self::hear_blade).
    pub(crate) fn bring_all(
        &mut self,
        slot: usize,
        start: u64,
        bytes: u64,
    ) -> Result<(), RunError> {
        while !self.is_here(slot, start, bytes) {
            if let Some(far) = self.faults.far.as_mut() {
                far.blade.flush();
                far.blade.acknowledge();
            }
            if !self.serve()?
                && let Some(far) = self.faults.far.as_ref()
            {
                let wait = Far::due(far.blade.deadline_ns());
                sys::event::wait_any(&far.blade.bells(), wait)?;
            }
            self.hear_blade()?;
        }
        Ok(())
    }

    /// Forgets what the blade has of a range, whose contents are gone.
    pub(crate) fn forget_far(&mut self, slot: usize, start: u64, end: u64) {
        let (first, count) = ((slot, start / PAGE), (end - start) / PAGE);
        self.faults.far.iter_mut().for_each(|far| far.places.forget(first, count));
        self.faults.sent.iter_mut().for_each(|sent| sent.forget(first, count));
    }

    /// Forgets what the blade has of a process that has ended, and what is on its way to it.
    pub(crate) fn retire_far(&mut self, arena: &Arena) {
        self.faults.sent.iter_mut().for_each(|sent| sent.forget((arena.slot, 0), u64::MAX));
        let Some(far) = self.faults.far.as_mut() else { return };
        far.order.iter_mut().for_each(|order| order.ends(arena.slot));
        let coming = far.coming.values().map(|coming| &coming.touch);
        for touch in coming.filter(|touch| touch.slot == arena.slot) {
            // The page has a frame, but was not admitted yet.
            if far.places.is_far((touch.slot, touch.address / PAGE)) {
                self.kernel.tables.lane(touch.budget, touch.tier).credit(1);
            }
        }
        far.places.forget((arena.slot, 0), u64::MAX);
        far.leavers.end(arena.slot);
        self.faults.asks.iter_mut().for_each(|asks| asks.forget(arena.slot));
    }

    /// Shares the far pages of a parent with its child, within the child's managed ranges.
    pub(crate) fn share_far(&mut self, parent: usize, child: &Arena) {
        let Faults { far, sent, .. } = &mut self.faults;
        let pages = &self.kernel.tables.pages;
        let is_far = |page: u64| {
            let cell = pages.word(parent, page * PAGE);
            cell.is_some_and(|cell| Word(cell.load(Ordering::Acquire)).state() == State::Remote)
        };
        for (start, end) in child.managed() {
            let (first, count) = ((parent, start / PAGE), (end - start) / PAGE);
            far.iter_mut().for_each(|far| far.places.share(first, child.slot, count));
            sent.iter_mut().for_each(|sent| sent.share(first, child.slot, count, is_far));
        }
    }

    /// Renames the far pages of a region that has moved.
    pub(crate) fn move_far(&mut self, slot: usize, from: u64, to: u64, bytes: u64) {
        let (first, to, count) = ((slot, from / PAGE), to / PAGE, bytes / PAGE);
        self.faults.far.iter_mut().for_each(|far| far.places.rename(first, to, count));
        self.faults.sent.iter_mut().for_each(|sent| sent.rename(first, to, count));
    }

    /// Stores the state word of a page, if it has one.
    pub(crate) fn set_word(&self, slot: usize, address: u64, word: Word) {
        if let Some(cell) = self.kernel.tables.pages.word(slot, address) {
            cell.store(word.0, Ordering::Release);
        }
    }

    fn tgid(&self, slot: usize) -> u32 {
        self.people.arenas[slot].as_ref().map_or(0, |arena| arena.tgid)
    }
}
