//! A controller as its host has it: made, enabled, asked what it has, kept alive, shut down.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use proto::nvme::{
    Admin, Command, ConnectData, Data, Digests, Direction, Fabrics, Fused, IDENTIFY_BYTES, Nqn,
    Property, Submission, Transfer,
};

use crate::backend::Geometry;

use super::wire::Wire;
use super::{HostError, IoQueue, NvmeUri};

/// Who a host says it is, and how it wants to speak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// Its name.
    pub host: Nqn,
    /// Which host it is, under any name.
    pub host_id: [u8; 16],
    /// KATO: milliseconds after which a silent host counts as gone.
    pub keep_alive_ms: u32,
    /// Digests on the wire.
    pub digests: Digests,
}

/// See the module's description.
pub struct Controller {
    uri: NvmeUri,
    config: HostConfig,
    asked_queues: u16,
    found: Found,
    live: Mutex<Live>,
}

/// What a controller says of itself and its namespace.
#[derive(Debug, Clone, Copy)]
struct Found {
    namespace: u32,
    geometry: Geometry,
    /// Bytes that a command may move, and that may be in its capsule.
    transfer_bytes: u32,
    capsule_bytes: u32,
    io_queues: u16,
}

/// What keeps it alive, and what ends that.
type Keeper = (Sender<()>, JoinHandle<()>);

/// The controller as it now is; another when the connection was lost.
struct Live {
    id: u16,
    /// Counts controllers, from 1.
    generation: u64,
    keeper: Option<Keeper>,
}

const CC: Property = Property { offset: 0x14, is_wide: false };
/// Enabled; entries of 64 and 16 bytes (Base 3.1.4.5).
pub(super) const ENABLED: u64 = 0x0046_0001;
/// The same, and a normal shutdown.
pub(super) const LEAVING: u64 = ENABLED | 1 << 14;
/// Entries of the admin queue.
pub(super) const ADMIN_ENTRIES: u16 = 32;
/// MDTS of 0: as much as fits anything here.
const TRANSFER_MOST: u32 = 8 << 20;

pub(super) fn submission(command: Command, nsid: u32, data: Data) -> Submission {
    let direction = match data {
        Data::None => Direction::None,
        Data::InCapsule { .. } => Direction::ToController,
        Data::Transport { .. } => Direction::ToHost,
    };
    Submission { cid: 0, fused: Fused::No, nsid, data, direction, command }
}

impl Controller {
    /// Connects to a namespace's subsystem, with up to `io_queues` queues to come.
    ///
    /// # Errors
    /// When there is no way to it, or it is not there.
    pub fn connect(uri: &NvmeUri, config: &HostConfig, io_queues: u16) -> Result<Self, HostError> {
        let (id, found, keeper) = find(uri, config, io_queues)?;
        let live = Mutex::new(Live { id, generation: 1, keeper: Some(keeper) });
        let (uri, config) = (uri.clone(), config.clone());
        Ok(Self { uri, config, asked_queues: io_queues, found, live })
    }

    /// Connects again, unless somebody has since the queue of that generation was connected.
    ///
    /// # Errors
    /// As [`Controller::connect`]; it may be tried again.
    pub fn renew(&self, generation: u64) -> Result<(), HostError> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if live.generation != generation {
            return Ok(());
        }
        // The old one has nobody to say good-bye to.
        live.keeper = None;
        let (id, _, keeper) = find(&self.uri, &self.config, self.asked_queues)?;
        *live = Live { id, generation: generation + 1, keeper: Some(keeper) };
        Ok(())
    }

    /// How many controllers it has been, from 1.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).generation
    }

    /// How large the namespace is.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        self.found.geometry
    }

    /// Bytes that a command may move.
    #[must_use]
    pub const fn transfer_bytes(&self) -> u32 {
        self.found.transfer_bytes
    }

    /// Queues that it may have.
    #[must_use]
    pub const fn io_queues(&self) -> u16 {
        self.found.io_queues
    }

    /// Connects I/O queue `number`, from 1 on, for `depth` commands at a time; also the generation
    /// of the controller that it is a queue of.
    ///
    /// # Errors
    /// When there is no way to it, or it refuses.
    pub fn queue<T>(
        &self,
        number: u16,
        depth: u16,
        token: u64,
    ) -> Result<(IoQueue<T>, u64), HostError> {
        let (id, generation) = {
            let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            (live.id, live.generation)
        };
        let mut wire = Wire::connect(&self.uri.address, depth, self.config.digests)?;
        let entries = depth.saturating_add(1);
        connect_queue(&mut wire, &self.uri, &self.config, id, [number, entries])?;
        let unblocked = wire.stream.set_read_timeout(None);
        unblocked.map_err(|source| HostError::Network { operation: "set up a queue", source })?;
        let socket = Arc::new(OwnedFd::from(wire.stream));
        let shape = (self.found.namespace, self.found.geometry.block_shift);
        Ok((IoQueue::new(socket, wire.queue, shape, self.found.capsule_bytes, token), generation))
    }
}

