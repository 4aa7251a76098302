//! One way to a disk, whatever protocol it speaks.

use std::fmt;
use std::sync::Arc;

use sys::world::World;

use crate::error::HostError;
use crate::fabrics::HostConfig;
use crate::initiator::{self, InitiatorConfig, IscsiUri};
use crate::keeper::NvmeKeeper;
use crate::local::{LocalDevice, LocalKeeper};
use crate::reach::Keeper;
use crate::uri::NvmeUri;

/// A way to a disk, and who takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskPath {
    /// Over NVMe/TCP; the keep-alive time is above 0.
    Nvme(NvmeUri, HostConfig),
    /// Over iSCSI.
    Iscsi(IscsiUri, InitiatorConfig),
    /// None: a device of this process, which has no other.
    Local(LocalDevice),
}

impl DiskPath {
    /// Connects, for up to `queues` queues; `number` tells it from other ways to the disk.
    pub(super) fn connect(
        &self,
        world: &Arc<dyn World>,
        number: usize,
        queues: u16,
    ) -> Result<Box<dyn Keeper>, HostError> {
        Ok(match self {
            Self::Nvme(uri, config) => Box::new(NvmeKeeper::connect(world, uri, config, queues)?),
            Self::Iscsi(uri, config) => initiator::keep(world, uri, config, number, queues)?,
            Self::Local(device) => Box::new(LocalKeeper::new(world, device, queues)),
        })
    }

    /// What it leads to is known by the same kind of name.
    pub(super) const fn is_like(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Self::Nvme(..), Self::Nvme(..)) | (Self::Iscsi(..), Self::Iscsi(..))
        )
    }
}

impl fmt::Display for DiskPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nvme(uri, _) => uri.fmt(f),
            Self::Iscsi(uri, _) => uri.fmt(f),
            Self::Local(device) => device.name.fmt(f),
        }
    }
}
