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

    // Addresses whose unmapping thread has gone on without another call, a helper that is all that
    // is left, and what the process has now.
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
            // Not one that is stopped again and again, but goes on.
            arena.helper.stopped_looks += 1;
            if arena.is_stuck() {
                self.helper_stopped(slot);
            }
        }
        self.note_peak(slot);
    }

    // Looks at the memory of an image, and for processes that nobody has told of.
    fn look_around(&mut self) {
        let Some(pid) = self.programs.images.next_due() else { return };
        // Of the children of an image that is not managed nobody tells.
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
