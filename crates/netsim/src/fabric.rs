//! A network with its settings, and what its ports count.

use measure::Bytes;

use crate::flow::Frame;
use crate::queue::Discipline;
use crate::topology::Topology;

/// When a switch hands a packet on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switching {
    /// When its header has arrived.
    CutThrough,
    /// When all of it has arrived.
    StoreAndForward,
}

/// Which of several ways as short as any a packet takes whose sender does not choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// Each packet the next of all ways, round robin for each link that leads into the first
    /// switch with a choice; data and headers in rounds of their own, as a header after each
    /// packet would else leave every other way to data.
    Spray,
    /// The packets of a flow the same.
    Flow,
}

/// What a port does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortConfig {
    /// Order and victims.
    pub discipline: Discipline,
    /// How much may wait; `None` for no limit.
    pub buffer: Option<Bytes>,
}

/// A network and its settings.
#[derive(Debug, Clone)]
pub struct Fabric {
    /// Who is connected to whom.
    pub topology: Topology,
    /// When a switch hands a packet on.
    pub switching: Switching,
    /// Which way a packet takes.
    pub balance: Balance,
    /// How payload is cut.
    pub frame: Frame,
    /// The ports of hosts.
    pub host_port: PortConfig,
    /// The ports of switches.
    pub switch_port: PortConfig,
    /// Where each link's round robin begins. Links that are not named begin at their own index:
    /// if all began at one, hosts in step would choose the same way.
    pub spray_phase: Vec<u32>,
    /// Whether a data packet starts with the mark of the packet whose memory it has, the last
    /// that was freed: the bit was never cleared in the simulator of 2016.
    pub has_stale_marks: bool,
}

/// What a port has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortStats {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Packets whose payload was cut off.
    pub trimmed_packets: u64,
    /// The most bytes that ever waited.
    pub queued_bytes_max: u64,
}
