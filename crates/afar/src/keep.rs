//! `afar keep`: the process that answers for what a run under the swap engine changes on the host.

use std::process::ExitCode;

use console::Failure;
use console::terminal::{self, StdoutError};

/// The command that starts it: this same binary.
pub(crate) const COMMAND: [&str; 2] = [launch::SELF, "keep"];

/// Keeps until standard input ends.
///
/// # Errors
/// When nobody listens any more.
pub(crate) fn keep() -> Result<ExitCode, Failure> {
    let (input, output) = (std::io::stdin().lock(), terminal::pipe());
    farmem::runtime::swap::keep(input, output).map_err(StdoutError::from)?;
    Ok(ExitCode::SUCCESS)
}
