//! What is loaded, and why it could not be.

use std::sync::Arc;

use backend::{Backend, Geometry};
use host::initiator::LogicalUnit;
use host::{Controller, HostError};

/// What is loaded.
#[derive(Clone)]
pub enum Device {
    /// A device of this process.
    Local(Arc<dyn Backend>),
    /// A namespace of a target.
    Remote(Arc<Controller>),
    /// A logical unit of a target.
    Iscsi(Arc<LogicalUnit>),
}

/// Why there was no load, or no more of it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target cannot be reached.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The kernel refused something.
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Device {
    /// How large it is.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        match self {
            Self::Local(backend) => backend.geometry(),
            Self::Remote(controller) => controller.geometry(),
            Self::Iscsi(unit) => unit.geometry(),
        }
    }

    /// Bytes that a request may move.
    #[must_use]
    pub fn request_bytes_max(&self) -> u32 {
        match self {
            Self::Local(_) => 8 << 20,
            Self::Remote(controller) => controller.transfer_bytes(),
            Self::Iscsi(unit) => unit.transfer_bytes(),
        }
    }
}
