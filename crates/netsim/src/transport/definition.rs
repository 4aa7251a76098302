//! What a transport's module defines; `super::transports!` makes a row of it.

use crate::ends::Ends;
use crate::error::SimError;
use crate::fabric::{Fabric, Switching};
use crate::parameter::{Parameter, Slot};
use crate::topology::Topology;

/// What there is to say of a transport, in a line each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// How it is called on a command line.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Who defined it, and where.
    pub paper: &'static str,
    /// What is left out here.
    pub omits: &'static str,
}

/// A transport: what it is, and the network and settings that it asks for.
pub(crate) trait Definition {
    /// What can be set of it.
    type Settings: Settings;

    /// Its name is no other transport's.
    const DESCRIPTION: Description;

    /// `topology` with the queues that it asks for, and the packets and buffers of Gao et al. §4.
    ///
    /// # Errors
    /// If it cannot be had on that topology.
    fn fabric(topology: Topology, switching: Switching) -> Result<Fabric, SimError>;

    /// Its settings for `fabric`, which may differ from [`Definition::fabric`] in everything but
    /// the kind of queue.
    fn settings(fabric: &Fabric) -> Self::Settings;
}

/// The settings of a transport.
pub(crate) trait Settings: Copy {
    /// What runs with them.
    type Ends: Ends;

    /// What can be set, and where that is kept.
    fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)>;

    /// Lets the end of each flow be acknowledged at once, where the transport would wait for more
    /// of them.
    fn acknowledge_each(&mut self) {}

    /// The two ends of so many flows in `fabric`, none of which has begun.
    ///
    /// # Errors
    /// If the transport cannot run in `fabric`, whatever the flows.
    fn ends(self, fabric: &Fabric, flows: usize) -> Result<Self::Ends, SimError>;
}