// A new controller, enabled and asked what it has.
fn find(
    uri: &NvmeUri,
    config: &HostConfig,
    io_queues: u16,
) -> Result<(u16, Found, Keeper), HostError> {
    let mut wire = Wire::connect(&uri.address, ADMIN_ENTRIES, config.digests)?;
    let id = connect_queue(&mut wire, uri, config, 0xffff, [0, ADMIN_ENTRIES])?;
    set_property(&mut wire, "enable the controller", ENABLED)?;
    let data = identify(&mut wire, 0x01, 0)?;
    let transfer_bytes = match data[77] {
        0 => TRANSFER_MOST,
        shift => TRANSFER_MOST.min(4096_u32.checked_shl(shift.into()).unwrap_or(u32::MAX)),
    };
    // IOCCSZ, in units of 16 bytes, of which the entry takes four.
    let capsule = u32::from_le_bytes([data[1792], data[1793], data[1794], data[1795]]);
    let capsule_bytes = capsule.saturating_sub(4).saturating_mul(16);
    let asked = u32::from(io_queues.max(1) - 1);
    let queues = Admin::SetFeatures { feature: 7, saves: false, value: asked | asked << 16 };
    let queues = submission(Command::Admin(queues), 0, Data::None);
    let (granted, _) = wire.ask("ask for queues", &queues, &[], Transfer::None)?;
    let granted = u16::try_from(granted & 0xffff).unwrap_or(0).saturating_add(1);
    let namespace = match uri.namespace {
        Some(namespace) => namespace,
        None => first_namespace(&mut wire)?,
    };
    let geometry = shape(&mut wire, namespace)?;
    let io_queues = granted.min(io_queues);
    let found = Found { namespace, geometry, transfer_bytes, capsule_bytes, io_queues };
    Ok((id, found, keep_alive(wire, config.keep_alive_ms)))
}

impl Drop for Controller {
    fn drop(&mut self) {
        let live = self.live.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((stop, keeper)) = live.keeper.take() {
            drop(stop);
            let _ended = keeper.join();
        }
    }
}

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

pub(super) fn set_property(
    wire: &mut Wire,
    operation: &'static str,
    value: u64,
) -> Result<(), HostError> {
    let set = Fabrics::PropertySet { property: CC, value };
    let set = submission(Command::Fabrics(set), 0, Data::None);
    wire.ask(operation, &set, &[], Transfer::None).map(|_| ())
}

fn identify(wire: &mut Wire, structure: u8, nsid: u32) -> Result<Vec<u8>, HostError> {
    let operation = "identify";
    let length = u32::try_from(IDENTIFY_BYTES).unwrap_or(u32::MAX);
    let identify = Admin::Identify { structure, controller_id: 0, command_set: 0 };
    let asked = submission(Command::Admin(identify), nsid, Data::Transport { length });
    let (_, data) = wire.ask(operation, &asked, &[], Transfer::Receive(length))?;
    if data.len() == IDENTIFY_BYTES {
        Ok(data)
    } else {
        let reason = format!("{} bytes came for {IDENTIFY_BYTES}", data.len());
        Err(HostError::Protocol { operation, reason })
    }
}

fn first_namespace(wire: &mut Wire) -> Result<u32, HostError> {
    let list = identify(wire, 0x02, 0)?;
    match u32::from_le_bytes([list[0], list[1], list[2], list[3]]) {
        0 => {
            let reason = "the subsystem has none".to_owned();
            Err(HostError::Protocol { operation: "look for a namespace", reason })
        }
        number => Ok(number),
    }
}

// NVM Command Set 4.1.5.1: size, format in use, and what that format is.
fn shape(wire: &mut Wire, nsid: u32) -> Result<Geometry, HostError> {
    let data = identify(wire, 0x00, nsid)?;
    let number = |at: usize, bytes: usize| {
        data[at..at + bytes]
            .iter()
            .rev()
            .fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
    };
    let format = usize::from(data[26] & 0xf);
    let block_shift = data[128 + 4 * format + 2];
    let block_count = number(0, 8);
    if block_count == 0 || !(9..=16).contains(&block_shift) {
        let reason = format!("namespace {nsid} is not there, or has no blocks");
        return Err(HostError::Protocol { operation: "look at a namespace", reason });
    }
    let block_bytes = 1 << block_shift;
    let geometry = Geometry {
        block_shift,
        block_count,
        optimal_bytes: block_bytes,
        atomic_bytes: block_bytes,
    };
    Ok(geometry)
}

// Speaks often enough, and says good-bye.
fn keep_alive(mut wire: Wire, keep_alive_ms: u32) -> Keeper {
    let (stop, stopped) = channel();
    let period = match keep_alive_ms {
        0 => Duration::from_secs(3600),
        ms => Duration::from_millis(u64::from(ms / 2).max(1)),
    };
    let keeper = std::thread::spawn(move || {
        let keep = submission(Command::Admin(Admin::KeepAlive), 0, Data::None);
        while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
            if wire.ask("keep alive", &keep, &[], Transfer::None).is_err() {
                return;
            }
        }
        let _gone = set_property(&mut wire, "shut down", LEAVING);
    });
    (stop, keeper)
}
