//! An answer in several forms: a table for the terminal, and files.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use console::{Failure, Output, terminal};

/// An answer in several forms.
pub(super) struct Written<'a> {
    /// For standard output, unless a file is written there.
    pub(super) table: String,
    /// Where they were asked to go, if they were, and what is in them.
    pub(super) files: Vec<(&'a Option<PathBuf>, Vec<u8>)>,
}

/// What a file is to contain, if it was asked for.
pub(super) fn when(
    path: &Option<PathBuf>,
    text: impl FnOnce() -> String,
) -> (&Option<PathBuf>, Vec<u8>) {
    (path, if path.is_some() { text().into_bytes() } else { Vec::new() })
}

/// Opens every file before the first is written.
pub(super) fn write(written: Written<'_>) -> Result<ExitCode, Failure> {
    let is_stdout = |path: &Path| path.as_os_str() == "-";
    let mut outputs = Vec::new();
    let mut is_answered = false;
    for (path, bytes) in written.files {
        let Some(path) = path else { continue };
        is_answered |= is_stdout(path);
        outputs.push((Output::open(path)?, bytes));
    }
    for (output, bytes) in outputs {
        output.write_bytes(&bytes)?;
    }
    if !is_answered {
        terminal::answer(&written.table)?;
    }
    Ok(ExitCode::SUCCESS)
}
