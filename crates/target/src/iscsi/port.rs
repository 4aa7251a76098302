//! The target port of a session: a portal, which is a portal group and a target port group of its
//! own, since each may have its own access state (SPC-4 5.15.2).

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
    /// The port at `place` of these portals; `None` if there is none.
    pub(crate) fn new(portals: &Arc<[Arc<Portal>]>, place: usize) -> Option<Self> {
        let own = Arc::clone(portals.get(place)?);
        Some(Self { portals: Arc::clone(portals), own })
    }

    /// The port's number: relative target port identifier, portal group tag and target port group.
    pub(super) fn number(&self) -> u16 {
        self.own.number
    }

    /// The access state of each port, in order.
    pub(super) fn states(&self) -> Vec<PortState> {
        self.portals.iter().map(|portal| state_of(portal.state().0)).collect()
    }

    /// How many ports there are.
    pub(super) fn count(&self) -> u16 {
        u16::try_from(self.portals.len()).unwrap_or(u16::MAX)
    }

    /// Fails with the sense of the port's access state if it bars reads and writes.
    pub(super) fn check(&self) -> Result<(), Sense> {
        state_of(self.own.state().0).check()
    }
}

// The SCSI state of an ANA state. Inaccessible is standby: hosts retain the path and the disk's
// size (dm-multipath: "ghost"). Unavailable counts as failed, which is right for a persistent loss
// only.
const fn state_of(state: AnaState) -> PortState {
    match state {
        AnaState::Optimized => PortState::Optimized,
        AnaState::NonOptimized => PortState::NonOptimized,
        AnaState::Inaccessible => PortState::Standby,
        AnaState::PersistentLoss => PortState::Unavailable,
        AnaState::Change => PortState::Transitioning,
    }
}
