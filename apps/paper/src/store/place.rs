//! A mount namespace with a tmpfs for images.
//!
//! Invariant: a child process holds the namespace, and the kernel kills it when this process ends.
//! So every mount, loop device and image vanishes with this process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use launch::Child;

use crate::{ReproduceError, programs};

/// A mount namespace; dropping it removes everything in it.
pub(crate) struct Place {
    holder: Child,
    root: PathBuf,
}

const PROGRAMS: [(&str, &str); 8] = [
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("umount", "mount"),
    ("losetup", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("cp", "coreutils"),
    ("sleep", "coreutils"),
];
/// The limit of the tmpfs: enough for two sparse images and writes.
const MEMORY: &str = "size=3g";
const BEGUN: Duration = Duration::from_secs(5);

/// Checks that a place can be made.
///
/// # Errors
/// When this is not root, or a program is missing.
pub(crate) fn check() -> Result<(), ReproduceError> {
    if sys::process::effective_user() != 0 {
        return Err(ReproduceError::NotRootMounts);
    }
    programs::check(&PROGRAMS)
}

impl Place {
    /// Creates the namespace, with a tmpfs on `directory`; outside of it the directory is created
    /// if it is missing, and stays empty.
    ///
    /// # Errors
    /// When a program fails.
    pub(crate) fn new(directory: &Path) -> Result<Self, ReproduceError> {
        let failed = |source| ReproduceError::Directory { path: directory.to_owned(), source };
        fs::create_dir_all(directory).map_err(failed)?;
        let root = fs::canonicalize(directory).map_err(failed)?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sleep", "infinity"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let holder = start(command)?;
        wait_for_view(&holder)?;
        let place = Self { holder, root };
        let at = place.root.display().to_string();
        place.run(&["mount", "-t", "tmpfs", "-o", MEMORY, "afar", &at])?;
        Ok(place)
    }

    /// A command that runs `program` in the namespace.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.holder.id().to_string(), "--"]).arg(program);
        command
    }

    /// The path of a file in the tmpfs, inside the namespace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The path of a file in the tmpfs for this process, which is outside.
    pub(crate) fn seen(&self, name: &str) -> PathBuf {
        let root = self.root.strip_prefix("/").unwrap_or(&self.root);
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(root).join(name)
    }

    /// Creates a directory in the tmpfs. Returns its path inside the namespace.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(crate) fn make(&self, name: &str) -> Result<PathBuf, ReproduceError> {
        let path = self.seen(name);
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(self.path(name)),
            Err(source) => Err(ReproduceError::Directory { path: self.path(name), source }),
        }
    }

    /// Runs a program in the namespace to its end. Returns its output.
    ///
    /// # Errors
    /// When it fails.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String, ReproduceError> {
        let (program, rest) = words.split_first().expect("there is a program");
        let mut command = self.command(Path::new(program));
        command.args(rest).env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(command)?;
        let output = child.output().map(std::io::read_to_string);
        let said = child.errors();
        match child.finish() {
            Ok(status) if status.success() => {
                Ok(output.and_then(Result::ok).unwrap_or_default().trim().to_owned())
            }
            _ => Err(ReproduceError::Mounts { words: words.join(" "), said }),
        }
    }

    /// Attaches a file with a file system to a loop device and mounts it. Unmounting releases the
    /// device.
    ///
    /// # Errors
    /// When a program fails.
    pub(crate) fn mount(&self, file: &Path, at: &Path) -> Result<(), ReproduceError> {
        let [file, at] = [file, at].map(|path| path.display().to_string());
        let device = self.run(&["losetup", "--direct-io=on", "-f", "--show", &file])?;
        let mounted = self.run(&["mount", "-o", "noatime", &device, &at]);
        // The kernel detaches a mounted device only when it is unmounted.
        self.run(&["losetup", "-d", &device])?;
        mounted.map(drop)
    }

    /// Waits until `child` has created a file.
    ///
    /// # Errors
    /// When the file does not exist in time.
    pub(crate) fn wait_for(&self, name: &str, child: &mut Child) -> Result<(), ReproduceError> {
        let deadline = Instant::now() + BEGUN;
        let path = self.seen(name);
        while fs::metadata(&path).is_err() {
            if Instant::now() > deadline {
                child.terminate();
                let words = format!("wait for {}", self.path(name).display());
                return Err(ReproduceError::Mounts { words, said: child.errors() });
            }
            sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The empty directory outside of the namespace.
        let _others_use_it = fs::remove_dir(&self.root);
    }
}

/// Starts a child process, which is killed when the returned value is dropped.
///
/// # Errors
/// When the program cannot be started.
pub(super) fn start(command: Command) -> Result<Child, ReproduceError> {
    let program = command.get_program().to_string_lossy().into_owned();
    Child::start(command).map_err(|source| ReproduceError::Start { program, source })
}

// Waits until a child has a mount namespace of its own.
fn wait_for_view(holder: &Child) -> Result<(), ReproduceError> {
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    let path = format!("/proc/{}/ns/mnt", holder.id());
    let deadline = Instant::now() + BEGUN;
    while fs::read_link(&path).ok().is_none_or(|view| Some(view) == own) {
        if Instant::now() > deadline {
            let said = "it has no view of its own".to_owned();
            return Err(ReproduceError::Mounts { words: "unshare --mount".to_owned(), said });
        }
        sleep(Duration::from_millis(1));
    }
    Ok(())
}
