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
//! Messages here have no reply that would acknowledge them: a receiver that has all says so, and
//! a sender that hears nothing for the timeout sends its first packet again. The cutoffs are
//! those of all messages of a run, known from the start; the paper's receivers measure their own.
//!
//! Left out: BUSY, incasts announced by a client, an oldest message that is granted out of turn.
//!
//! Alone a flow takes its ideal time.

use std::collections::VecDeque;

use measure::{Bytes, Duration, Instant};

use crate::ends::Ends;
use crate::error::SimError;
use crate::event::Timer;
use crate::fabric::{Fabric, Switching};
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::parameter::{Parameter, Slot, TIMEOUT};
use crate::queue::{Discipline, LEVELS};
use crate::slots::{Held, Slots};
use crate::topology::Topology;
use crate::transport::definition::{Definition, Description, Settings};

/// Settings of Homa.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HomaConfig {
    /// Packets that fill a round trip: RTTbytes.
    pub round_trip: u32,
    /// How long what was granted may take.
    pub timeout: Duration,
    /// Priorities that are used, at most those that switches have.
    pub levels: u32,
    /// Messages that a receiver has granted at once; 0 for as many as scheduled levels.
    pub overcommitment: u32,
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
        let timeout = fabric.round_trip().saturating_mul(TIMEOUT_ROUND_TRIPS).max(TIMEOUT_MIN);
        Self {
            round_trip: u32::try_from(packets).unwrap_or(u32::MAX),
            timeout,
            levels: LEVELS_MOST,
            overcommitment: 0,
        }
    }
}

impl Settings for HomaConfig {
    type Ends = Homa;

    fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)> {
        let Self { round_trip, timeout, levels, overcommitment } = self;
        vec![
            (UNSCHEDULED, Slot::Count(round_trip)),
            (TIMEOUT, Slot::Time(timeout)),
            (PRIORITIES, Slot::Count(levels)),
            (OVERCOMMITMENT, Slot::Count(overcommitment)),
        ]
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

/// Montazeri et al. 2018, §3.7: a few milliseconds.
const TIMEOUT_MIN: Duration = Duration::from_ms(2);
/// Where a round trip takes long, the timeout is so many.
const TIMEOUT_ROUND_TRIPS: u64 = 20;

/// Timers, in the order in which they go off at one instant.
const UNHEARD: u8 = 0;
const MISSING: u8 = 1;
const SEND: u8 = 2;

/// Doublings of a sender's timeout.
const BACKOFF_MAX: u32 = 6;
/// The level of what is sent again; headers have it, too.
const HIGHEST: u32 = 0;
/// Levels of a switch.
const LEVELS_MOST: u32 = 8;
const _: () = assert!(LEVELS == LEVELS_MOST as usize, "there is no lower level");

#[derive(Debug, Default)]
struct State {
    packets: u32,
    // The sender's.
    granted: u32,
    next: u32,
    again: VecDeque<u32>,
    /// Of unscheduled and of scheduled packets.
    levels: [u32; 2],
    heard_at: Instant,
    tries: u32,
    // The receiver's.
    held: Held,
    is_known: bool,
    given: u32,
    came_at: Instant,
}

#[derive(Debug, Default, Clone)]
struct Host {
    // As a sender.
    sending: Vec<u32>,
    is_busy: bool,
    // As a receiver: messages that need grants.
    granting: Vec<u32>,
}

/// All flows and hosts.
#[derive(Debug)]
pub(crate) struct Homa {
    config: HomaConfig,
    flows: Slots<State>,
    hosts: Vec<Host>,
    /// Packets up to which a message has the level, by unscheduled level but the last.
    cutoffs: Vec<u32>,
    /// Messages that a receiver has granted at once.
    overcommitment: usize,
    ranked: Vec<(u32, u32)>,
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

    /// Sends a packet of the message that has least left, if the link is free.
    fn send(&mut self, net: &mut Net<'_>, host: u32) {
        let Self { hosts, flows, .. } = self;
        let sender = &mut hosts[host as usize];
        sender.is_busy = false;
        sender.sending.retain(|&flow| flows.get(flow).is_some());
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
        let &crate::Flow { dst, bytes, .. } = net.flow(flow);
        let data = Packet {
            number,
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

    fn send_if_free(&mut self, net: &mut Net<'_>, host: u32) {
        if !self.hosts[host as usize].is_busy {
            self.send(net, host);
        }
    }

    fn data(&mut self, net: &mut Net<'_>, host: u32, packet: &Packet) {
        let flow = packet.flow;
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
            }
            let &crate::Flow { src, dst, .. } = net.flow(flow);
            net.send(dst, Packet::control(net.frame.header, flow, Kind::Ack, src));
        }
        self.grant(net, host);
    }

    /// Lets a round trip be under way of each message that lacks least.
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
                let &crate::Flow { src, dst, .. } = net.flow(flow);
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

    /// Asks again for what was granted and is missing, if nothing came for the timeout.
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
        let &crate::Flow { src, dst, .. } = net.flow(flow);
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

    /// Sends the first packet again, if nothing was heard for the timeout.
    fn remind(&mut self, net: &mut Net<'_>, flow: u32) {
        let timeout = self.config.timeout;
        let Some(state) = self.flows.get_mut(flow) else { return };
        let due = state.heard_at + timeout.saturating_mul(1 << state.tries);
        if due > net.now() {
            net.timer(due, UNHEARD, flow);
            return;
        }
        state.tries = (state.tries + 1).min(BACKOFF_MAX);
        if state.next > 0 && state.again.is_empty() {
            state.again.push_back(0);
        }
        state.heard_at = net.now();
        net.timer(net.now() + timeout.saturating_mul(1 << state.tries), UNHEARD, flow);
        self.send_if_free(net, net.flow(flow).src);
    }

    /// The sender has a grant or is asked to send again.
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
            // What was granted and not heard of is granted by this.
            state.granted = state.granted.max(packet.extra);
            for number in packet.number..packet.extra.min(state.next) {
                if !state.again.contains(&number) {
                    state.again.push_back(number);
                }
            }
        }
        self.send_if_free(net, host);
    }

    /// The level of the unscheduled packets of a message.
    fn level(&self, packets: u32) -> u32 {
        let level = self.cutoffs.iter().position(|&most| packets <= most);
        u32::try_from(level.unwrap_or(self.cutoffs.len())).unwrap_or(0)
    }
}

