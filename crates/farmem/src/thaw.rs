//! Thawing: the end of a cut, after which memory is as it was before.
//!
//! DESIGN NOTES
//!
//! * To watch a range for writes again takes the kernel 40 ns a page, so the memory of a large
//!   process is thawed in steps: between two of them the supervisor serves whoever waits, and
//!   rests, because a thread that runs for milliseconds keeps its processor from others until the
//!   clock ticks. Memory that is not thawed yet is as it was while pages were copied.

use paging::word::{State, Word};
use sys::userfault::Watch;

use super::config::TrapKind;
use super::cut::{Cut, Phase, Purpose, take_portion};
use super::supervisor::Supervisor;

impl Supervisor<'_> {
    /// Begins to thaw a cut whose copy is over.
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

    /// Thaws the next portion of every cut that ends.
    pub(crate) fn go_on_thawing(&mut self) {
        for slot in std::mem::take(&mut self.forking.copies.thawing) {
            let Some(arena) = self.people.arenas[slot].as_mut() else { continue };
            // The process may have ended, and another may have its slot.
            let Some(mut cut) = arena.cut.take_if(|cut| cut.thaws) else { continue };
            let step = take_portion(&mut cut.ranges, |at, end| arena.next_data(at, end));
            arena.cut = Some(cut);
            if step.is_empty() {
                self.thaw(slot);
                continue;
            }
            step.into_iter().for_each(|range| self.watch_writes_again(slot, range));
            self.forking.copies.thawing.push(slot);
        }
    }

    /// Thaws all that is left of a cut, and lets held faults and calls go on.
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
            // The touched page has moved; its thread touches it again.
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
            // If the process is gone, no thread waits.
            let _gone = fault.wake(start, end - start);
        }
    }

    /// Thaws a cut for a fork of `thread` that has failed.
    pub(crate) fn thaw_for(&mut self, slot: usize, thread: u32) {
        let cut = self.people.arenas[slot].as_ref().and_then(|arena| arena.cut.as_ref());
        if cut.is_some_and(|cut| cut.thread == thread && cut.phase != Phase::Copying) {
            self.thaw(slot);
        }
    }

    // Has the kernel report only writes to a range, not faults, which wakes threads that wait. A
    // range cannot be watched less without being unregistered for a moment, and then the kernel
    // forgets which pages are write-protected.
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
