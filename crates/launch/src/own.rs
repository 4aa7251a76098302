//! afar's own program.

use std::path::PathBuf;
use std::process::Command;

/// The running program, for a child that executes it.
pub const SELF: &str = "/proc/self/exe";

/// The path of afar's own program.
#[must_use]
pub fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("afar"))
}

/// A command that executes afar.
#[must_use]
pub fn afar() -> Command {
    Command::new(program())
}
