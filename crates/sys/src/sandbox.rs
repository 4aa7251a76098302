//! Restrictions of a process that has begun to serve: of files (landlock), and of system calls
//! (seccomp).
//!
//! Requests of an io_uring are no system calls and pass the filter. What they could do with files
//! and TCP is limited by landlock, and none of them executes, traces or mounts anything.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetStatus, Scope, path_beneath_rules,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::error::{Error, Result};

/// The files that a process may use, and directories with all that is in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// May be read, written, created and removed.
    pub written: Vec<PathBuf>,
    /// May be read.
    pub read: Vec<PathBuf>,
}

/// Restricts the calling thread, and those that it starts, to these files; also, they can neither
/// listen at further ports, nor connect, nor signal other processes. Returns whether the kernel can
/// do that.
///
/// # Errors
/// If the kernel can, and refuses.
pub fn keep_to(reach: &Reach) -> Result<bool> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let written = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::RemoveFile
        | AccessFs::IoctlDev;
    let kept = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V4)))
        .and_then(|rules| rules.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rules(path_beneath_rules(&reach.read, read)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(&reach.written, written)))
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(|error| Error::new("keep to some files (landlock)", io::Error::other(error)))?;
    Ok(kept.ruleset != RulesetStatus::NotEnforced)
}

/// Forbids every thread of this process, and those to come, system calls that a server does not
/// make once all of its rings exist: to start a process, to trace, mount, load or execute anything,
/// to make a ring or an Internet socket. Threads inherit the filter.
///
/// # Errors
/// When the kernel has no seccomp, or a thread has a filter of its own.
pub fn forbid_calls() -> Result<()> {
    seccompiler::apply_filter_all_threads(&program()?)
        .map_err(|error| Error::new("forbid system calls (seccomp)", io::Error::other(error)))
}

/// Calls that are allowed with any arguments. More than are made today: another version of the C
/// library may use another call for the same purpose.
const CALLS: [i64; 94] = [
    // The ring, which exists already.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Waiting, and being woken.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_eventfd2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_futex,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    // Existing sockets, and those of accepted connections.
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    // Files, within landlock's limits.
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_dup,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_fgetxattr,
    libc::SYS_fsetxattr,
    // Memory; threads that have just been started, and their end.
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    // Identity, and the processors.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_geteuid,
    libc::SYS_getrandom,
    libc::SYS_sched_getaffinity,
    libc::SYS_getrusage,
];

/// Allowed requests of ioctl(2): whether a descriptor is a terminal, how large, and not to wait.
const REQUESTS: [u64; 4] = [libc::TCGETS, libc::TIOCGWINSZ, libc::FIONBIO, libc::FIONREAD];

