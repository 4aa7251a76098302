//! Settings of Fastpass.

use measure::{Bytes, Duration};

use crate::fabric::Fabric;
use crate::parameter::{Parameter, Slot, TIMEOUT};
use crate::topology::Link;

/// Settings of Fastpass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastpassConfig {
    /// Length of a timeslot.
    pub slot: Duration,
    /// Timeslots that are given at once.
    pub epoch: u32,
    /// The longest time that the only schedule of an epoch takes,
    pub lead: Duration,
    /// and each further one takes in addition.
    pub lead_each: Duration,
    /// How long a sender waits for an answer before it repeats its request.
    pub timeout: Duration,
}

impl FastpassConfig {
    /// Fastpass for `fabric`, which should have an arbiter and ports of
    /// [`Discipline::Levels`](crate::Discipline::Levels).
    ///
    /// A schedule waits on each link for the packet that it carries, and for those of other
    /// senders.
    #[must_use]
    pub fn for_fabric(fabric: &Fabric) -> Self {
        let slot = Duration::from_ps(fabric.packet_time().as_ps() / 16 * SIXTEENTHS);
        let topology = &fabric.topology;
        let schedule = fabric.frame.header + EPOCH_OF_GAO * SCHEDULE_BYTES;
        let time = |link: &Link, bytes| link.rate.transfer_time(Bytes::new(u64::from(bytes)));
        let hop = |link: &Link| time(link, schedule) + time(link, fabric.frame.full()) + link.delay;
        let way = |host| topology.path(topology.arbiter().unwrap_or(0), host).iter().map(hop).sum();
        let lead: Duration = (0..topology.host_count()).map(way).max().unwrap_or_default();
        let each = topology.links().iter().map(|link| time(link, schedule)).max();
        let epoch = slot.saturating_mul(u64::from(EPOCH_OF_GAO));
        Self {
            slot,
            epoch: EPOCH_OF_GAO,
            lead,
            lead_each: each.unwrap_or_default(),
            timeout: (fabric.round_trip() + lead + epoch).saturating_mul(PATIENCE),
        }
    }

    /// Every parameter, with its value to read or set.
    pub(super) fn parameters(&mut self) -> Vec<(Parameter, Slot<'_>)> {
        let Self { slot, epoch, lead, lead_each, timeout } = self;
        vec![
            (TIMESLOT, Slot::Time(slot)),
            (EPOCH_SLOTS, Slot::Count(epoch)),
            (LEAD, Slot::Time(lead)),
            (LEAD_EACH, Slot::Time(lead_each)),
            (TIMEOUT, Slot::Time(timeout)),
        ]
    }
}

const TIMESLOT: Parameter =
    Parameter::new("timeslot", "A timeslot: a packet, and a sixteenth for headers", "afar");
const EPOCH_SLOTS: Parameter =
    Parameter::new("epoch", "Timeslots that are given at once", "Gao et al. 2016, §4.2")
        .counting("TIMESLOTS")
        .within(1, 1024);
const LEAD: Parameter = Parameter::new(
    "schedule-time",
    "How long the only schedule of an epoch may take",
    "the network",
);
const LEAD_EACH: Parameter = Parameter::new(
    "schedule-each",
    "How much longer each further schedule may take",
    "the network",
);

/// Packets of an epoch in Gao et al. §4.
const EPOCH_OF_GAO: u32 = 8;
/// Sixteenths of a packet time in a timeslot: one is for headers.
const SIXTEENTHS: u64 = 17;
/// The timeout, in times of a request, the decision and its schedule.
const PATIENCE: u64 = 4;
/// Bytes of a schedule for each of its timeslots.
pub(super) const SCHEDULE_BYTES: u32 = 4;