impl State {
    fn can_send(&self) -> bool {
        self.next < self.granted || !self.again.is_empty()
    }

    /// Packets that are yet to be sent.
    fn left(&self) -> u32 {
        self.packets - self.next
    }
}

/// Divides the levels among unscheduled and scheduled bytes (§3.4): the share of unscheduled
/// bytes is that of their levels, and each of these has as many of them.
fn cutoffs(mut sizes: Vec<u32>, round_trip: u32, levels: u32) -> (Vec<u32>, usize) {
    sizes.sort_unstable();
    let unscheduled = |&packets: &u32| u64::from(packets.min(round_trip));
    let total: u64 = sizes.iter().map(|&packets| u64::from(packets)).sum();
    let first: u64 = sizes.iter().map(unscheduled).sum();
    let levels = u64::from(levels);
    let count = ((first * levels + total / 2) / total.max(1)).clamp(1, levels - 1);
    let mut cutoffs = Vec::new();
    let (mut sum, mut levels_full) = (0, 0);
    for &packets in &sizes {
        sum += unscheduled(&packets);
        // A size that fills several levels has the first of them.
        let full = sum * count / first;
        if full > levels_full && sizes.last() > Some(&packets) {
            levels_full = full;
            if cutoffs.last() != Some(&packets) {
                cutoffs.push(packets);
            }
        }
    }
    (cutoffs, usize::try_from(levels - count).unwrap_or(1))
}

impl Ends for Homa {
    fn begin(&mut self, net: &mut Net<'_>) {
        let sizes = net.flows.iter().map(|flow| net.frame.packets(flow.bytes)).collect();
        let HomaConfig { round_trip, levels, overcommitment, .. } = self.config;
        (self.cutoffs, self.overcommitment) = cutoffs(sizes, round_trip, levels);
        if overcommitment > 0 {
            self.overcommitment = overcommitment as usize;
        }
    }

    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let &crate::Flow { src, bytes, .. } = net.flow(flow);
        let packets = net.frame.packets(bytes);
        let granted = self.config.round_trip.min(packets);
        let levels = [self.level(packets), self.config.levels - 1];
        let heard_at = net.now();
        self.flows.open(flow, |old| {
            let State { held, mut again, .. } = old.unwrap_or_default();
            again.clear();
            let held = held.reset(packets);
            State { packets, granted, levels, heard_at, held, again, ..State::default() }
        });
        net.timer(heard_at + self.config.timeout, UNHEARD, flow);
        self.hosts[src as usize].sending.push(flow);
        self.send_if_free(net, src);
    }

    fn receive(&mut self, net: &mut Net<'_>, host: u32, packet: Packet) {
        match packet.kind {
            Kind::Data => self.data(net, host, &packet),
            Kind::Grant | Kind::Nack => self.heard(net, host, &packet),
            Kind::Ack => {
                if self.flows.get(packet.flow).is_some() {
                    self.flows.close(packet.flow);
                    net.finished(packet.flow);
                }
            }
            // There is no handshake, its switches do not trim, and reads are not its own.
            Kind::Request | Kind::Header | Kind::Returned | Kind::Read => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_share_unscheduled_bytes_equally() {
        // All is unscheduled: 7 levels for 36 parts, of which sizes make 1, 3, 6, 10, 15, 21, 28.
        let sizes: Vec<u32> = (1..=8).cycle().take(8000).collect();
        assert_eq!(cutoffs(sizes, 8, 8), (vec![3, 5, 6, 7], 1));
        // Fine sizes have all of them.
        let sizes: Vec<u32> = (1..=1000).collect();
        let (cuts, _) = cutoffs(sizes, 1000, 8);
        let parts: Vec<u32> = cuts.iter().map(|cut| cut * cut / 142_857).collect();
        assert_eq!(parts, [1, 2, 3, 4, 5, 6]);
        // One long message in a hundred: what is unscheduled of it counts with the short ones.
        let mixed: Vec<u32> = (0..100).map(|index| if index == 0 { 10_000 } else { 2 }).collect();
        assert_eq!(cutoffs(mixed, 8, 8), (Vec::new(), 7));
    }
}
