//! Memory control groups, of version 1 and version 2.
//!
//! A group limits the memory of its processes together: anonymous pages, the page cache that they
//! brought in, and what the kernel holds for them.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::error::During;

const SIGKILL: i32 = 9;

/// The version of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `memory.limit_in_bytes`.
    One,
    /// `memory.max`.
    Two,
}

/// Where groups with a memory limit can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// The interface of its groups.
    pub version: Version,
    /// Its root.
    pub root: PathBuf,
}

impl Hierarchy {
    /// Finds the hierarchy of this host: version 1 if it has the memory controller, else version 2;
    /// `None` without either.
    #[must_use]
    pub fn find() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let controls = |root: &Path| {
            let text = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
            text.split_whitespace().any(|controller| controller == "memory")
        };
        find_in(&mounts, controls)
    }

    /// Whether groups below the root have memory limits. In version 2 they must be enabled first,
    /// see [`Hierarchy::enable`].
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        let path = self.root.join("cgroup.subtree_control");
        let text = || fs::read_to_string(path).unwrap_or_default();
        self.version == Version::One || text().split_whitespace().any(|name| name == "memory")
    }

    /// Enables memory limits for groups below the root, or disables them.
    ///
    /// # Errors
    /// When the kernel refuses: processes in the root of a container, for one.
    pub fn enable(&self, enabled: bool) -> Result<()> {
        let path = self.root.join("cgroup.subtree_control");
        let change = if enabled { "+memory" } else { "-memory" };
        fs::write(path, change).during("enable memory limits in control groups")
    }
}

/// As `Hierarchy::find`, from the text of `mounts`; `controls` says whether a root has the memory
/// controller.
fn find_in(mounts: &str, controls: impl Fn(&Path) -> bool) -> Option<Hierarchy> {
    let mut second = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        let (Some(root), Some(kind), Some(options)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let root = PathBuf::from(root);
        if kind == "cgroup" && options.split(',').any(|option| option == "memory") {
            return Some(Hierarchy { version: Version::One, root });
        }
        if kind == "cgroup2" && controls(&root) {
            second = Some(Hierarchy { version: Version::Two, root });
        }
    }
    second
}

/// A memory control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    version: Version,
    path: PathBuf,
}

