//! Last words: what the kernel could not write for threads that ended in frozen memory.
//!
//! When a thread ends, the kernel clears its number where `pthread_join` waits for it, and marks
//! the robust mutexes it still holds. The kernel does not wait for a page then, so in frozen memory
//! (`cut`) the write is lost. The supervisor makes up for it when the thread is gone and the word
//! still says that it is not.
//!
//! The call that made a thread, or a later call of the thread, says where its number is. A C
//! library may have the kernel clear another word than that which has the number (in musl, the lock
//! of the list of threads), and threads may share one.

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
    /// The thread whose number the kernel has written into the word.
    Numbered,
    /// The thread with this id.
    Thread(u32),
    /// Any thread of the process.
    Unknown,
}

impl Cleared {
    /// The word that the kernel clears for the thread that a `clone` with these arguments makes.
    pub(crate) const fn by_clone(arguments: &[u64; 6]) -> Self {
        let [flags, _, parents, address, ..] = *arguments;
        let has_number = flags & CLONE_CHILD_SETTID != 0
            || flags & CLONE_PARENT_SETTID != 0 && parents == address;
        Self { address, whose: if has_number { Whose::Numbered } else { Whose::Unknown } }
    }

    /// Whether the end of thread `tid`, to itself `number`, may change the word from `value`.
    pub(crate) fn is_of(&self, value: Option<u32>, tid: u32, number: u32) -> bool {
        match self.whose {
            Whose::Numbered => value == Some(number),
            Whose::Thread(of) => of == tid,
            Whose::Unknown => value.is_some_and(|value| value != 0),
        }
    }
}

/// A thread that was alive when its memory was frozen, with the words that its end changes.
#[derive(Debug)]
pub(crate) struct Mortal {
    slot: usize,
    tgid: u32,
    tid: u32,
    /// The thread's id in its own namespace.
    number: u32,
    /// Words that may hold the number when the thread ends.
    numbers_at: BTreeSet<u64>,
    /// The lock words of its robust mutexes.
    locks: Vec<u64>,
    ticks: u32,
}

/// The id of a thread in its own PID namespace; `None` if the thread is gone.
pub(crate) fn own_number(tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().next_back()?.parse().ok()
}
