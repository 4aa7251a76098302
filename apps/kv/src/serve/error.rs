//! Errors of `afar kv serve`.

use std::io;
use std::path::PathBuf;

use console::{Class, Classed};
use store::{ServerError, StoreError};

/// Why a store cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(
        "--listen {0}: no place to listen, or no host has that name; write HOST:PORT, e.g. \
         127.0.0.1:6379"
    )]
    Address(String),
    #[error("listen at {address}: {source}; give another address by --listen")]
    Listen { address: String, source: io::Error },
    #[error(
        "serve {}: {source}; install it (Debian 12: apt-get install librocksdb7.8)",
        directory.display()
    )]
    Library { directory: PathBuf, source: StoreError },
    #[error("serve {}: {source}; end it, or give another directory", directory.display())]
    Held { directory: PathBuf, source: StoreError },
    #[error(
        "serve {}: {source}; give a directory that may be written to, and is empty or has a store",
        directory.display()
    )]
    Store { directory: PathBuf, source: StoreError },
    #[error(transparent)]
    Server(ServerError),
    #[error("--ready-fd {number}: {source}; give a descriptor that is open for writing")]
    ReadyFd { number: i32, source: io::Error },
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl ServeError {
    /// The error of a server whose store is in `directory`.
    pub(crate) fn of(error: ServerError, directory: PathBuf) -> Self {
        match error {
            ServerError::Store(source @ StoreError::Library(_)) => {
                Self::Library { directory, source }
            }
            ServerError::Store(source @ StoreError::Held) => Self::Held { directory, source },
            ServerError::Store(source) => Self::Store { directory, source },
            error => Self::Server(error),
        }
    }
}

impl Classed for ServeError {
    fn class(&self) -> Class {
        match self {
            Self::Address(_) | Self::ReadyFd { .. } => Class::Usage,
            Self::Library { .. } => Class::Environment,
            _ => Class::Failed,
        }
    }
}
