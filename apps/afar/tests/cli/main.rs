//! The command line as a user meets it: what it refuses and how, what it answers, what it leaves.

#![expect(clippy::unwrap_used, reason = "all of this is a test")]

mod bad_input;
mod control;
mod doctor;
mod pages;
mod place;
mod results;
mod rights;
mod speech;
mod status;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

use test_support::{Scratch, skip};

const AFAR: &str = env!("CARGO_BIN_EXE_afar");

/// Held by a test from when it leaves something to when it has had it repaired: a repair removes
/// what any test has left.
fn repairing() -> MutexGuard<'static, ()> {
    static REPAIR: Mutex<()> = Mutex::new(());
    REPAIR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a file with these rights into a scratch directory.
fn file(scratch: &Scratch, name: &str, content: &[u8], mode: u32) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = scratch.file(name, content);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// Runs afar to its end, but not for longer than a minute.
fn afar<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    command(arguments).output().expect("timeout(1) is part of coreutils")
}

fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60", AFAR]).args(arguments);
    command
}

/// The same for tests that need a trap: `None`, loudly, where this machine has none.
fn run<S: AsRef<OsStr>>(test: &str, arguments: impl IntoIterator<Item = S>) -> Option<Output> {
    let arguments: Vec<S> = arguments.into_iter().collect();
    let words = [OsStr::new("run"), OsStr::new("--no-calibrate")];
    let output = afar(words.into_iter().chain(arguments.iter().map(AsRef::as_ref)));
    if output.status.code() == Some(3) {
        skip(test, &stderr(&output));
        return None;
    }
    Some(output)
}

fn is_root(test: &str) -> bool {
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    if !root {
        skip(test, "needs root");
    }
    root
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}
