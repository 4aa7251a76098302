//! Man pages and shell completions, from the definitions of the flags.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::flags::Cli;
use crate::terminal;

/// Writes `afar.1` and a page for each command that is not hidden.
///
/// # Errors
/// When the directory cannot be written to.
pub(crate) fn man(directory: &Path) -> Result<ExitCode, Failure> {
    let failed = |path: &Path, source| Failure::Output { path: path.to_owned(), source };
    fs::create_dir_all(directory).map_err(|source| failed(directory, source))?;
    clap_mangen::generate_to(Cli::command(), directory)
        .map_err(|source| failed(directory, source))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the completions for `shell`.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "afar", &mut script);
    let text =
        String::from_utf8(script).map_err(|error| Failure::Stdout(io::Error::other(error)))?;
    terminal::answer(&text).map_err(Failure::Stdout)?;
    Ok(ExitCode::SUCCESS)
}
