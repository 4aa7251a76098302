//! The end of a cut: memory is as it was before.
//!
//! DESIGN NOTES
//!
//! * To watch a range for writes again takes the kernel 40 ns a page, so the memory of a large
//!   process is done in steps: between two of them the supervisor serves whoever waits, and rests:
//!   who runs for milliseconds keeps its processor from others until the clock ticks. What is still
//!   to be done is as it was while pages were copied.

use paging::word::{State, Word};
use sys::userfault::Watch;

use super::config::TrapKind;
use super::cut::{Cut, Phase, Purpose};
use super::supervisor::Supervisor;

/// Memory of a step: some 200 us.
const STEP_BYTES: u64 = 8 << 20;

impl Supervisor<'_> {
    /// Begins to end a cut whose copy is over.
    pub(crate) fn begin_thaw(&mut self, slot: usize) {
        let is_bpf = self.config.trap == TrapKind::Bpf;
        let cut = self.people.arenas[slot].as_mut().and_then(|arena| arena.cut.as_mut());
        let is_copied =
            |cut: &&mut Cut| cut.purpose == Purpose::Fork && cut.phase == Phase::Copying;
        match cut.filter(is_copied) {
            Some(cut) if is_bpf => {
                cut.thaws = true;
                self.forking.copies.thawing.push(slot);
            }
            _ => self.thaw(slot),
        }
    }

    /// The next step of every cut that ends.
    pub(crate) fn go_on_thawing(&mut self) {
        for slot in std::mem::take(&mut self.forking.copies.thawing) {
            let cut = self.people.arenas[slot].as_mut().and_then(|arena| arena.cut.as_mut());
            // Its process may have ended, and another be there.
            let Some(cut) = cut.filter(|cut| cut.thaws) else { continue };
            match next_step(&mut cut.ranges) {
                Some(step) => {
                    self.watch_writes_again(slot, step);
                    self.forking.copies.thawing.push(slot);
                }
                None => self.thaw(slot),
            }
        }
    }

    /// Ends a cut: memory is as it was before.
    pub(crate) fn thaw(&mut self, slot: usize) {
        let Some(arena) = self.people.arenas[slot].as_mut() else {
            return;
        };
        let Some(cut) = arena.cut.take() else {
            return;
        };
        if self.config.trap == TrapKind::Bpf {
            cut.ranges.iter().for_each(|&range| self.watch_writes_again(slot, range));
            let fault = self.people.arenas[slot].as_ref().and_then(|arena| arena.fault.as_ref());
            fault.into_iter().for_each(|fault| self.kernel.poll.remove(fault));
        }
        match cut.purpose {
            Purpose::Fork => cut.held.iter().for_each(|touch| self.resolve(touch)),
            // What was touched is gone; the touch is made again.
            Purpose::Move(moving) => self.wake(slot, moving.old_range()),
        }
        if let Some(call) = cut.call {
            // The caller may have died.
            let _gone = self.kernel.listener.proceed(call);
        }
        self.write_last_words(false);
    }

    fn wake(&self, slot: usize, (start, end): (u64, u64)) {
        if let Some(fault) =
            self.people.arenas[slot].as_ref().and_then(|arena| arena.fault.as_ref())
        {
            // Without its process nobody waits.
            let _gone = fault.wake(start, end - start);
        }
    }

    /// Ends a cut that was for a fork of `thread`, whose child never came.
    pub(crate) fn thaw_for(&mut self, slot: usize, thread: u32) {
        let cut = self.people.arenas[slot].as_ref().and_then(|arena| arena.cut.as_ref());
        if cut.is_some_and(|cut| cut.thread == thread && cut.phase != Phase::Copying) {
            self.thaw(slot);
        }
    }

    // Faults there are not reported any more, which wakes those who wait. To be watched less, a
    // range must not be watched at all for a moment, and the kernel forgets which pages are
    // write-protected.
    fn watch_writes_again(&self, slot: usize, (start, end): (u64, u64)) {
        let Some(fault) = self.people.arenas[slot].as_ref().and_then(|arena| arena.fault.as_ref())
        else {
            return;
        };
        // A range that is gone meanwhile is not watched either.
        let _gone = fault.unregister(start, end - start);
        let _gone = fault.register(start, end - start, Watch::Writes);
        let is_clean =
            |word: Word| word.state() != State::Absent && !word.dirty() && !word.untracked();
        for (start, end) in self.kernel.tables.pages.runs(slot, (start, end), is_clean) {
            let _gone = fault.write_protect(start, end - start);
        }
    }
}

// The next part of what is left, from its end.
fn next_step(left: &mut Vec<(u64, u64)>) -> Option<(u64, u64)> {
    let (start, end) = left.pop()?;
    let from = start.max(end.saturating_sub(STEP_BYTES));
    if start < from {
        left.push((start, from));
    }
    Some((from, end))
}

#[cfg(test)]
mod tests {
    use paging::regions::PAGE;

    use super::*;

    #[test]
    fn steps_are_short_and_leave_nothing_out() {
        let mut left = vec![(0, PAGE), (4 * STEP_BYTES, 6 * STEP_BYTES + PAGE)];
        let steps: Vec<_> = std::iter::from_fn(|| next_step(&mut left)).collect();
        let from = |bytes: u64| (bytes + PAGE, bytes + PAGE + STEP_BYTES);
        let first = (4 * STEP_BYTES, 4 * STEP_BYTES + PAGE);
        assert_eq!(steps, [from(5 * STEP_BYTES), from(4 * STEP_BYTES), first, (0, PAGE)]);
    }
}
