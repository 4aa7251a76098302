//! The transports, with what each asks of the network.

use measure::{Bytes, Duration};

use crate::Flow;
use crate::fabric::{Balance, Fabric, PortConfig, Requests, Switching};
use crate::flow::Frame;
use crate::ideal::Ideal;
use crate::parameter::{Parameter, Slot};
use crate::published::Published;
use crate::queue::{Discipline, LEVELS};
use crate::topology::{Link, Topology};
use crate::transport::{
    FastpassConfig, HomaConfig, NdpConfig, PFabricConfig, PhostConfig, SCHEDULE_BYTES, TcpConfig,
};

/// What the ends of flows do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// All packets at once, none twice: what the network does by itself.
    Datagrams,
    /// As the simulator behind Gao et al. §4 had it.
    AsPublished2016(Published),
    /// pFabric.
    PFabric(PFabricConfig),
    /// pHost.
    Phost(PhostConfig),
    /// NDP.
    Ndp(NdpConfig),
    /// Homa.
    Homa(HomaConfig),
    /// Fastpass.
    Fastpass(FastpassConfig),
    /// TCP, or DCTCP if marks count.
    Tcp(TcpConfig),
}

impl Protocol {
    /// What can be set of it, and where that is kept; nothing of datagrams, and of what was
    /// published.
    pub fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)> {
        match self {
            Self::Datagrams | Self::AsPublished2016(_) => Vec::new(),
            Self::PFabric(config) => config.slots(),
            Self::Phost(config) => config.slots(),
            Self::Ndp(config) => config.slots(),
            Self::Homa(config) => config.slots(),
            Self::Fastpass(config) => config.slots(),
            Self::Tcp(config) => config.slots(),
        }
    }
}

/// Buffer of a switch's port: Gao et al. §4.
pub const BUFFER: Bytes = Bytes::new(36_864);

/// The window of pFabric in Gao et al. §4.
const PFABRIC_WINDOW: u32 = 12;
/// Packets in a queue from which DCTCP's switches mark: half of a port's buffer. RFC 8257 §4 wants
/// more than a seventh of the round trip, which is ten packets of a link of 400 Gb/s between
/// switches, and Alizadeh et al. 2010, §3.5 more than bursts: packets of sixteen senders that are
/// sprayed over four links come together eight at a time now and then, and are no congestion.
pub const DCTCP_MARK_PACKETS: u32 = 12;
/// The window with which TCP starts, in packets and in bytes of payload: RFC 6928 §2, as in Linux.
const TCP_WINDOW: u32 = 10;
const TCP_WINDOW_BYTES: u32 = 14_600;
/// The same where packets are so large that these bytes are fewer: RFC 6928 §2.
const TCP_WINDOW_MIN: u32 = 2;

/// The timeout of pFabric in Gao et al. §4.
const PFABRIC_TIMEOUT: Duration = Duration::from_us(45);

/// Packets that need no token, and the timeout of a token, in Gao et al. §4.
const PHOST_FREE: u32 = 8;
const PHOST_TIMEOUT: Duration = Duration::from_ns(9_500);
/// Round trips for which a silent flow is downgraded, which a token may take, too.
const PHOST_DOWNGRADE: u64 = 3;

/// Data packets that wait at a port of NDP's switches.
pub const NDP_QUEUE_PACKETS: u32 = 8;
/// Handley et al. 2017, §3: long against any round trip, as only what headers miss needs it.
const NDP_TIMEOUT: Duration = Duration::from_ms(1);

/// Montazeri et al. 2018, §3.7: a few milliseconds.
const HOMA_TIMEOUT: Duration = Duration::from_ms(2);
/// Where a round trip takes long, the timeout is so many.
const HOMA_ROUND_TRIPS: u64 = 20;
/// Packets of an epoch in Gao et al. §4.
const FASTPASS_EPOCH: u32 = 8;
/// Sixteenths of a packet time in a timeslot: one is for headers.
const FASTPASS_SIXTEENTHS: u64 = 17;
/// Times that a request, the decision and the schedule take, after which one is asked for again.
const FASTPASS_PATIENCE: u64 = 4;

