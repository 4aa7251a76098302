//! How pages leave for a blade: they are sent, and leave the memory file when their frames are
//! needed.
//!
//! DESIGN NOTES
//!
//! * Neighbours are read, and leave the file, in runs, by one call: one by one, a program that
//!   reads or writes in order was slower by a quarter. A fault that comes meanwhile waits for the
//!   end of a run, which is therefore short (`RUN_PAGES`).
//! * Between the state word that says that a page is far and the end of its bytes in the file
//!   nothing is served: a fault would bring the page, and the hole would then take it away.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use blades::PAGE_BYTES;
use paging::blade::{Key, Leave, Meanwhile, Outcome, Token};
use paging::leavers::Leaver;
use paging::outgoing::ticket;
use paging::page::PageIndex;
use paging::regions::PAGE;
use paging::word::{State, Word};

use super::{Far, RUN_PAGES, content, sum};
use crate::RunError;
use crate::supervisor::Supervisor;
use tables::PageTable;

/// A page whose transfer is to be ended, and whether another page has its frame.
type Given = (Leaver, bool);

impl Supervisor<'_> {
    /// Sends to the blade the pages that residencies chose to leave.
    pub(crate) fn send_far(&mut self, tier: usize, pages: Vec<(usize, PageIndex)>) {
        let slots: BTreeSet<usize> = pages.iter().map(|one| one.0).collect();
        let key = |(slot, page): (usize, PageIndex)| {
            let address = self.people.arenas[slot].as_ref().map(|arena| arena.address(page));
            address.map(|address| ((slot, address / PAGE), page))
        };
        let pages: Vec<(Key, PageIndex)> = pages.into_iter().filter_map(key).collect();
        let Some(mut bytes) = self.faults.far.as_mut().map(Far::take_room) else { return };
        for run in runs(&pages, |one| one.0) {
            self.serve_between();
            let is_read = self.read_run(run[0].0, &mut bytes[..run.len()]);
            for (&(key, page), bytes) in run.iter().zip(&bytes) {
                // The program can have touched a page since it was read. Then it is local.
                self.serve_between();
                let is_sent = is_read.then(|| self.send_page(key, tier, page, bytes));
                match is_sent.unwrap_or(Err(RunError::Lost("a page of the program"))) {
                    Ok(true) => {}
                    Ok(false) => self.stays_in(key.0, tier, page),
                    Err(error) => {
                        self.stays_in(key.0, tier, page);
                        self.fatal.get_or_insert(error);
                    }
                }
            }
        }
        self.faults.far.iter_mut().for_each(|far| far.bytes = std::mem::take(&mut bytes));
        slots.into_iter().for_each(|slot| self.tally(slot));
    }

    // Reads neighbours from the memory file. Returns false if they cannot be read.
    fn read_run(&self, (slot, first): Key, pages: &mut [[u8; PAGE_BYTES]]) -> bool {
        let arena = self.people.arenas[slot].as_ref();
        arena.is_some_and(|arena| {
            arena.memory.read_at(pages.as_flattened_mut(), first * PAGE).is_ok()
        })
    }

    // Sends one page, of which these are the bytes. Returns false if it is no longer on probation.
    fn send_page(
        &mut self,
        key: Key,
        tier: usize,
        page: PageIndex,
        bytes: &[u8; PAGE_BYTES],
    ) -> Result<bool, RunError> {
        let (slot, address) = (key.0, key.1 * PAGE);
        let Some(arena) = self.people.arenas[slot].as_ref() else { return Ok(true) };
        let Some(far) = self.faults.far.as_mut() else { return Ok(false) };
        let lane = (arena.budget, tier);
        let Some(cell) = self.kernel.tables.pages.word(slot, address) else { return Ok(false) };
        let word = Word(cell.load(Ordering::Acquire));
        if word.state() != State::Probation {
            return Ok(false);
        }
        let content = content(bytes, &far.key);
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
                far.blade.write(token, place, bytes);
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
        for run in runs(&self.take_given(), |one| one.0.key) {
            self.depart_run(run);
        }
    }

    /// As [`depart_given`](Self::depart_given), and serves new asks between two runs: they may give
    /// further frames away.
    pub(crate) fn depart_between_asks(&mut self) {
        for run in runs(&self.take_given(), |one| one.0.key) {
            self.serve_between();
            self.depart_run(run);
        }
    }

    // Takes the pages whose transfers are to be ended, in the order of their addresses.
    fn take_given(&mut self) -> Vec<Given> {
        let given = self.faults.far.as_mut().map(|far| far.leavers.take_given());
        let mut given = given.unwrap_or_default();
        given.sort_by_key(|(leaver, _)| leaver.key);
        given
    }

    // Ends the transfers of neighbours. Those that are far then leave the memory file.
    fn depart_run(&mut self, run: &[Given]) {
        let Some(mut bytes) = self.faults.far.as_mut().map(Far::take_room) else { return };
        let is_read = self.read_run(run[0].0.key, &mut bytes[..run.len()]);
        let mut left = Vec::with_capacity(run.len());
        for (&(leaver, has_given), bytes) in run.iter().zip(&bytes) {
            match self.depart(leaver, is_read.then_some(bytes)) {
                true => left.push(leaver),
                // Another page has its frame.
                false if has_given => self.lacks_frame(leaver.lane),
                false => {}
            }
        }
        self.faults.far.iter_mut().for_each(|far| far.bytes = std::mem::take(&mut bytes));
        for run in runs(&left, |leaver| leaver.key) {
            if let Err(error) = self.take_out(run) {
                self.fatal.get_or_insert(error);
            }
        }
    }

    // Makes an acknowledged page far, of which these are the bytes, unless it has changed since.
    // Returns whether it is far.
    fn depart(&mut self, leaver: Leaver, bytes: Option<&[u8; PAGE_BYTES]>) -> bool {
        let Leaver { token, page, lane, .. } = leaver;
        let Some(far) = self.faults.far.as_mut() else { return false };
        let pages = &self.kernel.tables.pages;
        let sent = far.places.sum_of(token);
        let mut changed = None;
        let meanwhile = |(slot, number): Key| {
            let arena = self.people.arenas[slot].as_ref();
            let cell = pages.word(slot, number * PAGE);
            let (Some(_), Some(cell)) = (arena, cell) else { return Meanwhile::Gone };
            let word = Word(cell.load(Ordering::Acquire));
            if word.ticket() != Some(ticket_of(token)) {
                return if word.resident() { Meanwhile::Touched } else { Meanwhile::Gone };
            }
            let is_same = bytes.is_some_and(|bytes| Some(sum(bytes)) == sent);
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
        matches!(outcome, Some(Outcome::Far(_)))
    }

    // Takes neighbours that are far out of the memory file.
    fn take_out(&mut self, run: &[Leaver]) -> Result<(), RunError> {
        let (slot, first) = run[0].key;
        let (start, bytes) = (first * PAGE, run.len() as u64 * PAGE);
        // The pages may not have been copied to a child yet.
        self.preserve(slot, start, start + bytes);
        let Some(arena) = self.people.arenas[slot].as_mut() else { return Ok(()) };
        arena.memory.punch(start, bytes)?;
        for &Leaver { key, page, lane, .. } in run {
            if let Some(order) = self.faults.far.as_mut().and_then(|far| far.order.as_mut()) {
                order.left(key);
            }
            if arena.tiers[lane.1].left(page) {
                self.books.totals.evicted();
            }
        }
        self.books.members.touch(slot);
        Ok(())
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
}

// The items as runs of neighbours in one process; `key` says which page an item is of.
fn runs<T>(items: &[T], key: impl Fn(&T) -> Key + Copy) -> impl Iterator<Item = &[T]> {
    let follows = move |one: &T, next: &T| {
        let ((slot, page), next) = (key(one), key(next));
        (slot, page + 1) == next
    };
    items.chunk_by(follows).flat_map(|run| run.chunks(RUN_PAGES))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_process_are_a_run_of_bounded_length() {
        let pages = [(1, 5), (1, 6), (1, 8), (2, 9), (2, 10), (2, 10), (2, 11)];
        let lengths: Vec<usize> = runs(&pages, |&key| key).map(<[Key]>::len).collect();
        assert_eq!(lengths, [2, 1, 2, 2]);
        let many: Vec<Key> = (0..RUN_PAGES as u64 * 2 + 1).map(|page| (3, page)).collect();
        let lengths: Vec<usize> = runs(&many, |&key| key).map(<[Key]>::len).collect();
        assert_eq!(lengths, [RUN_PAGES, RUN_PAGES, 1]);
    }
}
