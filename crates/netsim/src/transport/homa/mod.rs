//! Homa: short messages at once, long ones as their receivers grant, priorities by what is left.
//!
//! As in its paper (Montazeri et al., SIGCOMM 2018, §3): the packets of a message that fill a
//! round trip are sent unscheduled, at levels whose cutoffs share these bytes equally among
//! them. Of the messages that are longer a receiver has so many granted at once as there are
//! levels for scheduled packets, those that lack least, and of each as much as fills a round
//! trip; the one that lacks least has the highest of the levels in use, and those are the
//! lowest. A sender sends of the message that has least left to be sent. What a receiver
//! misses for the timeout it asks for again (RESEND): every gap, and at the highest level, as
//! its authors' module for Linux does.
//!
//! Messages here have no reply that would acknowledge them. As in the authors' module for Linux a
//! receiver delays acknowledgements: the next packet of data to the sender carries one in its
//! header, the sixth message sends one packet for all six, and a sender that has heard nothing for
//! the timeout asks for it. A write is acknowledged at once, since its writer waits for that. The
//! cutoffs are those of all messages of a run, known from the start; the paper's receivers measure
//! their own.
//!
//! Left out: BUSY, incasts announced by a client, an oldest message that is granted out of turn.
//!
//! Alone a flow takes its ideal time.

mod levels;
mod settings;

use std::collections::{BTreeMap, VecDeque};

use measure::Instant;

use crate::ends::Ends;
use crate::error::SimError;
use crate::event::Timer;
use crate::fabric::{Fabric, Switching};
use crate::flow::{Exchange, Flow};
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::parameter::{Parameter, Slot};
use crate::queue::Discipline;
use crate::slots::{Held, Slots};
use crate::topology::Topology;
use crate::transport::definition::{Definition, Description, Settings};

use levels::{Size, cutoffs};
pub use settings::HomaConfig;

/// Timers, in the order in which they go off at one instant.
const UNHEARD: u8 = 0;
const MISSING: u8 = 1;
const SEND: u8 = 2;

/// Doublings of a sender's timeout, at most.
const BACKOFF_MAX: u32 = 6;
/// The level of packets that are sent again; headers have it, too.
const HIGHEST: u32 = 0;
/// Bytes of an acknowledgement for each message but the one in its header (`struct homa_ack` of
/// the authors' module for Linux).
const ALSO_BYTES: u32 = 10;

#[derive(Debug, Default)]
struct State {
    packets: u32,
    /// Payload of the message, and of a full packet, in bytes.
    bytes: u64,
    each: u32,
    // The sender's part.
    granted: u32,
    next: u32,
    again: VecDeque<u32>,
    /// Levels of unscheduled and of scheduled packets.
    levels: [u32; 2],
    heard_at: Instant,
    tries: u32,
    /// Whether the message is in `sending` of its host.
    is_listed: bool,
    // The receiver's part.
    held: Held,
    is_known: bool,
    given: u32,
    came_at: Instant,
    /// The next message that the same ACK acknowledges.
    also: Option<u32>,
}

#[derive(Debug, Default, Clone)]
struct Host {
    // As a sender.
    sending: Vec<u32>,
    is_busy: bool,
    // As a receiver: messages that need grants.
    granting: Vec<u32>,
    /// By sender: messages that have arrived and are not acknowledged.
    owed: BTreeMap<u32, Vec<u32>>,
}

/// All flows and hosts.
#[derive(Debug)]
pub(crate) struct Homa {
    config: HomaConfig,
    flows: Slots<State>,
    hosts: Vec<Host>,
    /// The largest message of each unscheduled level but the last, in bytes.
    cutoffs: Vec<u64>,
    /// How many messages a receiver grants at a time.
    overcommitment: usize,
    ranked: Vec<(u32, u32)>,
}

impl Settings for HomaConfig {
    type Ends = Homa;

    fn acknowledge_each(&mut self) {
        self.acknowledged = 1;
    }

    fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)> {
        self.parameters()
    }

    fn ends(self, fabric: &Fabric, flows: usize) -> Result<Homa, SimError> {
        Ok(Homa::new(self, flows, fabric.topology.host_count()))
    }
}

impl Definition for Homa {
    type Settings = HomaConfig;

    const DESCRIPTION: Description = Description {
        name: "homa",
        summary: "short messages at once, long ones as receivers grant; eight priorities",
        paper: "Montazeri et al., SIGCOMM 2018",
        omits: "replies, BUSY, marked incasts, an oldest message out of turn",
    };

