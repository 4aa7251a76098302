//! A view of the files of its own, with memory for images: what is mounted there is nowhere else.
//!
//! Invariant: it is held by a child process that the kernel kills when this process ends in any
//! way, so it is gone with it, and with it every mount, loop device and image.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use launch::Child;

use crate::{ReproduceError, programs};

/// See the module's description. Dropping it ends it.
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
/// Two images, of which most is holes, and what is written meanwhile.
const MEMORY: &str = "size=3g";
const BEGUN: Duration = Duration::from_secs(5);

/// Checks that there can be one.
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
    /// With memory in the view's `directory`, which is made if it is not there, and stays empty.
    ///
    /// # Errors
    /// When a program refuses.
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

    /// A command that will run there, and end with this process.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.holder.id().to_string(), "--"]).arg(program);
        command
    }

    /// As what runs there names it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// As this process names it.
    pub(crate) fn seen(&self, name: &str) -> PathBuf {
        let root = self.root.strip_prefix("/").unwrap_or(&self.root);
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(root).join(name)
    }

    /// Makes a directory there.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn make(&self, name: &str) -> Result<PathBuf, ReproduceError> {
        let path = self.seen(name);
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(self.path(name)),
            Err(source) => Err(ReproduceError::Directory { path: self.path(name), source }),
        }
    }

    /// Runs a program there until it ends; what it says.
    ///
    /// # Errors
    /// When it refuses.
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

    /// Puts a file with a file system onto a loop device and mounts it. The device goes when that
    /// is unmounted.
    ///
    /// # Errors
    /// When a program refuses.
    pub(crate) fn mount(&self, file: &Path, at: &Path) -> Result<(), ReproduceError> {
        let [file, at] = [file, at].map(|path| path.display().to_string());
        let device = self.run(&["losetup", "--direct-io=on", "-f", "--show", &file])?;
        let mounted = self.run(&["mount", "-o", "noatime", &device, &at]);
        // Of a device that is mounted, the kernel keeps that in mind.
        self.run(&["losetup", "-d", &device])?;
        mounted.map(drop)
    }

    /// Until something is there.
    ///
    /// # Errors
    /// When it is not there soon.
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
        // Of everybody's view; it is empty there.
        let _others_use_it = fs::remove_dir(&self.root);
    }
}

/// Starts a program that ends with what it is of.
///
/// # Errors
/// When there is no such program.
pub(super) fn start(command: Command) -> Result<Child, ReproduceError> {
    let program = command.get_program().to_string_lossy().into_owned();
    Child::start(command).map_err(|source| ReproduceError::Start { program, source })
}

// Until it has one of its own.
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
