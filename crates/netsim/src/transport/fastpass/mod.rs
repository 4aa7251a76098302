//! Fastpass: an arbiter says when each packet leaves and which way it takes.
//!
//! As in its paper (Perry et al., SIGCOMM 2014): a sender asks the arbiter for timeslots, as many
//! as it ever wanted for the flow, so that a later request makes up for one that was lost. The
//! arbiter gives the timeslots of an epoch at once: to flows with the fewest packets left first,
//! until none can have another, and with each a way, so that every link has in every timeslot
//! what it can carry. A timeslot is 1.0625 packet times: the rest is for headers, which go first
//! and are few, as a receiver acknowledges an epoch's packets together. A sender that receives
//! nothing repeats its request.
//!
//! Where links between switches are faster than those of hosts, as many packets share one in a
//! timeslot, and would come there together if all left when it begins. So the arbiter also says
//! at which part of the timeslot each leaves.
//!
//! Clocks are the same everywhere and the arbiter takes no time to decide. It is a host that is
//! reached over the network, and its timeslots begin late enough for every schedule of the epoch
//! to have come to its sender. Ways of different lengths are allowed for: what counts is when a
//! packet comes to a link.
//!
//! Left out: ways by edge colouring (a packet that finds none in its timeslot waits for another,
//! so a full network is not filled), a second arbiter, requests for several flows in one packet,
//! word of flows that have ended, which the arbiter knows at once, timeslots for requests.
//!
//! Timeslots for schedules: where those of an epoch are more than what timeslots leave for headers
//! on the links of the arbiter's switch, packets are kept off these links for as long.
//!
//! Alone a flow takes its way to the arbiter, the rest of an epoch, the lead of schedules, the
//! rest of a timeslot, and then a timeslot for each packet.

mod settings;
mod timetable;

use std::collections::{BTreeMap, VecDeque};

use measure::{Duration, Instant};

use crate::ends::Ends;
use crate::error::SimError;
use crate::event::Timer;
use crate::fabric::{Fabric, Switching};
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::parameter::{Parameter, Slot};
use crate::queue::Discipline;
use crate::slots::{Held, Slots};
use crate::topology::Topology;
use crate::transport::definition::{Definition, Description, Settings};

use settings::SCHEDULE_BYTES;
use timetable::Timetable;

pub use settings::FastpassConfig;

/// Timers, in the order in which they go off at one instant.
const ASK: u8 = 0;
const SLOT: u8 = 1;
const EPOCH: u8 = 2;

/// Doublings of the timeout.
const BACKOFF_MAX: u32 = 6;

/// A timeslot of a sender.
#[derive(Debug, Clone, Copy)]
struct Allocation {
    at: Instant,
    flow: u32,
    way: u16,
}

#[derive(Debug, Default)]
struct State {
    packets: u32,
    // The sender's part.
    acked: Held,
    next: u32,
    again: VecDeque<u32>,
    /// Timeslots requested, and timeslots received in schedules, since the start.
    asked: u32,
    heard: u32,
    heard_at: Instant,
    tries: u32,
    // The receiver's part.
    held: Held,
    // The arbiter's part: timeslots requested and given.
    wanted: u32,
    given: u32,
    given_at: Instant,
}

#[derive(Debug, Default, Clone)]
struct Host {
    slots: VecDeque<Allocation>,
    /// When the valid timer goes off; others are out of date.
    due: Option<Instant>,
}

/// All flows and hosts, and the arbiter.
#[derive(Debug)]
pub(crate) struct Fastpass {
    config: FastpassConfig,
    flows: Slots<State>,
    hosts: Vec<Host>,
    arbiter: u32,
    table: Timetable,
    /// Flows that need timeslots.
    demands: Vec<u32>,
    is_deciding: bool,
    /// The first timeslot that is not given yet.
    next_slot: u64,
    /// Schedules that are under way, by number.
    schedules: BTreeMap<u32, Vec<Allocation>>,
    schedule_count: u32,
}

impl Settings for FastpassConfig {
    type Ends = Fastpass;

    fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)> {
        self.parameters()
    }

    fn ends(self, fabric: &Fabric, flows: usize) -> Result<Fastpass, SimError> {
        let arbiter = fabric.topology.arbiter().ok_or(SimError::NoArbiter)?;
        Ok(Fastpass::new(self, flows, arbiter))
    }
}

impl Definition for Fastpass {
    type Settings = FastpassConfig;

    const DESCRIPTION: Description = Description {
        name: "fastpass",
        summary: "an arbiter says when each packet leaves and which way it takes",
        paper: "Perry et al., SIGCOMM 2014",
        omits: "ways by edge colouring, a second arbiter, several flows in a request",
    };

    /// Adds an arbiter to a topology without one.
    fn fabric(topology: Topology, switching: Switching) -> Result<Fabric, SimError> {
        let topology = match topology.arbiter() {
            Some(_) => topology,
            None => topology.with_arbiter_as_host()?,
        };
        Ok(Fabric::new(topology, switching, Discipline::Levels))
    }

    fn settings(fabric: &Fabric) -> FastpassConfig {
        FastpassConfig::for_fabric(fabric)
    }
}

impl Fastpass {
    fn new(config: FastpassConfig, flows: usize, arbiter: u32) -> Self {
        Self {
            config,
            flows: Slots::new(flows),
            hosts: vec![Host::default(); arbiter as usize],
            arbiter,
            table: Timetable::default(),
            demands: Vec::new(),
            is_deciding: false,
            next_slot: 0,
            schedules: BTreeMap::new(),
            schedule_count: 0,
        }
    }

    /// Requests the timeslots of `flow` from the arbiter.
    fn request(&self, net: &mut Net<'_>, flow: u32) {
        let Some(state) = self.flows.get(flow) else { return };
        let request = Packet::control(net.frame.header, flow, Kind::Request, self.arbiter);
        net.send(net.flow(flow).src, Packet { number: state.asked, extra: state.heard, ..request });
    }

    /// Repeats the request of `flow` if its sender has received nothing for the timeout.
    fn ask(&mut self, net: &mut Net<'_>, flow: u32) {
        let timeout = self.config.timeout;
        let Some(state) = self.flows.get_mut(flow) else { return };
        let due = state.heard_at + timeout.saturating_mul(1 << state.tries);
        if due > net.now() {
            net.timer(due, ASK, flow);
            return;
        }
        state.tries = (state.tries + 1).min(BACKOFF_MAX);
        state.heard_at = net.now();
        if state.heard >= state.asked {
            // All timeslots were used, and something is missing.
            state.asked += state.packets - state.acked.count();
            let acked = &state.acked;
            state.again.clear();
            state.again.extend((0..state.next).filter(|&number| !acked.has(number)));
        }
        net.timer(net.now() + timeout.saturating_mul(1 << state.tries), ASK, flow);
        self.request(net, flow);
    }

    /// The arbiter takes a request in.
    fn asked(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let now = net.now();
        let FastpassConfig { timeout, .. } = self.config;
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        let had = state.wanted - state.given;
        state.wanted = state.wanted.max(packet.number);
        if had == 0 && packet.extra < state.given && state.given_at + timeout <= now {
            // A schedule was lost.
            state.given = packet.extra;
        }
        if had == 0 && state.wanted > state.given {
            self.demands.push(packet.flow);
        }
        if !self.is_deciding && !self.demands.is_empty() {
            self.is_deciding = true;
            let epoch = self.epoch().as_ps();
            let at = Instant::from_ps(now.as_ps().div_ceil(epoch) * epoch);
            net.timer(at, EPOCH, self.arbiter);
        }
    }

    /// The length of an epoch.
    fn epoch(&self) -> Duration {
        self.config.slot.saturating_mul(u64::from(self.config.epoch))
    }

