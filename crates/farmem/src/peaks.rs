//! The most that a process, and all of them, have had managed at a time.

use std::sync::atomic::Ordering;

use super::supervisor::Supervisor;

impl Supervisor<'_> {
    /// Keeps the most that has been managed at a time, in one process and in all.
    pub(crate) fn note_peak(&mut self, slot: usize) {
        self.tally(slot);
        let (pages, _local) = self.books.members.pages();
        self.books.totals.populated(pages);
        if let Some(arena) = &self.people.arenas[slot] {
            let pages = arena.pages(self.unlogged(slot));
            self.programs.images.had(arena.tgid, pages);
        }
    }

    /// First touches of a process that were counted and not logged.
    pub(crate) fn unlogged(&self, slot: usize) -> u64 {
        self.kernel.tables.proc(slot).first_touch_count().load(Ordering::Relaxed)
    }
}
