//! Why a program could not be run, or not to its end.

use std::ffi::OsStr;
use std::io;

/// Why a program could not be run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No program was named.
    #[error("run: no program given; name one after --")]
    NoProgram,
    /// There is no such program.
    #[error("run {0}: no such program; check the name or give its path")]
    NotFound(String),
    /// The program may not be executed.
    #[error("run {0}: not executable; check its permissions")]
    NotExecutable(String),
    /// A system-call filter with a listener is in force already; there can be only one.
    #[error("run {0}: already under a system-call supervisor; afar cannot run inside afar")]
    Nested(String),
    /// The program could not be started for another reason.
    #[error("run {0}: {1}")]
    NotStarted(String, #[source] io::Error),
    /// A signal ended the process before the program began.
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
    /// The host could not be set up for the engine.
    #[error(transparent)]
    Host(Box<dyn std::error::Error + Send + Sync>),
    /// The blade will not answer.
    #[error("{0}; the program was ended, as what it has there cannot be had")]
    Blade(String),
    /// The blade has no room for another page.
    #[error(
        "the blade is full: it has room for {0} pages of 4 KiB; give a larger one (or \
         quota), or more --local"
    )]
    BladeFull(u32),
    /// The blade has lost a page that it had acknowledged.
    #[error("the page at {address:#x} of process {tgid}: {lost}; the program was ended")]
    BladeLost {
        /// The process whose page it is.
        tgid: u32,
        /// The page's address.
        address: u64,
        /// What the blade has instead.
        lost: paging::blade::Lost,
    },
    /// A resource was gone when it was needed.
    #[error("{0} is gone")]
    Lost(&'static str),
}

impl RunError {
    /// The error of a program of this name that could not be started.
    #[must_use]
    pub fn spawn(name: &OsStr, error: sys::process::SpawnError) -> Self {
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
