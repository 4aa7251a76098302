//! Memory that a call populates in place of touches: `madvise(MADV_POPULATE_READ)` and `_WRITE`,
//! `mmap(MAP_POPULATE)`, `mlock`.
//!
//! ```text
//! call held -> page by page: state word, frame, link -> the last page is here: answer,
//!                                                       or the kernel goes on
//! ```
//!
//! DESIGN NOTES
//!
//! * The kernel populates memory without page faults that a trap would see. So the pages are
//!   counted here as if the caller had touched one after the other: each remote page takes its time
//!   on the link, each page a frame, and the caller waits until the last one is here.
//! * Pages are local then, but not mapped, unless the kernel locks them: the first touch of each
//!   costs an ordinary minor fault. `mincore` answers that new ones are not in memory before that.

mod steps;

use std::collections::VecDeque;

/// Pages that are populated in one go, so that faults can be served in between.
const PAGES_AT_ONCE: u64 = 64;
/// How far ahead of its time a page may be requested.
const AHEAD_NS: u64 = 1_000_000;

/// How the held call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The supervisor answers with this result.
    Answer(i64),
    /// The kernel performs the call, too.
    Proceed,
}

/// Memory that is being populated.
#[derive(Debug)]
pub(crate) struct Populate {
    /// The held call, and the thread that makes it.
    pub(crate) id: u64,
    pub(crate) thread: u32,
    pub(crate) slot: usize,
    /// Ranges that are left: start and end.
    pub(crate) ranges: VecDeque<(u64, u64)>,
    /// Whether pages are populated as by writes.
    pub(crate) write: bool,
    pub(crate) then: Then,
    /// When the last page requested so far arrives, in nanoseconds of the run.
    ready_ns: u64,
    /// Budget and tier in which a page waits for a frame; `None` if none waits.
    short: Option<(usize, usize)>,
    /// The next page is on its way from a blade.
    is_awaited: bool,
}
