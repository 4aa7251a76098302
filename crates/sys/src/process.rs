//! Starting, observing and controlling processes.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

use rustix::process::{Pid, PidfdFlags, Signal};

use crate::error::{During, check};
use crate::execute::Image;
use crate::seccomp::{Filter, Listener};
use crate::socket::{Received, Socket};
use crate::{Error, Result};

/// A program that has been started under a filter.
#[derive(Debug)]
pub struct Spawned {
    /// Its process.
    pub pid: u32,
    /// Where its filtered system calls (and those of all its descendants) arrive.
    pub listener: Listener,
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program itself: not found, not executable.
    #[error("{0}")]
    Program(#[source] std::io::Error),
    /// A signal ended it before it was the program.
    #[error("killed by signal {0} before it began")]
    Killed(i32),
    /// A system operation that starting needs.
    #[error(transparent)]
    System(#[from] Error),
}

/// Starts the program `words[0]` with the arguments that follow, with `filter` installed and with
/// `variable` added to the environment. The kernel kills it when the calling thread ends.
///
/// The call that executes the program carries `mark` in its otherwise unused last argument, so
/// that a filter that notifies of `execve` can let this one pass: no supervisor answers yet.
///
/// # Errors
/// When the program cannot be run or is killed at once, or the kernel refuses the filter.
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn spawn(
    words: &[OsString],
    variable: (&OsStr, &OsStr),
    filter: Filter,
    mark: u64,
) -> std::result::Result<Spawned, SpawnError> {
    let (near, far) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .during("create a socket pair")?;
    let mut image = Image::new(words, variable).map_err(SpawnError::Program)?;
    let (parent, number) = (std::process::id(), far.as_raw_fd());
    let before_exec = move || {
        die_with(parent)?;
        let listener = filter.install().map_err(|error| error.source)?;
        pass(number, listener.as_raw_fd())?;
        Err(image.execute(mark))
    };
    // The closure executes the program itself; the name says who could not.
    let mut command = Command::new(&words[0]);
    // SAFETY: the closure makes system calls only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(before_exec) };
    let mut child = command.spawn().map_err(SpawnError::Program)?;
    // So that the far end is closed when the child is gone: it may be killed before it has sent the
    // listener, which `Command::spawn` does not tell from executing the program.
    drop(far);
    match receive(&near)? {
        Some(listener) => Ok(Spawned { pid: child.id(), listener: Listener::new(listener) }),
        None => {
            let status = child.wait().map_err(SpawnError::Program)?;
            Err(SpawnError::Killed(status.signal().unwrap_or(0)))
        }
    }
}

/// Runs `work`, whose children have their memory at the same addresses in each run: without
/// address-space layout randomisation, as under `setarch -R`. Set-user-ID programs are randomised
/// all the same.
///
/// # Errors
/// When the kernel, or a seccomp filter, refuses it.
#[expect(unsafe_code, reason = "personality has no safe wrapper")]
pub fn at_fixed_addresses<T>(work: impl FnOnce() -> T) -> Result<T> {
    const NOW: libc::c_ulong = 0xffff_ffff;
    const FIXED: libc::c_ulong = 0x0004_0000;
    let set = |persona: libc::c_ulong| {
        // SAFETY: it takes a number, and gives the calling thread's back.
        let before = unsafe { libc::personality(persona) };
        check("switch off address-space layout randomisation", before.into())
    };
    let before = libc::c_ulong::try_from(set(NOW)?).unwrap_or(0);
    set(before | FIXED)?;
    let done = work();
    set(before)?;
    Ok(done)
}

// Sends descriptor `fd` over a socket, with stack memory only, because the sender is between fork
// and exec.
#[expect(unsafe_code, reason = "sendmsg without allocation")]
fn pass(socket: RawFd, fd: RawFd) -> std::io::Result<()> {
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        fd: RawFd,
        pad: [u8; 4],
    }
    let mut control = Control {
        header: libc::cmsghdr {
            cmsg_len: size_of::<libc::cmsghdr>() + size_of::<RawFd>(),
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        },
        fd,
        pad: [0; 4],
    };
    let mut byte = [0_u8; 1];
    let mut slice = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: all-zero is a valid message header; the fields that matter are set next.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = size_of::<Control>();
    // SAFETY: the message points at locals that live through the call.
    let sent = unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

// Receives a descriptor; `None` if the far end is closed.
fn receive(socket: &OwnedFd) -> Result<Option<OwnedFd>> {
    let duplicate = rustix::io::fcntl_dupfd_cloexec(socket, 3).during("receive the filter")?;
    let socket = Socket::from(duplicate);
    let mut byte = [0_u8; 1];
    loop {
        match socket.receive(&mut byte)? {
            Received::Message(_, Some(fd)) => return Ok(Some(fd)),
            Received::Closed => return Ok(None),
            Received::Nothing => {}
            Received::Message(_, None) => {
                return Err(Error::new("receive the filter", rustix::io::Errno::PROTO));
            }
        }
    }
}

/// A change of state of a child or a traced thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It exited with this status.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// A signal stopped it; for a traced thread, `event` says which trace event it was (0: none).
    Stopped {
        /// The signal.
        signal: i32,
        /// The trace event.
        event: i32,
    },
}

/// Takes one change of state of a child or traced thread; `None` if there is none. Continued
/// processes are not reported: a tracer that takes such a report takes it from the process' parent,
/// which then waits for ever.
#[must_use]
#[expect(unsafe_code, reason = "waitpid with __WALL has no safe wrapper")]
pub fn next_change() -> Option<(u32, Change)> {
    let mut status = 0;
    let options = libc::__WALL | libc::WNOHANG | libc::WUNTRACED;
    // SAFETY: `status` is a local.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, options) };
    let pid = u32::try_from(pid).ok().filter(|&pid| pid > 0)?;
    let change = if libc::WIFEXITED(status) {
        Change::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Change::Killed(libc::WTERMSIG(status))
    } else {
        Change::Stopped { signal: libc::WSTOPSIG(status), event: status >> 16 }
    };
    Some((pid, change))
}

/// A descriptor that becomes readable when process `pid` ends.
///
/// # Errors
/// If the process is gone already.
pub fn watch(pid: u32) -> Result<OwnedFd> {
    rustix::process::pidfd_open(to_pid(pid)?, PidfdFlags::empty()).during("watch a process")
}

/// Sends signal number `signal` to process `pid`.
///
/// # Errors
/// If the process is gone or belongs to another user.
#[expect(unsafe_code, reason = "signal numbers from elsewhere")]
pub fn kill(pid: u32, signal: i32) -> Result<()> {
    let target = libc::pid_t::try_from(pid).unwrap_or(libc::pid_t::MAX);
    // SAFETY: no pointers.
    check("signal a process", unsafe { libc::kill(target, signal) }.into()).map(|_zero| ())
}

/// Stops the calling process as a job-control stop would.
pub fn stop_self() {
    let _ignored = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
}

/// Whether thread `tid` belongs to process `pid`.
#[must_use]
#[expect(unsafe_code, reason = "tgkill has no safe wrapper")]
pub fn is_thread_of(tid: u32, pid: u32) -> bool {
    // SAFETY: no pointers; signal 0 only checks.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) == 0 }
}

/// Whether the address space of process `pid` is limited (`RLIMIT_AS`).
#[must_use]
pub fn limits_addresses(pid: u32) -> bool {
    // proc_pid_limits(5).
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"));
    line.is_none_or(|line| line.split_whitespace().next() != Some("unlimited"))
}

/// How many threads process `pid` has; `None` if it is gone.
#[must_use]
pub fn thread_count(pid: u32) -> Option<u64> {
    // Two links of the directory itself, and one for each thread (fs/proc/base.c).
    let task = std::fs::metadata(format!("/proc/{pid}/task")).ok()?;
    std::os::unix::fs::MetadataExt::nlink(&task).checked_sub(2)
}

/// Raises the limit of open descriptors of this process to `count`, or as far as it may.
pub fn allow_descriptors(count: u64) {
    allow(rustix::process::Resource::Nofile, count);
}

/// Raises the limit of locked memory of this process to `bytes`, or as far as it may.
pub fn allow_pinned_memory(bytes: u64) {
    allow(rustix::process::Resource::Memlock, bytes);
}

/// Raises the limit of `resource` to `count`, or to the hard limit.
fn allow(resource: rustix::process::Resource, count: u64) {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(resource);
    let raised = |maximum| Rlimit { current: Some(count), maximum };
    if limit.current.is_none_or(|current| current >= count) {
        return;
    }
    let most = limit.maximum.unwrap_or(count).max(count);
    if setrlimit(resource, raised(Some(most))).is_err() {
        let current = limit.maximum;
        // Up to the hard limit: never refused.
        let _raised = setrlimit(resource, Rlimit { current, maximum: current });
    }
}

/// The address of thread `tid`'s list of robust mutexes.
///
/// # Errors
/// If the thread is gone or belongs to another user.
#[expect(unsafe_code, reason = "get_robust_list has no safe wrapper")]
pub fn robust_list(tid: u32) -> Result<u64> {
    let (mut head, mut bytes) = (0_u64, 0_u64);
    // SAFETY: both results are locals of the size that the kernel writes.
    let result =
        unsafe { libc::syscall(libc::SYS_get_robust_list, tid, &raw mut head, &raw mut bytes) };
    check("find a thread's robust list", result).map(|_zero| head)
}

// Has the kernel kill the calling process when the thread that forked it ends. Between fork and
// exec: only async-signal-safe calls.
#[expect(unsafe_code, reason = "code between fork and exec")]
fn die_with(parent: u32) -> std::io::Result<()> {
    // SAFETY: no pointers.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: no arguments.
    if u32::try_from(unsafe { libc::getppid() }).ok() != Some(parent) {
        return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

/// Has the kernel kill what `command` starts when the calling thread ends, in whatever way. It
/// starts with no signal blocked, whatever the caller has blocked.
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn die_with_caller(command: &mut Command) {
    let parent = std::process::id();
    let before_exec = move || {
        die_with(parent)?;
        // SAFETY: `none` is initialised by sigemptyset before use; all pointers are to locals.
        unsafe {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(before_exec) };
}

/// Has the kernel send this process SIGTERM when the thread that started it ends, in whatever way.
pub fn end_with_parent() {
    let signal = Signal::TERM;
    let _always_possible = rustix::process::set_parent_process_death_signal(Some(signal));
}

/// Lets what `command` starts inherit `descriptor` under its own number, which is returned. The
/// caller keeps the descriptor open until the command has been started.
#[expect(unsafe_code, reason = "code between fork and exec")]
pub fn inherit(command: &mut Command, descriptor: &OwnedFd) -> RawFd {
    let number = descriptor.as_raw_fd();
    let before_exec = move || {
        // SAFETY: no pointers.
        if unsafe { libc::fcntl(number, libc::F_SETFD, 0) } < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(())
    };
    // SAFETY: the closure makes a system call only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(before_exec) };
    number
}

/// Takes ownership of a descriptor that this process inherited. Its children do not inherit it.
///
/// # Errors
/// If no descriptor has that number.
pub fn inherited(number: RawFd) -> Result<OwnedFd> {
    let descriptor = own(number)?;
    match rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC) {
        Ok(()) => Ok(descriptor),
        Err(errno) => {
            // Not ours to close: by then another file may have the number.
            std::mem::forget(descriptor);
            Err(Error::new("take a descriptor", errno))
        }
    }
}

/// Sends signal number `signal` to every process of a group.
///
/// # Errors
/// If the group has no process left.
#[expect(unsafe_code, reason = "signal numbers from elsewhere")]
pub fn kill_group(group: u32, signal: i32) -> Result<()> {
    let target = libc::pid_t::try_from(group).unwrap_or(libc::pid_t::MAX);
    // SAFETY: no pointers.
    check("signal a process group", unsafe { libc::killpg(target, signal) }.into()).map(|_zero| ())
}

/// The identity of a process: its number and when it started, since a later process may get the
/// same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    pid: u32,
    began_ticks: u64,
}

impl Life {
    /// The identity of process `pid`; `None` if there is no such process.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        const START_TIME: usize = 19;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Fields are counted after the name, which may contain anything.
        let (_, fields) = stat.rsplit_once(") ")?;
        let began_ticks = fields.split(' ').nth(START_TIME)?.parse().ok()?;
        Some(Self { pid, began_ticks })
    }

    /// Whether the process whose identity was written as `text` still runs.
    #[must_use]
    pub fn is_lived(text: &str) -> bool {
        let pid = text.split('.').next().and_then(|pid| pid.parse().ok());
        pid.and_then(Self::of).is_some_and(|life| life.to_string() == text)
    }
}

impl std::fmt::Display for Life {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.pid, self.began_ticks)
    }
}

