//! Files of text.

use std::fs;
use std::path::Path;

use console::terminal;
use document::DocumentError;

use super::error::SimError;

/// Reads a whole text file.
pub(super) fn read_text(path: &Path) -> Result<String, SimError> {
    terminal::detail(|| format!("reads {}", path.display()));
    fs::read_to_string(path)
        .map_err(|source| DocumentError::Unreadable { path: path.to_owned(), source }.into())
}
