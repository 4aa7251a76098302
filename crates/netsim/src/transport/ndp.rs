//! NDP: switches cut payloads off instead of dropping packets, and receivers pull.
//!
//! As in its paper (Handley et al., SIGCOMM 2017, §3): a sender begins with a window at line rate
//! and no handshake, and sends each packet over the next of a random permutation of all ways. A
//! receiver answers every packet at once, with an ACK, or a NACK if only the header came, and
//! pulls another, one in the time of a packet for all its flows in turn. Pulls are counted, so
//! that a later one makes up for one that was lost; where one is due at once it goes with the
//! answer. A header that found no room returns: if no answers are on their way its packet is sent
//! again at once, or else with the next pull. What all this misses a timeout finds.
//!
//! A host's own queue sends of its flows in turn, as in its authors' simulator (htsim): else a
//! short flow would wait for the windows of all that began before it.
//!
//! Left out: priorities among a receiver's flows, and ways that are given up because they lose
//! more than others.
//!
//! Alone a flow takes its ideal time, if the window covers the round trip.

use std::collections::VecDeque;

use measure::{Duration, Instant};
use workload::Draw;

use crate::ends::Ends;
use crate::error::SimError;
use crate::event::Timer;
use crate::fabric::{Fabric, Switching};
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::parameter::{Parameter, Slot, TIMEOUT, WINDOW};
use crate::queue::Discipline;
use crate::slots::{Held, Slots};
use crate::topology::Topology;
use crate::transport::definition::{Definition, Description, Settings};

/// Settings of NDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NdpConfig {
    /// Packets under way at the start of a flow.
    pub window: u32,
    /// How long a sender waits for an answer or a pull.
    pub timeout: Duration,
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
        Self { window, timeout: timeout.max(TIMEOUT_MIN) }
    }
}

impl Settings for NdpConfig {
    type Ends = Ndp;

    fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)> {
        let Self { window, timeout } = self;
        vec![(WINDOW, Slot::Count(window)), (TIMEOUT, Slot::Time(timeout))]
    }

    fn ends(self, fabric: &Fabric, flows: usize) -> Result<Ndp, SimError> {
        Ok(Ndp::new(self, flows, fabric.topology.host_count()))
    }
}

impl Definition for Ndp {
    type Settings = NdpConfig;

    const DESCRIPTION: Description = Description {
        name: "ndp",
        summary: "switches cut payloads off instead of dropping packets; receivers pull",
        paper: "Handley et al., SIGCOMM 2017",
        omits: "priorities among a receiver's flows, ways that are given up",
    };

    fn fabric(topology: Topology, switching: Switching) -> Result<Fabric, SimError> {
        Ok(Fabric::new(topology, switching, Discipline::Trim { packets: NDP_QUEUE_PACKETS }))
    }

    fn settings(fabric: &Fabric) -> NdpConfig {
        NdpConfig::for_fabric(fabric)
    }
}

/// Data packets that are queued at a port of NDP's switches.
pub const NDP_QUEUE_PACKETS: u32 = 8;
/// Handley et al. 2017, §3: long against any round trip, as only what headers miss needs it.
const TIMEOUT_MIN: Duration = Duration::from_ms(1);

/// Seed of the order of ways.
const SEED: u64 = 0x6e64_7000;
/// Doublings of the timeout.
const BACKOFF_MAX: u32 = 6;

/// Timers, in the order in which they go off at one instant.
const SILENCE: u8 = 0;
const PULL: u8 = 1;

#[derive(Debug, Default)]
struct State {
    packets: u32,
    // The sender's part.
    acked: Held,
    next: u32,
    again: VecDeque<u32>,
    ways: Vec<u16>,
    turn: usize,
    /// Packets sent, and of them those that were answered or returned.
    sent: u32,
    answered: u32,
    /// Pulls followed.
    pulled: u32,
    due: Instant,
    tries: u32,
    // The receiver's part.
    held: Held,
    /// Pulls sent, and pulls due.
    pulls: u32,
    waiting: u32,
}

