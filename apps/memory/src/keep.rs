//! `afar keep`: the process that answers for what a run under the swap engine changes on the host.

use std::process::ExitCode;

use clap::Args;
use console::Failure;
use console::terminal::{self, StdoutError};

/// The command that starts the keeper: this same binary.
pub(crate) const COMMAND: [&str; 2] = [launch::SELF, "keep"];

/// Set up swap space for a run and put the host back when its input ends
///
/// What --engine swap starts beside the program, in a session of its own, so that what ends the run
/// does not end it.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct KeepFlags {}

/// Sets up swap space, and restores the host when standard input ends.
///
/// # Errors
/// As `swap::keep`.
pub fn keep(_flags: &KeepFlags) -> Result<ExitCode, Failure> {
    let (input, output) = (std::io::stdin().lock(), terminal::pipe());
    swap::keep(input, output).map_err(StdoutError::from)?;
    Ok(ExitCode::SUCCESS)
}