/// Whether a process may empty ranges of its own memory by `process_madvise(2)`: Linux 6.13 and
/// later.
#[must_use]
#[expect(unsafe_code, reason = "process_madvise(2) has no safe wrapper")]
pub fn may_advise_itself() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| {
        let Ok(own) = watch(std::process::id()) else { return false };
        let (fd, none) = (own.as_raw_fd(), std::ptr::null::<libc::iovec>());
        // SAFETY: no range at all, so nothing is read and nothing is emptied.
        let answer = unsafe {
            libc::syscall(libc::SYS_process_madvise, fd, none, 0_usize, libc::MADV_DONTNEED, 0)
        };
        answer == 0
    })
}

/// A copy of descriptor `number` of the process that thread `tid` belongs to.
///
/// # Errors
/// If there is no such descriptor, or the caller may not trace the process.
pub fn descriptor_of(tid: u32, number: u32) -> Result<OwnedFd> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).during("find a process")?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    let process = watch(process.unwrap_or(0))?;
    let Ok(number) = RawFd::try_from(number) else {
        return Err(rustix::io::Errno::BADF).during("copy a descriptor of a process");
    };
    rustix::process::pidfd_getfd(process, number, rustix::process::PidfdGetfdFlags::empty())
        .during("copy a descriptor of a process")
}

