//! Errors of `afar identify`.

use client::{HostNameError, InitiatorError, Unserved};
use console::{Class, Classed};
use host::{HostError, NvmeUriError};

/// Why a controller or logical unit cannot be identified.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentifyError {
    #[error(transparent)]
    Uri(#[from] NvmeUriError),
    #[error(transparent)]
    Initiator(#[from] InitiatorError),
    #[error(transparent)]
    Host(#[from] HostNameError),
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
