//! What this kernel can do and this process may do, each found out by trying it once.
//!
//! A capability that is set may still be refused (by a security module, a container, a locked-down
//! kernel), and one that is not set may not be needed. So nothing here reads granted capabilities.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::{Command, Stdio};

use crate::error::check;
use crate::memory::{MemoryFile, SharedView};
use crate::seccomp::Filter;
use crate::userfault::{FEATURES_FAULTS, Userfault, Watch};
use crate::{Error, Result};

const MAP_CREATE: libc::c_long = 0;
const PROG_LOAD: libc::c_long = 5;
const MAP_TYPE_LRU_HASH: u32 = 9;
const PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_PAGE_FAULTS_MIN: u64 = 5;

/// Creates a BPF map of a kind that needs privileges: `CAP_BPF`.
///
/// # Errors
/// The kernel's refusal.
pub fn bpf() -> Result<()> {
    // Type, bytes of a key and of a value, entries.
    let mut attributes = [0_u32; 16];
    attributes[..4].copy_from_slice(&[MAP_TYPE_LRU_HASH, 4, 4, 1]);
    bpf_call("create a BPF map", MAP_CREATE, &mut attributes)
}

/// Loads a BPF program that observes the kernel and does nothing: `CAP_PERFMON`, after [`bpf`] has
/// succeeded.
///
/// # Errors
/// The kernel's refusal.
pub fn bpf_tracing() -> Result<()> {
    // r0 = 0; exit.
    let program: [u64; 2] = [0xb7, 0x95];
    let license = c"GPL";
    let halves = |address: u64| {
        let bytes = address.to_ne_bytes();
        let half = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        [half(0), half(4)]
    };
    let mut attributes = [0_u32; 16];
    attributes[..2].copy_from_slice(&[PROG_TYPE_RAW_TRACEPOINT, 2]);
    attributes[2..4].copy_from_slice(&halves(program.as_ptr() as u64));
    attributes[4..6].copy_from_slice(&halves(license.as_ptr() as u64));
    bpf_call("load a BPF program that traces", PROG_LOAD, &mut attributes)
}

/// Counts the page faults of all processes on the first processor: `CAP_PERFMON`.
///
/// # Errors
/// The kernel's refusal.
#[expect(unsafe_code, reason = "perf_event_open has no safe wrapper")]
pub fn count_faults_of_all() -> Result<()> {
    // The first version of `struct perf_event_attr`: type and size, event, and six words that stay
    // zero.
    const BYTES: u64 = 64;
    let mut attributes = [0_u64; 8];
    attributes[0] = u64::from(PERF_TYPE_SOFTWARE) | BYTES << 32;
    attributes[1] = PERF_COUNT_PAGE_FAULTS_MIN;
    let (everybody, cpu, group, flags) = (-1, 0, -1, 0);
    // SAFETY: `attributes` is a local of the size that it says.
    let fd = unsafe {
        let attributes = attributes.as_mut_ptr();
        libc::syscall(libc::SYS_perf_event_open, attributes, everybody, cpu, group, flags)
    };
    check("count the page faults of all processes", fd).map(close)
}

/// Installs a system-call filter with a supervisor, in a thread that ends at once.
///
/// # Errors
/// The kernel's refusal; `EBUSY` where a supervisor is at work already.
pub fn notifications() -> Result<()> {
    let tried = std::thread::spawn(|| Filter::new(&[], &[]).install().map(drop)).join();
    tried.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Traces a child of this process and stops it.
///
/// # Errors
/// The kernel's refusal, or that there is no `cat` to be the child.
#[expect(unsafe_code, reason = "ptrace and waitpid have no safe wrappers")]
pub fn tracing() -> Result<()> {
    const WHAT: &str = "stop a child";
    let mut child = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|source| Error::new("start cat", source))?;
    let stopped = crate::ptrace::seize(child.id()).and_then(|()| {
        let pid = libc::pid_t::try_from(child.id()).unwrap_or(libc::pid_t::MAX);
        // SAFETY: no pointers that the kernel follows.
        let asked = unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, pid, 0, 0) };
        check(WHAT, asked)?;
        let mut status = 0;
        // SAFETY: `status` is a local.
        check(WHAT, unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) }.into())?;
        if libc::WIFSTOPPED(status) {
            return Ok(());
        }
        Err(Error::new(WHAT, rustix::io::Errno::CHILD))
    });
    let _gone = child.kill();
    let _reaped = child.wait();
    stopped
}

/// Opens a userfaultfd that handles faults of system calls, too, as programs under afar need.
///
/// # Errors
/// The kernel's refusal.
pub fn userfault() -> Result<()> {
    Userfault::open(0).map(drop)
}

/// Watches memory of a file by userfaultfd: pages that are missing, present pages that are not
/// mapped, and pages that are write-protected. After [`userfault`] has succeeded.
///
/// # Errors
/// The kernel's refusal.
pub fn userfault_of_files() -> Result<()> {
    const BYTES: usize = 4096;
    let memory = MemoryFile::new("afar-feature", BYTES as u64)?;
    let view = SharedView::map(&memory, BYTES)?;
    let fault = Userfault::open(FEATURES_FAULTS)?;
    fault.register(view.address(), BYTES as u64, Watch::Faults)
}

/// Makes a call of bpf(2) and closes the descriptor that it returns.
#[expect(unsafe_code, reason = "bpf has no safe wrapper")]
fn bpf_call(operation: &'static str, command: libc::c_long, data: &mut [u32; 16]) -> Result<()> {
    // SAFETY: `data` is as long as it says; addresses in it are of locals of the callers.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, data.as_mut_ptr(), size_of_val(data)) };
    check(operation, fd).map(close)
}

/// Closes a descriptor that the kernel has just returned.
#[expect(unsafe_code, reason = "ownership by number")]
fn close(fd: libc::c_long) {
    let fd = RawFd::try_from(fd).unwrap_or(-1);
    if fd >= 0 {
        // SAFETY: the kernel has just given it to the caller, who does not keep it.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_anybody_may_do_can_be_done() {
        tracing().unwrap();
        match notifications() {
            Ok(()) => {}
            Err(error) => assert_eq!(error.errno(), Some(libc::EBUSY), "{error}"),
        }
        // Only that thread was filtered.
        notifications()
            .or_else(|error| if error.errno() == Some(libc::EBUSY) { Ok(()) } else { Err(error) })
            .unwrap();
    }

    #[test]
    fn a_refusal_is_one_of_rights() {
        for tried in [bpf(), bpf_tracing(), count_faults_of_all(), userfault()] {
            if let Err(error) = tried {
                assert!(matches!(error.errno(), Some(libc::EPERM | libc::EACCES)), "{error}");
            }
        }
    }
}
