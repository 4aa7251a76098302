//! Mount points of file systems that a process serves (FUSE).

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount as umount};
use rustix::process::{getgid, getuid};

use crate::error::During;
use crate::fuse::FuseDevice;
use crate::{Error, Result};

/// Mounts the file system served through `device` on `directory`, with type `fuse.KIND` and source
/// `source`. Only this user has access.
///
/// # Errors
/// If this user may not mount there, or `directory` is no directory.
pub fn mount_fuse(device: &FuseDevice, directory: &Path, kind: &str, source: &str) -> Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let number = device.descriptor().as_raw_fd();
    let options = format!("fd={number},rootmode=40000,user_id={user},group_id={group}");
    let options = std::ffi::CString::new(options).expect("numbers have no NUL");
    let kind = format!("fuse.{kind}");
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount(source, directory, kind.as_str(), flags, options.as_c_str()).during("mount")
}

/// Unmounts what is mounted on `directory`.
///
/// # Errors
/// If a file of it is in use.
pub fn unmount(directory: &Path) -> Result<()> {
    umount(directory, UnmountFlags::empty()).during("unmount")
}

/// Detaches what is mounted on `directory`; it is unmounted when no file of it is in use.
///
/// # Errors
/// When this user may not, or nothing is mounted there.
pub fn detach(directory: &Path) -> Result<()> {
    umount(directory, UnmountFlags::DETACH).during("unmount")
}

/// The directories on which file systems of type `fuse.KIND` are mounted, in the order of mounting;
/// some may be covered by others.
pub fn mounts_of(kind: &str) -> impl Iterator<Item = PathBuf> {
    let kind = format!("fuse.{kind}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts: Vec<_> = mounts.lines().filter_map(|line| mounted(line, &kind)).collect();
    mounts.into_iter()
}

// The mount point in a line of mountinfo if the type is `kind` (proc(5): the mount point is the
// fifth field, the type the first after a hyphen).
fn mounted(line: &str, kind: &str) -> Option<PathBuf> {
    let (before, after) = line.split_once(" - ")?;
    let is_its = after.split(' ').next() == Some(kind);
    before.split(' ').nth(4).filter(|_| is_its).map(unescaped)
}

// Decodes the \ooo by which mountinfo writes blanks and the like.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// Returns whether the process that served the mount on `directory` has gone. Waits for the answer
/// of one that has not.
#[must_use]
pub fn is_abandoned(directory: &Path) -> bool {
    // A process that ends while it is asked gives CONNABORTED, one that had ended NOTCONN.
    let is_gone = |error| matches!(error, Errno::NOTCONN | Errno::CONNABORTED);
    statfs(directory).is_err_and(is_gone)
}

impl Error {
    /// Whether the operation failed because something is in use.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.errno() == Some(libc::EBUSY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_known_by_their_type() {
        let line = |kind: &str| {
            format!("63 29 0:51 / /mnt/a\\040b\\134c rw,nosuid shared:1 master:2 - {kind} uri rw")
        };
        let path = Some(PathBuf::from("/mnt/a b\\c"));
        assert_eq!(mounted(&line("fuse.afar"), "fuse.afar"), path);
        assert_eq!(mounted(&line("fuse"), "fuse.afar"), None);
        assert_eq!(mounted("63 29 0:51 / /mnt/a rw", "fuse.afar"), None);
        assert_eq!(unescaped("a\\04"), PathBuf::from("a\\04"));
    }

    #[test]
    fn what_is_no_mount_is_not_abandoned() {
        assert!(!is_abandoned(Path::new("/proc")) && !is_abandoned(Path::new("/nowhere")));
        assert!(unmount(Path::new("/nowhere")).is_err());
    }
}
