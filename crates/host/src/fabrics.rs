//! A host's configuration, a namespace as found, and the Fabrics commands that connect them.

use nvme::{
    Command, ConnectData, Data, Digests, Direction, Fabrics, Fused, NamespaceIds, Nqn, Opening,
    Property, Submission, Transfer,
};

use workload::{fnv64, fnv64_text};

use backend::Geometry;

use super::wire::Wire;
use super::{HostError, NvmeUri};

/// The identity of a host, and its settings for connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// Its NQN.
    pub host: Nqn,
    /// HOSTID.
    pub host_id: [u8; 16],
    /// KATO: milliseconds after which a silent host counts as lost; 0 for no limit.
    pub keep_alive_ms: u32,
    /// Digests on the wire.
    pub digests: Digests,
}

impl HostConfig {
    /// A host of this name, without digests or keep-alive; its HOSTID is derived from the name, so
    /// it is always the same.
    #[must_use]
    pub fn named(host: Nqn) -> Self {
        let digest = fnv64_text(host.as_str());
        let mut host_id = [0; 16];
        host_id[..8].copy_from_slice(&digest.to_be_bytes());
        host_id[8..].copy_from_slice(&fnv64(digest).to_be_bytes());
        let digests = Digests { header: false, data: false };
        Self { host, host_id, keep_alive_ms: 0, digests }
    }
}

/// A namespace as its controller describes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Namespace {
    pub(super) id: u32,
    pub(super) geometry: Geometry,
    pub(super) ids: NamespaceIds,
    /// The opening of its medium; `None` if the target reports none.
    pub(super) opening: Option<Opening>,
    /// DLFEAT: deallocated blocks read as zeros; Write Zeroes may deallocate.
    pub(super) reads_zeros: bool,
    pub(super) zeroes_deallocate: bool,
    pub(super) ana_group: u32,
}

/// Entries of the admin queue.
pub(super) const ADMIN_ENTRIES: u16 = 32;
/// A submission queue entry; the queue sets its command identifier.
pub(super) fn submission(command: Command, nsid: u32, data: Data) -> Submission {
    let direction = match data {
        Data::None => Direction::None,
        Data::InCapsule { .. } => Direction::ToController,
        Data::Transport { .. } => Direction::ToHost,
    };
    Submission { cid: 0, fused: Fused::No, nsid, data, direction, command }
}

/// Sends Connect for a queue of `entries` entries. Returns the CNTLID.
pub(super) fn connect_queue(
    wire: &mut Wire,
    uri: &NvmeUri,
    config: &HostConfig,
    controller_id: u16,
    [queue, entries]: [u16; 2],
) -> Result<u16, HostError> {
    let connect = Fabrics::Connect {
        format: 0,
        queue,
        size: entries - 1,
        attributes: 0,
        keep_alive_ms: if queue == 0 { config.keep_alive_ms } else { 0 },
    };
    let data = ConnectData {
        host_id: config.host_id,
        controller_id,
        subsystem: uri.subsystem.clone(),
        host: config.host.clone(),
    };
    let data = data.write();
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let data_at = Data::InCapsule { offset: 0, length };
    let connect = submission(Command::Fabrics(connect), 0, data_at);
    let (id, _) = wire.ask("connect to the subsystem", &connect, &data, Transfer::None)?;
    Ok(u16::try_from(id & 0xffff).unwrap_or(u16::MAX))
}

/// Sets the controller configuration (CC).
pub(super) fn set_property(
    wire: &mut Wire,
    operation: &'static str,
    value: u64,
) -> Result<(), HostError> {
    let set = Fabrics::PropertySet { property: Property::CONFIGURATION, value };
    let set = submission(Command::Fabrics(set), 0, Data::None);
    wire.ask(operation, &set, &[], Transfer::None).map(|_| ())
}