    fn fabric(topology: Topology, switching: Switching) -> Result<Fabric, SimError> {
        Ok(Fabric::new(topology, switching, Discipline::Levels).with_pools())
    }

    fn settings(fabric: &Fabric) -> HomaConfig {
        HomaConfig::for_fabric(fabric)
    }
}

impl Homa {
    fn new(config: HomaConfig, flows: usize, hosts: u32) -> Self {
        Self {
            config,
            flows: Slots::new(flows),
            hosts: vec![Host::default(); hosts as usize],
            cutoffs: Vec::new(),
            overcommitment: 1,
            ranked: Vec::new(),
        }
    }

    /// Sends a packet of the message with the fewest bytes left.
    fn send(&mut self, net: &mut Net<'_>, host: u32) {
        let Self { hosts, flows, .. } = self;
        let sender = &mut hosts[host as usize];
        sender.is_busy = false;
        sender.sending.retain(|&flow| {
            let Some(state) = flows.get_mut(flow) else { return false };
            state.is_listed = state.next < state.packets || !state.again.is_empty();
            state.is_listed
        });
        let left = |&flow: &u32| {
            let state = flows.get(flow)?;
            state.can_send().then(|| (state.left(), flow))
        };
        let Some((_, flow)) = sender.sending.iter().filter_map(left).min() else { return };
        let Some(state) = flows.get_mut(flow) else { return };
        let again = state.again.pop_front();
        let number = again.unwrap_or(state.next);
        if again.is_none() {
            state.next += 1;
        }
        sender.is_busy = true;
        let &Flow { dst, bytes, .. } = net.flow(flow);
        let owed = sender.owed.get_mut(&dst).and_then(Vec::pop);
        let data = Packet {
            number,
            // The number of a message that this packet acknowledges, plus 1; 0 for none.
            extra: owed.map_or(0, |owed| owed + 1),
            priority: match again {
                Some(_) => HIGHEST,
                None => state.levels[usize::from(number >= self.config.round_trip)],
            },
            bytes: net.frame.wire(bytes, number),
            ..Packet::control(net.frame.header, flow, Kind::Data, dst)
        };
        net.send(host, data);
        net.timer(net.host_clear_at(host), SEND, host);
    }

    /// As `send`, unless the link of `host` is busy.
    fn send_if_free(&mut self, net: &mut Net<'_>, host: u32) {
        if !self.hosts[host as usize].is_busy {
            self.send(net, host);
        }
    }

    /// The receiver takes a data packet in.
    fn data(&mut self, net: &mut Net<'_>, host: u32, packet: &Packet) {
        let flow = packet.flow;
        if let Some(acknowledged) = packet.extra.checked_sub(1) {
            self.acknowledged(net, acknowledged, 0);
        }
        let Self { hosts, flows, config, .. } = self;
        let Some(state) = flows.get_mut(flow) else { return };
        let receiver = &mut hosts[host as usize];
        state.came_at = net.now();
        if !state.is_known {
            state.is_known = true;
            state.given = config.round_trip.min(state.packets);
            if state.given < state.packets {
                receiver.granting.push(flow);
            }
            net.timer(state.came_at + config.timeout, MISSING, flow);
        }
        let is_new = state.held.take(packet.number);
        if is_new {
            net.new_data(state.held.count());
        }
        if state.held.count() == state.packets {
            if is_new {
                net.received(flow);
                receiver.granting.retain(|&other| other != flow);
                self.owe(net, flow);
            } else {
                self.acknowledge(net, flow, false);
            }
        }
        self.grant(net, host);
    }

    /// The receiver has all of `flow`: acknowledges a write at once, and a read or one-way flow
    /// together with others.
    fn owe(&mut self, net: &mut Net<'_>, flow: u32) {
        let &Flow { src, dst, exchange, .. } = net.flow(flow);
        let owed = self.hosts[dst as usize].owed.entry(src).or_default();
        let is_alone = exchange == Exchange::Write || self.config.acknowledged == 1;
        if !is_alone {
            net.over(flow);
        }
        if is_alone || owed.len() + 1 >= self.config.acknowledged as usize {
            self.acknowledge(net, flow, true);
        } else {
            owed.push(flow);
        }
    }

