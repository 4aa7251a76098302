//! Why there is no simulation.

use std::path::PathBuf;

use console::{Class, Classed};
use document::DocumentError;
use experiment::journal::JournalError;

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimError {
    #[error("{}: {source}; give a file that can be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Record { path: PathBuf, source: records::RecordError },
    /// With a flag, or file, line and column.
    #[error("{place}: {message}")]
    At { place: String, message: String },
    #[error(transparent)]
    Text(#[from] DocumentError),
    #[error(transparent)]
    Network(#[from] netsim::SimError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for SimError {
    fn class(&self) -> Class {
        use netsim::SimError::{Livelock, Unfinished};
        match self {
            Self::System(_) | Self::Network(Unfinished { .. } | Livelock { .. }) => Class::Failed,
            _ => Class::Usage,
        }
    }
}
