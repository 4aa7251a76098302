//! pHost: receivers hand out tokens, one in the time of a packet; senders spend them.
//!
//! As in its paper (Gao et al., CoNEXT 2015, §3): a request announces a flow, and the first
//! packets of each flow need no token. A receiver gives its next token to the flow that lacks
//! least. A sender that can spend several spends that of its flow which lacks least; one that is
//! not spent in 1.5 packet times expires. A flow of whose tokens as many have expired as fill a
//! round trip is downgraded: it has no more for three round trips, or until a packet comes.
//! A token whose packet has not come within the timeout is given again. Headers go first, then
//! what was sent without a token, then the rest.
//!
//! Settled here: a receiver takes a token for expired that had no answer for a round trip and its
//! 1.5 packet times; requests are repeated at doubled intervals.
//!
//! Left out: ways to choose other than the flow that lacks least.
//!
//! Alone a flow takes its ideal time after its request, which leaves first, if packets without
//! token last for a round trip.

use std::collections::VecDeque;

use measure::{Duration, Instant};

use crate::ends::Ends;
use crate::error::SimError;
use crate::event::Timer;
use crate::fabric::{Fabric, Switching};
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::parameter::{Parameter, Slot, TIMEOUT};
use crate::queue::Discipline;
use crate::slots::{Held, Slots};
use crate::topology::Topology;
use crate::transport::definition::{Definition, Description, Settings};

/// Settings of pHost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhostConfig {
    /// Packets of a flow that need no token.
    pub free: u32,
    /// Expired tokens after which a flow is downgraded.
    pub expired: u32,
    /// After how long a token without an answer counts as expired.
    pub expiry: Duration,
    /// For how long a flow is downgraded.
    pub downgrade: Duration,
    /// How long a token's packet or a request's answer may take.
    pub timeout: Duration,
}

impl PhostConfig {
    /// The settings of Gao et al. §4, with packets and tokens that cover the round trip of
    /// `fabric`, whose ports should be [`Discipline::Levels`].
    #[must_use]
    pub fn for_fabric(fabric: &Fabric) -> Self {
        let packets = fabric.round_trip_packets().max(FREE_MIN);
        let round_trip = fabric.round_trip();
        let spending = Duration::from_ps(fabric.packet_time().as_ps() * 3 / 2);
        let downgrade = round_trip.saturating_mul(DOWNGRADE_ROUND_TRIPS);
        Self {
            free: packets,
            expired: packets,
            expiry: round_trip + spending,
            downgrade,
            timeout: downgrade.max(TIMEOUT_MIN),
        }
    }
}

impl Settings for PhostConfig {
    type Ends = Phost;

    fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)> {
        let Self { free, expired, expiry, downgrade, timeout } = self;
        vec![
            (FREE, Slot::Count(free)),
            (EXPIRED, Slot::Count(expired)),
            (EXPIRY, Slot::Time(expiry)),
            (DOWNGRADE, Slot::Time(downgrade)),
            (TIMEOUT, Slot::Time(timeout)),
        ]
    }

    fn ends(self, fabric: &Fabric, flows: usize) -> Result<Phost, SimError> {
        Ok(Phost::new(self, flows, fabric.topology.host_count()))
    }
}

impl Definition for Phost {
    type Settings = PhostConfig;

    const DESCRIPTION: Description = Description {
        name: "phost",
        summary: "receivers hand out a token in the time of a packet; senders spend them",
        paper: "Gao et al., CoNEXT 2015",
        omits: "ways to choose other than the flow that lacks least",
    };

    fn fabric(topology: Topology, switching: Switching) -> Result<Fabric, SimError> {
        Ok(Fabric::new(topology, switching, Discipline::Levels))
    }

    fn settings(fabric: &Fabric) -> PhostConfig {
        PhostConfig::for_fabric(fabric)
    }
}

const PAPER: &str = "Gao et al. 2015, §3; at least the round trip";
const FREE: Parameter =
    Parameter::new("free-packets", "Packets of a flow that need no token", PAPER);
const EXPIRED: Parameter =
    Parameter::new("expired-tokens", "Expired tokens for which a flow is downgraded", PAPER)
        .counting("TOKENS");
