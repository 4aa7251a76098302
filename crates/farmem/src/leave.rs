//! Processes that end: the helper goes first.
//!
//! ```text
//! exit_group -> LEAVE -> the helper ends -> exit_group goes on
//! ```
//!
//! When the first thread of a process ends before another of its threads, the kernel looks for a
//! process that the memory could belong to: among all children of its parent, then among all
//! processes (`mm_update_next_owner` of kernel/exit.c). A program of one thread does not pay for
//! that natively, and would because of the helper: 60 µs beside 4,000 processes.
//!
//! A process that is killed ends without a system call; its threads end in any order.

mod steps;

/// How long an exit waits for the helper, which may be stopped or not get a processor.
const WAIT_NS: u64 = 2_000_000;
/// The first thread and the helper.
const THREADS: u64 = 2;

/// A process that has asked to end.
#[derive(Debug)]
pub(crate) struct Leaver {
    slot: usize,
    /// Its call, which waits.
    call: u64,
    /// When it has waited long enough, on the monotonic clock.
    until_ns: u64,
}