    /// The arbiter gives the timeslots of an epoch, and sends each sender its schedule.
    fn decide(&mut self, net: &mut Net<'_>) {
        let flows = &self.flows;
        self.demands.retain(|&flow| flows.get(flow).is_some());
        let left = |flow: u32| flows.get(flow).map_or(0, |state| state.wanted - state.given);
        self.demands.sort_by_key(|&flow| left(flow));
        let FastpassConfig { slot, epoch, lead, lead_each, .. } = self.config;
        let most = self.demands.len().min(self.hosts.len()) as u64;
        let ready = net.now() + lead + lead_each.saturating_mul(most.saturating_sub(1));
        self.next_slot = self.next_slot.max(ready.as_ps().div_ceil(slot.as_ps()));
        let mut schedules: BTreeMap<u32, Vec<Allocation>> = BTreeMap::new();
        let slots = self.next_slot..self.next_slot + u64::from(epoch);
        self.next_slot = slots.end;
        let beats = self.table.beats(&slots);
        // Schedules of later epochs leave while these packets do.
        let each = net.frame.header + SCHEDULE_BYTES * epoch;
        self.table.keep(&slots, most * u64::from(each), net.frame.full());
        for index in 0..self.demands.len() {
            self.give(net, self.demands[index], beats.clone(), &mut schedules);
        }
        for (host, schedule) in schedules {
            let Some(first) = schedule.first() else { continue };
            let packet = Packet::control(net.frame.header, first.flow, Kind::Grant, host);
            let bytes = SCHEDULE_BYTES * u32::try_from(schedule.len()).unwrap_or(0);
            let number = self.schedule_count;
            net.send(self.arbiter, Packet { number, bytes: packet.bytes + bytes, ..packet });
            self.schedules.insert(number, schedule);
            self.schedule_count = number.wrapping_add(1);
        }
        let flows = &self.flows;
        self.demands
            .retain(|&flow| flows.get(flow).is_some_and(|state| state.wanted > state.given));
        self.is_deciding = !self.demands.is_empty();
        if self.is_deciding {
            net.timer(net.now() + self.epoch(), EPOCH, self.arbiter);
        }
    }

    /// Gives a flow as many of the timeslots left as it needs.
    fn give(
        &mut self,
        net: &Net<'_>,
        flow: u32,
        beats: std::ops::Range<u64>,
        schedules: &mut BTreeMap<u32, Vec<Allocation>>,
    ) {
        let Self { table, flows, .. } = self;
        let &crate::Flow { src, dst, .. } = net.flow(flow);
        let Some(state) = flows.get_mut(flow) else { return };
        let count = net.way_count(src, dst);
        table.look_at(src, dst, count);
        let count = u64::from(count);
        let mut beat = beats.start;
        while beat < beats.end && state.wanted > state.given {
            // Senders start with different ways, so that their first choice is more likely free.
            let first = beat / table.slot_beats() + u64::from(src);
            let mut ways = (first..first + count).map(|way| way % count);
            let way = match table.is_free(src, beat) {
                true => ways.find_map(|way| {
                    let way = u16::try_from(way).ok()?;
                    table.take(net, beat, way).then_some(way)
                }),
                false => None,
            };
            let Some(way) = way else {
                beat += 1;
                continue;
            };
            state.given += 1;
            state.given_at = net.now();
            schedules.entry(src).or_default().push(Allocation { at: table.start(beat), flow, way });
            beat += table.slot_beats();
        }
    }

    /// A sender takes its schedule in.
    fn follow(&mut self, net: &mut Net<'_>, host: u32, packet: &Packet) {
        let Some(schedule) = self.schedules.remove(&packet.number) else { return };
        let now = net.now();
        for allocation in schedule {
            let Some(state) = self.flows.get_mut(allocation.flow) else { continue };
            state.heard += 1;
            state.heard_at = now;
            state.tries = 0;
            if allocation.at < now {
                // The timeslot has passed: the sender requests another instead.
                state.asked += 1;
                self.request(net, allocation.flow);
                continue;
            }
            let slots = &mut self.hosts[host as usize].slots;
            let place = slots.partition_point(|other| other.at <= allocation.at);
            slots.insert(place, allocation);
        }
        self.arm(net, host);
    }

