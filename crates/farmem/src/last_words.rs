//! What the kernel could not write for threads that ended in frozen memory.
//!
//! When a thread ends, the kernel clears its number where `pthread_join` waits for it, and marks
//! the robust mutexes it still holds. It does not wait for a page then, so in frozen memory (`cut`)
//! the write is lost. It is made up for when the thread is gone and the word still says that it is
//! not.
//!
//! Where the number of a thread is, the call that made the thread has said, or a call of its own. A
//! C library may have the kernel clear another word than that which has the number (in musl, the
//! lock of the list of threads), and threads may share one.

mod steps;

use std::collections::BTreeSet;

const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;

/// A word that the kernel clears when a thread ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cleared {
    pub(crate) address: u64,
    pub(crate) whose: Whose,
}

/// Which thread's end clears a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// That of the thread whose number the kernel has written there.
    Numbered,
    /// That of this one.
    Thread(u32),
    /// That of any that there are.
    Unknown,
}

impl Cleared {
    /// The word of a thread that a `clone` with these arguments makes.
    pub(crate) const fn by_clone(arguments: &[u64; 6]) -> Self {
        let [flags, _, parents, address, ..] = *arguments;
        let has_number = flags & CLONE_CHILD_SETTID != 0
            || flags & CLONE_PARENT_SETTID != 0 && parents == address;
        Self { address, whose: if has_number { Whose::Numbered } else { Whose::Unknown } }
    }

    /// Whether the end of thread `tid`, whose number in its own namespace is `number`, may change
    /// it from `value`.
    pub(crate) fn is_of(&self, value: Option<u32>, tid: u32, number: u32) -> bool {
        match self.whose {
            Whose::Numbered => value == Some(number),
            Whose::Thread(of) => of == tid,
            Whose::Unknown => value.is_some_and(|value| value != 0),
        }
    }
}

/// A thread that was alive when its memory was frozen, and of which the kernel will write to it.
#[derive(Debug)]
pub(crate) struct Mortal {
    slot: usize,
    tgid: u32,
    tid: u32,
    /// Its number as its process sees it.
    number: u32,
    /// Where that may be when it ends.
    numbers_at: BTreeSet<u64>,
    /// Where its mutexes are.
    locks: Vec<u64>,
    ticks: u32,
}

/// The number of a thread in its own namespace.
pub(crate) fn own_number(tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().next_back()?.parse().ok()
}
