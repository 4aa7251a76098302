//! Why nothing could be asked.

use client::InitiatorError;
use console::{Class, Classed};
use host::{HostError, NvmeUriError};

/// Why nothing could be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentifyError {
    #[error(transparent)]
    Uri(#[from] NvmeUriError),
    #[error(transparent)]
    Initiator(#[from] InitiatorError),
    #[error("--host {0}: an NQN has 1 to 223 bytes; give another")]
    Host(String),
    #[error("{uri}: there is no such subsystem; afar discover {address} lists those there are")]
    NoSubsystem { uri: String, address: String },
    #[error(
        "{uri}: there is no such target; afar discover iscsi://{address} lists those there are"
    )]
    NoTarget { uri: String, address: String },
    #[error("{uri}: {source}; check the address, and that a target listens there")]
    Controller { uri: String, source: HostError },
}

impl Classed for IdentifyError {
    fn class(&self) -> Class {
        match self {
            Self::Uri(_) | Self::Host(_) | Self::Initiator(_) => Class::Usage,
            _ => Class::Failed,
        }
    }
}
