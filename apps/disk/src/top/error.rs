//! Errors of `afar top`.

use console::{Class, Classed};
use measure::Duration;

use crate::serve::PortError;

/// Why a target cannot be watched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TopError {
    #[error("--interval {0}: at least 100ms, and an hour at most")]
    Interval(Duration),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(
        "read metrics at {address}: {source}; check the address, and that afar serve was started \
         with --metrics"
    )]
    Unreachable { address: String, source: std::io::Error },
    #[error("read metrics at {address}: {reason}; give the address of an afar serve --metrics")]
    Strange { address: String, reason: String },
    #[error("told to end before the interval was over; nothing has been measured")]
    Interrupted,
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for TopError {
    fn class(&self) -> Class {
        match self {
            Self::Interval(_) | Self::Port(_) => Class::Usage,
            _ => Class::Failed,
        }
    }
}
