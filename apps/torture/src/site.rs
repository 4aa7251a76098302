//! The target under test: its address, its disk, and its time limit.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use scsi::iscsi::Secret;

/// The target under test.
pub(super) struct Site {
    pub(super) address: SocketAddr,
    pub(super) place: Place,
    pub(super) block_bytes: u32,
    pub(super) block_count: u64,
    /// Time limit of slow reactions, such as to stalled peers.
    pub(super) patience: Duration,
    pub(super) quick: bool,
    pub(super) seed: u64,
}

/// The names of the disk, by protocol.
pub(super) enum Place {
    Nvme(NvmePlace),
    Iscsi(IscsiPlace),
}

pub(super) struct NvmePlace {
    pub(super) subsystem: String,
    pub(super) host: String,
    pub(super) nsid: u32,
}

pub(super) struct IscsiPlace {
    pub(super) initiator: String,
    pub(super) target: String,
    pub(super) lun: [u8; 8],
    /// Name and secret for CHAP; `None` without authentication.
    pub(super) user: Option<(String, Secret)>,
    /// Whether the target can authenticate itself, too.
    pub(super) is_mutual: bool,
}

const DIAL: Duration = Duration::from_secs(5);

impl Site {
    /// Whether the target accepts a connection.
    pub(super) fn takes_connections(&self) -> bool {
        TcpStream::connect_timeout(&self.address, DIAL).is_ok()
    }

    /// The namespace; only rows of NVMe/TCP may call this.
    pub(super) fn nvme(&self) -> &NvmePlace {
        match &self.place {
            Place::Nvme(place) => place,
            Place::Iscsi(_) => unreachable!("rows are run against targets of their protocol"),
        }
    }

    /// The logical unit; only rows of iSCSI may call this.
    pub(super) fn iscsi(&self) -> &IscsiPlace {
        match &self.place {
            Place::Iscsi(place) => place,
            Place::Nvme(_) => unreachable!("rows are run against targets of their protocol"),
        }
    }
}
