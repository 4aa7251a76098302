//! The ring of pages that leave one lane; `bpf/shared.h` has the same in C.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64};

use paging::PageIndex;
use paging::word::Word;

use super::layout::NODE_ENTRIES;

/// Entries of a ring.
pub(crate) const OUTGOING_MAX: u32 = 128;
/// Words of 32 bits of an entry.
pub(crate) const OUTGOING_WORDS: usize = 4;
const _: () = assert!(OUTGOING_MAX as usize * OUTGOING_WORDS == NODE_ENTRIES);
const PAGE: usize = 0;
const OUTCOME: usize = 1;
const FREE: usize = 2;
/// The page has given its frame up.
pub(crate) const LEFT: u32 = 1;
/// It was touched before its turn.
pub(crate) const STAYS: u32 = 2;

/// The order of leaving of one lane, as the supervisor knows it: entries that were placed, and of
/// which it is not settled what became of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outgoing {
    pub(crate) node: Option<u32>,
    /// Slot and page.
    pub(crate) placed: VecDeque<(usize, PageIndex)>,
    /// The number of the first of them.
    pub(crate) settled: u32,
}

/// A ring in the tables.
pub(crate) struct Ring<'a> {
    words: &'a [AtomicU32],
    times: &'a [AtomicU64],
}

/// One entry.
pub(crate) struct Entry<'a> {
    /// Which page it is of, as `PageTable::reference` has it.
    pub(crate) page: &'a AtomicU32,
    /// What became of it: 0 nothing yet, or [`LEFT`] or [`STAYS`].
    pub(crate) outcome: &'a AtomicU32,
    /// When its frame is free, in picoseconds of the run.
    pub(crate) free_ps: &'a AtomicU64,
}

impl<'a> Ring<'a> {
    /// The ring in these words of a node, given as 32 bits and as 64 bits each.
    pub(crate) const fn of((words, times): (&'a [AtomicU32], &'a [AtomicU64])) -> Self {
        Self { words, times }
    }

    /// The entry that is the `number`th since the start.
    pub(crate) fn entry(&self, number: u32) -> Entry<'a> {
        let first = (number % OUTGOING_MAX) as usize * OUTGOING_WORDS;
        Entry {
            page: &self.words[first + PAGE],
            outcome: &self.words[first + OUTCOME],
            free_ps: &self.times[(first + FREE) / 2],
        }
    }
}

/// The ticket of the entry with this number.
pub(crate) const fn ticket(number: u32) -> u32 {
    (number & (Word::TICKETS - 1)) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_agrees_with_the_header() {
        let header = include_str!("../bpf/shared.h");
        let constants = [
            format!("#define OUTGOING_MAX {OUTGOING_MAX}U\n"),
            format!("#define OUTGOING_WORDS {OUTGOING_WORDS}U\n"),
            format!("#define OUTGOING_PAGE {PAGE}U\n"),
            format!("#define OUTGOING_OUTCOME {OUTCOME}U\n"),
            format!("#define OUTGOING_FREE {FREE}U\n"),
            format!("#define OUTCOME_LEFT {LEFT}U\n"),
            format!("#define OUTCOME_STAYS {STAYS}U\n"),
            format!("#define TICKETS (1U << {})\n", Word::TICKETS.trailing_zeros()),
        ];
        for constant in constants {
            assert!(header.contains(&constant), "{constant}");
        }
    }

    #[test]
    fn no_page_has_the_ticket_of_none() {
        assert_eq!((ticket(0), ticket(Word::TICKETS - 1)), (1, Word::TICKETS));
        assert_eq!(ticket(Word::TICKETS), 1);
        let leaving = Word(0).unmapped().with_ticket(ticket(u32::MAX));
        assert_eq!(leaving.ticket(), Some(Word::TICKETS));
        assert_eq!(leaving.unmapped().ticket(), None);
    }
}
