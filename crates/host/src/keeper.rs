//! The keeper of an NVMe/TCP path: a controller's admin queue, with keep-alive and events.

use std::sync::Arc;

use nvme::log::AnaState;
use sys::event::Waker;
use sys::stream::Stream;
use sys::world::World;

use super::admin::{self, AdminQueue};
use super::association::Association;
use super::fabrics::HostConfig;
use super::fence::{Fenced, Lost};
use super::piece::{Piece, Shape};
use super::reach::{Found, Heard, Keeper, Queue};
use super::{HostError, NvmeUri};

/// See the module's description.
pub(super) struct NvmeKeeper {
    association: Association,
    admin: AdminQueue,
    found: Found,
}

/// Added to the times that controllers report, in milliseconds.
const SLACK_MS: u64 = 1000;

impl NvmeKeeper {
    /// Connects to a new controller, for up to `queues` I/O queues.
    pub(super) fn connect(
        world: &Arc<dyn World>,
        uri: &NvmeUri,
        config: &HostConfig,
        queues: u16,
    ) -> Result<Self, HostError> {
        let (association, admin) = Association::begin(world, uri, config, queues)?;
        // `begin` reads the ANA state later.
        let found = found(&association, AnaState::Inaccessible);
        Ok(Self { association, admin, found })
    }
}

// The description of the path's disk.
fn found(association: &Association, state: AnaState) -> Found {
    let Association { uri, config, controller, namespace, transfer_bytes, io_queues, .. } =
        association;
    Found {
        owner: uri.subsystem.as_str().to_owned(),
        name: format!("namespace {}", namespace.id),
        geometry: namespace.geometry,
        ids: namespace.ids,
        opening: namespace.opening,
        shape: Shape {
            block_shift: namespace.geometry.block_shift,
            transfer_bytes: *transfer_bytes,
            has_write_zeroes: controller.has_write_zeroes(),
            zeroes_deallocate: namespace.zeroes_deallocate,
            has_dataset_management: controller.has_dataset_management(),
            reads_zeros: namespace.reads_zeros,
        },
        queues: *io_queues,
        // Base 3.9: a controller that hears nothing for KATO ends the association, and takes CQT to
        // end its commands.
        quiet_ms: u64::from(config.keep_alive_ms) + u64::from(controller.quiesce_ms) + SLACK_MS,
        state,
    }
}

impl Keeper for NvmeKeeper {
    fn found(&self) -> &Found {
        &self.found
    }

    fn begin(&mut self, waker: &Waker) -> Result<(), HostError> {
        self.admin.be_called_by(waker);
        self.admin.watch(&self.association.controller)?;
        self.found.state =
            self.admin.access_state(&self.association.controller, &self.association.namespace)?;
        Ok(())
    }

    fn queue(
        &self,
        number: u16,
        depth: u16,
        token: u64,
    ) -> Result<Box<dyn Queue<Piece>>, HostError> {
        Ok(Box::new(self.association.queue(number, depth, token)?))
    }

    fn wait(&mut self, until_ns: Option<u64>) -> Result<Heard, HostError> {
        Ok(match self.admin.wait(until_ns)? {
            admin::Heard::Event { page } => {
                self.admin.take_event(page)?;
                Heard::News
            }
            admin::Heard::Called => Heard::Called,
            admin::Heard::Time => Heard::Time,
        })
    }

    fn look(&mut self) -> Result<(), HostError> {
        let Self { association, admin, found: last } = self;
        association.namespace = admin.namespace(association.namespace.id)?;
        let state = admin.access_state(&association.controller, &association.namespace)?;
        *last = found(association, state);
        Ok(())
    }

    fn lost(&self) -> Option<Lost> {
        let controller = &self.association.controller;
        (controller.resets_max > 0).then_some(Lost::Controller(controller.instance))
    }

    fn fence(&mut self, lost: &Lost) -> Result<Fenced, HostError> {
        match lost {
            Lost::Controller(of) if self.association.controller.resets_max > 0 => {
                self.admin.reset_other(*of)
            }
            Lost::Controller(_) | Lost::Sessions(_) => Ok(Fenced::Never),
        }
    }

    fn socket(&self) -> Option<&Stream> {
        Some(self.admin.socket())
    }

    fn shut_down(self: Box<Self>) {
        self.admin.shut_down();
    }
}