/// A receiver.
#[derive(Debug, Default, Clone)]
struct Host {
    /// Flows with pulls due, the next one first.
    turns: VecDeque<u32>,
    /// When the next pull may be sent.
    free_at: Instant,
    is_armed: bool,
}

/// All flows and hosts.
#[derive(Debug)]
pub(crate) struct Ndp {
    config: NdpConfig,
    flows: Slots<State>,
    hosts: Vec<Host>,
    draw: Draw,
}

impl Ndp {
    fn new(config: NdpConfig, flows: usize, hosts: u32) -> Self {
        let hosts = vec![Host::default(); hosts as usize];
        Self { config, flows: Slots::new(flows), hosts, draw: Draw::new(SEED) }
    }

    /// Sends `count` packets of `flow`: repeated ones first.
    fn send(&mut self, net: &mut Net<'_>, flow: u32, count: u32) {
        let Some(state) = self.flows.get_mut(flow) else { return };
        let &crate::Flow { src, dst, bytes, .. } = net.flow(flow);
        for _ in 0..count {
            let Some(number) = state.next_to_send() else { break };
            state.sent += 1;
            let data = Packet {
                number,
                priority: 1,
                bytes: net.frame.wire(bytes, number),
                way: state.next_way(&mut self.draw),
                ..Packet::control(net.frame.header, flow, Kind::Data, dst)
            };
            net.send(src, data);
        }
    }

    /// Resets the timeout of `flow`, whose sender has received a packet.
    fn hear(&mut self, net: &Net<'_>, flow: u32) {
        let timeout = self.config.timeout;
        if let Some(state) = self.flows.get_mut(flow) {
            state.tries = 0;
            state.due = net.now() + timeout;
        }
    }

    /// The receiver answers data or its header, with the next pull if one is due at once.
    fn answer(&mut self, net: &mut Net<'_>, host: u32, packet: &Packet) {
        let flow = packet.flow;
        let now = net.now();
        let Some(state) = self.flows.get_mut(flow) else { return };
        let receiver = &mut self.hosts[host as usize];
        if packet.kind == Kind::Data && state.held.take(packet.number) {
            net.new_data(state.held.count());
            if state.held.count() == state.packets {
                state.waiting = 0;
                net.received(flow);
            }
        }
        let lacks = state.packets - state.held.count();
        if state.waiting < lacks {
            if receiver.turns.is_empty() && receiver.free_at <= now {
                state.pulls += 1;
                receiver.free_at = now + net.host_time(host, net.frame.full());
            } else {
                if state.waiting == 0 {
                    receiver.turns.push_back(flow);
                }
                state.waiting += 1;
                if !receiver.is_armed {
                    receiver.is_armed = true;
                    net.timer(receiver.free_at.max(now), PULL, host);
                }
            }
        }
        let kind = if packet.kind == Kind::Data { Kind::Ack } else { Kind::Nack };
        let src = net.flow(flow).src;
        let answer = Packet::control(net.frame.header, flow, kind, src);
        net.send(host, Packet { number: packet.number, extra: state.pulls, ..answer });
    }

    /// Sends the next pull of a receiver, and sets the timer of the one after.
    fn pull(&mut self, net: &mut Net<'_>, host: u32) {
        let receiver = &mut self.hosts[host as usize];
        receiver.is_armed = false;
        while let Some(flow) = receiver.turns.pop_front() {
            let Some(state) = self.flows.get_mut(flow) else { continue };
            if state.waiting == 0 {
                continue;
            }
            state.waiting -= 1;
            state.pulls += 1;
            if state.waiting > 0 {
                receiver.turns.push_back(flow);
            }
            let pull = Packet::control(net.frame.header, flow, Kind::Grant, net.flow(flow).src);
            net.send(host, Packet { extra: state.pulls, ..pull });
            receiver.free_at = net.now() + net.host_time(host, net.frame.full());
            break;
        }
        if !receiver.turns.is_empty() {
            receiver.is_armed = true;
            net.timer(receiver.free_at, PULL, host);
        }
    }

