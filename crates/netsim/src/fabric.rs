//! A network with its settings, and what its ports count.

use measure::{Bytes, Duration};

use crate::error::SimError;
use crate::flow::{Exchange, Flow, Frame};
use crate::queue::Discipline;
use crate::topology::Topology;

/// Buffer of a switch's port: Gao et al. §4.
pub const BUFFER: Bytes = Bytes::new(36_864);

/// When a switch forwards a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switching {
    /// When its header has arrived.
    CutThrough,
    /// When all of it has arrived.
    StoreAndForward,
}

/// How a packet whose sender does not choose a way gets one of several shortest ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// Per packet: each takes the next way, round robin for each link that leads into the first
    /// switch with a choice; data and headers count in rounds of their own, as a header after each
    /// packet would else leave every other way to data.
    Spray,
    /// Per flow: all packets of a flow take one way.
    Flow,
}

/// How a port queues packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortConfig {
    /// Order of packets, and which of them are dropped.
    pub discipline: Discipline,
    /// How much may be queued; `None` for no limit.
    pub buffer: Option<Bytes>,
}

/// How readers request what they read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// A request on the wire, header included; in bytes.
    pub bytes: u32,
    /// How long a reader that has received nothing waits before it repeats the request; doubled
    /// each time.
    pub timeout: Duration,
}

impl Default for Requests {
    /// A header alone, as an acknowledgement is; repeated after the least TCP timeout of data
    /// centres, as by a connection with a known round trip.
    fn default() -> Self {
        Self { bytes: Frame::default().header, timeout: Duration::from_us(200) }
    }
}

/// A network and its settings.
#[derive(Debug, Clone)]
pub struct Fabric {
    /// Hosts, switches and the links between them.
    pub topology: Topology,
    /// When a switch forwards a packet.
    pub switching: Switching,
    /// Which way a packet takes.
    pub balance: Balance,
    /// How payload is cut.
    pub frame: Frame,
    /// How readers request their bytes.
    pub requests: Requests,
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

impl Fabric {
    /// A network with the packets and buffers of Gao et al. §4, that sprays packets and whose
    /// hosts drop and mark nothing, and send acknowledgements before data.
    #[must_use]
    pub fn new(topology: Topology, switching: Switching, discipline: Discipline) -> Self {
        let buffer = match discipline {
            // Twice the data packets' room, so that headers have as much.
            Discipline::Trim { packets } => {
                Bytes::new(2 * u64::from(packets) * u64::from(Frame::default().full()))
            }
            _ => BUFFER,
        };
        let port = PortConfig { discipline, buffer: Some(buffer) };
        let own = match discipline {
            Discipline::Urgency => Discipline::Urgency,
            // Linux: sch_fq, which keeps flows apart and takes a packet of each in turn; NDP: its
            // authors' simulator.
            Discipline::Trim { .. } | Discipline::Mark { .. } | Discipline::DropTail => {
                Discipline::Turns
            }
            _ => Discipline::Levels,
        };
        Self {
            topology,
            switching,
            balance: Balance::Spray,
            frame: Frame::default(),
            requests: Requests::default(),
            host_port: PortConfig { discipline: own, buffer: None },
            switch_port: port,
            spray_phase: Vec::new(),
            has_stale_marks: false,
        }
    }

    /// Gives every port of a switch the buffers of all ports of the first switch: a shared pool,
    /// except that several ports may take all of it at once.
    #[must_use]
    pub(crate) fn with_pools(mut self) -> Self {
        let links = self.topology.links();
        let first = links[0].to;
        let ports = links.iter().filter(|link| link.from == first).count() as u64;
        let pool = |buffer: Bytes| Bytes::new(buffer.get().saturating_mul(ports));
        self.switch_port.buffer = self.switch_port.buffer.map(pool);
        self
    }

    /// Refuses requests shorter than a header or longer than a full packet, timeouts of zero, and
    /// reads if `is_one_way`.
    pub(crate) fn check_requests(&self, flows: &[Flow], is_one_way: bool) -> Result<(), SimError> {
        let Requests { bytes, timeout } = self.requests;
        let (least, most) = (self.frame.header, self.frame.full());
        if !(least..=most).contains(&bytes) {
            return Err(SimError::Request { bytes, least, most });
        }
        if timeout.is_zero() {
            return Err(SimError::Impatient);
        }
        let is_read = |(_, flow): &(u32, &Flow)| flow.exchange == Exchange::Read;
        match (0_u32..).zip(flows).find(is_read) {
            Some((flow, _)) if is_one_way => Err(SimError::OneWay { flow }),
            _ => Ok(()),
        }
    }
}

/// Counters of a port.
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
    /// The most bytes that were ever queued.
    pub queued_bytes_max: u64,
}
