//! Borrowing a thread: stop it at birth, run a routine in it, and restore it.

use crate::Result;
use crate::error::check;

/// Trace events, as found in [`crate::process::Change::Stopped`].
pub mod event {
    /// The traced thread has forked; [`super::message`] is the child.
    pub const FORK: i32 = libc::PTRACE_EVENT_FORK;
    /// As [`FORK`], with the parent waiting for the child.
    pub const VFORK: i32 = libc::PTRACE_EVENT_VFORK;
    /// As [`FORK`], by a clone without the usual exit signal.
    pub const CLONE: i32 = libc::PTRACE_EVENT_CLONE;
    /// A stop that is not a signal's: a new traced child before its first instruction, or a group
    /// stop.
    pub const STOP: i32 = libc::PTRACE_EVENT_STOP;
}

/// Traces thread `tid` without stopping it; its children of any kind are stopped at birth and
/// traced, too.
///
/// # Errors
/// When something else traces it already, or the kernel forbids it.
pub fn seize(tid: u32) -> Result<()> {
    let options = libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE;
    let data = usize::try_from(options).unwrap_or(0);
    request("follow a thread over its fork", libc::PTRACE_SEIZE, tid, 0, data)
}

/// Stops tracing the children that the stopped thread `tid` will create.
///
/// # Errors
/// If the thread is not stopped.
pub fn forget_children(tid: u32) -> Result<()> {
    request("stop following a thread's children", libc::PTRACE_SETOPTIONS, tid, 0, 0)
}

/// Resumes a stopped thread, with `signal` (0: none), still traced.
///
/// # Errors
/// If the thread is not stopped.
pub fn resume(tid: u32, signal: i32) -> Result<()> {
    let data = usize::try_from(signal).unwrap_or(0);
    request("resume a followed thread", libc::PTRACE_CONT, tid, 0, data)
}

/// Leaves a thread in its job-control stop until it is continued.
///
/// # Errors
/// If the thread is not in such a stop.
pub fn listen(tid: u32) -> Result<()> {
    request("leave a thread stopped", libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Stops tracing a stopped thread and resumes it with `signal` (0: none).
///
/// # Errors
/// If the thread is not stopped.
pub fn detach(tid: u32, signal: i32) -> Result<()> {
    let data = usize::try_from(signal).unwrap_or(0);
    request("stop following a thread", libc::PTRACE_DETACH, tid, 0, data)
}

/// The child of the fork event at which thread `tid` is stopped.
///
/// # Errors
/// When the thread is not stopped at an event.
pub fn message(tid: u32) -> Result<u32> {
    let mut value: libc::c_ulong = 0;
    let data = &raw mut value as usize;
    request("ask a followed thread for its child", libc::PTRACE_GETEVENTMSG, tid, 0, data)?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// All that a thread's execution depends on: registers, vector registers, blocked signals.
pub struct Context {
    registers: libc::user_regs_struct,
    vectors: Vec<u8>,
    signals: u64,
}

/// A routine for a borrowed thread to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Address of the routine; it takes one argument and must end in a breakpoint.
    pub routine: u64,
    /// First address above the stack that it may use.
    pub stack_top: u64,
    /// The argument of the routine.
    pub argument: u64,
}

const NT_X86_XSTATE: usize = 0x202;
const XSTATE_BYTES_MAX: usize = 16 << 10;

impl Context {
    /// Saves a stopped thread's context.
    ///
    /// # Errors
    /// If the thread is not stopped.
    #[expect(unsafe_code, reason = "register structures are plain data")]
    pub fn save(tid: u32) -> Result<Self> {
        // SAFETY: all-zero is a valid value; the kernel overwrites it.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let data = &raw mut registers as usize;
        request("read a thread's registers", libc::PTRACE_GETREGS, tid, 0, data)?;
        let mut vectors = vec![0_u8; XSTATE_BYTES_MAX];
        let mut slice =
            libc::iovec { iov_base: vectors.as_mut_ptr().cast(), iov_len: vectors.len() };
        let operation = "read a thread's vector registers";
        request(operation, libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, &raw mut slice as usize)?;
        vectors.truncate(slice.iov_len);
        let mut signals = 0_u64;
        let data = &raw mut signals as usize;
        request("read a thread's signal mask", libc::PTRACE_GETSIGMASK, tid, 8, data)?;
        Ok(Self { registers, vectors, signals })
    }

    /// Restores the context. An interrupted system call is not restarted.
    ///
    /// # Errors
    /// When the thread is not stopped.
    pub fn restore(&self, tid: u32) -> Result<()> {
        let data = &raw const self.registers as usize;
        request("write a thread's registers", libc::PTRACE_SETREGS, tid, 0, data)?;
        let slice = libc::iovec {
            iov_base: self.vectors.as_ptr().cast_mut().cast(),
            iov_len: self.vectors.len(),
        };
        let operation = "write a thread's vector registers";
        request(operation, libc::PTRACE_SETREGSET, tid, NT_X86_XSTATE, &raw const slice as usize)?;
        let data = &raw const self.signals as usize;
        request("write a thread's signal mask", libc::PTRACE_SETSIGMASK, tid, 8, data)
    }

    /// Directs the stopped thread into `entry`, with every signal blocked.
    ///
    /// # Errors
    /// If the thread is not stopped.
    pub fn divert(&self, tid: u32, entry: Entry) -> Result<()> {
        let mut registers = self.registers;
        registers.rip = entry.routine;
        // The calling convention: the stack is 16-byte aligned before a return address, of which
        // there is none.
        registers.rsp = (entry.stack_top & !15) - 8;
        registers.rdi = entry.argument;
        // So that the kernel restarts no system call meanwhile.
        registers.orig_rax = u64::MAX;
        let data = &raw const registers as usize;
        request("write a thread's registers", libc::PTRACE_SETREGS, tid, 0, data)?;
        let all = u64::MAX;
        let data = &raw const all as usize;
        request("write a thread's signal mask", libc::PTRACE_SETSIGMASK, tid, 8, data)
    }
}

/// Makes a ptrace request; `operation` names it in errors.
#[expect(unsafe_code, reason = "ptrace(2) has no safe wrapper")]
fn request(
    operation: &'static str,
    request: libc::c_uint,
    tid: u32,
    address: usize,
    data: usize,
) -> Result<()> {
    let target = libc::pid_t::try_from(tid).unwrap_or(libc::pid_t::MAX);
    // SAFETY: every caller passes in `data` a number or the address of the structure `request`
    // names, alive for the call and large enough.
    let result = unsafe { libc::ptrace(request, target, address, data) };
    check(operation, result).map(|_value| ())
}
