//! Why a blade cannot be used, found before the run.

use blades::ArrayError;
use console::{Class, Classed};
use host::HostError;

use super::hold::HoldError;

/// Why a blade cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FarError {
    #[error("--far {uri}: {source}{}", source.remedy())]
    Connect { uri: String, source: HostError },
    #[error("--far {uri}: its blocks have {bytes} bytes; a page of 4096 needs blocks of no more")]
    Blocks { uri: String, bytes: u64 },
    #[error("--far {first} and {second} are one disk; name it once, or another")]
    Twice { first: String, second: String },
    #[error("--far: {0}")]
    Array(#[from] ArrayError),
    #[error(transparent)]
    Hold(#[from] HoldError),
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for FarError {
    fn class(&self) -> Class {
        Class::Environment
    }
}
