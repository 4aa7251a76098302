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
/// Threads of a process of which only the first thread and the helper are left.
const THREADS: u64 = 2;

/// A process whose `exit_group` is held.
#[derive(Debug)]
pub(crate) struct Leaver {
    slot: usize,
    /// The held call.
    call: u64,
    /// When the wait ends, on the monotonic clock.
    until_ns: u64,
}
