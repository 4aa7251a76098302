//! Which system calls of the program notify the supervisor.
//!
//! Only calls that make, move, lock or free memory, or copy a process; and of those only the ones
//! that may concern memory under management. Everything else, file mappings without an address and
//! thread creation included, runs at full speed.

use sys::nr;
use sys::seccomp::{Block, Filter, Rule, Test, Verdict};

use super::config::TrapKind;
use super::protocol;
use sys::hint;
use tables::{ADDRESS_TOP, LOOK_FROM};

const MAP_SHARED: u32 = 1;
const MAP_FIXED_ANY: u32 = 0x10 | 0x10_0000;
const MAP_ANONYMOUS: u32 = 0x20;
// MAP_32BIT, MAP_GROWSDOWN, MAP_STACK, MAP_HUGETLB: kinds of memory that stay as they are.
const MAP_SPECIAL: u32 = 0x40 | 0x100 | 0x2_0000 | 0x4_0000;
const CLONE_VM: u32 = 0x100;
/// A length of [`LOOK_FROM`] or more, but for multiples of 4 GiB.
const LARGE: Test = Test::AnyBit(!(low(LOOK_FROM) - 1));
const CLONE_NEWUSER: u32 = 0x1000_0000;
const ENOSYS: u16 = 38;
/// Registers memory with a userfaultfd, however that was opened.
const UFFDIO_REGISTER: u64 = 0xc020_aa00;

/// Builds the filter. An `execve` with `mark` in its last argument does not notify.
pub(crate) fn filter(trap: TrapKind, mark: u64) -> Filter {
    let mut blocks = blocks(mark);
    if trap == TrapKind::Userfault {
        // A thread that ends does not wait for user space when the kernel writes its last words.
        blocks.push(always(nr::EXIT));
        blocks.push(always(nr::IO_URING_REGISTER));
    }
    Filter::new(&blocks, &FOREIGN)
}

// The rules for each system call.
fn blocks(mark: u64) -> Vec<Block> {
    let rule = |argument, test, verdict| Rule { argument, test, verdict };
    let managed = managed();
    let ours = |argument| rule(argument, Test::HighEquals(high(protocol::COOKIE)), Verdict::Allow);
    let at_managed = |number, others: &[Rule]| Block {
        nr: number,
        rules: others.iter().copied().chain([rule(0, managed, Verdict::Notify)]).collect(),
        otherwise: Verdict::Allow,
    };
    // Large ranges are sampled before they are unmapped: they may be memory that is not managed.
    let large = |test| rule(1, test, Verdict::Notify);
    let emptying = |hint| rule(3, Test::LowEquals(low(hint)), Verdict::Notify);
    let mut blocks = vec![
        Block {
            nr: nr::EXECVE,
            rules: vec![rule(5, Test::HighEquals(high(mark)), Verdict::Allow)],
            otherwise: Verdict::Notify,
        },
        always(nr::EXECVEAT),
        always(nr::EXIT_GROUP),
        Block {
            nr: nr::MMAP,
            rules: vec![
                ours(4),
                rule(0, managed, Verdict::Notify),
                rule(3, Test::AnyBit(MAP_SHARED), Verdict::Allow),
                rule(3, Test::AnyBit(MAP_SPECIAL), Verdict::Allow),
                rule(3, Test::AnyBit(MAP_FIXED_ANY), Verdict::Allow),
                rule(3, Test::AnyBit(MAP_ANONYMOUS), Verdict::Notify),
            ],
            otherwise: Verdict::Allow,
        },
        at_managed(nr::MUNMAP, &[ours(5), large(LARGE), large(Test::NonZeroBelow(u32::MAX))]),
        at_managed(nr::MADVISE, &[ours(5)]),
        Block {
            nr: nr::PROCESS_MADVISE,
            rules: [ours(5)].into_iter().chain(hint::EMPTYING.map(emptying)).collect(),
            otherwise: Verdict::Allow,
        },
        at_managed(nr::MREMAP, &[rule(4, managed, Verdict::Notify)]),
        always(nr::MLOCKALL),
        always(nr::MUNLOCKALL),
        Block {
            nr: nr::BRK,
            rules: vec![rule(0, Test::LowNonZero, Verdict::Notify)],
            otherwise: Verdict::Allow,
        },
        Block {
            nr: nr::CLONE,
            rules: vec![
                // The address at which the kernel clears the new thread's number.
                rule(3, managed, Verdict::Notify),
                rule(0, Test::AnyBit(CLONE_VM), Verdict::Allow),
            ],
            otherwise: Verdict::Notify,
        },
        always(nr::FORK),
        // Its flags are in memory, where a filter cannot look. The C libraries fall back to clone.
        Block { nr: nr::CLONE3, rules: vec![], otherwise: Verdict::Fail(ENOSYS) },
        Block {
            nr: nr::PRCTL,
            rules: vec![rule(0, Test::LowEquals(low(protocol::PRCTL)), Verdict::Notify)],
            otherwise: Verdict::Allow,
        },
    ];
    blocks.extend(AT_MANAGED.map(|number| at_managed(number, &[])));
    blocks.extend(RIGHTS.map(always));
    blocks.extend(noticed());
    blocks
}

// Calls that only cause a warning.
fn noticed() -> [Block; 3] {
    let test = Test::LowEquals(low(UFFDIO_REGISTER));
    let registers = Rule { argument: 1, test, verdict: Verdict::Notify };
    let ioctl = Block { nr: nr::IOCTL, rules: vec![registers], otherwise: Verdict::Allow };
    let own_users =
        Rule { argument: 0, test: Test::AnyBit(CLONE_NEWUSER), verdict: Verdict::Notify };
    let unshare = Block { nr: nr::UNSHARE, rules: vec![own_users], otherwise: Verdict::Allow };
    [always(nr::IO_URING_SETUP), ioctl, unshare]
}

// Notifies of every call of this number.
fn always(number: i64) -> Block {
    Block { nr: number, rules: vec![], otherwise: Verdict::Notify }
}

// Holds for an address that may be under management.
const fn managed() -> Test {
    assert!(ADDRESS_TOP.trailing_zeros() >= 32, "the high half decides");
    Test::NonZeroBelow(high(ADDRESS_TOP))
}

const fn high(value: u64) -> u32 {
    (value >> 32) as u32
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
const fn low(value: u64) -> u32 {
    value as u32
}

/// Calls that lock managed memory, or name a word that the kernel clears at a thread's end.
pub(crate) const AT_MANAGED: [i64; 4] = [nr::MLOCK, nr::MLOCK2, nr::MUNLOCK, nr::SET_TID_ADDRESS];
/// Calls that change a thread's users, groups or capabilities: setuid, setgid, setreuid, setregid,
/// setgroups, setresuid, setresgid, setfsuid, setfsgid, capset.
pub(crate) const RIGHTS: [i64; 10] = [105, 106, 113, 114, 116, 117, 119, 122, 123, nr::CAPSET];
/// Calls of the 32-bit interface that notify.
pub(crate) const FOREIGN: [u32; 3] =
    [nr::foreign::EXECVE, nr::foreign::EXIT_GROUP, nr::foreign::EXECVEAT];
