//! How the supervisor sends pages away and takes them back.

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

    /// Sends pages away, which their residencies have given.
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

    // Answers whether it was still unmapped.
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

    /// Whether a frame can be had: one that is free, or that a page gives up which the blade has.
    pub(crate) fn has_frame(&mut self, budget: usize, tier: usize) -> bool {
        let pages = &self.kernel.tables.pages;
        let far = self.faults.far.as_mut();
        let any = |far: &mut Far| far.leavers.any((budget, tier), |one| is_untouched(pages, one));
        self.kernel.tables.lane(budget, tier).free() > 0 || far.is_some_and(any)
    }

    /// Has the page that leaves next give its frame away. Answers whether there is one.
    pub(crate) fn give_frame(&mut self, budget: usize, tier: usize) -> bool {
        let Some(far) = self.faults.far.as_mut() else { return false };
        let pages = &self.kernel.tables.pages;
        far.leavers.give((budget, tier), |one| is_untouched(pages, one))
    }

    /// Pages that have given their frames away are far, and leave the memory file.
    pub(crate) fn depart_given(&mut self) {
        let given = self.faults.far.as_mut().map(|far| far.leavers.take_given());
        for (leaver, has_given) in given.into_iter().flatten() {
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
    }

    fn lacks_frame(&mut self, (budget, tier): (usize, usize)) {
        self.kernel.tables.lane(budget, tier).credit(-1);
        self.books.members.short(budget);
    }

    /// Makes up for frames that are in use beyond the budget, as far as any can be had.
    pub(crate) fn make_up(&mut self, budget: usize, tier: usize) {
        while self.kernel.tables.lane(budget, tier).free() < 0 && self.give_frame(budget, tier) {
            self.kernel.tables.lane(budget, tier).credit(1);
            self.depart_given();
        }
    }

    /// The blade has rung, or is to be asked: takes its answers.
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

    /// Takes the next answer of the blade. Answers whether there was one.
    pub(super) fn take_answer(&mut self) -> Result<bool, RunError> {
        let answer = self.faults.far.as_mut().and_then(|far| far.blade.next());
        answer.map_or(Ok(false), |answer| self.answered(answer).map(|()| true))
    }

    fn answered(&mut self, Answer { token, result }: Answer) -> Result<(), RunError> {
        let page = result.map_err(RunError::Blade)?;
        let Some(far) = self.faults.far.as_mut() else { return Ok(()) };
        if let Some((budget, _)) = far.leavers.acknowledged(token) {
            // The blade has it: its frame can be had.
            self.books.members.short(budget);
            return Ok(());
        }
        page.map_or(Ok(()), |bytes| self.came(token, &bytes))
    }

    // Ends the way out of a page that the blade has: it is far if it is as it was sent.
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
            // A device has written to it. It is unmapped, and local.
            arena.tiers[lane.1].soft_fault(page);
        }
        let Some(Outcome::Far((slot, number))) = outcome else { return Ok(false) };
        let address = number * PAGE;
        // A child may not have it yet.
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

    /// Has a page come that is far, which has a frame; `touch` says what for.
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

    // A page has come.
    fn came(&mut self, token: Token, bytes: &[u8; PAGE_BYTES]) -> Result<(), RunError> {
        let Some(far) = self.faults.far.as_mut() else { return Ok(()) };
        let is_zeros = bytes.iter().all(|&byte| byte == 0);
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
                // It has been emptied or moved meanwhile, and whoever waits touches it again.
                self.wake_again(&touch);
                Ok(())
            }
            Some(Ok(Arrival::Page(_))) => self.land(coming, bytes),
        }
    }

    fn land(
        &mut self,
        Coming { touch, wanted, joined, .. }: Coming,
        bytes: &[u8; PAGE_BYTES],
    ) -> Result<(), RunError> {
        // A child does not get what its parent has now.
        self.preserve(touch.slot, touch.address, touch.address + PAGE);
        let Some(arena) = self.people.arenas[touch.slot].as_ref() else { return Ok(()) };
        let order = self.faults.far.as_ref().and_then(|far| far.order.as_ref());
        let watches = |order: &FetchOrder| order.watches((touch.slot, touch.address / PAGE));
        // Nobody waits for it: what is watched may have been moved, and moved back.
        let is_free = wanted == Wanted::Ahead && joined.is_none();
        let is_watched = is_free && order.is_some_and(watches);
        let is_mapped = !is_watched && arena.maps(bytes, touch.address);
        if !is_mapped {
            arena.memory.write_at(bytes, touch.address)?;
        }
        if let Some(cell) = self.kernel.tables.pages.word(touch.slot, touch.address) {
            let word = Word(cell.load(Ordering::Acquire));
            // Writes to it are not noticed; what it holds tells when it leaves.
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

    fn wake_again(&mut self, touch: &Touch) {
        self.answer_asks(touch);
        let arena = self.people.arenas[touch.slot].as_ref();
        if let Some(fault) = arena.and_then(|arena| arena.fault.as_ref()) {
            // Without its process nobody waits.
            let _gone = fault.wake(touch.address, PAGE);
        }
    }

    /// Has a page come that the supervisor needs, or the kernel; it has a frame of the budget, or
    /// one beyond it if it `must`.
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

    /// Whether all of a range is here, so that the supervisor can read it, and write to it; what is
    /// not is brought.
    pub(crate) fn is_here(&mut self, slot: usize, start: u64, bytes: u64) -> bool {
        let Some(far) = &self.faults.far else { return true };
        let first = start / PAGE;
        let last = start.saturating_add(bytes.saturating_sub(1)) / PAGE;
        // Those on their way are among them.
        let away = far.places.within((slot, first), last - first + 1);
        for &(_, page) in &away {
            self.bring(slot, page * PAGE, true);
        }
        away.is_empty()
    }

    /// Has all of a range here, and waits for it: for memory that goes out of reach.
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

    /// The contents of a range are gone.
    pub(crate) fn forget_far(&mut self, slot: usize, start: u64, end: u64) {
        let (first, count) = ((slot, start / PAGE), (end - start) / PAGE);
        self.faults.far.iter_mut().for_each(|far| far.places.forget(first, count));
        self.faults.sent.iter_mut().for_each(|sent| sent.forget(first, count));
    }

    /// A process has ended: what it had is gone, and nobody waits for what is on its way to it.
    pub(crate) fn retire_far(&mut self, arena: &Arena) {
        self.faults.sent.iter_mut().for_each(|sent| sent.forget((arena.slot, 0), u64::MAX));
        let Some(far) = self.faults.far.as_mut() else { return };
        far.order.iter_mut().for_each(|order| order.ends(arena.slot));
        let coming = far.coming.values().map(|coming| &coming.touch);
        for touch in coming.filter(|touch| touch.slot == arena.slot) {
            // It has a frame, and was not admitted yet.
            if far.places.is_far((touch.slot, touch.address / PAGE)) {
                self.kernel.tables.lane(touch.budget, touch.tier).credit(1);
            }
        }
        far.places.forget((arena.slot, 0), u64::MAX);
        far.leavers.end(arena.slot);
        self.faults.asks.iter_mut().for_each(|asks| asks.forget(arena.slot));
    }

    /// A child has what of its parent is far, and nothing of it where it is to find zeros.
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

    /// A region has moved.
    pub(crate) fn move_far(&mut self, slot: usize, from: u64, to: u64, bytes: u64) {
        let (first, to, count) = ((slot, from / PAGE), to / PAGE, bytes / PAGE);
        self.faults.far.iter_mut().for_each(|far| far.places.rename(first, to, count));
        self.faults.sent.iter_mut().for_each(|sent| sent.rename(first, to, count));
    }

    /// Changes the word of a page that has one.
    pub(crate) fn set_word(&self, slot: usize, address: u64, word: Word) {
        if let Some(cell) = self.kernel.tables.pages.word(slot, address) {
            cell.store(word.0, Ordering::Release);
        }
    }

    fn tgid(&self, slot: usize) -> u32 {
        self.people.arenas[slot].as_ref().map_or(0, |arena| arena.tgid)
    }
}

fn ticket_of(token: Token) -> u32 {
    ticket(u32::try_from(token & u64::from(u32::MAX)).unwrap_or(0))
}

// Whether nobody has touched a page since it was sent.
fn is_untouched(pages: &PageTable, leaver: &Leaver) -> bool {
    let cell = pages.word(leaver.key.0, leaver.key.1 * PAGE);
    let word = cell.map(|cell| Word(cell.load(Ordering::Acquire)));
    word.is_some_and(|word| word.ticket() == Some(ticket_of(leaver.token)))
}
