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

/// Pages that are populated at a time: others wait for the supervisor meanwhile.
const PAGES_AT_ONCE: u64 = 64;
/// How far ahead of its time a page may be asked for.
const AHEAD_NS: u64 = 1_000_000;

/// What becomes of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It has this result.
    Answer(i64),
    /// The kernel does it, too.
    Proceed,
}

/// Memory that is being populated.
#[derive(Debug)]
pub(crate) struct Populate {
    /// The call, and its thread.
    pub(crate) id: u64,
    pub(crate) thread: u32,
    pub(crate) slot: usize,
    /// What is left, in bytes.
    pub(crate) ranges: VecDeque<(u64, u64)>,
    /// As by writes.
    pub(crate) write: bool,
    pub(crate) then: Then,
    /// When the last page so far is here, in nanoseconds of the run.
    ready_ns: u64,
    /// Budget and tier in which a page waits for a frame.
    short: Option<(usize, usize)>,
    /// A page of it is on its way from a blade.
    is_awaited: bool,
}
