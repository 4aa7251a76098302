//! The transports, with what each asks of the network.

use measure::{Bytes, Duration};

use crate::Flow;
use crate::fabric::{Balance, Fabric, PortConfig, Switching};
use crate::flow::Frame;
use crate::ideal::Ideal;
use crate::published::Published;
use crate::queue::Discipline;
use crate::topology::Topology;
use crate::transport::PFabricConfig;

/// What the ends of flows do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// All packets at once, none twice: what the network does by itself.
    Datagrams,
    /// As the simulator behind Gao et al. §4 had it.
    AsPublished2016(Published),
    /// pFabric.
    PFabric(PFabricConfig),
}

/// Buffer of a switch's port: Gao et al. §4.
pub const BUFFER: Bytes = Bytes::new(36_864);

/// The window of pFabric in Gao et al. §4.
const PFABRIC_WINDOW: u32 = 12;
/// The timeout of pFabric in Gao et al. §4.
const PFABRIC_TIMEOUT: Duration = Duration::from_us(45);

impl Fabric {
    /// A network in which ports do what pFabric asks of them.
    #[must_use]
    pub fn pfabric(topology: Topology, switching: Switching) -> Self {
        let port = PortConfig { discipline: Discipline::Urgency, buffer: Some(BUFFER) };
        Self {
            topology,
            switching,
            balance: Balance::Spray,
            frame: Frame::default(),
            host_port: PortConfig { buffer: None, ..port },
            switch_port: port,
            spray_phase: Vec::new(),
            has_stale_marks: false,
        }
    }

    /// Packets that a sender must have under way to keep its link busy: the first host's round
    /// trip to the last in times of a packet.
    #[must_use]
    pub fn round_trip_packets(&self) -> u32 {
        let last = self.topology.host_count() - 1;
        let full = u64::from(self.frame.payload);
        let flow = Flow { start: measure::Instant::ZERO, src: 0, dst: last, bytes: full };
        let round_trip = Ideal::new(self).acknowledged(&flow).as_ps();
        let rate = self.topology.links()[0].rate;
        let packet = rate.transfer_time(Bytes::new(u64::from(self.frame.full()))).as_ps();
        u32::try_from(round_trip.div_ceil(packet)).unwrap_or(u32::MAX)
    }
}

impl PFabricConfig {
    /// The settings of Gao et al. §4, with a window that covers the round trip of `fabric`.
    #[must_use]
    pub fn for_fabric(fabric: &Fabric) -> Self {
        let window = fabric.round_trip_packets().max(PFABRIC_WINDOW);
        Self { window, window_max: window + window / 4, timeout: PFABRIC_TIMEOUT }
    }
}
