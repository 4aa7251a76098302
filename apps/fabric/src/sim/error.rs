//! Why there is no simulation.

use std::path::PathBuf;

use console::{Class, Classed};
use document::DocumentError;
use experiment::journal::JournalError;

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A file that cannot be read.
    #[error("{}: {source}; give a file that can be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        source: std::io::Error,
    },
    /// A file that is no record.
    #[error("{}: {source}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        source: records::RecordError,
    },
    /// A setting that cannot be.
    #[error("{place}: {message}")]
    At {
        /// The flag, or file, line and column.
        place: String,
        /// What is wrong there.
        message: String,
    },
    /// A file that cannot be what was meant.
    #[error(transparent)]
    Text(#[from] DocumentError),
    /// The network has no result.
    #[error(transparent)]
    Network(#[from] netsim::SimError),
    /// Runs of a network that was not in a steady state.
    #[error("{0}; there is no result")]
    Unsteady(String),
    /// Results of a sweep cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel refused.
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for SimError {
    fn class(&self) -> Class {
        use netsim::SimError::{Emptied, Livelock, Unfinished};
        match self {
            Self::System(_) | Self::Network(Unfinished { .. } | Livelock { .. }) => Class::Failed,
            Self::Unsteady(_) | Self::Network(Emptied { .. }) => Class::Invalid,
            _ => Class::Usage,
        }
    }
}
