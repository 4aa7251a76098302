//! Why a device cannot be opened.

use std::io;
use std::path::PathBuf;

use sys::disk::Taken;

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system does not let it.
    #[error(transparent)]
    System(#[from] sys::Error),
    /// Another process has it, or this one under another name.
    #[error("{0}; end that first, or let both say that they share it (afar serve --shared)")]
    Taken(#[from] Taken),
    /// Its size or blocks do not do.
    #[error("{0}")]
    Shape(String),
    /// The file for its trace cannot be made.
    #[error("its trace {path:?} cannot be written: {source}; name another file after trace:")]
    Trace {
        /// Of the trace.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl OpenError {
    /// What to do about it, after a semicolon, where that does not say itself.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::System(_) => "; check the path and its permissions",
            Self::Taken(_) | Self::Shape(_) | Self::Trace { .. } => "",
        }
    }
}
