//! Why there is no simulation.

use console::{Class, Classed, OutputError};
use dispatch::NotSent;
use document::DocumentError;
use experiment::journal::JournalError;

/// Why nothing was simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A file or a setting that cannot be what was meant.
    #[error(transparent)]
    Text(#[from] DocumentError),
    /// A file that cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The network has no result.
    #[error(transparent)]
    Network(#[from] netsim::SimError),
    /// Runs of a network that was not in a steady state.
    #[error("{0}; there is no result")]
    Unsteady(String),
    /// Results of a sweep cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An engine has not run them.
    #[error(transparent)]
    Engine(#[from] NotSent),
    /// The kernel refused.
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl SimError {
    /// Something that cannot be: at a flag, or at a file, line and column.
    pub(crate) fn at(place: impl Into<String>, message: impl Into<String>) -> Self {
        DocumentError::At { place: place.into(), message: message.into() }.into()
    }
}

impl Classed for SimError {
    fn class(&self) -> Class {
        use netsim::SimError::{Emptied, Livelock, Unfinished};
        match self {
            Self::Output(error) => error.class(),
            Self::Engine(error) => error.class(),
            Self::System(_) | Self::Network(Unfinished { .. } | Livelock { .. }) => Class::Failed,
            Self::Unsteady(_) | Self::Network(Emptied { .. }) => Class::Invalid,
            _ => Class::Usage,
        }
    }
}
