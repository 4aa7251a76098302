//! The runtime: the engine at work on a real program.
//!
//! ```text
//! spawn -> greet -> memory calls -> trap -> log -> residency -> evict -> report
//! ```
//!
//! What each file knows: `filter` which calls are asked about, `dispatch` who acts on them,
//! `images` whose memory is managed, `inject` how a program is entered, `object` with what,
//! `rights` how its helper follows it to another user, `calls`, `moves`, `advice` and `populate`
//! what they mean, `notices` what cannot work, `regions` who owns which address, `arena` one
//! process, `fork` and `inherit` two, `cut` what the second sees of the first, `copy` and `todo`
//! how it gets there, `trap` and `userfault_trap` how a fault is met, `shared` the tables both
//! sides use, `events` what the trap reported, `budget` who has to leave, `watch` how pages are
//! used, `supervisor` the loop.

use std::ffi::OsStr;
use std::io;

mod advice;
mod arena;
mod budget;
mod calls;
mod chores;
mod config;
mod copy;
mod cut;
mod detour;
mod dispatch;
mod events;
mod exits;
mod file_pages;
mod filter;
mod fork;
mod greet;
mod images;
mod inherit;
mod inject;
mod lanes;
mod last_words;
mod link;
mod loader;
mod margin;
mod members;
mod moves;
mod nearby;
mod notices;
mod object;
mod page_table;
mod populate;
mod process_madvise;
#[path = "../../../farmem-preload/src/protocol.rs"]
#[expect(unreachable_pub, reason = "one file for both sides; each uses its part")]
mod protocol;
mod regions;
mod report;
mod rights;
mod segments;
mod shared;
mod signal;
mod static_data;
mod supervisor;
pub mod swap;
mod throttle;
mod todo;
mod trap;
mod userfault_trap;
mod watch;
mod word;

pub use config::{
    BPF_BUDGET_MIN, BPF_DELAY_MAX_NS, BudgetScope, RunConfig, Tier, TrapKind, bpf_batch,
};
pub use report::{Observer, Outcome, Retune, Silent, Snapshot};
pub use shared::{FaultEvent, FaultKind, PROCS_MAX, TIERS_MAX};
pub use supervisor::{Supervisor, VARIABLE};
pub use trap::probe;

/// Why a program could not be run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No program was named.
    #[error("run: no program given; name one after --")]
    NoProgram,
    /// There is no such program.
    #[error("run {0}: no such program; check the name or give its path")]
    NotFound(String),
    /// It may not be executed.
    #[error("run {0}: not executable; check its permissions")]
    NotExecutable(String),
    /// A system-call filter with a listener is in force already; there can be only one.
    #[error("run {0}: already under a system-call supervisor; afar cannot run inside afar")]
    Nested(String),
    /// It could not be started for another reason.
    #[error("run {0}: {1}")]
    NotStarted(String, #[source] io::Error),
    /// A signal ended it before it began.
    #[error("run {0}: killed by signal {1} before it began")]
    Killed(String, i32),
    /// The BPF trap failed.
    #[error(transparent)]
    Trap(#[from] sys::bpf::BpfError),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] sys::Error),
    /// The program may not use userfaultfd, which both traps need: the userfaultfd trap sees
    /// faults by it, and the bpf trap has the kernel map one page at a time by it.
    #[error(
        "open a userfaultfd in the program: permission denied, though afar may; give the program \
         CAP_SYS_PTRACE as an ambient capability, or access to /dev/userfaultfd"
    )]
    NoUserfault,
    /// The host could not be set up for the swap engine.
    #[error(transparent)]
    Swap(#[from] swap::SwapError),
    /// Something was gone when it was needed.
    #[error("{0} is gone")]
    Lost(&'static str),
}

impl RunError {
    fn spawn(name: &OsStr, error: sys::process::SpawnError) -> Self {
        let name = name.to_string_lossy().into_owned();
        match error {
            sys::process::SpawnError::System(error) => Self::System(error),
            sys::process::SpawnError::Killed(signal) => Self::Killed(name, signal),
            sys::process::SpawnError::Program(source) => match source.kind() {
                io::ErrorKind::ResourceBusy => Self::Nested(name),
                io::ErrorKind::NotFound => Self::NotFound(name),
                io::ErrorKind::PermissionDenied => Self::NotExecutable(name),
                _ => Self::NotStarted(name, source),
            },
        }
    }
}

/// A tier's name as it travels in a register: its bytes, first byte lowest, at most eight.
#[must_use]
pub fn pack_name(name: &str) -> u64 {
    name.bytes().take(8).rev().fold(0, |packed, byte| packed << 8 | u64::from(byte))
}