impl Group {
    /// The group at `path`, which need not exist.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        let first = path.join("memory.limit_in_bytes").exists();
        let version = if first { Version::One } else { Version::Two };
        Self { version, path: path.to_owned() }
    }

    /// Creates the group.
    ///
    /// # Errors
    /// If it exists, or the caller is not root.
    pub fn create(path: &Path) -> Result<Self> {
        fs::create_dir(path).during("make a control group")?;
        Ok(Self::at(path))
    }

    /// The directory of the group.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The inode number of the directory, by which the kernel knows the group.
    ///
    /// # Errors
    /// If the group is gone.
    pub fn number(&self) -> Result<u64> {
        fs::metadata(&self.path).map(|found| found.ino()).during("look at a control group")
    }

    /// The processes of the group.
    ///
    /// # Errors
    /// If the group is gone.
    pub fn processes(&self) -> Result<Vec<u32>> {
        let text = fs::read_to_string(self.path.join("cgroup.procs"))
            .during("list the processes of a control group")?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Limits the memory of the group to `bytes`; `None` for no limit. If it uses more, the kernel
    /// reclaims at once.
    ///
    /// # Errors
    /// `EBUSY` if not enough can be reclaimed; the limit is then unchanged.
    pub fn limit(&self, bytes: Option<u64>) -> Result<()> {
        let (file, none) = match self.version {
            Version::One => ("memory.limit_in_bytes", "-1"),
            Version::Two => ("memory.max", "max"),
        };
        let text = bytes.map_or_else(|| none.to_owned(), |bytes| bytes.to_string());
        fs::write(self.path.join(file), text).during("limit the memory of a control group")
    }

    /// Bytes that the group has in memory.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        match self.version {
            Version::One => self.number_in("memory.usage_in_bytes"),
            Version::Two => self.number_in("memory.current"),
        }
    }

    /// The most bytes that the group had in memory; `None` if the kernel does not record that.
    #[must_use]
    pub fn resident_peak_bytes(&self) -> Option<u64> {
        let file = match self.version {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        };
        fs::read_to_string(self.path.join(file)).ok()?.trim().parse().ok()
    }

    /// Bytes that the group has in swap space. Reading `memory.stat` makes the kernel update its
    /// counts of the group.
    #[must_use]
    pub fn swapped_bytes(&self) -> u64 {
        // The counter of version 2 is not updated by that read.
        let swapped = self.entry_of("memory.stat", "swap");
        match self.version {
            // Not the difference of the two usages: they are read at different moments.
            Version::One => swapped,
            Version::Two => self.number_in("memory.swap.current"),
        }
    }

    /// How often a process found the group at its limit and had to reclaim.
    #[must_use]
    pub fn limited_count(&self) -> u64 {
        match self.version {
            Version::One => self.number_in("memory.failcnt"),
            Version::Two => self.entry_of("memory.events", "max"),
        }
    }

    /// How many processes the kernel killed because nothing could be reclaimed.
    #[must_use]
    pub fn oom_kill_count(&self) -> u64 {
        match self.version {
            Version::One => self.entry_of("memory.oom_control", "oom_kill"),
            Version::Two => self.entry_of("memory.events", "oom_kill"),
        }
    }

    /// Sends pages of the group to swap space even if zswap is on. Returns whether the kernel can
    /// do that for one group.
    #[must_use]
    pub fn bypass_zswap(&self) -> bool {
        fs::write(self.path.join("memory.zswap.max"), "0").is_ok()
    }

    /// Kills all processes of the group, once.
    pub fn kill(&self) {
        if self.version == Version::Two && fs::write(self.path.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        for pid in self.processes().unwrap_or_default() {
            let _gone = crate::process::kill(pid, SIGKILL);
        }
    }

    /// Removes the group, and its page cache where the kernel can do that.
    ///
    /// # Errors
    /// If the group has processes.
    pub fn remove(&self) -> Result<()> {
        if self.version == Version::One {
            // Empties it, so that the kernel has no reason to retain it. It is removed in any case.
            let _busy = fs::write(self.path.join("memory.force_empty"), "0");
        }
        fs::remove_dir(&self.path).during("remove a control group")
    }

    /// Makes what `command` starts a member of this group from its first instruction on.
    ///
    /// # Errors
    /// If the group is gone.
    #[expect(unsafe_code, reason = "code between fork and exec")]
    pub fn hold(&self, command: &mut Command) -> Result<()> {
        let file = fs::File::options()
            .write(true)
            .open(self.path.join("cgroup.procs"))
            .during("enter a control group")?;
        let procs = OwnedFd::from(file);
        let enter = move || {
            // SAFETY: a descriptor that this closure owns, and two bytes of static memory.
            let written = unsafe { libc::write(procs.as_raw_fd(), c"0\n".as_ptr().cast(), 2) };
            if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        };
        // SAFETY: the closure makes one system call; it neither allocates nor takes locks.
        unsafe { command.pre_exec(enter) };
        Ok(())
    }

    /// The number in a file of the group; 0 if it cannot be read.
    fn number_in(&self, file: &str) -> u64 {
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    // The number after `key` on its line in a file of the group; 0 if there is none.
    fn entry_of(&self, file: &str, key: &str) -> u64 {
        let text = fs::read_to_string(self.path.join(file)).unwrap_or_default();
        let value = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok();
        text.lines().find_map(value).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_prefers_the_hierarchy_that_has_the_controller() {
        let hybrid = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
        let found = find_in(hybrid, |_| false).unwrap();
        assert_eq!((found.version, found.root), (Version::One, "/sys/fs/cgroup/memory".into()));
        let unified = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        let found = find_in(unified, |_| true).unwrap();
        assert_eq!((found.version, found.root), (Version::Two, "/sys/fs/cgroup".into()));
        assert_eq!(find_in(unified, |_| false), None);
        assert_eq!(find_in("proc /proc proc rw 0 0\nbad\n", |_| true), None);
    }

    // The files of a group, without a kernel behind them.
    fn fake(name: &str, files: &[(&str, &str)]) -> Group {
        let path = std::env::temp_dir().join(format!("group-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        for (file, text) in files {
            fs::write(path.join(file), text).unwrap();
        }
        Group::at(&path)
    }

    #[test]
    fn version_1_is_read_and_written() {
        let group = fake(
            "one",
            &[
                ("memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory.usage_in_bytes", "8192\n"),
                ("memory.stat", "cache 1\nrss 2\nswap 4096\nswapcached 7\ntotal_swap 9\n"),
                ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
                ("memory.failcnt", "12\n"),
            ],
        );
        assert_eq!((group.resident_bytes(), group.swapped_bytes()), (8192, 4096));
        assert_eq!((group.oom_kill_count(), group.limited_count()), (3, 12));
        assert_eq!(group.resident_peak_bytes(), None);
        group.limit(Some(4096)).unwrap();
        assert_eq!(group.number_in("memory.limit_in_bytes"), 4096);
        group.limit(None).unwrap();
        let text = fs::read_to_string(group.path().join("memory.limit_in_bytes")).unwrap();
        assert_eq!(text, "-1");
        fs::remove_dir_all(group.path()).unwrap();
    }

    #[test]
    fn version_2_is_read_and_written() {
        let group = fake(
            "two",
            &[
                ("memory.max", "max\n"),
                ("memory.current", "8192\n"),
                ("memory.peak", "12288\n"),
                ("memory.swap.current", "4096\n"),
                ("memory.events", "low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 0\n"),
                ("cgroup.procs", "1\n22\n"),
            ],
        );
        assert_eq!((group.resident_bytes(), group.swapped_bytes()), (8192, 4096));
        assert_eq!((group.oom_kill_count(), group.limited_count()), (3, 12));
        assert_eq!(group.resident_peak_bytes(), Some(12288));
        assert_eq!(group.processes().unwrap(), [1, 22]);
        group.limit(None).unwrap();
        assert_eq!(fs::read_to_string(group.path().join("memory.max")).unwrap(), "max");
        fs::remove_dir_all(group.path()).unwrap();
    }
}
