//! Why nothing could be asked.

use client::{InitiatorError, Unserved};
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
    #[error(transparent)]
    Unserved(#[from] Unserved),
    #[error("{uri}: {source}{}", source.remedy())]
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