const EXPIRY: Parameter =
    Parameter::new("token-expiry", "How long a token that was not spent counts as out", PAPER);
const DOWNGRADE: Parameter =
    Parameter::new("downgrade", "For how long a silent flow is downgraded", PAPER);

/// Packets that need no token, and the timeout of a token, in Gao et al. §4.
const FREE_MIN: u32 = 8;
const TIMEOUT_MIN: Duration = Duration::from_ns(9_500);
/// Round trips for which a silent flow is downgraded, which a token may take, too.
const DOWNGRADE_ROUND_TRIPS: u64 = 3;

/// Timers, in the order in which they go off at one instant.
const REQUEST: u8 = 0;
const SPEND: u8 = 1;
const GIVE: u8 = 2;

/// Doublings of the interval between requests.
const BACKOFF_MAX: u32 = 10;
/// Levels of data that was sent without a token and with one; headers have 0.
const FREE_LEVEL: u32 = 1;
const TOKEN_LEVEL: u32 = 2;

/// Permission to send a packet.
#[derive(Debug, Clone, Copy)]
struct Token {
    flow: u32,
    number: u32,
    /// The number of the token within its flow.
    serial: u32,
    until: Instant,
}

/// A token whose packet has not arrived yet.
#[derive(Debug, Clone, Copy)]
struct Given {
    number: u32,
    at: Instant,
}

#[derive(Debug, Default)]
struct State {
    packets: u32,
    // The sender's part.
    /// Packets that the receiver lacks, as far as the sender knows.
    rest: u32,
    tries: u32,
    heard_at: Instant,
    // The receiver's part.
    held: Held,
    is_known: bool,
    /// The first packet that never had a token.
    next: u32,
    /// In order of time.
    given: VecDeque<Given>,
    again: VecDeque<u32>,
    /// How many tokens the flow was given.
    tokens: u32,
    /// Until when it is downgraded.
    downgraded: Instant,
}

#[derive(Debug, Default, Clone)]
struct Host {
    // As a sender.
    tokens: Vec<Token>,
    is_spending: bool,
    // As a receiver.
    flows: Vec<u32>,
    /// When the next token may be given.
    free_at: Instant,
    /// When the valid timer goes off; others are out of date.
    due: Option<Instant>,
}

/// All flows and hosts.
#[derive(Debug)]
pub(crate) struct Phost {
    config: PhostConfig,
    flows: Slots<State>,
    hosts: Vec<Host>,
}

impl Phost {
    fn new(config: PhostConfig, flows: usize, hosts: u32) -> Self {
        let hosts = vec![Host::default(); hosts as usize];
        Self { config, flows: Slots::new(flows), hosts }
    }

    /// Sends the request of `flow`, or repeats it after a timeout.
    fn request(&mut self, net: &mut Net<'_>, flow: u32) {
        let timeout = self.config.timeout;
        let Some(state) = self.flows.get_mut(flow) else { return };
        let wait = timeout.saturating_mul(1 << state.tries);
        let due = state.heard_at + wait;
        if state.tries > 0 && due > net.now() {
            net.timer(due, REQUEST, flow);
            return;
        }
        state.tries = (state.tries + 1).min(BACKOFF_MAX);
        let &crate::Flow { src, dst, .. } = net.flow(flow);
        net.send(src, Packet::control(net.frame.header, flow, Kind::Request, dst));
        net.timer(net.now() + timeout.saturating_mul(1 << state.tries), REQUEST, flow);
    }