    /// The sender takes in an answer or a pull, and sends what it is pulled for.
    fn heard(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        match packet.kind {
            Kind::Ack => {
                state.answered += 1;
                state.acked.take(packet.number);
                if state.acked.count() == state.packets {
                    self.flows.close(packet.flow);
                    net.finished(packet.flow);
                    return;
                }
            }
            Kind::Nack => {
                state.answered += 1;
                state.again.push_back(packet.number);
            }
            _ => {}
        }
        let count = packet.extra.saturating_sub(state.pulled);
        state.pulled = state.pulled.max(packet.extra);
        self.hear(net, packet.flow);
        self.send(net, packet.flow, count);
    }

    /// The sender takes a returned header in, and sends its packet again if nothing is under way.
    fn returned(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        state.answered += 1;
        state.again.push_back(packet.number);
        let under_way = state.sent.saturating_sub(state.answered);
        self.hear(net, packet.flow);
        if under_way == 0 {
            self.send(net, packet.flow, 1);
        }
    }

    /// After a timeout without a packet, what is not acknowledged counts as lost and is sent again.
    fn silence(&mut self, net: &mut Net<'_>, flow: u32) {
        let NdpConfig { window, timeout } = self.config;
        let Some(state) = self.flows.get_mut(flow) else { return };
        if state.due <= net.now() {
            state.tries = (state.tries + 1).min(BACKOFF_MAX);
            state.due = net.now() + timeout.saturating_mul(1 << state.tries);
            state.again.clear();
            let acked = &state.acked;
            state.again.extend((0..state.next).filter(|&number| !acked.has(number)));
            state.answered = state.sent;
            net.timer(state.due, SILENCE, flow);
            self.send(net, flow, window);
        } else {
            net.timer(state.due, SILENCE, flow);
        }
    }
}

impl State {
    /// The next packet to send, lost ones first; `None` if none is left.
    fn next_to_send(&mut self) -> Option<u32> {
        while let Some(number) = self.again.pop_front() {
            if !self.acked.has(number) {
                return Some(number);
            }
        }
        let number = self.next;
        (number < self.packets).then(|| {
            self.next += 1;
            number
        })
    }

    /// The next way; shuffles all of them after the last.
    fn next_way(&mut self, draw: &mut Draw) -> u16 {
        if self.turn == self.ways.len() {
            self.turn = 0;
            for last in (1..self.ways.len()).rev() {
                let other = draw.below(last as u64 + 1);
                self.ways.swap(last, usize::try_from(other).unwrap_or(last));
            }
        }
        self.turn += 1;
        self.ways[self.turn - 1]
    }
}

impl Ends for Ndp {
    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let &crate::Flow { src, dst, bytes, .. } = net.flow(flow);
        let packets = net.frame.packets(bytes);
        let NdpConfig { window, timeout } = self.config;
        let due = net.now() + timeout;
        let count = net.way_count(src, dst);
        self.flows.open(flow, |old| {
            let State { acked, held, mut again, mut ways, .. } = old.unwrap_or_default();
            again.clear();
            ways.clear();
            ways.extend(0..count);
            let (acked, held, turn) = (acked.reset(packets), held.reset(packets), ways.len());
            State { packets, acked, held, again, turn, ways, due, ..State::default() }
        });
        net.timer(due, SILENCE, flow);
        self.send(net, flow, window);
    }

    fn receive(&mut self, net: &mut Net<'_>, host: u32, packet: Packet) {
        match packet.kind {
            Kind::Data | Kind::Header => self.answer(net, host, &packet),
            Kind::Ack | Kind::Nack | Kind::Grant => self.heard(net, &packet),
            Kind::Returned => self.returned(net, &packet),
            // There is no handshake, and readers' requests are not its own.
            Kind::Request | Kind::Read => {}
        }
    }

    fn timer(&mut self, net: &mut Net<'_>, timer: Timer) {
        match timer.kind {
            SILENCE => self.silence(net, timer.of),
            _ => self.pull(net, timer.of),
        }
    }
}
