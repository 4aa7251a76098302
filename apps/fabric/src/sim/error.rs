//! Why a simulation has no result.

use console::{Class, Classed, OutputError};
use dispatch::NotSent;
use document::DocumentError;
use experiment::journal::JournalError;

/// Why a simulation has no result.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A file or a setting is invalid.
    #[error(transparent)]
    Text(#[from] DocumentError),
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The network has no result.
    #[error(transparent)]
    Network(#[from] netsim::SimError),
    /// The network was not in a steady state.
    #[error("{0}; there is no result")]
    Unsteady(String),
    /// Results of a sweep cannot be stored.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An engine has not run the runs of a sweep.
    #[error(transparent)]
    Engine(#[from] NotSent),
    /// The kernel refused.
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl SimError {
    /// An invalid value, at a flag or at a file, line and column.
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