    /// Sends a packet from `host` with the token of the flow that lacks least, of several the
    /// first.
    fn spend(&mut self, net: &mut Net<'_>, host: u32) {
        let sender = &mut self.hosts[host as usize];
        sender.is_spending = false;
        let flows = &self.flows;
        let now = net.now();
        sender.tokens.retain(|token| token.until >= now && flows.get(token.flow).is_some());
        let rest = |token: &Token| flows.get(token.flow).map_or(0, |state| state.rest);
        let best = (0..sender.tokens.len()).min_by_key(|&index| rest(&sender.tokens[index]));
        let Some(best) = best else { return };
        let Token { flow, number, serial, .. } = sender.tokens.remove(best);
        sender.is_spending = true;
        let Some(state) = self.flows.get_mut(flow) else { return };
        state.rest = state.rest.saturating_sub(1).max(1);
        let &crate::Flow { dst, bytes, .. } = net.flow(flow);
        let data = Packet {
            number,
            extra: serial,
            priority: if serial < self.config.free { FREE_LEVEL } else { TOKEN_LEVEL },
            bytes: net.frame.wire(bytes, number),
            ..Packet::control(net.frame.header, flow, Kind::Data, dst)
        };
        net.send(host, data);
        net.timer(net.host_clear_at(host), SPEND, host);
    }

    /// Gives a token if one is due, and sets the timer for the next.
    fn give(&mut self, net: &mut Net<'_>, host: u32) {
        let now = net.now();
        if self.hosts[host as usize].flows.is_empty() {
            self.hosts[host as usize].due = None;
            return;
        }
        let free_at = self.hosts[host as usize].free_at;
        let due = if free_at > now {
            free_at
        } else {
            match self.choose(now, host) {
                Ok(token) => self.send_token(net, host, &token),
                Err(oldest) => oldest,
            }
        };
        let receiver = &mut self.hosts[host as usize];
        if receiver.due != Some(due) {
            receiver.due = Some(due);
            net.timer(due, GIVE, host);
        }
    }

    /// Sends `token`. Returns when the next may be given.
    fn send_token(&mut self, net: &mut Net<'_>, host: u32, token: &Token) -> Instant {
        let rest = self.flows.get(token.flow).map_or(0, |state| state.packets - state.held.count());
        let src = net.flow(token.flow).src;
        let grant = Packet::control(net.frame.header, token.flow, Kind::Grant, src);
        net.send(host, Packet { number: token.number, extra: token.serial, rest, ..grant });
        let free_at = net.now() + net.host_time(host, net.frame.full());
        self.hosts[host as usize].free_at = free_at;
        free_at
    }

    /// A token for the flow that lacks least of those that may have one; if none may, when to look
    /// again.
    fn choose(&mut self, now: Instant, host: u32) -> Result<Token, Instant> {
        let mut best: Option<(u32, u32)> = None;
        let mut wake = now + self.config.timeout;
        for &flow in &self.hosts[host as usize].flows {
            let Some(state) = self.flows.get_mut(flow) else { continue };
            state.give_up(now, &self.config);
            let has_more = state.next < state.packets || !state.again.is_empty();
            let is_downgraded = state.downgraded > now;
            let given = state.given.front().map(|given| given.at + self.config.timeout);
            let until = (has_more && is_downgraded).then_some(state.downgraded);
            wake = [given, until].into_iter().flatten().fold(wake, Instant::min);
            let lacks = state.packets - state.held.count();
            if has_more && !is_downgraded && best.is_none_or(|(least, _)| lacks < least) {
                best = Some((lacks, flow));
            }
        }
        let (_, flow) = best.ok_or(wake)?;
        let state = self.flows.get_mut(flow).ok_or(wake)?;
        let number = state.again.pop_front().unwrap_or_else(|| {
            state.next += 1;
            state.next - 1
        });
        state.given.push_back(Given { number, at: now });
        let serial = state.tokens;
        state.tokens += 1;
        Ok(Token { flow, number, serial, until: now })
    }

    /// The receiver takes in the request of `flow`.
    fn announced(&mut self, net: &mut Net<'_>, host: u32, flow: u32) {
        let Some(state) = self.flows.get_mut(flow) else { return };
        if state.held.count() == state.packets {
            acknowledge(net, flow);
        } else if !state.is_known {
            state.is_known = true;
            state.next = self.config.free.min(state.packets);
            state.tokens = state.next;
            let at = net.now();
            let held = &state.held;
            let free = (0..state.next).filter(|&number| !held.has(number));
            state.given.extend(free.map(|number| Given { number, at }));
            self.hosts[host as usize].flows.push(flow);
            self.give(net, host);
        }
    }

