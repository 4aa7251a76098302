//! Forks: the child gets its own memory before its first instruction.
//!
//! ```text
//! fork call held -> follow the caller -> cut -> let the kernel fork -> both stop
//! caller goes on; a thread copies the memory file, a piece at a time
//! child runs our routine: its helper greets and maps its own copy -> breakpoint
//! context back -> child goes on
//! ```
//!
//! DESIGN NOTES
//!
//! * An arena is a shared mapping, so a plain child would write into its parent's memory. It is
//!   stopped at birth (ptrace) and runs no code but ours until its own memory is in place.
//! * What the child sees is one cut of its parent's memory (`cut`). It waits until all is copied
//!   (`copy`, `copier`); its parent does not.
//! * A thread that a debugger traces cannot be followed: it forks in our object (`detour`).

mod steps;

use std::os::fd::OwnedFd;

use sys::ptrace::{self, Context};

use super::detour::Way;
use sys::maps;

const ESRCH: i32 = 3;
const EAGAIN: i64 = 11;
const SIGTRAP: i32 = 5;
const SIGKILL: i32 = 9;
const SIGSTOP: i32 = 19;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;
/// Reported loss: forks that failed because the most processes that can be managed were.
const REFUSED: &str = "too many processes at once: a fork was refused";

/// A fork under way.
pub(crate) struct Fork {
    /// The thread that forks; 0 once it has gone on.
    pub(crate) thread: u32,
    pub(crate) parent_slot: usize,
    pub(crate) way: Way,
    /// The parent's word to which the kernel writes the child's number: address, value before.
    tid_word: Option<(u64, [u8; 4])>,
    /// The child, once the kernel has reported it.
    pub(crate) child: Option<u32>,
    /// The child waits before its first instruction.
    pub(crate) born: bool,
    copying: Option<Copying>,
    borrowed: Option<Borrowed>,
}

// A child that waits for the copy to be complete.
struct Copying {
    slot: usize,
    far: OwnedFd,
    mappings: Vec<maps::Mapping>,
    absent: Vec<(u64, u64)>,
}

// A child that runs our routine.
struct Borrowed {
    slot: usize,
    /// Its registers; `None` if it came by itself, after a detour.
    context: Option<Context>,
    /// The child's end of the socket, until the child asks for it.
    far: Option<OwnedFd>,
    mappings: Vec<maps::Mapping>,
    absent: Vec<(u64, u64)>,
    /// A signal to stop (SIGSTOP) came meanwhile.
    stop: bool,
}

impl Fork {
    // Whether the child has no arena yet.
    const fn has_no_slot(&self) -> bool {
        self.copying.is_none() && self.borrowed.is_none()
    }

    /// Whether the child's memory is copied, so that it may run our routine.
    pub(crate) const fn is_copied(&self) -> bool {
        self.borrowed.is_some()
    }

    // Whether the forking thread has stopped, and waits until it may go on.
    fn parent_waits(&self) -> bool {
        match self.way {
            Way::Followed => ptrace::message(self.thread).is_ok(),
            Way::Inside(call) => call.is_some(),
        }
    }
}
