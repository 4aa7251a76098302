//! I/O queues that have lost their controller, or have been reset by it, and have not ended.
//!
//! A command that a device already has cannot be cancelled. If its host connects again before the
//! command has ended, a write of the old association could overwrite one of the new one. So a host
//! waits here until its old queues have ended (the ghost writes of TP 4129).
//!
//! What this does not do: it does not know of an association whose loss has not been noticed, and
//! it holds back no other association that the host has by another path. A host that can, names
//! the controller that it has lost (`resets`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::subsystem::Subsystem;
use super::views::Host;

/// The subsystem and host of queues that are left behind.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) subsystem: Arc<Subsystem>,
    pub(crate) host: Host,
}

impl Owner {
    /// Whether both are the same host at the same subsystem.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.subsystem, &other.subsystem) && self.host == other.host
    }
}

/// See the module's description: by CNTLID, which no new controller gets in the meantime.
#[derive(Default)]
pub(crate) struct Remains(BTreeMap<u16, (Owner, BTreeSet<u16>)>);

impl Remains {
    /// Adds the unfinished queues of a controller that has ended.
    pub(crate) fn add(&mut self, controller: u16, owner: Owner, queues: BTreeSet<u16>) {
        if !queues.is_empty() {
            self.0.insert(controller, (owner, queues));
        }
    }

    /// Removes a queue that has ended.
    pub(crate) fn end_queue(&mut self, controller: u16, queue: u16) {
        if let Some((_, queues)) = self.0.get_mut(&controller) {
            queues.remove(&queue);
            if queues.is_empty() {
                self.0.remove(&controller);
            }
        }
    }

    /// Whether unfinished queues of this controller are left.
    pub(crate) fn has(&self, controller: u16) -> bool {
        self.0.contains_key(&controller)
    }

    /// Whether unfinished queues of this host at this subsystem are left.
    pub(crate) fn has_of(&self, owner: &Owner) -> bool {
        self.0.values().any(|(other, _)| other.is(owner))
    }
}
