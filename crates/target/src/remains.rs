//! I/O queues that have lost their controller, or have been reset by it, and have not ended.
//!
//! A command that a device already has cannot be taken back. If its host comes again before the
//! command has ended, a write of the new association could be overtaken by one of the old one. So
//! a host waits here until its old queues have ended (the ghost writes of TP 4129).
//!
//! What this does not do: it does not know of an association whose loss has not been noticed, and
//! it holds back no other association that the host has by another path. A host that can, names
//! the controller that it has lost (`resets`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::subsystem::Subsystem;
use super::views::Host;

/// Who has left queues behind, and where.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) subsystem: Arc<Subsystem>,
    pub(crate) host: Host,
}

impl Owner {
    /// Whether they are one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.subsystem, &other.subsystem) && self.host == other.host
    }
}

/// See the module's description: by number of the controller, which is nobody's in the meantime.
#[derive(Default)]
pub(crate) struct Remains(BTreeMap<u16, (Owner, BTreeSet<u16>)>);

impl Remains {
    /// These queues of a controller have no controller any more.
    pub(crate) fn add(&mut self, controller: u16, owner: Owner, queues: BTreeSet<u16>) {
        if !queues.is_empty() {
            self.0.insert(controller, (owner, queues));
        }
    }

    /// A queue has ended.
    pub(crate) fn end_queue(&mut self, controller: u16, queue: u16) {
        if let Some((_, queues)) = self.0.get_mut(&controller) {
            queues.remove(&queue);
            if queues.is_empty() {
                self.0.remove(&controller);
            }
        }
    }

    /// Whether there are queues of this controller.
    pub(crate) fn has(&self, controller: u16) -> bool {
        self.0.contains_key(&controller)
    }

    /// Whether there are queues of this host at this subsystem.
    pub(crate) fn has_of(&self, owner: &Owner) -> bool {
        self.0.values().any(|(other, _)| other.is(owner))
    }
}