    /// Sends the ACK of `flow`, and of all messages owed to its sender if `has_others`.
    fn acknowledge(&mut self, net: &mut Net<'_>, flow: u32, has_others: bool) {
        let &Flow { src, dst, .. } = net.flow(flow);
        let mut count = 0;
        if has_others && let Some(owed) = self.hosts[dst as usize].owed.get_mut(&src) {
            let mut last = flow;
            for also in owed.drain(..).filter(|&also| also != flow) {
                if let Some(state) = self.flows.get_mut(last) {
                    state.also = Some(also);
                }
                last = also;
                count += 1;
            }
        }
        let ack = Packet::control(net.frame.header + count * ALSO_BYTES, flow, Kind::Ack, src);
        net.send(dst, Packet { number: count, ..ack });
    }

    /// The sender takes in the ACK of `flow` and of `others` more.
    fn acknowledged(&mut self, net: &mut Net<'_>, flow: u32, others: u32) {
        let mut next = Some(flow);
        for _ in 0..=others {
            let Some(flow) = next else { return };
            let Some(state) = self.flows.get(flow) else { return };
            next = state.also;
            self.flows.close(flow);
            net.finished(flow);
        }
    }

    /// The receiver answers a sender's question whether all of `flow` has arrived.
    fn asked(&mut self, net: &mut Net<'_>, flow: u32) {
        let Some(state) = self.flows.get(flow) else { return };
        let &Flow { src, dst, .. } = net.flow(flow);
        if state.held.count() == state.packets {
            let owed = self.hosts[dst as usize].owed.get(&src);
            let is_owed = owed.is_some_and(|owed| owed.contains(&flow));
            self.acknowledge(net, flow, is_owed);
        } else if !state.is_known {
            let resend = Packet::control(net.frame.header, flow, Kind::Nack, src);
            let extra = self.config.round_trip.min(state.packets);
            net.send(dst, Packet { extra, ..resend });
        }
        // Otherwise the receiver itself requests what is missing.
    }

    /// Grants the messages that lack least, each up to one round trip ahead.
    fn grant(&mut self, net: &mut Net<'_>, host: u32) {
        let Self { hosts, flows, ranked, .. } = self;
        let receiver = &mut hosts[host as usize];
        ranked.clear();
        ranked.extend(receiver.granting.iter().filter_map(|&flow| {
            flows.get(flow).map(|state| (state.packets - state.held.count(), flow))
        }));
        if ranked.len() > self.overcommitment {
            ranked.select_nth_unstable(self.overcommitment);
            ranked.truncate(self.overcommitment);
        }
        ranked.sort_unstable();
        let mut level = self.config.levels.saturating_sub(u32::try_from(ranked.len()).unwrap_or(1));
        let mut has_all = false;
        for &(_, flow) in ranked.iter() {
            let Some(state) = flows.get_mut(flow) else { continue };
            let upto = (state.held.count() + self.config.round_trip).min(state.packets);
            if upto > state.given {
                state.given = upto;
                has_all |= upto == state.packets;
                let &Flow { src, dst, .. } = net.flow(flow);
                let grant = Packet::control(net.frame.header, flow, Kind::Grant, src);
                net.send(dst, Packet { number: upto, extra: level, ..grant });
            }
            level += 1;
        }
        if has_all {
            let is_open = |flow| flows.get(flow).is_some_and(|state| state.given < state.packets);
            receiver.granting.retain(|&flow| is_open(flow));
        }
    }

    /// The receiver requests granted packets that are missing, if none arrived for the timeout.
    fn miss(&mut self, net: &mut Net<'_>, flow: u32) {
        let timeout = self.config.timeout;
        let Some(state) = self.flows.get_mut(flow) else { return };
        if state.held.count() == state.packets {
            return;
        }
        let due = state.came_at + timeout;
        if due > net.now() {
            net.timer(due, MISSING, flow);
            return;
        }
        let &Flow { src, dst, .. } = net.flow(flow);
        let mut first = state.held.until();
        while first < state.given {
            let has = |&number: &u32| state.held.has(number);
            let until = (first..state.given).find(has).unwrap_or(state.given);
            let resend = Packet::control(net.frame.header, flow, Kind::Nack, src);
            net.send(dst, Packet { number: first, extra: until, ..resend });
            first = (until..state.given).find(|number| !has(number)).unwrap_or(state.given);
        }
        state.came_at = net.now();
        net.timer(net.now() + timeout, MISSING, flow);
    }

