//! Taking the trap's log, and finding what it does not show.

mod steps;

use std::sync::atomic::{AtomicU32, Ordering};

use paging::word::{State, Word};

/// Steps of an urgent look for unseen pages in one go: each 2 MiB of memory that was touched, some
/// 50 µs, or [`SCAN_UNUSED`].
pub(crate) const SCAN_STEPS: usize = 8;
// A step in memory that was not touched.
const SCAN_UNUSED: u64 = 1 << 36;
/// Touches, or pages, that could not be managed because there was no leaf for their state words.
pub(crate) const TABLE_FULL: &str = "page-state table full";

/// Pages found in one round that have the next begin at once: the kernel brings pages by system
/// calls, many at a time. Looking takes the supervisor away from those who need frames.
const URGENT: u64 = 64;

/// A look for pages that came unseen.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Where it goes on: slot and address.
    at: (usize, u64),
    /// Pages found since it began with the first process.
    found: u64,
    /// It goes on at once.
    pub(crate) is_urgent: bool,
}

// The word before, if it said that the page is not local; it says so now.
fn revive(cell: &AtomicU32) -> Option<Word> {
    let revive = |word: u32| {
        let word = Word(word);
        // Nothing is known of writes to it, so they are assumed.
        let unknown = matches!(word.state(), State::Remote | State::Absent);
        unknown.then(|| word.with_state(State::Local).with_dirty(true).0)
    };
    cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, revive).ok().map(Word)
}