    /// The receiver takes a data packet in.
    fn data(&mut self, net: &mut Net<'_>, host: u32, packet: &Packet) {
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        state.downgraded = Instant::ZERO;
        state.given.retain(|given| given.number != packet.number);
        if state.held.take(packet.number) {
            net.new_data(state.held.count());
            if state.held.count() == state.packets {
                net.received(packet.flow);
                self.hosts[host as usize].flows.retain(|&flow| flow != packet.flow);
                acknowledge(net, packet.flow);
            }
        }
        self.give(net, host);
    }

    /// The sender takes a token in.
    fn granted(&mut self, net: &mut Net<'_>, host: u32, packet: &Packet) {
        let now = net.now();
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        state.tries = 1;
        state.heard_at = now;
        state.rest = packet.rest;
        let full = net.host_time(host, net.frame.full());
        let token = Token {
            flow: packet.flow,
            number: packet.number,
            serial: packet.extra,
            until: now + full + Duration::from_ps(full.as_ps() / 2),
        };
        let sender = &mut self.hosts[host as usize];
        // A packet that is still to be sent without a token needs none.
        let is_same = |old: &Token| (old.flow, old.number) == (token.flow, token.number);
        if !sender.tokens.iter().any(is_same) {
            sender.tokens.push(token);
        }
        if !sender.is_spending {
            self.spend(net, host);
        }
    }
}

impl State {
    /// Marks packets of timed-out tokens to be given again, and downgrades a flow whose sender does
    /// not spend its tokens.
    fn give_up(&mut self, now: Instant, config: &PhostConfig) {
        while let Some(&given) = self.given.front() {
            if given.at + config.timeout > now {
                break;
            }
            self.given.pop_front();
            self.again.push_back(given.number);
        }
        while self.again.front().is_some_and(|&number| self.held.has(number)) {
            self.again.pop_front();
        }
        let last = config.expired as usize - 1;
        let has_expired = self.given.get(last).is_some_and(|given| given.at + config.expiry <= now);
        if has_expired && self.downgraded <= now {
            self.downgraded = now + config.downgrade;
        }
    }
}

/// Sends the ACK of all of `flow`.
fn acknowledge(net: &mut Net<'_>, flow: u32) {
    let &crate::Flow { src, dst, .. } = net.flow(flow);
    net.send(dst, Packet::control(net.frame.header, flow, Kind::Ack, src));
}

impl Ends for Phost {
    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let &crate::Flow { src, bytes, .. } = net.flow(flow);
        let packets = net.frame.packets(bytes);
        let heard_at = net.now();
        self.flows.open(flow, |old| {
            let State { held, mut given, mut again, .. } = old.unwrap_or_default();
            given.clear();
            again.clear();
            let held = held.reset(packets);
            State { packets, rest: packets, heard_at, held, given, again, ..State::default() }
        });
        self.request(net, flow);
        let sender = &mut self.hosts[src as usize];
        let until = Instant::ZERO + Duration::MAX;
        let free = 0..self.config.free.min(packets);
        sender.tokens.extend(free.map(|number| Token { flow, number, serial: number, until }));
        if !sender.is_spending {
            self.spend(net, src);
        }
    }

    fn receive(&mut self, net: &mut Net<'_>, host: u32, packet: Packet) {
        match packet.kind {
            Kind::Data => self.data(net, host, &packet),
            Kind::Request => self.announced(net, host, packet.flow),
            Kind::Grant => self.granted(net, host, &packet),
            Kind::Ack => {
                if self.flows.get(packet.flow).is_some() {
                    self.flows.close(packet.flow);
                    net.finished(packet.flow);
                }
            }
            // Its switches do not trim, and readers' requests are not its own.
            Kind::Header | Kind::Nack | Kind::Returned | Kind::Read => {}
        }
    }

    fn timer(&mut self, net: &mut Net<'_>, timer: Timer) {
        match timer.kind {
            REQUEST => self.request(net, timer.of),
            SPEND => self.spend(net, timer.of),
            _ => {
                let receiver = &mut self.hosts[timer.of as usize];
                if receiver.due == Some(net.now()) {
                    receiver.due = None;
                    self.give(net, timer.of);
                }
            }
        }
    }
}
