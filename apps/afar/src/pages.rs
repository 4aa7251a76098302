//! Makes man pages and shell completions of the definitions of the flags.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;
use console::{
    Directory, Failure, OutputError,
    terminal::{self, StdoutError},
};

/// Write the man pages
#[derive(Debug, Args)]
pub(crate) struct ManFlags {
    /// Directory to write them to; created if missing
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}

/// Print the completions for a shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsFlags {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Writes `afar.1` and a page for each command that is not hidden.
///
/// # Errors
/// When the directory cannot be written to.
pub(crate) fn man(flags: &ManFlags, command: Command) -> Result<ExitCode, Failure> {
    let directory: &Path = &flags.directory;
    let _made = Directory::make(directory)?;
    clap_mangen::generate_to(command, directory)
        .map_err(|source| OutputError::open(directory, source))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the completions for `shell`.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn completions(
    flags: &CompletionsFlags,
    command: &mut Command,
) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, command, "afar", &mut script);
    let text =
        String::from_utf8(script).map_err(|error| StdoutError::from(io::Error::other(error)))?;
    terminal::answer(&text)?;
    Ok(ExitCode::SUCCESS)
}
