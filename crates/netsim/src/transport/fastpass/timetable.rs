//! Which packets come to a link when.
//!
//! A packet has a link of its way for the time of a timeslot, from when it comes there: packets
//! that come later or earlier by less are so many as the link carries in a timeslot, and so none
//! waits for another where that is one. Ways of different lengths come in the middle of each
//! other's timeslots, so times are kept and not numbers of timeslots.

use std::collections::VecDeque;

use measure::{Duration, Instant};

use crate::net::Net;

/// What a link carries.
#[derive(Debug, Clone)]
struct Link {
    /// Packets in a timeslot,
    packets: usize,
    /// or how long it has one that takes longer.
    hold: Duration,
    /// When packets come, in order.
    times: VecDeque<Instant>,
}

/// The timetable of all links.
#[derive(Debug, Default)]
pub(super) struct Timetable {
    slot: Duration,
    links: Vec<Link>,
    /// The way that is being looked at: links, and when a packet comes there.
    way: Vec<(u32, Duration)>,
}

impl Timetable {
    pub(super) fn new(net: &Net<'_>, slot: Duration) -> Self {
        let link = |time: Duration| Link {
            packets: usize::try_from(slot.as_ps() / time.as_ps()).unwrap_or(usize::MAX).max(1),
            hold: slot.saturating_mul(time.as_ps().div_ceil(slot.as_ps())),
            times: VecDeque::new(),
        };
        Self { slot, links: net.packet_times().map(link).collect(), way: Vec::new() }
    }

    /// When a timeslot begins.
    pub(super) fn start(&self, slot: u64) -> Instant {
        Instant::ZERO + self.slot.saturating_mul(slot)
    }

    /// Whether `host` can send a packet in `slot`.
    pub(super) fn is_free(&self, host: u32, slot: u64) -> bool {
        self.links[host as usize].has_room(self.start(slot))
    }

    /// Takes in a packet from `src` to `dst` that leaves in `slot`, if the way has room for it.
    pub(super) fn take(
        &mut self,
        net: &Net<'_>,
        (src, dst): (u32, u32),
        slot: u64,
        way: u16,
    ) -> bool {
        let start = self.start(slot);
        net.route(src, dst, way, &mut self.way);
        let links = &self.links;
        let has_room =
            self.way.iter().all(|&(link, after)| links[link as usize].has_room(start + after));
        if has_room {
            for &(link, after) in &self.way {
                self.links[link as usize].add(start + after, net.now());
            }
        }
        has_room
    }
}

impl Link {
    fn has_room(&self, at: Instant) -> bool {
        let first = self.times.partition_point(|&time| time + self.hold <= at);
        let near = self.times.range(first..).take_while(|&&time| time < at + self.hold);
        near.count() < self.packets
    }

    /// Adds a packet, and forgets those that nothing can meet which comes after `now`.
    fn add(&mut self, at: Instant, now: Instant) {
        while self.times.front().is_some_and(|&time| time + self.hold <= now) {
            self.times.pop_front();
        }
        let place = self.times.partition_point(|&time| time <= at);
        self.times.insert(place, at);
    }
}
