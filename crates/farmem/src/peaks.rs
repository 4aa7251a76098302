//! The peak of managed memory, of each process and of all together.

use std::sync::atomic::Ordering;

use super::supervisor::Supervisor;

impl Supervisor<'_> {
    /// Raises the peak of managed pages, of the process in `slot` and of all together.
    pub(crate) fn note_peak(&mut self, slot: usize) {
        self.tally(slot);
        let (pages, _local) = self.books.members.pages();
        self.books.totals.populated(pages);
        if let Some(arena) = &self.people.arenas[slot] {
            let pages = arena.pages(self.unlogged(slot));
            self.programs.images.had(arena.tgid, pages);
        }
    }

    /// How many first touches of a process were counted but not logged.
    pub(crate) fn unlogged(&self, slot: usize) -> u64 {
        self.kernel.tables.proc(slot).first_touch_count().load(Ordering::Relaxed)
    }
}
