//! A path to a disk over any protocol.

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

/// A path to a disk, and the configuration of its host or initiator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskPath {
    /// Over NVMe/TCP; the keep-alive time is above 0.
    Nvme(NvmeUri, HostConfig),
    /// Over iSCSI.
    Iscsi(IscsiUri, InitiatorConfig),
    /// A device of this process; it has no other path.
    Local(LocalDevice),
}

impl DiskPath {
    /// Connects, for up to `queues` queues; `number` is the path's among those of the disk.
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

    /// Whether both paths name their subsystem or target in the same protocol.
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
