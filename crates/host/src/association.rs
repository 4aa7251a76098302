//! An association of a host with a controller (Base 2.2): their descriptions, and queues between
//! them.

use std::sync::Arc;

use nvme::FoundController;
use sys::world::World;

use super::admin::AdminQueue;
use super::fabrics::{HostConfig, Namespace, connect_queue};
use super::pipe::Pipe;
use super::queue::IoQueue;
use super::wire::Wire;
use super::{HostError, NvmeUri};

/// See the module's description.
#[derive(Debug, Clone)]
pub(super) struct Association {
    world: Arc<dyn World>,
    pub(super) uri: NvmeUri,
    pub(super) config: HostConfig,
    /// CNTLID.
    pub(super) id: u16,
    pub(super) controller: FoundController,
    pub(super) namespace: Namespace,
    /// Bytes that one command may transfer.
    pub(super) transfer_bytes: u32,
    /// I/O queues that were requested and granted.
    pub(super) io_queues: u16,
}

/// Bytes that one command transfers at most, also if MDTS sets no limit.
const TRANSFER_MOST: u32 = 8 << 20;

impl Association {
    /// Connects to a new controller, enables and identifies it. Returns the association, for up to
    /// `io_queues` queues, and its admin queue.
    pub(super) fn begin(
        world: &Arc<dyn World>,
        uri: &NvmeUri,
        config: &HostConfig,
        io_queues: u16,
    ) -> Result<(Self, AdminQueue), HostError> {
        let (id, mut admin) = AdminQueue::connect(&**world, uri, config)?;
        let controller = admin.controller()?;
        let transfer_bytes = match controller.transfer_shift {
            0 => TRANSFER_MOST,
            shift => TRANSFER_MOST.min(4096_u32.checked_shl(shift.into()).unwrap_or(u32::MAX)),
        };
        let granted = admin.ask_for_queues(io_queues.max(1))?;
        let namespace = match uri.namespace {
            Some(namespace) => namespace,
            None => admin.first_namespace()?,
        };
        let namespace = admin.namespace(namespace)?;
        let (world, uri, config) = (Arc::clone(world), uri.clone(), config.clone());
        let io_queues = granted.min(io_queues);
        let association =
            Self { world, uri, config, id, controller, namespace, transfer_bytes, io_queues };
        Ok((association, admin))
    }

    /// Fails if the namespace reports no blocks.
    pub(super) fn has_blocks(&self) -> Result<(), HostError> {
        if self.namespace.geometry.block_count > 0 {
            return Ok(());
        }
        let reason = format!("namespace {} has no blocks", self.namespace.id);
        Err(HostError::Protocol { operation: "look at a namespace", reason })
    }

    /// Connects I/O queue `number`, from 1 on, for `depth` commands at a time.
    pub(super) fn queue<T>(
        &self,
        number: u16,
        depth: u16,
        token: u64,
    ) -> Result<IoQueue<T>, HostError> {
        let mut wire = Wire::connect(&*self.world, &self.uri.address, depth, self.config.digests)?;
        let entries = depth.saturating_add(1);
        connect_queue(&mut wire, &self.uri, &self.config, self.id, [number, entries])?;
        wire.be_patient(None)?;
        let shape = (self.namespace.id, self.namespace.geometry.block_shift);
        let capsule_bytes = self.controller.capsule_bytes;
        Ok(IoQueue::new(Pipe::new(wire.stream, token), wire.queue, shape, capsule_bytes))
    }
}
