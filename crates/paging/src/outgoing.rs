//! The ring of pages on their way out of one lane. Crate `farmem` shares it with the kernel: its
//! `bpf/shared.h` has the same in C.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::PageIndex;
use crate::word::Word;

/// Entries of a ring.
pub const OUTGOING_MAX: u32 = 128;
/// Words of 32 bits of an entry.
pub const OUTGOING_WORDS: usize = 4;
/// Index of the word of an entry that names its page.
pub const PAGE: usize = 0;
/// Index of the word that has the outcome.
pub const OUTCOME: usize = 1;
/// Index of the first of two words that say when the frame is free.
pub const FREE: usize = 2;
/// The page has given its frame up.
pub const LEFT: u32 = 1;
/// The page was touched before its turn.
pub const STAYS: u32 = 2;

/// The supervisor's copy of a lane's ring: entries that were placed and are not settled.
#[derive(Debug, Clone, Default)]
pub struct Outgoing {
    /// The node of the table of pages that is the ring; `None` before it has one.
    pub node: Option<u32>,
    /// Slot and page.
    pub placed: VecDeque<(usize, PageIndex)>,
    /// The number of the first entry of `placed`.
    pub settled: u32,
}

/// A ring in the tables.
#[derive(Debug)]
pub struct Ring<'a> {
    words: &'a [AtomicU32],
    times: &'a [AtomicU64],
}

/// One entry.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The page, as the table of pages numbers it.
    pub page: &'a AtomicU32,
    /// The outcome: 0 while it is open, [`LEFT`] or [`STAYS`].
    pub outcome: &'a AtomicU32,
    /// When its frame is free, in picoseconds of the run.
    pub free_ps: &'a AtomicU64,
}

impl<'a> Ring<'a> {
    /// The ring in the words of a node, given as 32 bits and as 64 bits each.
    #[must_use]
    pub const fn of((words, times): (&'a [AtomicU32], &'a [AtomicU64])) -> Self {
        Self { words, times }
    }

    /// The entry that is the `number`th since the start.
    #[must_use]
    pub fn entry(&self, number: u32) -> Entry<'a> {
        let first = (number % OUTGOING_MAX) as usize * OUTGOING_WORDS;
        Entry {
            page: &self.words[first + PAGE],
            outcome: &self.words[first + OUTCOME],
            free_ps: &self.times[(first + FREE) / 2],
        }
    }
}

/// The ticket of the entry with this number.
#[must_use]
pub const fn ticket(number: u32) -> u32 {
    (number & (Word::TICKETS - 1)) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_page_has_the_ticket_of_none() {
        assert_eq!((ticket(0), ticket(Word::TICKETS - 1)), (1, Word::TICKETS));
        assert_eq!(ticket(Word::TICKETS), 1);
        let leaving = Word(0).unmapped().with_ticket(ticket(u32::MAX));
        assert_eq!(leaving.ticket(), Some(Word::TICKETS));
        assert_eq!(leaving.unmapped().ticket(), None);
    }
}
