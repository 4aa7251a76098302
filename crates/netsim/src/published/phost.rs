//! pHost as the simulator of 2016 had it: receivers hand out tokens, senders spend them.
//!
//! Not as its paper has it:
//! - Flows of more than 8 packets get no free tokens: they wait a round trip before they start.
//! - A receiver whose flow has 8 tokens out is woken by a timer 25 packet times after the last
//!   token, not by the data that comes in, so a longer round trip leaves links idle.
//! - A lost request of a longer flow is not repeated: the flow hangs.
//! - All data is of one priority.

use measure::{Duration, Instant};

use crate::ends::Ends;
use crate::event::Timer;
use crate::heap::Heap;
use crate::moment::Moment;
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::slots::{Held, Slots};

/// Flows of at most this many packets start with a free token for each.
const FREE_TOKENS: u32 = 8;
/// Tokens that a flow may have outstanding.
const WINDOW: i64 = 8;
/// Packet times in which a token must be spent, in halves.
const TOKEN_HALVES: u64 = 3;
/// Packet times after which a receiver no longer waits for outstanding tokens.
const WINDOW_TIMEOUT: u64 = 25;
/// Packet times after the last token of a flow at which missing packets get tokens again.
const RESEND_TIMEOUT: u64 = 9;

/// Priority of data; everything else has 0.
const DATA_PRIORITY: u32 = 2;

const REQUEST_LOST: &str = "its request was lost and this variant does not repeat it";

/// Timers, in the order in which they go off at one instant.
const FINISHED: u8 = 1;
const SEND: u8 = 2;
const GRANT: u8 = 3;

#[derive(Debug, Clone, Copy)]
struct Token {
    until: Instant,
    number: u32,
    data: u32,
}

#[derive(Debug, Default)]
struct State {
    packets: u32,
    // The sender's part.
    tokens: Heap<Token>,
    /// Packets left, by the latest token.
    rest: u32,
    // The receiver's part.
    held: Held,
    /// Tokens given, free ones included.
    given: u32,
    /// How many tokens are given before the flow waits for missing packets.
    goal: u32,
    /// The number of the latest token that was spent, or counts as spent.
    returned: i64,
    /// The flow gets no tokens until this moment.
    resend_at: Option<Moment>,
    given_at: Moment,
    /// The packet that the last token was for.
    last_data: Option<u32>,
}

#[derive(Debug, Default)]
struct Host {
    sending: Vec<u32>,
    receiving: Vec<u32>,
    is_sending_due: bool,
    /// The tag of the timer for the next token, and whether it is set because all flows wait.
    grant_due: Option<(u16, bool)>,
    grants: u16,
    /// Packet times for which no tokens are given, because free tokens are being spent.
    hold: u32,
}

/// All flows and hosts.
#[derive(Debug)]
pub(crate) struct PHost {
    flows: Slots<State>,
    hosts: Vec<Host>,
}

impl PHost {
    pub(crate) fn new(flows: usize, hosts: u32) -> Self {
        Self { flows: Slots::new(flows), hosts: (0..hosts).map(|_| Host::default()).collect() }
    }

    /// Sends a packet from `host`, of the flow with the fewest packets left that has a token.
    fn send(&mut self, net: &mut Net<'_>, host: u32) {
        if net.host_is_busy(host) {
            self.send_later(net, host);
            return;
        }
        let mut tried = Vec::new();
        while let Some(place) = self.first_to_send(net, host) {
            let flow = self.hosts[host as usize].sending[place];
            let Some(state) = self.flows.get_mut(flow) else {
                self.hosts[host as usize].sending.remove(place);
                continue;
            };
            drop_old_tokens(state, net.now());
            let Some(token) = state.tokens.pop(is_later) else {
                self.hosts[host as usize].sending.remove(place);
                tried.push(flow);
                continue;
            };
            let bytes = net.frame.full();
            let dst = net.flow(flow).dst;
            let data = Packet {
                number: token.data,
                extra: token.number,
                priority: DATA_PRIORITY,
                bytes,
                ..Packet::control(net.frame.header, flow, Kind::Data, dst)
            };
            net.send(host, data);
            self.hosts[host as usize].is_sending_due = true;
            let sent = net.moment().after(net.host_time(host, bytes), 1);
            net.timer_past(sent, Timer { kind: SEND, tag: 0, of: host });
            break;
        }
        self.hosts[host as usize].sending.extend(tried);
    }

    /// Lets `host` try to send when its queue is empty.
    fn send_later(&mut self, net: &mut Net<'_>, host: u32) {
        self.hosts[host as usize].is_sending_due = true;
        net.timer_past_queue(host, Timer { kind: SEND, tag: 0, of: host });
    }