// The filter's program. A forbidden call fails as on a kernel that does not have it (ENOSYS), so
// that the C library falls back as it does there.
fn program() -> Result<BpfProgram> {
    let failed = |error| Error::new("make a filter of system calls", io::Error::other(error));
    let filter = rules().and_then(|rules| {
        let refused = SeccompAction::Errno(u32::try_from(libc::ENOSYS).unwrap_or(0));
        SeccompFilter::new(rules, refused, SeccompAction::Allow, TargetArch::x86_64)
    });
    filter.and_then(TryInto::try_into).map_err(failed)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The rules for arguments, by system call.
fn rules() -> std::result::Result<Rules, seccompiler::BackendError> {
    use SeccompCmpArgLen::{Dword, Qword};
    use SeccompCmpOp::{Eq, MaskedEq};
    let only = |index, length, operator, value| {
        let condition = SeccompCondition::new(index, length, operator, value)?;
        SeccompRule::new(vec![condition])
    };
    let number = |value: i32| u64::try_from(value).unwrap_or(u64::MAX);
    let mut rules: Rules = CALLS.iter().map(|call| (*call, Vec::new())).collect();
    // No memory may become executable.
    let writable = || only(2, Dword, MaskedEq(number(libc::PROT_EXEC)), 0);
    rules.insert(libc::SYS_mmap, vec![writable()?]);
    rules.insert(libc::SYS_mprotect, vec![writable()?]);
    // Only threads of this process that share all with it. clone3 has its flags in memory, which a
    // filter cannot read, and is forbidden.
    let thread = libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_FS;
    let apart = libc::CLONE_NEWNS | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    let all = MaskedEq(number(thread | apart));
    rules.insert(libc::SYS_clone, vec![only(0, Dword, all, number(thread))?]);
    // To notify a service manager.
    rules.insert(libc::SYS_socket, vec![only(0, Dword, Eq, number(libc::AF_UNIX))?]);
    let requests = REQUESTS.iter().map(|request| only(1, Dword, Eq, *request));
    rules.insert(libc::SYS_ioctl, requests.collect::<std::result::Result<_, _>>()?);
    // Names of threads and of memory.
    let names = [libc::PR_SET_NAME, libc::PR_SET_VMA].map(|name| only(0, Dword, Eq, number(name)));
    rules.insert(libc::SYS_prctl, names.into_iter().collect::<std::result::Result<_, _>>()?);
    // Limits may be read, and not set.
    rules.insert(libc::SYS_prlimit64, vec![only(2, Qword, Eq, 0)?]);
    // To abort.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![only(0, Dword, Eq, own)?]);
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;
    use std::process::Command;
    use std::thread;

    use super::*;

    fn errno<T>(result: io::Result<T>) -> Option<i32> {
        result.err().and_then(|error| error.raw_os_error())
    }

    #[test]
    fn files_elsewhere_are_out_of_reach() {
        let name = format!("afar-sandbox-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let [inside, outside] = ["inside", "outside"].map(|name| directory.join(name));
        for one in [&inside, &outside] {
            fs::create_dir_all(one).expect("there is room");
            fs::write(one.join("file"), "x").expect("there is room");
        }
        let reach = Reach { written: vec![inside.clone()], read: vec!["/proc".into()] };
        let restricted = thread::spawn(move || {
            if !keep_to(&reach).expect("it may be given up") {
                return;
            }
            // Of a thread that it starts, too.
            let tried = thread::spawn(move || {
                let file = inside.join("file");
                fs::write(&file, "y").expect("it is inside");
                fs::rename(&file, inside.join("other")).expect("both are inside");
                fs::remove_file(inside.join("other")).expect("it is inside");
                assert!(fs::read("/proc/locks").is_ok());
                let denied = Some(libc::EACCES);
                assert_eq!(errno(fs::write("/proc/self/comm", "y")), denied);
                assert_eq!(errno(fs::read(outside.join("file"))), denied);
                assert_eq!(errno(fs::write(outside.join("other"), "y")), denied);
                assert_eq!(errno(TcpListener::bind("127.0.0.1:0")), denied);
            });
            tried.join().expect("it is kept to them");
        });
        restricted.join().expect("it is kept to them");
        fs::remove_dir_all(directory).expect("this thread is not");
    }

    #[test]
    fn calls_that_a_server_does_not_make_fail() {
        let path = std::env::temp_dir().join(format!("afar-calls-{}", std::process::id()));
        let program = program().expect("it can be made");
        let restricted = thread::spawn(move || {
            seccompiler::apply_filter(&program).expect("it may be given up");
            fs::write(&path, "x").expect("files are files");
            fs::remove_file(&path).expect("it is there");
            let absent = Some(libc::ENOSYS);
            assert_eq!(errno(Command::new("/bin/true").spawn()), absent);
            assert_eq!(errno(TcpListener::bind("127.0.0.1:0")), absent);
            let other = thread::spawn(move || errno(Command::new("/bin/true").spawn()));
            assert_eq!(other.join().expect("a thread is none"), absent);
            let memory = crate::ring::Ring::new(8).map(drop);
            assert_eq!(memory.map_err(|error| error.errno()), Err(absent));
            assert_eq!(
                errno(fs::set_permissions(&path, fs::Permissions::from_mode(0o600))),
                absent
            );
        });
        restricted.join().expect("it is refused");
    }

    use std::os::unix::fs::PermissionsExt as _;
}
