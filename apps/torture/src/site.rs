//! What is tried: where the target is, what is known of its disk, and how long it may take.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use scsi::iscsi::Secret;

/// See the module's description.
pub(super) struct Site {
    pub(super) address: SocketAddr,
    pub(super) place: Place,
    pub(super) block_bytes: u32,
    pub(super) block_count: u64,
    /// For what takes the target time: handshakes, stalls.
    pub(super) patience: Duration,
    pub(super) quick: bool,
    pub(super) seed: u64,
}

/// The disk, by protocol.
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
    /// Name and secret, where the target asks for proof.
    pub(super) user: Option<(String, Secret)>,
    /// The target can prove who it is, too.
    pub(super) is_mutual: bool,
}

const DIAL: Duration = Duration::from_secs(5);

impl Site {
    /// Whether the target is still there.
    pub(super) fn takes_connections(&self) -> bool {
        TcpStream::connect_timeout(&self.address, DIAL).is_ok()
    }

    /// The namespace. Rows of NVMe are run where there is one.
    pub(super) fn nvme(&self) -> &NvmePlace {
        match &self.place {
            Place::Nvme(place) => place,
            Place::Iscsi(_) => unreachable!("rows are run against targets of their protocol"),
        }
    }

    /// The logical unit. Rows of iSCSI are run where there is one.
    pub(super) fn iscsi(&self) -> &IscsiPlace {
        match &self.place {
            Place::Iscsi(place) => place,
            Place::Nvme(_) => unreachable!("rows are run against targets of their protocol"),
        }
    }
}
