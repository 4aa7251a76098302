//! Commands to a helper whose replies are awaited.

use std::collections::BTreeMap;

use paging::page::PageIndex;

use super::moves::Move;
use super::request::MapRequest;

/// A command sent to the helper whose reply is awaited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pending {
    /// New memory for the call `id`.
    Map { id: u64, thread: u32, start: u64, bytes: u64, attempts: u32, request: MapRequest },
    /// A new place for a region that moves.
    Move(Move),
    /// The old place of a region that moves is to be unmapped.
    Vacate(Move),
    /// Memory from `start` on, for the stock.
    Stock { start: u64 },
    /// The helper changes its rights before the program does by the call `id`.
    Follow { id: u64 },
    /// Ranges that no thread may touch until a fork.
    Freeze,
    /// Pages to unmap: those of `tier` that may leave then; addresses to write-protect.
    Drop { pages: Vec<PageIndex>, tier: usize, unprotected: Vec<u64> },
}

/// The commands that a helper has yet to answer. It answers them in order.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    last: u64,
    pending: BTreeMap<u64, Pending>,
    dropping: u64,
}

impl Awaited {
    /// The number of the next command.
    pub(crate) const fn next(&self) -> u64 {
        self.last + 1
    }

    /// Notes that the next command has been sent.
    pub(crate) fn sent(&mut self, pending: Pending) {
        self.last += 1;
        self.dropping += count(&pending);
        self.pending.insert(self.last, pending);
    }

    /// The command that reply `number` answers. A drop lists only pages that no later command
    /// drops: the others were touched since, and stay mapped until that is answered.
    pub(crate) fn answered(&mut self, number: u64) -> Option<Pending> {
        let mut pending = self.pending.remove(&number)?;
        self.dropping -= count(&pending);
        if let Pending::Drop { pages, .. } = &mut pending {
            pages.retain(|&page| !self.drops(page));
        }
        Some(pending)
    }

    /// Whether the helper is about to unmap a page.
    pub(crate) fn drops(&self, page: PageIndex) -> bool {
        let has =
            |one: &Pending| matches!(one, Pending::Drop { pages, .. } if pages.contains(&page));
        self.pending.values().any(has)
    }

    /// How many pages the helper is about to unmap.
    pub(crate) const fn dropping(&self) -> u64 {
        self.dropping
    }

    /// Whether `is` holds for any awaited command.
    pub(crate) fn any(&self, is: impl FnMut(&Pending) -> bool) -> bool {
        self.pending.values().any(is)
    }

    /// How many commands are not answered yet.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }
}

// How many pages a command drops.
fn count(pending: &Pending) -> u64 {
    match pending {
        Pending::Drop { pages, .. } => pages.len() as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drop(pages: &[u32]) -> Pending {
        let pages = pages.iter().copied().map(PageIndex::new).collect();
        Pending::Drop { pages, tier: 0, unprotected: Vec::new() }
    }

    #[test]
    fn a_page_that_is_dropped_again_is_unmapped_by_the_last_drop() {
        let mut awaited = Awaited::default();
        // Page 2 is touched after the first, and goes on probation again before its answer.
        let sent = [drop(&[1, 2]), Pending::Freeze, drop(&[2, 3])];
        sent.into_iter().for_each(|one| awaited.sent(one));
        assert_eq!((awaited.dropping(), awaited.len()), (4, 3));
        assert_eq!(awaited.answered(1), Some(drop(&[1])));
        assert_eq!((awaited.dropping(), awaited.drops(PageIndex::new(2))), (2, true));
        assert_eq!(awaited.answered(2), Some(Pending::Freeze));
        assert_eq!(awaited.answered(3), Some(drop(&[2, 3])));
        assert_eq!((awaited.dropping(), awaited.len(), awaited.next()), (0, 0, 4));
        assert_eq!(awaited.answered(3), None);
    }
}
