//! Ownership of disks: one process at a time, unless all processes agree to share.
//!
//! A file is owned by a lock (`flock`) on the descriptor that its reads and writes use, so that a
//! killed process owns it until its last write has ended. A block device is owned by `O_EXCL`,
//! which mounts and volume managers use, too, and by such a lock, which may be shared; udev leaves
//! a locked device alone.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::linux::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::io::Errno;

use crate::event::Poll;

/// Why a disk is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{holder} has it")]
pub struct Taken {
    /// The owner, in words.
    pub holder: String,
}

/// How long a killed process may take to end its last writes.
const DYING: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes of a command line that a message shows.
const COMMAND_BYTES: usize = 80;

/// Locks a file, exclusively or shared.
///
/// # Errors
/// The owner: at once if it is a live process, after five seconds if none can be found.
pub(crate) fn lock(file: &impl AsFd, is_shared: bool) -> Result<(), Taken> {
    let operation = match is_shared {
        true => FlockOperation::NonBlockingLockShared,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    until_dead(
        || match flock(file, operation) {
            Err(Errno::WOULDBLOCK) => None,
            Err(error) => {
                Some(Err(Taken { holder: format!("no lock can be taken: {error}; nobody") }))
            }
            Ok(()) => Some(Ok(())),
        },
        || holder_of_lock(file),
    )
}

/// Opens a block device that `open` opens exclusively; waits for a killed owner to end.
///
/// # Errors
/// As [`lock`]; other errors of `open` are in the inner result.
pub(crate) fn claim<E>(
    device: &impl AsFd,
    open: impl Fn() -> Result<File, E>,
    is_busy: impl Fn(&E) -> bool,
) -> Result<Result<File, E>, Taken> {
    until_dead(
        || match open() {
            Err(error) if is_busy(&error) => None,
            other => Some(Ok(other)),
        },
        || mount_of(device).or_else(|| holder_of_device(device)),
    )
}

/// Checks that no file system on a block device is mounted, since such a device cannot be shared.
///
/// # Errors
/// The mount.
pub(crate) fn expect_no_mount(device: &impl AsFd) -> Result<(), Taken> {
    mount_of(device).map_or(Ok(()), |holder| Err(Taken { holder }))
}

// Repeats `attempt` until it has a result, unless `holder` names a live owner or the time is over.
fn until_dead<T>(
    attempt: impl Fn() -> Option<Result<T, Taken>>,
    holder: impl Fn() -> Option<String>,
) -> Result<T, Taken> {
    let began = Instant::now();
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        if let Some(holder) = holder() {
            return Err(Taken { holder });
        }
        if began.elapsed() > DYING {
            return Err(Taken { holder: "a process that cannot be seen from here".to_owned() });
        }
        if let Ok(mut timer) = Poll::new() {
            let _passed = timer.wait(Some(PAUSE), &mut Vec::new());
        }
    }
}

/// The process that holds a lock on `file`, in words; `None` if none can be found.
fn holder_of_lock(file: &impl AsFd) -> Option<String> {
    let status = rustix::fs::fstat(file).ok()?;
    let device = (major(status.st_dev), minor(status.st_dev));
    let name = format!("{:02x}:{:02x}:{}", device.0, device.1, status.st_ino);
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let pid = locker(line, &name)?;
        // A forked child shares locks that this process has released, until it executes its
        // program.
        let is_inherited = pid == std::process::id() && !has_lock(&name);
        if is_inherited { None } else { named(pid) }
    })
}

// The process that took a lock of the file with this name, if the line is about one
// (proc_locks(5)): "1: FLOCK ADVISORY WRITE 1234 fe:00:5678 0 EOF".
fn locker(line: &str, name: &str) -> Option<u32> {
    let words: Vec<_> = line.split_whitespace().collect();
    let is_it = words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&name);
    words.get(4).filter(|_| is_it)?.parse().ok()
}

// Whether a descriptor of this process has a lock of the file with this name (proc_pid_fdinfo(5)).
fn has_lock(name: &str) -> bool {
    let descriptors = std::fs::read_dir("/proc/self/fdinfo").into_iter().flatten().flatten();
    let mut texts = descriptors.filter_map(|one| std::fs::read_to_string(one.path()).ok());
    let is_of_it = |line: &str| {
        let lock = line.strip_prefix("lock:");
        lock.is_some_and(|lock| locker(lock, name).is_some())
    };
    texts.any(|text| text.lines().any(is_of_it))
}

// The file system on a device, if it is mounted, in words (proc_pid_mountinfo(5): device in the
// third field, mount point in the fifth).
fn mount_of(device: &impl AsFd) -> Option<String> {
    let status = rustix::fs::fstat(device).ok()?;
    let number = format!("{}:{}", major(status.st_rdev), minor(status.st_rdev));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = mounts.find(|words| words.get(2) == Some(&number.as_str()))?;
    Some(format!("the file system mounted on {}", mount.get(4)?))
}

/// Another process that has `device` open, in words; `None` if none can be found.
fn holder_of_device(device: &impl AsFd) -> Option<String> {
    let number = rustix::fs::fstat(device).ok()?.st_rdev;
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        let mut found = open.flatten().filter_map(|entry| std::fs::metadata(entry.path()).ok());
        *pid != std::process::id() && found.any(|one| one.st_rdev() == number)
    };
    named(pids.find(has_it)?)
}

// A process by number and command, in words; `None` if it is dead, or is udev.
fn named(pid: u32) -> Option<String> {
    if pid == std::process::id() {
        return Some("this process".to_owned());
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = status.rsplit(") ").next()?.chars().next()?;
    if matches!(state, 'Z' | 'X') {
        return None;
    }
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    // udev locks a device only while it probes its contents.
    if name.trim_end() == "systemd-udevd" {
        return None;
    }
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let shown = String::from_utf8_lossy(&command[..command.len().min(COMMAND_BYTES)]);
    Some(format!("process {pid} ({})", shown.trim_end_matches('\0').replace('\0', " ")))
}
