//! A private directory that is removed after this process, however it ends.

use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::failure::Failure;

/// The guard's script: waits for the end of its input, which comes when this process ends. Then
/// waits a second for processes that die with it, so that none writes while it removes the
/// directory.
const GUARD: &str =
    "trap '' HUP INT TERM; cat >/dev/null; [ ! -e \"$0\" ] || { sleep 1; rm -rf -- \"$0\"; }";

/// A directory that only its owner can enter, and the process that removes it.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    guard: Child,
}

impl Scratch {
    /// Creates the directory and starts its guard.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(crate) fn create() -> Result<Self, Failure> {
        let name = format!("afar-bench-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(Failure::file("create", &path))?;
        let guard = Command::new("sh")
            .args(["-c", GUARD])
            .arg(&path)
            // Out of reach of signals to this process' group.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match guard {
            Ok(guard) => Ok(Self { path, guard }),
            Err(source) => {
                let _empty = std::fs::remove_dir(&path);
                Err(Failure::NotStarted { program: "sh".to_owned(), source })
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The guard tries again if this fails.
        let _left_to_the_guard = std::fs::remove_dir_all(&self.path);
        drop(self.guard.stdin.take());
        let _ended = self.guard.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_private_and_goes_with_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::create().unwrap();
        let path = scratch.path().to_owned();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(path.join("file"), "content").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn guard_removes_what_an_owner_that_was_killed_left() {
        // A directory of its own: the name of Scratch's is this process's.
        let path = std::env::temp_dir().join(format!("afar-bench-guard-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("file"), "content").unwrap();
        let mut guard = Command::new("sh");
        let mut guard = guard.args(["-c", GUARD]).arg(&path).stdin(Stdio::piped()).spawn().unwrap();
        drop(guard.stdin.take());
        guard.wait().unwrap();
        assert!(!path.exists());
    }
}
