//! Which pages are written back when they leave, and what far memory has of them.

use std::collections::BTreeMap;

use crate::blade::Key;
use crate::print::PrintKey;

/// Which pages use the link when they leave, and keep their frames until far memory has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum WriteBack {
    /// Pages that were written to, as hardware and kernels see it.
    #[default]
    Written,
    /// Pages whose contents differ from what far memory has: not if a write left or restored the
    /// same bytes.
    Changed,
    /// No pages, as with the FIFO and random policies of the `DiME` module.
    Free,
}

impl WriteBack {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Written, Self::Changed, Self::Free];

    /// The name that users know it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Changed => "changed",
            Self::Free => "free",
        }
    }
}

/// Fingerprints of the pages that far memory has, in a run that emulates it.
#[derive(Debug)]
pub struct Sent {
    print: PrintKey,
    prints: BTreeMap<Key, u64>,
}

impl Sent {
    /// Far memory has nothing yet; `print` makes its fingerprints.
    #[must_use]
    pub const fn new(print: PrintKey) -> Self {
        Self { print, prints: BTreeMap::new() }
    }

    /// Notes the contents of a page that leaves. Returns whether far memory had other contents, or
    /// none.
    pub fn changes(&mut self, key: Key, page: &[u8; 4096]) -> bool {
        let print = self.print.print(page);
        self.prints.insert(key, print) != Some(print)
    }

    /// Forgets `count` pages from `first` on, whose contents are gone.
    pub fn forget(&mut self, (slot, first): Key, count: u64) {
        for (key, _) in self.within((slot, first), count) {
            self.prints.remove(&key);
        }
    }

    /// Renames `count` pages from `from` to `to`, in one process. What was at `to` was forgotten
    /// before.
    pub fn rename(&mut self, (slot, from): Key, to: u64, count: u64) {
        for (key, print) in self.within((slot, from), count) {
            self.prints.remove(&key);
            self.prints.insert((slot, key.1 - from + to), print);
        }
    }

    /// Copies fingerprints from a parent to its child, of those of `count` pages that are far.
    pub fn share(&mut self, parent: Key, child: usize, count: u64, is_far: impl Fn(u64) -> bool) {
        let far = self.within(parent, count).into_iter().filter(|(key, _)| is_far(key.1));
        self.prints.extend(far.map(|((_, page), print)| ((child, page), print)));
    }

    fn within(&self, (slot, first): Key, count: u64) -> Vec<(Key, u64)> {
        let range = (slot, first)..(slot, first.saturating_add(count));
        self.prints.range(range).map(|(&key, &print)| (key, print)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_far_memory_has_already_has_not_changed() {
        let mut sent = Sent::new(PrintKey::new(&[3; 4096], 5));
        let mut changes = |key, byte| sent.changes(key, &[byte; 4096]);
        assert!(changes((0, 7), 1), "it has nothing yet");
        assert!(!changes((0, 7), 1));
        assert!(changes((0, 7), 2) && changes((0, 7), 1));
        sent.rename((0, 0), 100, 10);
        assert!(sent.changes((0, 7), &[1; 4096]), "it has moved");
        assert!(!sent.changes((0, 107), &[1; 4096]));
        sent.forget((0, 100), 10);
        assert!(sent.changes((0, 107), &[1; 4096]), "it was freed");
    }

    #[test]
    fn a_child_has_what_was_far_of_its_parent() {
        let mut sent = Sent::new(PrintKey::new(&[3; 4096], 5));
        assert!(sent.changes((0, 1), &[5; 4096]) && sent.changes((0, 2), &[6; 4096]));
        sent.share((0, 0), 1, 10, |page| page == 1);
        assert!(!sent.changes((1, 1), &[5; 4096]));
        assert!(sent.changes((1, 2), &[6; 4096]), "it was local, and its copy is the parent's");
    }
}