    /// The place in `sending` of the flow with the fewest packets left; of several the last.
    fn first_to_send(&self, net: &Net<'_>, host: u32) -> Option<usize> {
        let key = |flow: u32| {
            let rest = self.flows.get(flow).map_or(0, |state| state.rest);
            (rest, net.flow(flow).start)
        };
        last_least(&self.hosts[host as usize].sending, key)
    }

    /// Gives a token from `host` to the flow that lacks the fewest packets.
    fn grant(&mut self, net: &mut Net<'_>, host: u32) {
        let packet_time = net.host_time(host, net.frame.full());
        let mut is_given = false;
        let mut soonest: Option<Moment> = None;
        if self.hosts[host as usize].hold > 0 {
            self.hosts[host as usize].hold -= 1;
            is_given = true;
        }
        let mut tried = Vec::new();
        while !is_given && let Some(place) = self.first_to_receive(net, host) {
            let flow = self.hosts[host as usize].receiving.remove(place);
            let Some(state) = self.flows.get_mut(flow) else { continue };
            if state.held.count() == state.packets {
                continue;
            }
            tried.push(flow);
            match may_grant(state, net.now(), packet_time) {
                Ok(()) => {
                    give_token(state, net, flow, host);
                    if state.given == state.goal {
                        state.resend_at = Some(net.moment().after(packet_time, RESEND_TIMEOUT));
                    }
                    is_given = true;
                }
                Err(wait) if soonest.is_none_or(|soonest| wait.at < soonest.at) => {
                    soonest = Some(wait);
                }
                Err(_) => {}
            }
        }
        self.hosts[host as usize].receiving.extend(tried);
        if is_given {
            self.grant_at(net, host, net.moment().after(packet_time, 1), false);
        } else if let Some(moment) = soonest {
            self.grant_at(net, host, moment, true);
        }
    }

    /// Sets the timer for the next token of `host`, in place of an earlier one.
    fn grant_at(&mut self, net: &mut Net<'_>, host: u32, moment: Moment, is_wait: bool) {
        let state = &mut self.hosts[host as usize];
        state.grants = state.grants.wrapping_add(1);
        state.grant_due = Some((state.grants, is_wait));
        net.timer_past(moment, Timer { kind: GRANT, tag: state.grants, of: host });
    }

    /// The place in `receiving` of the flow that lacks the fewest packets; of several the last.
    fn first_to_receive(&self, net: &Net<'_>, host: u32) -> Option<usize> {
        let key = |flow: u32| {
            let lacks = self.flows.get(flow).map_or(0, |state| state.packets - state.held.count());
            (lacks, net.flow(flow).start)
        };
        last_least(&self.hosts[host as usize].receiving, key)
    }

    /// The receiver takes the request of `flow` in.
    fn request(&mut self, net: &mut Net<'_>, flow: u32) {
        let host = net.flow(flow).dst;
        let packet_time = net.host_time(host, net.frame.full());
        let Some(state) = self.flows.get_mut(flow) else { return };
        let free = free_tokens(state.packets);
        state.given = free;
        state.last_data = free.checked_sub(1);
        if free == state.goal {
            state.resend_at = Some(net.moment().after(packet_time, 2 * u64::from(free)));
        }
        let receiver = &mut self.hosts[host as usize];
        receiver.hold = free;
        receiver.receiving.push(flow);
        if receiver.grant_due.is_none_or(|(_, is_wait)| is_wait) {
            self.grant_at(net, host, net.moment(), false);
        }
    }

    /// The receiver takes a data packet in; after the last one it acknowledges the flow.
    fn data(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        if state.held.take(packet.number) {
            net.new_data(state.held.count());
        }
        state.returned = state.returned.max(i64::from(packet.extra));
        if state.held.count() == state.packets {
            net.received(packet.flow);
            let flow = net.flow(packet.flow);
            net.send(flow.dst, Packet::control(net.frame.header, packet.flow, Kind::Ack, flow.src));
        }
    }
}

