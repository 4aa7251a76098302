//! The device under load, and errors.

use std::sync::Arc;

use backend::{Backend, Geometry};
use host::initiator::LogicalUnit;
use host::{Controller, HostError};

/// The device under load.
#[derive(Clone)]
pub enum Device {
    /// A device of this process.
    Local(Arc<dyn Backend>),
    /// A namespace of an NVMe/TCP target.
    Remote(Arc<Controller>),
    /// A logical unit of an iSCSI target.
    Iscsi(Arc<LogicalUnit>),
}

/// Why a load could not begin or had to end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target cannot be reached.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Device {
    /// The size and block size of the device.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        match self {
            Self::Local(backend) => backend.geometry(),
            Self::Remote(controller) => controller.geometry(),
            Self::Iscsi(unit) => unit.geometry(),
        }
    }

    /// Most bytes of one request.
    #[must_use]
    pub fn request_bytes_max(&self) -> u32 {
        match self {
            Self::Local(_) => 8 << 20,
            Self::Remote(controller) => controller.transfer_bytes(),
            Self::Iscsi(unit) => unit.transfer_bytes(),
        }
    }
}
