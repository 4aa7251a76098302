//! The supervisor's steps of copies: it sends pieces, takes outcomes, and wakes who waits.

use paging::word::{State, Word};

use super::{Copy, PIECE};
use crate::RunError;
use crate::config::TrapKind;
use crate::copier::{Copier, Done};
use crate::supervisor::{COPIED, Supervisor};

impl Supervisor<'_> {
    /// Sends the next piece of each copy under way; children whose copies are complete go on.
    pub(crate) fn advance_copies(&mut self) {
        while let Some(done) = self.forking.copies.copier.as_ref().and_then(Copier::next) {
            self.copied(done);
        }
        let idle = self.forking.copies.under_way.iter().filter(|copy| copy.away.is_empty());
        for child in idle.map(|copy| copy.child).collect::<Vec<_>>() {
            let outcome = match self.send_piece(child) {
                Ok(false) => {
                    self.end_copy(child);
                    self.enter_child(child)
                }
                sent => sent.map(|_sent| ()),
            };
            if let Err(error) = outcome {
                self.abandon(child, &error);
            }
        }
    }

    // Sends the next piece of the copy for `child`. Returns false if nothing was left.
    fn send_piece(&mut self, child: u32) -> Result<bool, RunError> {
        let Some(copy) = self.forking.copies.under_way.iter_mut().find(|copy| copy.child == child)
        else {
            return Ok(false);
        };
        let Some(piece) = copy.next_piece()? else { return Ok(false) };
        if self.forking.copies.copier.is_none() {
            let copier = Copier::start()?;
            self.kernel.poll.add(copier.bell().descriptor(), COPIED)?;
            self.forking.copies.copier = Some(copier);
        }
        if let Some(copier) = &self.forking.copies.copier {
            copier.send(piece);
        }
        Ok(true)
    }

    // Takes the outcome of a piece: maps its pages in the parent again, or abandons the child.
    fn copied(&mut self, done: Done) {
        // The copy is gone if its child has ended.
        let ours = |copy: &&mut Copy| copy.number == done.number;
        let Some(copy) = self.forking.copies.under_way.iter_mut().find(ours) else { return };
        let (parent, child) = (copy.parent, copy.child);
        match done.result.map_err(RunError::from).and_then(|()| copy.settle()) {
            Ok(done) => parent.into_iter().for_each(|slot| self.map_back(slot, &done)),
            Err(error) => self.abandon(child, &error),
        }
    }

    /// Whether a thread that is about to free a range must wait, because more than a piece of it is
    /// still to be copied. If so, that range is copied next.
    pub(crate) fn awaits_copy(&mut self, slot: usize, start: u64, bytes: u64) -> bool {
        let ours = |copy: &&mut Copy| copy.parent == Some(slot);
        let Some(copy) = self.forking.copies.under_way.iter_mut().find(ours) else { return false };
        let end = start.saturating_add(bytes);
        let left: u64 = copy.todo.within(start, end).iter().map(|(from, to)| to - from).sum();
        let waits = left > PIECE;
        if waits {
            copy.wanted = Some((start, end));
        }
        waits
    }

    /// Ends the copy for `child`, complete or not.
    pub(crate) fn end_copy(&mut self, child: u32) {
        let ended = self.forking.copies.under_way.iter().position(|copy| copy.child == child);
        let parent = ended.and_then(|at| self.forking.copies.under_way.swap_remove(at).parent);
        if let Some(slot) = parent {
            self.begin_thaw(slot);
        }
    }

    /// Detaches copies from their parent in `slot`, which has ended; they go on.
    pub(crate) fn outlive(&mut self, slot: usize) {
        for copy in
            self.forking.copies.under_way.iter_mut().filter(|copy| copy.parent == Some(slot))
        {
            copy.parent = None;
        }
    }

    /// Copies what is left of a range that the process in `slot` is about to change.
    pub(crate) fn preserve(&mut self, slot: usize, start: u64, end: u64) {
        let ours = |copy: &&mut Copy| copy.parent == Some(slot);
        let Some(copy) = self.forking.copies.under_way.iter_mut().find(ours) else {
            return;
        };
        if let Err(error) = copy.preserve(start, end) {
            let child = copy.child;
            self.abandon(child, &error);
        }
    }

    /// Whether the memory of the process in `slot` is being copied.
    pub(crate) fn is_copied(&self, slot: usize) -> bool {
        self.forking.copies.under_way.iter().any(|copy| copy.parent == Some(slot))
    }

    // Maps pages of the parent again that were mapped before the cut, so that it need not fault on
    // each. Pages whose writes are tracked are left out: they would be mapped writable.
    fn map_back(&self, slot: usize, ranges: &[(u64, u64)]) {
        let Some(arena) = self.people.arenas[slot].as_ref().filter(|arena| arena.cut.is_some())
        else {
            return;
        };
        let Some(fault) = &arena.fault else { return };
        let all = self.config.trap == TrapKind::Userfault;
        let wanted = |word: Word| word.state() == State::Local && (all || word.dirty());
        let runs =
            ranges.iter().flat_map(|&range| self.kernel.tables.pages.runs(slot, range, wanted));
        for (start, end) in runs {
            // A range that is gone meanwhile needs no mapping.
            let _gone = fault.map_all(start, end - start);
        }
    }
}
