//! Man pages and shell completions, from the definitions of the flags.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;
use console::{
    Failure, OutputError,
    terminal::{self, StdoutError},
};

use crate::flags::Cli;

/// Writes `afar.1` and a page for each command that is not hidden.
///
/// # Errors
/// When the directory cannot be written to.
pub(crate) fn man(directory: &Path) -> Result<ExitCode, Failure> {
    fs::create_dir_all(directory).map_err(|source| OutputError::open(directory, source))?;
    clap_mangen::generate_to(Cli::command(), directory)
        .map_err(|source| OutputError::open(directory, source))?;
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
        String::from_utf8(script).map_err(|error| StdoutError::from(io::Error::other(error)))?;
    terminal::answer(&text)?;
    Ok(ExitCode::SUCCESS)
}
