//! How the supervisor sends pages to a blade and fetches them.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use blades::{Answer, PAGE_BYTES, Wanted};
use paging::blade::{Arrival, Leave, Meanwhile, Outcome, Token};
use paging::leavers::Leaver;
use paging::order::FetchOrder;
use paging::page::PageIndex;
use paging::regions::PAGE;
use paging::word::{State, Word};

use super::{Brought, Coming, Far, content, sum};
use crate::RunError;
use crate::arena::Arena;
use crate::page_table::PageTable;
use crate::state::Faults;
use crate::supervisor::Supervisor;
use crate::userfault_trap::Touch;
use paging::outgoing::ticket;

impl Supervisor<'_> {
    /// Whether pages leave for a blade.
    pub(crate) const fn is_far(&self) -> bool {
        self.faults.far.is_some()
    }

    /// Sends to the blade the pages that residencies chose to leave.
    pub(crate) fn send_far(&mut self, tier: usize, pages: Vec<(usize, PageIndex)>) {
        let slots: BTreeSet<usize> = pages.iter().map(|one| one.0).collect();
        for (slot, page) in pages {
            self.serve_between();
            match self.send_page(slot, tier, page) {
                Ok(true) => {}
                Ok(false) => self.stays_in(slot, tier, page),
                Err(error) => {
                    self.stays_in(slot, tier, page);
                    self.fatal.get_or_insert(error);
                }
            }
        }
        slots.into_iter().for_each(|slot| self.tally(slot));
    }

    // Sends one page. Returns false if the page is no longer on probation.
    fn send_page(&mut self, slot: usize, tier: usize, page: PageIndex) -> Result<bool, RunError> {
        let Some(arena) = self.people.arenas[slot].as_ref() else { return Ok(true) };
        let Some(far) = self.faults.far.as_mut() else { return Ok(false) };
        let (address, lane) = (arena.address(page), (arena.budget, tier));
        let Some(cell) = self.kernel.tables.pages.word(slot, address) else { return Ok(false) };
        let word = Word(cell.load(Ordering::Acquire));
        if word.state() != State::Probation {
            return Ok(false);
        }
        let mut bytes = [0; PAGE_BYTES];
        arena.memory.read_at(&mut bytes, address)?;
        let content = content(&bytes, &far.key);
        let key = (slot, address / PAGE);
        let way = far.places.leave(key, content).ok_or(RunError::BladeFull(far.blade.pages()))?;
        let (Leave::Held(token) | Leave::Sent(token, _)) = way;
        cell.store(word.with_ticket(ticket_of(token)).0, Ordering::Release);
        let leaver = Leaver { token, key, page, lane };
        match way {
            Leave::Held(_) => {
                far.has_held = true;
                far.leavers.keep(leaver);
            }
            Leave::Sent(_, place) => {
                far.leavers.send(leaver);
                far.blade.write(token, place, &bytes);
                self.written_back((slot, page), address, tier);
            }
        }
        Ok(true)
    }

    /// Whether a frame can be had: a free one, or that of a page which the blade has.
    pub(crate) fn has_frame(&mut self, budget: usize, tier: usize) -> bool {
        let pages = &self.kernel.tables.pages;
        let far = self.faults.far.as_mut();
        let any = |far: &mut Far| far.leavers.any((budget, tier), |one| is_untouched(pages, one));
        self.kernel.tables.lane(budget, tier).free() > 0 || far.is_some_and(any)
    }

    /// Takes the frame of the page that leaves next. Returns false if there is none.
    pub(crate) fn give_frame(&mut self, budget: usize, tier: usize) -> bool {
        let Some(far) = self.faults.far.as_mut() else { return false };
        let pages = &self.kernel.tables.pages;
        far.leavers.give((budget, tier), |one| is_untouched(pages, one))
    }

    /// Makes pages far that have given their frames away: they leave the memory file.
    pub(crate) fn depart_given(&mut self) {
        for given in self.take_given() {
            self.depart_one(given);
        }
    }

    /// As [`depart_given`](Self::depart_given), and serves new asks between two pages: they may give
    /// further frames away.
    pub(crate) fn depart_between_asks(&mut self) {
        for given in self.take_given() {
            self.serve_between();
            self.depart_one(given);
        }
    }

    // Takes the pages whose transfers are to be ended, each with whether another page has the frame.
    fn take_given(&mut self) -> Vec<(Leaver, bool)> {
        self.faults.far.as_mut().map(|far| far.leavers.take_given()).unwrap_or_default()
    }

    fn depart_one(&mut self, (leaver, has_given): (Leaver, bool)) {
        match self.depart(leaver) {
            Ok(true) => {}
            // Another page has its frame.
            Ok(false) if has_given => self.lacks_frame(leaver.lane),
            Ok(false) => {}
            Err(error) => {
                self.fatal.get_or_insert(error);
            }
        }
    }

    // Notes that a frame is used twice: the budget is one short.
    fn lacks_frame(&mut self, (budget, tier): (usize, usize)) {
        self.kernel.tables.lane(budget, tier).credit(-1);
        self.books.members.short(budget);
    }

    /// Frees frames while more are in use than the budget has, as far as any can be had.
    pub(crate) fn make_up(&mut self, budget: usize, tier: usize) {
        while self.kernel.tables.lane(budget, tier).free() < 0 && self.give_frame(budget, tier) {
            self.kernel.tables.lane(budget, tier).credit(1);
            self.depart_given();
        }
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
        let answer = self.faults.far.as_mut().and_then(|far| far.blade.next());
        answer.map_or(Ok(false), |answer| self.answered(answer).map(|()| true))
    }

    // Acts on an answer: a write-back is acknowledged, or a page has come.
    fn answered(&mut self, Answer { token, result }: Answer) -> Result<(), RunError> {
        let page = result.map_err(RunError::Blade)?;
        let Some(far) = self.faults.far.as_mut() else { return Ok(()) };
        if let Some((budget, _)) = far.leavers.acknowledged(token) {
            // The blade has the page: its frame can be had.
            self.books.members.short(budget);
            return Ok(());
        }
        page.map_or(Ok(()), |bytes| self.came(token, &bytes))
    }

    // Makes an acknowledged page far, unless it has changed since. Returns whether it has left.
    fn depart(&mut self, Leaver { token, page, lane, .. }: Leaver) -> Result<bool, RunError> {
        let Some(far) = self.faults.far.as_mut() else { return Ok(false) };
        let pages = &self.kernel.tables.pages;
        let sent = far.places.sum_of(token);
        let mut changed = None;
        let meanwhile = |(slot, number): (usize, u64)| {
            let arena = self.people.arenas[slot].as_ref();
            let cell = pages.word(slot, number * PAGE);
            let (Some(arena), Some(cell)) = (arena, cell) else { return Meanwhile::Gone };
            let word = Word(cell.load(Ordering::Acquire));
            if word.ticket() != Some(ticket_of(token)) {
                return if word.resident() { Meanwhile::Touched } else { Meanwhile::Gone };
            }
            let mut bytes = [0; PAGE_BYTES];
            let is_read = arena.memory.read_at(&mut bytes, number * PAGE).is_ok();
            let is_same = is_read && Some(sum(&bytes)) == sent;
            let state = if is_same { State::Remote } else { State::Local };
            cell.store(word.with_state(state).with_dirty(!is_same).0, Ordering::Release);
            changed = (!is_same).then_some(slot);
            if is_same { Meanwhile::Untouched } else { Meanwhile::Gone }
        };
        let outcome = far.places.left(token, meanwhile);
        if let Some(arena) = changed.and_then(|slot| self.people.arenas[slot].as_mut()) {
            // A device has written to the page, which is unmapped and stays local.
            arena.tiers[lane.1].soft_fault(page);
        }
        let Some(Outcome::Far((slot, number))) = outcome else { return Ok(false) };
        let address = number * PAGE;
        // The page may not have been copied to a child yet.
        self.preserve(slot, address, address + PAGE);
        let Some(arena) = self.people.arenas[slot].as_mut() else { return Ok(true) };
        arena.memory.punch(address, PAGE)?;
        if let Some(order) = self.faults.far.as_mut().and_then(|far| far.order.as_mut()) {
            order.left((slot, number));
        }
        if arena.tiers[lane.1].left(page) {
            self.books.totals.evicted();
        }
        self.books.members.touch(slot);
        Ok(true)
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

    // Verifies a page that has come, and puts it in place.
    fn came(&mut self, token: Token, bytes: &[u8; PAGE_BYTES]) -> Result<(), RunError> {
        let Some(far) = self.faults.far.as_mut() else { return Ok(()) };
        let is_zeros = || bytes.iter().all(|&byte| byte == 0);
        let arrival = far.places.arrived(token, sum(bytes), is_zeros);
        if let Some(Err(lost)) = &arrival
            && far.blade.distrusts(token, &lost.to_string())
        {
            return Ok(());
        }
        let Some(coming) = far.coming.remove(&token) else { return Ok(()) };
        let touch = coming.touch;
        match arrival {
            None => Ok(()),
            Some(Err(lost)) => {
                let (tgid, address) = (self.tgid(touch.slot), touch.address);
                Err(RunError::BladeLost { tgid, address, lost })
            }
            Some(Ok(Arrival::Nobody)) => {
                // The page was emptied or moved meanwhile; a thread that waits touches it again.
                self.wake_again(&touch);
                Ok(())
            }
            Some(Ok(Arrival::Page(_))) => self.land(coming, bytes),
        }
    }

    // Puts a verified page into the memory file, and maps it unless it is watched.
    fn land(
        &mut self,
        Coming { touch, wanted, joined, .. }: Coming,
        bytes: &[u8; PAGE_BYTES],
    ) -> Result<(), RunError> {
        // A child must not get what its parent has from here on.
        self.preserve(touch.slot, touch.address, touch.address + PAGE);
        let Some(arena) = self.people.arenas[touch.slot].as_ref() else { return Ok(()) };
        let order = self.faults.far.as_ref().and_then(|far| far.order.as_ref());
        let watches = |order: &FetchOrder| order.watches((touch.slot, touch.address / PAGE));
        // No thread waits for it: a watched page may have been moved, and moved back.
        let is_free = wanted == Wanted::Ahead && joined.is_none();
        let is_watched = is_free && order.is_some_and(watches);
        let is_mapped = !is_watched && arena.maps(bytes, touch.address);
        if !is_mapped {
            arena.memory.write_at(bytes, touch.address)?;
        }
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
        Ok(())
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

// The ticket of a transfer, as a state word has it.
fn ticket_of(token: Token) -> u32 {
    ticket(u32::try_from(token & u64::from(u32::MAX)).unwrap_or(0))
}

// Whether a page is untouched since it was sent.
fn is_untouched(pages: &PageTable, leaver: &Leaver) -> bool {
    let cell = pages.word(leaver.key.0, leaver.key.1 * PAGE);
    let word = cell.map(|cell| Word(cell.load(Ordering::Acquire)));
    word.is_some_and(|word| word.ticket() == Some(ticket_of(leaver.token)))
}
