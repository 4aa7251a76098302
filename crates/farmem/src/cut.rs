//! A cut: a process's memory as of one moment, as its child is to see it.
//!
//! ```text
//! fork call held -> drop every page, faults are reported -> nobody can touch anything any more
//!                -> the kernel forks -> copy: a page that is touched is copied first -> thaw
//! ```
//!
//! DESIGN NOTES
//!
//! * The kernel gives a child one cut of private memory: threads of the parent that write meanwhile
//!   wait. An arena is shared memory, of which the kernel copies nothing. So it is frozen before
//!   the kernel copies the rest (stacks, static data), and until then a thread that touches the
//!   arena waits. A write that a child sees was then done before each write that it does not see,
//!   wherever the two were.
//! * Threads are not stopped: that would end system calls early that they wait in. Their next touch
//!   of a page is a fault that userfaultfd reports; so is that of the kernel on their behalf.
//! * Memory that a device writes to is not held back, as little as by the kernel's own fork.
//! * The helper freezes a portion at a time, and sleeps until it is told of the next: who runs for
//!   milliseconds keeps its processor from others until the clock ticks.
//! * A region that moves and leaves its place mapped and empty (`MREMAP_DONTUNMAP`) is frozen, too:
//!   what others write there moves, or is written to the empty place, but is not lost in between.
//! * A process without other threads stands still in its fork anyway. If it has little memory it is
//!   not frozen, but goes on only when all is copied.

mod steps;

use std::collections::VecDeque;

use sys::seccomp::Notification;

use super::moves::Move;
use super::protocol::WORDS_MAX;
use super::userfault_trap::Touch;
use sys::hint;
use sys::nr;
use tables::SEGMENT;

const CLONE_VM: u64 = 0x100;
const MAP_FIXED: u64 = 0x10;
const MREMAP_FIXED: u64 = 2;
const RANGES_MAX: usize = WORDS_MAX / 2 - 1;
/// How much memory in use is frozen, or thawed, at a time: 0.3 ms if every page of it is mapped.
const PORTION_BYTES: u64 = 8 << 20;
// Ticks after which a fork that the kernel has not reported is looked at, and given up.
const TICKS_LOOK: u32 = 2;
const TICKS_MAX: u32 = 20;
/// So few pages are copied sooner than they are frozen.
const PAGES_FEW: u64 = 2048;

/// How far a cut is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Some pages may still be mapped.
    Freezing,
    /// No page is mapped. The child does not exist yet.
    Frozen,
    /// The child exists; pages are copied and mapped again (`thaw`).
    Copying,
}

/// What a cut is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A child is to see the memory as it is at one moment.
    Fork,
    /// A region is to move, and its old place stays mapped and empty.
    Move(Move),
}

/// A cut of one process.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) purpose: Purpose,
    /// Ranges that are still frozen.
    pub(crate) ranges: VecDeque<(u64, u64)>,
    /// The thread that forks, or moves memory.
    pub(crate) thread: u32,
    /// The fork call of that thread, while the supervisor holds it.
    pub(crate) call: Option<u64>,
    pub(crate) phase: Phase,
    /// The copy is over.
    pub(crate) thaws: bool,
    /// Ranges that the helper has no command for yet.
    untold: VecDeque<(u64, u64)>,
    /// The helper works on a command.
    is_told: bool,
    /// Faults that wait.
    pub(crate) held: Vec<Touch>,
    ticks: u32,
}

/// Takes the next portion off the start of `left`: [`PORTION_BYTES`] that may be in use, and unused
/// memory between and behind them. `next_used` finds the first byte in use of a range.
pub(crate) fn take_portion(
    left: &mut VecDeque<(u64, u64)>,
    next_used: impl Fn(u64, u64) -> Option<u64>,
) -> Vec<(u64, u64)> {
    let (mut portion, mut bytes) = (Vec::new(), 0);
    while portion.len() < RANGES_MAX
        && bytes < PORTION_BYTES
        && let Some((start, end)) = left.pop_front()
    {
        let mut at = start;
        while bytes < PORTION_BYTES
            && at < end
            && let Some(used) = next_used(at, end)
        {
            at = (used / SEGMENT * SEGMENT + SEGMENT).min(end);
            bytes += SEGMENT;
        }
        // Nothing is in use behind that.
        let stop = if bytes < PORTION_BYTES { end } else { at };
        portion.push((start, stop));
        if stop < end {
            left.push_front((stop, end));
        }
    }
    portion
}

// The ranges (start, bytes) that a system call may free; (0, 0) for none.
fn freed(call: &Notification) -> [(u64, u64); 2] {
    let [start, bytes, third, flags, to, _] = call.args;
    let none = (0, 0);
    match i64::from(call.nr) {
        nr::MUNMAP => [(start, bytes), none],
        nr::MMAP if flags & MAP_FIXED != 0 => [(start, bytes), none],
        nr::MADVISE if hint::EMPTYING.contains(&third) => [(start, bytes), none],
        nr::MREMAP if flags & MREMAP_FIXED != 0 => [(start, bytes), (to, third)],
        nr::MREMAP => [(start, bytes), none],
        _ => [none, none],
    }
}

// Whether a thread may be inside a call that forks.
fn is_forking(thread: u32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{thread}/syscall")).unwrap_or_default();
    let number = call.split(' ').next().unwrap_or_default();
    number == "running" || [nr::CLONE, nr::FORK].iter().any(|nr| number == nr.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_is_small_and_none_is_left_out() {
        const TIB: u64 = 1 << 40;
        // Three portions in use in a row, one page far behind, nothing, and many pages.
        let mut ranges = vec![(SEGMENT, TIB), (2 * TIB, 3 * TIB)];
        ranges.extend((100..1100).map(|n| (n * TIB, n * TIB + 4096)));
        let row = SEGMENT..SEGMENT + 3 * PORTION_BYTES;
        let next_used = |at: u64, end: u64| {
            let used = match at {
                _ if at < row.end => at.max(row.start),
                _ if at < TIB / 2 => TIB / 2,
                _ if at < 100 * TIB => 100 * TIB,
                _ => at,
            };
            (used < end).then_some(used)
        };
        let mut left = VecDeque::from(ranges.clone());
        let (mut taken, mut bytes) = (Vec::<(u64, u64)>::new(), Vec::new());
        while !left.is_empty() {
            let portion = take_portion(&mut left, next_used);
            assert!(!portion.is_empty() && portion.len() <= RANGES_MAX);
            bytes.push(portion.iter().map(|(start, end)| end - start).max().unwrap_or(0));
            for (start, end) in portion {
                match taken.last_mut().filter(|last| last.1 == start) {
                    Some(last) => last.1 = end,
                    None => taken.push((start, end)),
                }
            }
        }
        assert_eq!(taken, ranges);
        assert_eq!(bytes[..3], [PORTION_BYTES; 3]);
        // Those in use by a segment each, four at a time.
        assert_eq!(bytes.len(), 4 + 1000 / 4, "{}", bytes.len());
        assert!(take_portion(&mut left, next_used).is_empty());
    }
}
