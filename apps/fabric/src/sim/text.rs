//! Files of text.

use std::fs;
use std::path::Path;

use super::error::SimError;

pub(super) fn read_text(path: &Path) -> Result<String, SimError> {
    fs::read_to_string(path)
        .map_err(|source| SimError::Unreadable { path: path.to_owned(), source })
}
