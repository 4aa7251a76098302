//! Settings of Homa.

use measure::{Bytes, Duration};

use crate::fabric::Fabric;
use crate::parameter::{Parameter, Slot, TIMEOUT};
use crate::queue::LEVELS;

/// Settings of Homa.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HomaConfig {
    /// Packets that fill a round trip: RTTbytes.
    pub round_trip: u32,
    /// How long granted packets, or the answer to a message, may take.
    pub timeout: Duration,
    /// Priority levels in use; at most as many as switches have.
    pub levels: u32,
    /// Messages that a receiver grants at a time; 0 for as many as scheduled levels.
    pub overcommitment: u32,
    /// Messages that one acknowledgement covers; 1 acknowledges each at once.
    pub acknowledged: u32,
}

impl HomaConfig {
    /// Homa for `fabric`, whose ports should be [`Discipline::Levels`](crate::Discipline::Levels).
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
        let timeout = fabric.round_trip().saturating_mul(TIMEOUT_ROUND_TRIPS).max(TIMEOUT_MIN);
        Self {
            round_trip: u32::try_from(packets).unwrap_or(u32::MAX),
            timeout,
            levels: LEVELS_MOST,
            overcommitment: 0,
            acknowledged: ACKNOWLEDGED_MOST,
        }
    }

    /// Every parameter, with its value to read or set.
    pub(super) fn parameters(&mut self) -> Vec<(Parameter, Slot<'_>)> {
        let Self { round_trip, timeout, levels, overcommitment, acknowledged } = self;
        vec![
            (UNSCHEDULED, Slot::Count(round_trip)),
            (TIMEOUT, Slot::Time(timeout)),
            (PRIORITIES, Slot::Count(levels)),
            (OVERCOMMITMENT, Slot::Count(overcommitment)),
            (ACKNOWLEDGED, Slot::Count(acknowledged)),
        ]
    }
}

const UNSCHEDULED: Parameter = Parameter::new(
    "unscheduled",
    "Packets of a message that need no grant, and may be granted ahead",
    "Montazeri et al. 2018, §3.2: the round trip in use",
);
const PRIORITIES: Parameter = Parameter::new(
    "levels",
    "Priorities that unscheduled and scheduled packets share",
    "Montazeri et al. 2018, §3.4",
)
.counting("LEVELS")
.within(2, LEVELS_MOST);
const OVERCOMMITMENT: Parameter = Parameter::new(
    "overcommitment",
    "Messages that a receiver has granted at once; 0 for as many as scheduled levels",
    "Montazeri et al. 2018, §3.5",
)
.counting("MESSAGES")
.within(0, 1 << 20);
const ACKNOWLEDGED: Parameter = Parameter::new(
    "messages-per-ack",
    "Messages from one sender that one acknowledgement covers; 1 acknowledges each at once",
    "its authors' module for Linux",
)
.counting("MESSAGES")
.within(1, ACKNOWLEDGED_MOST);
/// The most messages that an acknowledgement of the authors' module for Linux covers: the one in
/// its header, and `HOMA_MAX_ACKS_PER_PKT` more.
const ACKNOWLEDGED_MOST: u32 = 6;
/// Montazeri et al. 2018, §3.7: a few milliseconds.
const TIMEOUT_MIN: Duration = Duration::from_ms(2);
/// The timeout in round trips, where these are long.
const TIMEOUT_ROUND_TRIPS: u64 = 20;
/// Levels of a switch.
const LEVELS_MOST: u32 = 8;
const _: () = assert!(LEVELS == LEVELS_MOST as usize, "there is no lower level");