    /// Sets the timer of `host` for its next timeslot.
    fn arm(&mut self, net: &mut Net<'_>, host: u32) {
        let sender = &mut self.hosts[host as usize];
        let Some(&Allocation { at, .. }) = sender.slots.front() else { return };
        if sender.due != Some(at) {
            sender.due = Some(at);
            net.timer(at, SLOT, host);
        }
    }

    /// Sends what the timeslots of `host` that begin now are for.
    fn send(&mut self, net: &mut Net<'_>, host: u32) {
        let sender = &mut self.hosts[host as usize];
        if sender.due != Some(net.now()) {
            return;
        }
        sender.due = None;
        while let Some(&Allocation { at, flow, way }) = sender.slots.front() {
            if at > net.now() {
                break;
            }
            sender.slots.pop_front();
            let Some(state) = self.flows.get_mut(flow) else { continue };
            let Some((number, is_again)) = state.next_to_send() else { continue };
            let &crate::Flow { dst, bytes, .. } = net.flow(flow);
            let data = Packet {
                number,
                extra: u32::from(is_again),
                priority: 1,
                bytes: net.frame.wire(bytes, number),
                way,
                ..Packet::control(net.frame.header, flow, Kind::Data, dst)
            };
            net.send(host, data);
        }
        self.arm(net, host);
    }

    /// The receiver takes a data packet in, and acknowledges an epoch's packets together.
    fn data(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        let is_new = state.held.take(packet.number);
        let count = state.held.count();
        if is_new {
            net.new_data(count);
            if count == state.packets {
                net.received(packet.flow);
            }
        }
        let is_due = count == state.packets || count.is_multiple_of(self.config.epoch);
        if !is_due && packet.extra == 0 {
            return;
        }
        let &crate::Flow { src, dst, .. } = net.flow(packet.flow);
        let ack = Packet::control(net.frame.header, packet.flow, Kind::Ack, src);
        net.send(dst, Packet { number: packet.number, extra: state.held.until(), ..ack });
    }

    /// The sender takes an ACK in.
    fn ack(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        state.heard_at = net.now();
        state.tries = 0;
        state.acked.take(packet.number);
        while state.acked.until() < packet.extra {
            state.acked.take(state.acked.until());
        }
        if state.acked.count() == state.packets {
            self.flows.close(packet.flow);
            net.finished(packet.flow);
        }
    }
}

impl State {
    /// The next packet to send, and whether it was sent before; `None` if none is left.
    fn next_to_send(&mut self) -> Option<(u32, bool)> {
        while let Some(number) = self.again.pop_front() {
            if !self.acked.has(number) {
                return Some((number, true));
            }
        }
        let number = self.next;
        (number < self.packets).then(|| {
            self.next += 1;
            (number, false)
        })
    }
}

impl Ends for Fastpass {
    fn begin(&mut self, net: &mut Net<'_>) {
        self.table = Timetable::new(net, self.config.slot);
        self.table.look_from(net, self.arbiter);
    }

    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let packets = net.frame.packets(net.flow(flow).bytes);
        let heard_at = net.now();
        self.flows.open(flow, |old| {
            let State { acked, held, mut again, .. } = old.unwrap_or_default();
            again.clear();
            let (acked, held) = (acked.reset(packets), held.reset(packets));
            State { packets, asked: packets, acked, held, again, heard_at, ..State::default() }
        });
        net.timer(heard_at + self.config.timeout, ASK, flow);
        self.request(net, flow);
    }

    fn receive(&mut self, net: &mut Net<'_>, host: u32, packet: Packet) {
        match packet.kind {
            Kind::Data => self.data(net, &packet),
            Kind::Ack => self.ack(net, &packet),
            Kind::Request => self.asked(net, &packet),
            Kind::Grant => self.follow(net, host, &packet),
            // Its switches do not trim, and readers' requests are not its own.
            Kind::Header | Kind::Nack | Kind::Returned | Kind::Read => {}
        }
    }

    fn timer(&mut self, net: &mut Net<'_>, timer: Timer) {
        match timer.kind {
            ASK => self.ask(net, timer.of),
            SLOT => self.send(net, timer.of),
            _ => self.decide(net),
        }
    }
}
