//! Forks of threads that another tracer has: a debugger, strace.
//!
//! ```text
//! fork call held -> a jump written behind it -> call answered, not made
//! jump -> our object -> DETOUR held: the program's instructions are back -> its own fork, held
//!      -> cut -> the kernel forks -> parent: FORK_MADE held    child: BORN held
//! copy, as for any fork -> both are answered -> child greets and maps its own copy -> program
//! ```
//!
//! DESIGN NOTES
//!
//! * A thread has one tracer, so its child cannot be stopped at birth by us. It is born inside our
//!   object instead, and waits there. The tracer sees a few calls more, and nothing else.
//! * Another thread may return from a call at the same place meanwhile. It comes to our object and
//!   is sent back. The jump is a single instruction, so nobody is in the midst of it.
//! * A child's number is what the kernel has told its parent, which may live in another namespace.

mod steps;

use sys::remote::Remote;

const EPERM: i64 = 1;
const EAGAIN: i64 = 11;
/// `jmp [rip]`; the target address follows.
const JUMP: [u8; 14] = [0xff, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Ticks that a child may wait whose parent is unknown.
const TICKS_MAX: u32 = 5;

/// How the supervisor controls a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The thread is followed by ptrace.
    Followed,
    /// The thread forks in our object. Holds its call after the fork, until the thread goes on.
    Inside(Option<u64>),
}

/// A thread that is sent to our object, where it forks.
pub(crate) struct Detour {
    remote: Remote,
    thread: u32,
    /// The program's instructions behind its call; `None` once they are restored.
    replaced: Option<[u8; JUMP.len()]>,
    behind: u64,
}

// The ids of a thread in each PID namespace, from ours to its own.
fn numbers(tid: u32) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let listed = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    listed.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}
