//! Files for results, opened before the program starts so that no run is lost to a typo.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{Class, Classed, Failure, terminal};

/// Why a result is in no file.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// Before the command started anything.
    #[error("open {} for writing: {source}; check the path and its permissions", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// After a run.
    #[error("write {}: {source}; check the space left on its disk", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl OutputError {
    /// A path that cannot be opened for writing.
    #[must_use]
    pub fn open(path: &Path, source: io::Error) -> Self {
        Self::Open { path: path.to_owned(), source }
    }
}

impl Classed for OutputError {
    fn class(&self) -> Class {
        match self {
            Self::Open { .. } => Class::Usage,
            Self::Write { .. } => Class::Ours,
        }
    }
}

/// Where one text will go.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// None for standard output.
    file: Option<File>,
}

impl Output {
    /// Opens `path` for writing; `-` is standard output.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = if path.as_os_str() == "-" {
            None
        } else {
            // Not truncated yet: if the run fails, what was there before is still there.
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(false).open(path);
            Some(file.map_err(|source| OutputError::open(path, source))?)
        };
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the text, in place of what was there.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn write(self, text: &str) -> Result<(), Failure> {
        self.write_bytes(text.as_bytes())
    }

    /// The same for what need not be text.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn write_bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let Some(file) = self.file else {
            return terminal::answer(&String::from_utf8_lossy(bytes));
        };
        replace(file, bytes).map_err(|source| OutputError::Write { path: self.path, source }.into())
    }
}

fn replace(mut file: File, bytes: &[u8]) -> io::Result<()> {
    // Pipes and terminals have no length.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(bytes)
}
