//! Round trips of a network, from which transports take their windows.

use measure::{Bytes, Duration};

use crate::fabric::{BUFFER, Fabric};
use crate::flow::Flow;
use crate::ideal::Ideal;

impl Fabric {
    /// Packets that a sender must have under way to keep its link busy: the first host's round
    /// trip to the last in times of a packet.
    #[must_use]
    pub fn round_trip_packets(&self) -> u32 {
        let packets = self.round_trip().as_ps().div_ceil(self.packet_time().as_ps());
        u32::try_from(packets).unwrap_or(u32::MAX)
    }

    /// The round trip: a full packet from the first host to the last, and its ACK.
    pub(crate) fn round_trip(&self) -> Duration {
        let dst = self.topology.host_count() - 1;
        let bytes = u64::from(self.frame.payload);
        let flow = Flow { dst, bytes, ..Flow::default() };
        Ideal::new(self).acknowledged(&flow)
    }

    /// The round trip of a packet that finds every switch's port full, there and back, from the
    /// first host to the last; [`BUFFER`] where ports have no limit.
    pub(crate) fn round_trip_full(&self) -> Duration {
        let buffer = self.switch_port.buffer.unwrap_or(BUFFER);
        let path = self.topology.path(0, self.topology.host_count() - 1);
        let wait: Duration = path.iter().skip(1).map(|link| link.rate.transfer_time(buffer)).sum();
        self.round_trip().saturating_add(wait.saturating_mul(2))
    }

    /// The time of a full packet on the first host's link.
    pub(crate) fn packet_time(&self) -> Duration {
        let full = Bytes::new(u64::from(self.frame.full()));
        self.topology.links()[0].rate.transfer_time(full)
    }
}