impl Fabric {
    /// A network with the packets and buffers of Gao et al. §4, that sprays packets and whose
    /// hosts drop and mark nothing, and send acknowledgements before data.
    #[must_use]
    pub fn new(topology: Topology, switching: Switching, discipline: Discipline) -> Self {
        let buffer = match discipline {
            // As much again for headers.
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

    /// Lets every port of a switch have the buffers of all ports of the first one: a shared pool,
    /// but for what several ports would take of it at once.
    #[must_use]
    pub(crate) fn with_pools(mut self) -> Self {
        let links = self.topology.links();
        let first = links[0].to;
        let ports = links.iter().filter(|link| link.from == first).count() as u64;
        let pool = |buffer: Bytes| Bytes::new(buffer.get().saturating_mul(ports));
        self.switch_port.buffer = self.switch_port.buffer.map(pool);
        self
    }

    /// Packets that a sender must have under way to keep its link busy: the first host's round
    /// trip to the last in times of a packet.
    #[must_use]
    pub fn round_trip_packets(&self) -> u32 {
        let packets = self.round_trip().as_ps().div_ceil(self.packet_time().as_ps());
        u32::try_from(packets).unwrap_or(u32::MAX)
    }

    /// A packet of the first host to the last, and the answer.
    fn round_trip(&self) -> Duration {
        let dst = self.topology.host_count() - 1;
        let bytes = u64::from(self.frame.payload);
        let flow = Flow { dst, bytes, ..Flow::default() };
        Ideal::new(self).acknowledged(&flow)
    }

    /// The round trip of a packet that finds every switch's port full, there and back, from the
    /// first host to the last; [`BUFFER`] where ports have no limit.
    fn round_trip_full(&self) -> Duration {
        let buffer = self.switch_port.buffer.unwrap_or(BUFFER);
        let path = self.topology.path(0, self.topology.host_count() - 1);
        let wait: Duration = path.iter().skip(1).map(|link| link.rate.transfer_time(buffer)).sum();
        self.round_trip().saturating_add(wait.saturating_mul(2))
    }

    /// A full packet on the first host's link.
    fn packet_time(&self) -> Duration {
        let full = Bytes::new(u64::from(self.frame.full()));
        self.topology.links()[0].rate.transfer_time(full)
    }
}

impl PFabricConfig {
    /// The settings of Gao et al. §4, with a window that covers the round trip of `fabric`.
    #[must_use]
    pub fn for_fabric(fabric: &Fabric) -> Self {
        let window = fabric.round_trip_packets().max(PFABRIC_WINDOW);
        Self { window, timeout: PFABRIC_TIMEOUT, probe_after: Self::PROBE_AFTER }
    }
}

impl PhostConfig {
    /// The settings of Gao et al. §4, with packets and tokens that cover the round trip of
    /// `fabric`, whose ports should be [`Discipline::Levels`].
    #[must_use]
    pub fn for_fabric(fabric: &Fabric) -> Self {
        let packets = fabric.round_trip_packets().max(PHOST_FREE);
        let round_trip = fabric.round_trip();
        let spending = Duration::from_ps(fabric.packet_time().as_ps() * 3 / 2);
        let downgrade = round_trip.saturating_mul(PHOST_DOWNGRADE);
        Self {
            free: packets,
            expired: packets,
            expiry: round_trip + spending,
            downgrade,
            timeout: downgrade.max(PHOST_TIMEOUT),
        }
    }
}

impl FastpassConfig {
    /// Fastpass for `fabric`, which should have an arbiter and ports of [`Discipline::Levels`].
    ///
    /// A schedule waits on each link for the packet that it carries, and for those of other
    /// senders.
    #[must_use]
    pub fn for_fabric(fabric: &Fabric) -> Self {
        let slot = Duration::from_ps(fabric.packet_time().as_ps() / 16 * FASTPASS_SIXTEENTHS);
        let topology = &fabric.topology;
        let schedule = fabric.frame.header + FASTPASS_EPOCH * SCHEDULE_BYTES;
        let time = |link: &Link, bytes| link.rate.transfer_time(Bytes::new(u64::from(bytes)));
        let hop = |link: &Link| time(link, schedule) + time(link, fabric.frame.full()) + link.delay;
        let way = |host| topology.path(topology.arbiter().unwrap_or(0), host).iter().map(hop).sum();
        let lead: Duration = (0..topology.host_count()).map(way).max().unwrap_or_default();
        let each = topology.links().iter().map(|link| time(link, schedule)).max();
        let epoch = slot.saturating_mul(u64::from(FASTPASS_EPOCH));
        Self {
            slot,
            epoch: FASTPASS_EPOCH,
            lead,
            lead_each: each.unwrap_or_default(),
            timeout: (fabric.round_trip() + lead + epoch).saturating_mul(FASTPASS_PATIENCE),
        }
    }
}

impl HomaConfig {
    /// Homa for `fabric`, whose ports should be [`Discipline::Levels`].
    ///
    /// The round trip is that of a network in use: at each port, there and back, a packet waits
    /// until the one that is being sent has left, half of one on average.
    #[must_use]
    pub fn for_fabric(fabric: &Fabric) -> Self {
        let full = Bytes::new(u64::from(fabric.frame.full()));
        let path = fabric.topology.path(0, fabric.topology.host_count() - 1);
        let waits: Duration = path.iter().map(|link| link.rate.transfer_time(full)).sum();
        let round_trip = (fabric.round_trip() + waits).as_ps();
        let packets = round_trip.div_ceil(fabric.packet_time().as_ps());
        let timeout = fabric.round_trip().saturating_mul(HOMA_ROUND_TRIPS).max(HOMA_TIMEOUT);
        Self {
            round_trip: u32::try_from(packets).unwrap_or(u32::MAX),
            timeout,
            levels: u32::try_from(LEVELS).unwrap_or(u32::MAX),
            overcommitment: 0,
        }
    }
}

impl NdpConfig {
    /// NDP for `fabric`, whose switches' ports should be [`Discipline::Trim`].
    ///
    /// The window fills the round trip, and the queue that a full network has.
    #[must_use]
    pub fn for_fabric(fabric: &Fabric) -> Self {
        let turns = u64::from(fabric.topology.host_count());
        let timeout = fabric.packet_time().saturating_mul(turns);
        let window = fabric.round_trip_packets() + NDP_QUEUE_PACKETS;
        Self { window, timeout: timeout.max(NDP_TIMEOUT) }
    }
}

impl TcpConfig {
    /// TCP for `fabric`; DCTCP if `has_marks`, whose ports should be [`Discipline::Mark`].
    ///
    /// The most under way is what fills the round trip and a port's buffer twice.
    ///
    /// The least timeout is one that no packet can outlive in a queue. RFC 6298 §2.4 has a second
    /// so that timeouts are of losses, and Linux 200 ms (`TCP_RTO_MIN`); Vasudevan et al., SIGCOMM
    /// 2009, show that in a data centre those stop flows for thousands of round trips and that
    /// microseconds are safe, and Gao et al. give TCP what they give pFabric, 45 µs. Before there
    /// is a round trip to go by the timeout is as long: RFC 6298 has one number for both.
    ///
    /// Connections are open, as those of remote memory and storage are.
    #[must_use]
    pub fn for_fabric(fabric: &Fabric, has_marks: bool) -> Self {
        let buffer = u32::try_from(BUFFER.get()).unwrap_or(u32::MAX) / fabric.frame.full();
        let within = TCP_WINDOW_BYTES / fabric.frame.payload;
        let timeout = fabric.round_trip_full().clamp(PFABRIC_TIMEOUT, Parameter::TIME_MAX);
        Self {
            window: within.clamp(TCP_WINDOW_MIN, TCP_WINDOW),
            window_max: 2 * (fabric.round_trip_packets() + buffer),
            timeout,
            timeout_min: timeout,
            has_marks,
            has_handshake: false,
        }
    }
}