    /// The sender asks whether a message has arrived, if it received nothing for the timeout; if
    /// the message is not sent in full, it sends the first packet again.
    fn remind(&mut self, net: &mut Net<'_>, flow: u32) {
        let timeout = self.config.timeout;
        let Some(state) = self.flows.get_mut(flow) else { return };
        let due = state.heard_at + timeout.saturating_mul(1 << state.tries);
        if due > net.now() {
            net.timer(due, UNHEARD, flow);
            return;
        }
        state.tries = (state.tries + 1).min(BACKOFF_MAX);
        state.heard_at = net.now();
        net.timer(net.now() + timeout.saturating_mul(1 << state.tries), UNHEARD, flow);
        let &Flow { src, dst, .. } = net.flow(flow);
        if state.next == state.packets {
            net.send(src, Packet::control(net.frame.header, flow, Kind::Request, dst));
        } else if state.next > 0 && state.again.is_empty() {
            state.again.push_back(0);
            self.list(src, flow);
            self.send_if_free(net, src);
        }
    }

    /// Adds `flow` to the messages that `host` has packets of to send.
    fn list(&mut self, host: u32, flow: u32) {
        if let Some(state) = self.flows.get_mut(flow)
            && !std::mem::replace(&mut state.is_listed, true)
        {
            self.hosts[host as usize].sending.push(flow);
        }
    }

    /// The sender takes in a grant or a request to send again.
    fn heard(&mut self, net: &mut Net<'_>, host: u32, packet: &Packet) {
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        state.heard_at = net.now();
        state.tries = 0;
        if packet.kind == Kind::Grant {
            if packet.number > state.granted {
                state.granted = packet.number;
                state.levels[1] = packet.extra;
            }
        } else {
            // A request to send again also stands for grants that were lost.
            state.granted = state.granted.max(packet.extra);
            for number in packet.number..packet.extra.min(state.next) {
                if !state.again.contains(&number) {
                    state.again.push_back(number);
                }
            }
            self.list(host, packet.flow);
        }
        self.send_if_free(net, host);
    }

    /// The level of the unscheduled packets of a message.
    fn level(&self, bytes: u64) -> u32 {
        let level = self.cutoffs.iter().position(|&most| bytes <= most);
        u32::try_from(level.unwrap_or(self.cutoffs.len())).unwrap_or(0)
    }
}

impl State {
    /// Whether a packet may be sent.
    fn can_send(&self) -> bool {
        self.next < self.granted || !self.again.is_empty()
    }

    /// How many bytes were never sent.
    fn left(&self) -> u64 {
        self.bytes.saturating_sub(u64::from(self.next) * u64::from(self.each))
    }
}

impl Ends for Homa {
    fn begin(&mut self, net: &mut Net<'_>) {
        let HomaConfig { round_trip, levels, overcommitment, .. } = self.config;
        let size = |flow: &Flow| Size::of(flow.bytes, net.frame, round_trip);
        (self.cutoffs, self.overcommitment) = cutoffs(net.flows.iter().map(size).collect(), levels);
        if overcommitment > 0 {
            self.overcommitment = overcommitment as usize;
        }
    }

    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let &Flow { src, bytes, .. } = net.flow(flow);
        let packets = net.frame.packets(bytes);
        let granted = self.config.round_trip.min(packets);
        let levels = [self.level(bytes), self.config.levels - 1];
        let (heard_at, each) = (net.now(), net.frame.payload);
        self.flows.open(flow, |old| {
            let State { held, mut again, .. } = old.unwrap_or_default();
            again.clear();
            let held = held.reset(packets);
            State {
                packets,
                bytes,
                each,
                granted,
                levels,
                heard_at,
                held,
                again,
                ..State::default()
            }
        });
        net.timer(heard_at + self.config.timeout, UNHEARD, flow);
        self.list(src, flow);
        self.send_if_free(net, src);
    }

    fn receive(&mut self, net: &mut Net<'_>, host: u32, packet: Packet) {
        match packet.kind {
            Kind::Data => self.data(net, host, &packet),
            Kind::Grant | Kind::Nack => self.heard(net, host, &packet),
            Kind::Ack => self.acknowledged(net, packet.flow, packet.number),
            Kind::Request => self.asked(net, packet.flow),
            // Its switches do not trim, and reads are not its own.
            Kind::Header | Kind::Returned | Kind::Read => {}
        }
    }

    fn timer(&mut self, net: &mut Net<'_>, timer: Timer) {
        match timer.kind {
            UNHEARD => self.remind(net, timer.of),
            MISSING => self.miss(net, timer.of),
            _ => self.send(net, timer.of),
        }
    }
}
