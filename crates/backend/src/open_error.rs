//! Why a device cannot be opened.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use sys::disk::Taken;

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error(transparent)]
    System(#[from] sys::Error),
    /// Another process has claimed it, or this one under another name.
    #[error("{0}; end that first, or let both say that they share it (afar serve --shared)")]
    Taken(#[from] Taken),
    /// Its size or block size is unsuitable.
    #[error("{0}")]
    Shape(String),
    /// The file of its trace cannot be created.
    #[error("its trace {path:?} cannot be written: {source}; name another file after trace:")]
    Trace {
        /// The file of the trace.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl OpenError {
    /// Advice to append to the message, after a semicolon; empty where the message has its own.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::System(error) => match error.source.kind() {
                ErrorKind::NotFound => "; check the path, or make a file with ?size=10GiB",
                ErrorKind::IsADirectory => "; give a file or a block device",
                ErrorKind::OutOfMemory => "; this machine has not so much; give a smaller size",
                ErrorKind::FileTooLarge | ErrorKind::StorageFull => {
                    "; its file system has no room for that; give a smaller size, or another path"
                }
                _ => "; check the path and its permissions",
            },
            Self::Taken(_) | Self::Shape(_) | Self::Trace { .. } => "",
        }
    }
}
