//! An answer in several forms: a table for the terminal, and files.

use std::path::PathBuf;
use std::process::ExitCode;

use console::{Failure, Output};

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
    let Written { table, files } = written;
    let wanted = files.into_iter().filter_map(|(path, bytes)| Some((path.as_deref()?, bytes)));
    let opened = wanted.map(|(path, bytes)| Ok((Output::open(path)?, bytes)));
    let opened: Vec<_> = opened.collect::<Result<_, Failure>>()?;
    console::answer_bytes(|| table, opened)?;
    Ok(ExitCode::SUCCESS)
}
