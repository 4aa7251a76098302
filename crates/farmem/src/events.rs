//! Reading the trap's log, and finding pages that it does not show.

mod steps;

use std::sync::atomic::{AtomicU32, Ordering};

use paging::word::{State, Word};

/// Steps of one urgent scan: each 2 MiB of touched memory, some 50 µs, or [`SCAN_UNUSED`].
pub(crate) const SCAN_STEPS: usize = 8;
// Bytes of a step in untouched memory.
const SCAN_UNUSED: u64 = 1 << 36;
/// Touches, or pages, that could not be managed because there was no leaf for their state words.
pub(crate) const TABLE_FULL: &str = "page-state table full";

/// A round that finds so many pages is followed by the next at once: the kernel brings many by one
/// system call. Scanning keeps the supervisor from faults that need frames.
const URGENT: u64 = 64;

/// A scan for pages that came without a fault.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Where the scan goes on: slot and address.
    at: (usize, u64),
    /// Pages found since the scan began with the first process.
    found: u64,
    /// The scan goes on at once.
    pub(crate) is_urgent: bool,
}

// Marks a page local whose word says otherwise. Returns the word before; `None` if unchanged.
fn revive(cell: &AtomicU32) -> Option<Word> {
    let revive = |word: u32| {
        let word = Word(word);
        // Whether it was written to is unknown, so it counts as dirty.
        let unknown = matches!(word.state(), State::Remote | State::Absent);
        unknown.then(|| word.with_state(State::Local).with_dirty(true).0)
    };
    cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, revive).ok().map(Word)
}
