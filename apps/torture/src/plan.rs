//! Resolves flags to a target, cases and a neighbour.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use console::{Class, Classed};
use diskload::Device;
use host::initiator::{InitiatorConfig, IscsiUri, LogicalUnit};
use host::{Controller, HostConfig, HostError, NvmeUri, NvmeUriError};
use measure::Duration;
use scsi::iscsi::Digests;

use crate::flags::TortureFlags;
use client::{HostNameError, InitiatorError, SCHEME, host_name, initiator};

use super::case::Row;
use super::memory;
use super::site::{IscsiPlace, NvmePlace, Place, Site};

/// Why no case can be tried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TortureError {
    #[error(transparent)]
    Nvme(#[from] NvmeUriError),
    #[error(transparent)]
    Initiator(#[from] InitiatorError),
    #[error(transparent)]
    Host(#[from] HostNameError),
    #[error("--case {0}: there is no such case for this protocol; --list has them")]
    Case(String),
    #[error("--patience {0}: 100ms to 1h")]
    Patience(Duration),
    #[error("{address}: {source}; check the address")]
    Address { address: String, source: std::io::Error },
    #[error("connect a well-behaved host first: {name}: {source}{}", source.remedy())]
    Connect { name: String, source: HostError },
    #[error("{name}: it answers no read of a well-behaved host; mend that before you try this")]
    Silent { name: String },
    #[error(transparent)]
    System(#[from] sys::Error),
}

/// What `afar torture` will do.
pub(super) struct Plan {
    pub(super) address: String,
    pub(super) site: Site,
    pub(super) rows: Vec<&'static Row>,
    pub(super) neighbour_name: String,
    pub(super) neighbour: Device,
    pub(super) pids: Vec<u32>,
    pub(super) allows_writes: bool,
}

/// The address of a disk, and the configuration of the well-behaved host or initiator.
enum Disk {
    Nvme(NvmeUri, HostConfig),
    Iscsi(IscsiUri, InitiatorConfig),
}

/// KATO of the well-behaved host.
const KEEP_ALIVE_MS: u32 = 10_000;
const PATIENCE: [Duration; 2] = [Duration::from_ms(100), Duration::from_ms(3_600_000)];

impl Classed for TortureError {
    fn class(&self) -> Class {
        match self {
            Self::Connect { .. } | Self::Silent { .. } | Self::System(_) => Class::Failed,
            _ => Class::Usage,
        }
    }
}

impl Plan {
    /// The plan of `flags`; connects to the disks.
    ///
    /// # Errors
    /// When a flag is invalid, or a disk cannot be reached.
    pub(super) fn resolve(flags: &TortureFlags) -> Result<Self, TortureError> {
        let [shortest, longest] = PATIENCE;
        if flags.patience < shortest || flags.patience > longest {
            return Err(TortureError::Patience(flags.patience));
        }
        let address = flags.address.clone().unwrap_or_default();
        flags.initiator.fit(&[&address])?;
        let disk = Disk::named(&address, flags)?;
        let rows = chosen(&disk, &flags.cases)?;
        let (socket, place) = disk.place()?;
        let neighbour_name = flags.neighbour.clone().unwrap_or_else(|| address.clone());
        let own = disk.reach(&address)?;
        let geometry = own.geometry();
        let neighbour = match &flags.neighbour {
            Some(name) => Disk::named(name, flags)?.reach(name)?,
            None => own,
        };
        let block_bytes = geometry.block_bytes();
        let site = Site {
            address: socket,
            place,
            block_bytes,
            block_count: geometry.bytes() / u64::from(block_bytes),
            patience: std::time::Duration::from_nanos(flags.patience.as_ns()),
            quick: flags.quick,
            seed: flags.seed,
        };
        let pids = memory::processes(flags.pid, socket);
        let allows_writes = flags.allow_writes;
        Ok(Self { address, site, rows, neighbour_name, neighbour, pids, allows_writes })
    }
}

// The cases that are named, or all of the disk's protocol.
fn chosen(disk: &Disk, names: &[String]) -> Result<Vec<&'static Row>, TortureError> {
    let rows: Vec<&'static Row> = match disk {
        Disk::Nvme(..) => super::nvme::rows().collect(),
        Disk::Iscsi(..) => super::iscsi::rows().collect(),
    };
    if names.is_empty() {
        return Ok(rows);
    }
    let find = |name: &String| {
        let row = rows.iter().copied().find(|row| row.name.eq_ignore_ascii_case(name.trim()));
        row.ok_or_else(|| TortureError::Case(name.clone()))
    };
    names.iter().map(find).collect()
}

impl Disk {
    // The disk at the address `name`.
    fn named(name: &str, flags: &TortureFlags) -> Result<Self, TortureError> {
        if name.starts_with(SCHEME) {
            let uri: IscsiUri = name.parse().map_err(InitiatorError::from)?;
            let config = initiator(&flags.initiator, &uri, Digests::default())?;
            return Ok(Self::Iscsi(uri, config));
        }
        let host = host_name(&flags.host)?;
        let config = HostConfig { keep_alive_ms: KEEP_ALIVE_MS, ..HostConfig::named(host) };
        Ok(Self::Nvme(name.parse()?, config))
    }

    // Connects to the disk.
    fn reach(&self, name: &str) -> Result<Device, TortureError> {
        let device = match self {
            Self::Nvme(uri, config) => {
                Controller::connect(uri, config, 1).map(|one| Device::Remote(Arc::new(one)))
            }
            Self::Iscsi(uri, config) => {
                LogicalUnit::connect(uri, config).map(|one| Device::Iscsi(Arc::new(one)))
            }
        };
        device.map_err(|source| TortureError::Connect { name: name.to_owned(), source })
    }

    // The address to which hostile peers connect, and the names that they use.
    fn place(&self) -> Result<(SocketAddr, Place), TortureError> {
        let (address, place) = match self {
            Self::Nvme(uri, config) => {
                let place = NvmePlace {
                    subsystem: uri.subsystem.as_str().to_owned(),
                    host: config.host.as_str().to_owned(),
                    nsid: uri.namespace.unwrap_or(1),
                };
                (&uri.address, Place::Nvme(place))
            }
            Self::Iscsi(uri, config) => {
                let place = IscsiPlace {
                    initiator: config.name.clone(),
                    target: uri.target.clone(),
                    lun: uri.lun.map_or([0; 8], scsi::Lun::write),
                    user: uri.user.clone().zip(config.secret.clone()),
                    is_mutual: uri.target_user.is_some(),
                };
                (&uri.address, Place::Iscsi(place))
            }
        };
        let nowhere = |source| TortureError::Address { address: address.clone(), source };
        let mut found = address.to_socket_addrs().map_err(nowhere)?;
        let none = || nowhere(std::io::Error::other("no such host"));
        Ok((found.next().ok_or_else(none)?, place))
    }
}
