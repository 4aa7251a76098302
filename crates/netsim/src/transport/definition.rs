//! What a transport's module defines; `super::transports!` makes a row of it.

use crate::ends::Ends;
use crate::error::SimError;
use crate::fabric::{Fabric, Switching};
use crate::parameter::{Parameter, Slot};
use crate::topology::Topology;

/// Description of a transport, in a line each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// Its name on a command line.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// The paper or RFC that defines it.
    pub paper: &'static str,
    /// What is left out here.
    pub omits: &'static str,
}

/// A transport: its description, its settings and the network that it needs.
pub(crate) trait Definition {
    /// Its settings.
    type Settings: Settings;

    /// The description; no two transports share a name.
    const DESCRIPTION: Description;

    /// `topology` with the queues that the transport needs, and the packets and buffers of Gao et
    /// al. §4.
    ///
    /// # Errors
    /// If the transport cannot run on that topology.
    fn fabric(topology: Topology, switching: Switching) -> Result<Fabric, SimError>;

    /// The settings for `fabric`, which may differ from [`Definition::fabric`] in everything but
    /// the kind of queue.
    fn settings(fabric: &Fabric) -> Self::Settings;
}

/// The settings of a transport.
pub(crate) trait Settings: Copy {
    /// The ends of flows that run with these settings.
    type Ends: Ends;

    /// Every parameter, with its value to read or set.
    fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)>;

    /// Makes receivers acknowledge the end of each flow at once, where the transport would delay
    /// that.
    fn acknowledge_each(&mut self) {}

    /// The two ends of `flows` flows in `fabric`, before the first begins.
    ///
    /// # Errors
    /// If the transport cannot run in `fabric`, whatever the flows.
    fn ends(self, fabric: &Fabric, flows: usize) -> Result<Self::Ends, SimError>;
}
