//! What the supervisor does in a chore.

use sys::told::children;

use super::{APART_NS, alone, is_stopped, unmaps};
use crate::protocol::command;
use crate::supervisor::Supervisor;

impl Supervisor<'_> {
    /// Does a chore if one is due.
    pub(crate) fn do_chore(&mut self) {
        if !self.upkeep.chores.any() {
            return;
        }
        let now = sys::clock::monotonic_ns();
        if now < self.upkeep.chores.next_ns {
            return;
        }
        self.upkeep.chores.next_ns = now + APART_NS;
        if self.upkeep.chores.to_tend > 0 {
            self.upkeep.chores.to_tend -= 1;
            if let Some(slot) = self.books.members.next_live(self.upkeep.chores.tended) {
                self.upkeep.chores.tended = slot;
                self.tend(slot);
            }
        } else if self.upkeep.chores.to_look_at > 0 {
            self.upkeep.chores.to_look_at -= 1;
            self.look_around();
        } else {
            self.upkeep.chores.to_scan -= 1;
            self.scan_unseen(1);
        }
    }

    // Looks after one process: frees addresses that have been unmapped, ends a helper that is
    // alone, notices one that is stopped, and samples memory.
    fn tend(&mut self, slot: usize) {
        self.books.members.touch(slot);
        if let Some(arena) = self.people.arenas[slot].as_mut() {
            arena.recycle(|tid| !unmaps(tid));
            if arena.helper.ready
                && let Some(status) = alone(arena.tgid)
            {
                let _gone = arena.send(command::LEAVE, 0, &[status]);
            }
        }
        let at_work =
            self.people.arenas[slot].as_mut().filter(|arena| arena.helper.awaited.dropping() > 0);
        if let Some(arena) = at_work
            && is_stopped(arena.tgid, arena.helper.thread)
        {
            // A helper that is stopped often but goes on in between is not stuck.
            arena.helper.stopped_looks += 1;
            if arena.is_stuck() {
                self.helper_stopped(slot);
            }
        }
        self.note_peak(slot);
    }

    // Samples the memory of the next image, and looks for processes that no call has shown.
    fn look_around(&mut self) {
        let Some(pid) = self.programs.images.next_due() else { return };
        // An image that is not managed does not report its children.
        if !self.programs.images.is_managed(pid) {
            for child in children(pid) {
                self.programs.images.notice(child);
            }
        }
        if !self.sample(pid) && !self.people.slots.contains_key(&pid) {
            self.programs.images.end(pid);
        }
    }
}
