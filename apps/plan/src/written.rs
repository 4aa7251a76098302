//! An answer in several forms: a table for the terminal, and files.

use std::path::PathBuf;
use std::process::ExitCode;

use console::{Failure, Output};

/// An answer in several forms.
pub(super) struct Written<'a> {
    /// For standard output, unless a file is written there.
    pub(super) table: String,
    /// Paths of files, each with its contents; a file without a path is not written.
    pub(super) files: Vec<(&'a Option<PathBuf>, Vec<u8>)>,
}

/// A path with the contents of its file, which are empty without a path.
pub(super) fn when(
    path: &Option<PathBuf>,
    text: impl FnOnce() -> String,
) -> (&Option<PathBuf>, Vec<u8>) {
    (path, if path.is_some() { text().into_bytes() } else { Vec::new() })
}

/// Writes the table and the files; every file is opened before the first is written.
pub(super) fn write(written: Written<'_>) -> Result<ExitCode, Failure> {
    let Written { table, files } = written;
    let wanted = files.into_iter().filter_map(|(path, bytes)| Some((path.as_deref()?, bytes)));
    let opened = wanted.map(|(path, bytes)| Ok((Output::open(path)?, bytes)));
    let opened: Vec<_> = opened.collect::<Result<_, Failure>>()?;
    console::answer_bytes(|| table, opened)?;
    Ok(ExitCode::SUCCESS)
}
