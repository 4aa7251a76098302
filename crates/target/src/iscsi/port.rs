//! The target port that a session belongs to: a portal, which is a portal group and a target port
//! group of its own, for one of them may be reached otherwise than the others (SPC-4 5.15.2).

use std::sync::Arc;

use nvme::log::AnaState;
use scsi::{PortState, Sense};

use super::super::portal::Portal;

/// See the module's description.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    portals: Arc<[Arc<Portal>]>,
    own: Arc<Portal>,
}

impl Port {
    /// The one of these portals that has this place among them.
    pub(crate) fn new(portals: &Arc<[Arc<Portal>]>, place: usize) -> Option<Self> {
        let own = Arc::clone(portals.get(place)?);
        Some(Self { portals: Arc::clone(portals), own })
    }

    /// Its relative target port identifier, portal group tag and target port group.
    pub(super) fn number(&self) -> u16 {
        self.own.number
    }

    /// How namespaces are reached through each port, in order.
    pub(super) fn states(&self) -> Vec<PortState> {
        self.portals.iter().map(|portal| state_of(portal.state().0)).collect()
    }

    /// How many there are.
    pub(super) fn count(&self) -> u16 {
        u16::try_from(self.portals.len()).unwrap_or(u16::MAX)
    }

    /// Whether namespaces can be read and written through it now.
    pub(super) fn check(&self) -> Result<(), Sense> {
        state_of(self.own.state().0).check()
    }
}

// What is inaccessible may be reached again at any time, and is standby: hosts keep the path, with
// the disk's size, for later (dm-multipath: "ghost"). Unavailable they would count as failed, which
// is for what is lost.
const fn state_of(state: AnaState) -> PortState {
    match state {
        AnaState::Optimized => PortState::Optimized,
        AnaState::NonOptimized => PortState::NonOptimized,
        AnaState::Inaccessible => PortState::Standby,
        AnaState::PersistentLoss => PortState::Unavailable,
        AnaState::Change => PortState::Transitioning,
    }
}