impl Ends for PHost {
    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let packets = net.frame.packets(net.flow(flow).bytes);
        let src = net.flow(flow).src;
        let now = net.now();
        let moment = net.moment();
        let packet_time = net.host_time(src, net.frame.full());
        self.flows.open(flow, |old| State {
            packets,
            rest: packets,
            goal: packets,
            returned: -1,
            given_at: moment,
            held: old.map(|old| old.held).unwrap_or_default().reset(packets),
            ..State::default()
        });
        let free = free_tokens(packets);
        if let Some(state) = self.flows.get_mut(flow) {
            let until = now + packet_time.saturating_mul(u64::from(free)) + token_time(packet_time);
            for number in 0..free {
                state.tokens.push(Token { until, number, data: number }, is_later);
            }
        }
        self.hosts[src as usize].sending.push(flow);
        net.send(src, Packet::control(net.frame.header, flow, Kind::Request, net.flow(flow).dst));
        if free > 0 && !self.hosts[src as usize].is_sending_due {
            self.send_later(net, src);
        }
    }

    fn receive(&mut self, net: &mut Net<'_>, host: u32, packet: Packet) {
        match packet.kind {
            Kind::Data => self.data(net, &packet),
            Kind::Request => self.request(net, packet.flow),
            Kind::Ack => {
                if self.flows.get(packet.flow).is_some() {
                    self.flows.close(packet.flow);
                    net.finished(packet.flow);
                    net.timer(net.now(), FINISHED, packet.flow);
                }
            }
            Kind::Grant => {
                let packet_time = net.host_time(host, net.frame.full());
                let Some(state) = self.flows.get_mut(packet.flow) else { return };
                let until = net.now() + token_time(packet_time);
                let token = Token { until, number: packet.extra, data: packet.number };
                state.tokens.push(token, is_later);
                state.rest = packet.rest;
                if !self.hosts[host as usize].is_sending_due {
                    self.send_later(net, host);
                }
            }
            // Its switches do not trim, and readers' requests are not its own.
            Kind::Header | Kind::Nack | Kind::Returned | Kind::Read => {}
        }
    }

    fn timer(&mut self, net: &mut Net<'_>, timer: Timer) {
        let host = timer.of;
        match timer.kind {
            SEND => {
                self.hosts[host as usize].is_sending_due = false;
                self.send(net, host);
            }
            GRANT => {
                // A timer that was replaced still goes off, perhaps at the time of the new one.
                let due = &mut self.hosts[host as usize].grant_due;
                if due.is_some_and(|(tag, _)| tag == timer.tag) {
                    *due = None;
                    self.grant(net, host);
                }
            }
            _ => {}
        }
    }

    fn silence(&mut self, net: &mut Net<'_>) {
        for flow in net.flow_indices() {
            if self.flows.get(flow).is_some() {
                net.stranded(flow, REQUEST_LOST);
            }
        }
    }
}

/// How many free tokens a flow of `packets` starts with.
const fn free_tokens(packets: u32) -> u32 {
    if packets <= FREE_TOKENS { packets } else { 0 }
}

/// How long a token is valid.
fn token_time(packet_time: Duration) -> Duration {
    Duration::from_ps(packet_time.as_ps() * TOKEN_HALVES / 2)
}

/// Whether token `one` expires after `other`.
fn is_later(one: Token, other: Token) -> bool {
    one.until > other.until
}

/// Drops the tokens that have expired.
fn drop_old_tokens(state: &mut State, now: Instant) {
    while state.tokens.peek().is_some_and(|token| token.until < now) {
        state.tokens.pop(is_later);
    }
}

/// The place of the flow with the least key; of several the last.
fn last_least<K: PartialOrd>(flows: &[u32], key: impl Fn(u32) -> K) -> Option<usize> {
    let mut least: Option<(usize, K)> = None;
    for (place, &flow) in flows.iter().enumerate() {
        let key = key(flow);
        if least.as_ref().is_none_or(|(_, least)| key <= *least) {
            least = Some((place, key));
        }
    }
    least.map(|(place, _)| place)
}

/// Whether a flow may get a token at `now`; if not, the moment when it may.
fn may_grant(state: &mut State, now: Instant, packet_time: Duration) -> Result<(), Moment> {
    if let Some(wait) = state.resend_at {
        if wait.at > now {
            return Err(wait);
        }
        state.resend_at = None;
        state.goal += state.packets - state.held.count();
    }
    if i64::from(state.given) - state.returned <= WINDOW {
        return Ok(());
    }
    let wait = state.given_at.after(packet_time, WINDOW_TIMEOUT);
    if wait.at > now {
        return Err(wait);
    }
    state.returned = i64::from(state.given) - WINDOW;
    Ok(())
}

/// Sends a token for the next missing packet of `flow`.
fn give_token(state: &mut State, net: &mut Net<'_>, flow: u32, host: u32) {
    let mut data = state.last_data.map_or(0, |last| (last + 1) % state.packets);
    while state.held.has(data) {
        data += 1;
        if data >= state.packets {
            data = state.held.until();
        }
    }
    state.last_data = Some(data);
    let token = Packet {
        number: data,
        extra: state.given,
        rest: state.packets - state.held.count(),
        ..Packet::control(net.frame.header, flow, Kind::Grant, net.flow(flow).src)
    };
    state.given += 1;
    state.given_at = net.moment();
    net.send(host, token);
}
