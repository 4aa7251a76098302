//! `afar keep`: the process that answers for what a run under the swap engine changes on the host.

use std::process::ExitCode;

use crate::failure::Failure;
use crate::terminal::StdoutError;

/// The command that starts it: this same binary.
pub(crate) const COMMAND: [&str; 2] = ["/proc/self/exe", "keep"];

/// Keeps until standard input ends.
///
/// # Errors
/// When nobody listens any more.
pub(crate) fn keep() -> Result<ExitCode, Failure> {
    let (input, output) = (std::io::stdin().lock(), std::io::stdout().lock());
    farmem::runtime::swap::keep(input, output).map_err(StdoutError::from)?;
    Ok(ExitCode::SUCCESS)
}
