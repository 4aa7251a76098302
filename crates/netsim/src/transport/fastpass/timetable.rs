//! The timetable of links: when each gets a packet.
//!
//! Packets leave at beats: a timeslot has as many as the fastest link carries packets in it. A
//! packet reserves each link of its way from when it gets there, for a timeslot, or on a faster
//! link for its part of one. None gets to a link while another has it, so none queues: hosts whose
//! packets share a fast link leave one after another. Ways of different lengths get there within
//! each other's timeslots, so the table has times and not numbers of timeslots.

use std::collections::VecDeque;
use std::ops::Range;

use measure::{Duration, Instant};

use crate::net::Net;

/// The most beats in a timeslot; links that are faster yet are not filled.
const BEATS_MAX: u64 = 16;

/// What a link carries.
#[derive(Debug, Clone)]
struct Link {
    /// How long a packet reserves the link, and how long it occupies it.
    hold: Duration,
    packet: Duration,
    /// When packets get to the link, in order.
    times: VecDeque<Instant>,
}

/// The timetable of all links.
#[derive(Debug, Default)]
pub(super) struct Timetable {
    slot: Duration,
    /// Beats in a timeslot.
    beats: u64,
    links: Vec<Link>,
    /// The ends of the ways of `ways`; of each way that was used its links, and when a packet gets
    /// to each.
    ends: (u32, u32),
    ways: Vec<Vec<(u32, Duration)>>,
    /// Links by which the arbiter's packets leave its switch, and when a packet gets to each.
    leaving: Vec<(u32, Duration)>,
}

impl Timetable {
    pub(super) fn new(net: &Net<'_>, slot: Duration) -> Self {
        let packets = |time: Duration| (slot.as_ps() / time.as_ps()).max(1);
        let link = |time: Duration| {
            let slots = slot.saturating_mul(time.as_ps().div_ceil(slot.as_ps()));
            let hold = Duration::from_ps(slots.as_ps() / packets(time));
            Link { hold, packet: time, times: VecDeque::new() }
        };
        Self {
            slot,
            beats: net.packet_times().map(packets).max().unwrap_or(1).min(BEATS_MAX),
            links: net.packet_times().map(link).collect(),
            ends: (0, 0),
            ways: Vec::new(),
            leaving: Vec::new(),
        }
    }

    /// Finds the links that the arbiter shares with the hosts at its switch. Its number is that
    /// after the last host's.
    pub(super) fn look_from(&mut self, net: &Net<'_>, arbiter: u32) {
        let farthest = (0..arbiter).max_by_key(|&host| net.way_count(arbiter, host));
        let Some(host) = farthest else { return };
        let mut hops = Vec::new();
        for way in 0..net.way_count(arbiter, host) {
            net.route(arbiter, host, way, &mut hops);
            // At least the arbiter's own link, another switch's and the host's.
            if hops.len() > 2 && !self.leaving.contains(&hops[1]) {
                self.leaving.push(hops[1]);
            }
        }
    }

    /// Reserves links by which schedules leave for `bytes` of them: for as many packets, spread
    /// over the timeslots, as exceed what timeslots leave for headers.
    pub(super) fn keep(&mut self, slots: &Range<u64>, bytes: u64, full: u32) {
        let count = self.leaving.len() as u64;
        let beats = self.beats(slots);
        for place in 0..self.leaving.len() {
            let (number, after) = self.leaving[place];
            let link = &self.links[number as usize];
            let time = link.packet.as_ps() * bytes / count / u64::from(full);
            let packets = self.slot.as_ps() * (slots.end - slots.start) / link.hold.as_ps();
            let rest = (link.hold.as_ps() - link.packet.as_ps()) * packets;
            // At most half of the packets: hosts must be able to send, however slow the link is.
            let kept = time.saturating_sub(rest).div_ceil(link.packet.as_ps()).min(packets / 2);
            for part in 0..kept {
                let at = self.start(beats.start + (beats.end - beats.start) * part / kept) + after;
                let link = &mut self.links[number as usize];
                if link.has_room(at) {
                    link.add(at, Instant::ZERO);
                }
            }
        }
    }

    /// The beats of a range of timeslots.
    pub(super) const fn beats(&self, slots: &Range<u64>) -> Range<u64> {
        slots.start * self.beats..slots.end * self.beats
    }

    /// How many beats a timeslot has.
    pub(super) const fn slot_beats(&self) -> u64 {
        self.beats
    }

    /// When a beat begins.
    pub(super) fn start(&self, beat: u64) -> Instant {
        let part = self.slot.as_ps() * (beat % self.beats) / self.beats;
        Instant::ZERO + self.slot.saturating_mul(beat / self.beats) + Duration::from_ps(part)
    }

    /// Whether `host` may send a packet at `beat`.
    pub(super) fn is_free(&self, host: u32, beat: u64) -> bool {
        self.links[host as usize].has_room(self.start(beat))
    }

    /// Selects the `count` ways from `src` to `dst` for the calls of `take` that follow.
    pub(super) fn look_at(&mut self, src: u32, dst: u32, count: u16) {
        self.ends = (src, dst);
        self.ways.iter_mut().for_each(Vec::clear);
        if self.ways.len() < usize::from(count) {
            self.ways.resize(usize::from(count), Vec::new());
        }
    }

    /// Reserves the links of `way` for a packet that leaves at `beat`. Returns whether all were
    /// free.
    pub(super) fn take(&mut self, net: &Net<'_>, beat: u64, way: u16) -> bool {
        let start = self.start(beat);
        let hops = &mut self.ways[usize::from(way)];
        if hops.is_empty() {
            net.route(self.ends.0, self.ends.1, way, hops);
        }
        let links = &mut self.links;
        let has_room =
            hops.iter().all(|&(link, after)| links[link as usize].has_room(start + after));
        if has_room {
            for &(link, after) in hops.iter() {
                links[link as usize].add(start + after, net.now());
            }
        }
        has_room
    }
}

impl Link {
    /// Whether a packet that gets to the link at `at` meets no other.
    fn has_room(&self, at: Instant) -> bool {
        let first = self.times.partition_point(|&time| time + self.hold <= at);
        self.times.get(first).is_none_or(|&time| time >= at + self.hold)
    }

    /// Adds a packet, and drops those that a packet after `now` cannot meet.
    fn add(&mut self, at: Instant, now: Instant) {
        while self.times.front().is_some_and(|&time| time + self.hold <= now) {
            self.times.pop_front();
        }
        let place = self.times.partition_point(|&time| time <= at);
        self.times.insert(place, at);
    }
}