/// Has waits of the calling thread end on time: the kernel may otherwise end one 50 us later,
/// together with others (timer slack).
///
/// # Errors
/// When the kernel refuses.
pub fn wait_precisely() -> Result<()> {
    let least = NonZeroU64::new(1);
    rustix::thread::set_current_timer_slack(least).during("set the timer slack of a thread")
}

/// The number of the calling thread.
#[must_use]
pub fn thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Makes the calling process lead a new session: signals of a terminal to its foreground do not
/// reach it.
///
/// # Errors
/// If it leads a process group already.
pub fn lead_session() -> Result<()> {
    rustix::process::setsid().during("lead a session").map(|_session| ())
}

/// The effective user of the calling process.
#[must_use]
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Takes ownership of a descriptor known by number.
///
/// # Errors
/// When the number is negative.
#[expect(unsafe_code, reason = "ownership by number")]
pub fn own(fd: RawFd) -> Result<OwnedFd> {
    check("own a descriptor", fd.into())?;
    // SAFETY: the caller got this number from the kernel and hands it over.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A process number as `rustix` takes it.
fn to_pid(pid: u32) -> Result<Pid> {
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| Error::new("find a process", rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_precisely_has_no_slack() {
        let slack = || rustix::thread::current_timer_slack().unwrap();
        assert!(slack() > 1);
        wait_precisely().unwrap();
        assert_eq!(slack(), 1);
    }

    #[test]
    fn children_have_fixed_addresses_and_the_caller_is_as_before() {
        let personality = || {
            let output = Command::new("cat").arg("/proc/self/personality").output();
            String::from_utf8(output.expect("cat is installed").stdout).expect("it is hexadecimal")
        };
        let before = personality();
        let fixed = at_fixed_addresses(personality).expect("nothing forbids it here");
        assert_eq!(fixed, "00040000\n");
        assert_eq!(personality(), before);
    }
}
