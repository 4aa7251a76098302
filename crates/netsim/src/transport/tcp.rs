//! TCP, and DCTCP, which is TCP that cuts its window by the share of marked packets.
//!
//! TCP as the RFCs have it: a handshake, slow start and congestion avoidance (RFC 5681), the
//! timeout of RFC 6298 with backoff, and losses found by time (RACK, RFC 8985 §6.2), because
//! packets that are sprayed over paths arrive out of order: a packet is lost when one that was
//! sent a smoothed round trip later has arrived. DCTCP as RFC 8257 §3: the average of the marked
//! share, at weight 1/16 and first 1, cuts the window once in a window of data.
//!
//! Without a handshake a flow is a message of the connection that its pair of hosts has open: it
//! begins with the window, the threshold, the round trip and the share of marks with which the one
//! before it ended (RFC 9040 §7), and with the first window once nothing was sent for a timeout
//! (RFC 5681 §4.1). That messages of a connection arrive in order is left out.
//!
//! Left out, too: delayed acknowledgements (every packet is acknowledged by itself, RFC 2018
//! without its limit of blocks), tail loss probes, pacing, the end of a connection. The clock has
//! no granularity. The window has a limit, which stands for the receiver's.
//!
//! Alone a flow takes its ideal time where its first window covers the round trip; otherwise a
//! round trip more for each doubling until it does, and one for a handshake.

use std::collections::{BTreeMap, VecDeque};

use measure::{Duration, Instant};

use crate::ends::{Ends, acknowledge};
use crate::error::SimError;
use crate::event::Timer;
use crate::fabric::{BUFFER, Fabric, Switching};
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::parameter::{Parameter, Slot, TIMEOUT, WINDOW};
use crate::queue::Discipline;
use crate::slots::{Held, Slots};
use crate::topology::Topology;
use crate::transport::definition::{Definition, Description, Settings};

/// Settings of TCP and DCTCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpConfig {
    /// Packets under way at the start.
    pub window: u32,
    /// The most packets under way.
    pub window_max: u32,
    /// The timeout before a round trip was measured.
    pub timeout: Duration,
    /// The least timeout.
    pub timeout_min: Duration,
    /// Whether marks cut the window by their share (DCTCP).
    pub has_marks: bool,
    /// Whether each flow opens a connection. Otherwise those of a pair share one that is open, and
    /// begin with what it has learned.
    pub has_handshake: bool,
}

impl TcpConfig {
    /// TCP for `fabric`; DCTCP if `has_marks`, whose ports should be [`Discipline::Mark`].
    ///
    /// The most under way is twice what fills the round trip and a port's buffer.
    ///
    /// The least timeout is one that no packet can outlive in a queue. RFC 6298 §2.4 has a second
    /// so that timeouts are of losses, and Linux 200 ms (`TCP_RTO_MIN`); Vasudevan et al., SIGCOMM
    /// 2009, show that in a data centre those stop flows for thousands of round trips and that
    /// microseconds are safe, and Gao et al. give TCP what they give pFabric, 45 µs. Before there
    /// is a round trip to go by the timeout is as long: RFC 6298 has one number for both.
    ///
    /// Connections are open, as those of remote memory and storage are.
    #[must_use]
    pub fn for_fabric(fabric: &Fabric, has_marks: bool) -> Self {
        let buffer = u32::try_from(BUFFER.get()).unwrap_or(u32::MAX) / fabric.frame.full();
        let within = FIRST_WINDOW_BYTES / fabric.frame.payload;
        let timeout = fabric.round_trip_full().clamp(TIMEOUT_OF_GAO, Parameter::TIME_MAX);
        Self {
            window: within.clamp(FIRST_WINDOW_MIN, FIRST_WINDOW),
            window_max: 2 * (fabric.round_trip_packets() + buffer),
            timeout,
            timeout_min: timeout,
            has_marks,
            has_handshake: false,
        }
    }
}

impl Settings for TcpConfig {
    type Ends = Tcp;

    fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)> {
        let Self { window, window_max, timeout, timeout_min, has_marks: _, has_handshake } = self;
        vec![
            (WINDOW, Slot::Count(window)),
            (WINDOW_MAX, Slot::Count(window_max)),
            (TIMEOUT, Slot::Time(timeout)),
            (TIMEOUT_MIN, Slot::Time(timeout_min)),
            (HANDSHAKE, Slot::Flag(has_handshake)),
        ]
    }

    fn ends(self, _: &Fabric, flows: usize) -> Result<Tcp, SimError> {
        Ok(Tcp::new(self, flows))
    }
}

impl Definition for Tcp {
    type Settings = TcpConfig;

    const DESCRIPTION: Description = Description {
        name: "tcp",
        summary: "handshake, slow start, congestion avoidance, losses found by time",
        paper: "RFC 5681, RFC 6298, RFC 8985",
        omits: "delayed acknowledgements, tail loss probes, pacing, closing",
    };

    fn fabric(topology: Topology, switching: Switching) -> Result<Fabric, SimError> {
        Ok(Fabric::new(topology, switching, Discipline::DropTail))
    }

    fn settings(fabric: &Fabric) -> TcpConfig {
        TcpConfig::for_fabric(fabric, false)
    }
}

const WINDOW_MAX: Parameter =
    Parameter::new("window-max", "The most packets of a flow under way", "afar: twice what fills");
const TIMEOUT_MIN: Parameter = Parameter::new(
    "timeout-min",
    "The least timeout once there is a round trip",
    "Gao et al. 2016, §4.2, or a round trip through full queues if that is longer (RFC 6298 has \
     1 s, Linux 200 ms)",
);
const HANDSHAKE: Parameter = Parameter::new(
    "handshake",
    "Whether each flow opens a connection (yes) or those of a pair share one that is open (no)",
    "connections of remote memory and storage are open; RFC 9040, §7 for what is shared",
);

/// The window with which it starts, in packets and in bytes of payload: RFC 6928 §2, as in Linux.
const FIRST_WINDOW: u32 = 10;
const FIRST_WINDOW_BYTES: u32 = 14_600;
/// The initial window where these bytes are fewer packets: RFC 6928 §2.
const FIRST_WINDOW_MIN: u32 = 2;
/// The timeout of Gao et al. §4.
const TIMEOUT_OF_GAO: Duration = Duration::from_us(45);
/// Weight of the newest share of marks (RFC 8257 §3.3).
const GAIN: f64 = 1.0 / 16.0;
/// The least threshold after a loss (RFC 5681 §3.1).
const THRESHOLD_MIN: f64 = 2.0;
/// Doublings of the timeout.
const BACKOFF_MAX: u32 = 6;

/// A packet under way.
#[derive(Debug, Clone, Copy)]
struct Sent {
    number: u32,
    at: Instant,
    /// Whether it was sent before: then its ACK measures no round trip (RFC 6298 §3).
    is_again: bool,
}

#[derive(Debug)]
struct State {
    packets: u32,
    is_connected: bool,
    acked: Held,
    held: Held,
    next: u32,
    /// In order of sending.
    sent: VecDeque<Sent>,
    lost: VecDeque<u32>,
    window: f64,
    threshold: f64,
    /// When the latest packet that has arrived was sent.
    latest: Instant,
    /// When the window was last cut for a loss.
    cut_at: Instant,
    round_trip: Option<(Duration, Duration)>,
    backoff: u32,
    due: Instant,
    is_armed: bool,
    // DCTCP.
    alpha: f64,
    /// The packet with which this window of data ends.
    window_end: u32,
    acks: u32,
    marks: u32,
    is_cut: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            packets: 0,
            is_connected: false,
            acked: Held::default(),
            held: Held::default(),
            next: 0,
            sent: VecDeque::new(),
            lost: VecDeque::new(),
            window: 1.0,
            threshold: f64::INFINITY,
            latest: Instant::ZERO,
            cut_at: Instant::ZERO,
            round_trip: None,
            backoff: 0,
            due: Instant::ZERO,
            is_armed: false,
            alpha: 1.0,
            window_end: 0,
            acks: 0,
            marks: 0,
            is_cut: false,
        }
    }
}

/// What an open connection has learned.
#[derive(Debug, Clone, Copy)]
struct Learned {
    window: f64,
    threshold: f64,
    round_trip: Option<(Duration, Duration)>,
    alpha: f64,
    at: Instant,
}

/// All flows.
#[derive(Debug)]
pub(crate) struct Tcp {
    config: TcpConfig,
    flows: Slots<State>,
    /// By sender and receiver.
    open: BTreeMap<(u32, u32), Learned>,
}

impl Tcp {
    fn new(config: TcpConfig, flows: usize) -> Self {
        Self { config, flows: Slots::new(flows), open: BTreeMap::new() }
    }

    /// The timeout for a smoothed round trip and its variation; the initial one without these.
    fn timeout(config: TcpConfig, round_trip: Option<(Duration, Duration)>) -> Duration {
        round_trip.map_or(config.timeout, |(smooth, variation)| {
            (smooth + variation.saturating_mul(4)).max(config.timeout_min)
        })
    }

    /// Begins a flow of an open connection with what that connection has learned.
    fn resume(&mut self, net: &Net<'_>, flow: u32) {
        let &crate::Flow { src, dst, .. } = net.flow(flow);
        let (Some(state), Some(learned)) = (self.flows.get_mut(flow), self.open.get(&(src, dst)))
        else {
            return;
        };
        state.round_trip = learned.round_trip;
        state.alpha = learned.alpha;
        state.threshold = learned.threshold;
        if net.now() - learned.at <= Self::timeout(self.config, learned.round_trip) {
            state.window = learned.window;
        }
    }

    /// Stores what a flow of an open connection has learned, at its end.
    fn keep(&mut self, net: &Net<'_>, flow: u32) {
        let &crate::Flow { src, dst, .. } = net.flow(flow);
        let Some(state) = self.flows.get(flow) else { return };
        let State { window, threshold, round_trip, alpha, .. } = *state;
        let learned = Learned { window, threshold, round_trip, alpha, at: net.now() };
        self.open.insert((src, dst), learned);
    }

    /// Sends the packets of `flow` that the window allows.
    fn send(&mut self, net: &mut Net<'_>, flow: u32) {
        let Some(state) = self.flows.get_mut(flow) else { return };
        let &crate::Flow { src, dst, bytes, .. } = net.flow(flow);
        let mut under_way = state.under_way();
        while f64::from(under_way) + 1.0 <= state.window.max(1.0) {
            let Some((number, is_again)) = state.next_to_send() else { break };
            state.sent.push_back(Sent { number, at: net.now(), is_again });
            under_way += 1;
            let data = Packet {
                number,
                priority: 1,
                bytes: net.frame.wire(bytes, number),
                ..Packet::control(net.frame.header, flow, Kind::Data, dst)
            };
            net.send(src, data);
        }
    }

    /// Sets the timeout of `flow`.
    fn arm(&mut self, net: &mut Net<'_>, flow: u32) {
        let config = self.config;
        let Some(state) = self.flows.get_mut(flow) else { return };
        let timeout = Self::timeout(config, state.round_trip);
        state.due = net.now() + timeout.saturating_mul(1 << state.backoff);
        if !state.is_armed {
            state.is_armed = true;
            net.timer(state.due, 0, flow);
        }
    }

    /// The sender takes an ACK in.
    fn ack(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let has_marks = self.config.has_marks;
        let most = f64::from(self.config.window_max);
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        let before = state.acked.count();
        state.learn(packet, net.now());
        let new = state.acked.count() - before;
        if state.acked.count() == state.packets {
            if !self.config.has_handshake {
                self.keep(net, packet.flow);
            }
            self.flows.close(packet.flow);
            net.finished(packet.flow);
            return;
        }
        if new == 0 {
            return;
        }
        state.backoff = 0;
        if has_marks {
            state.count_mark(packet.is_marked, new);
        }
        if !state.is_cut {
            let growth = f64::from(new);
            let is_slow_start = state.window < state.threshold;
            state.window += if is_slow_start { growth } else { growth / state.window };
            state.window = state.window.min(most);
        }
        state.find_losses(net.now());
        self.send(net, packet.flow);
        self.arm(net, packet.flow);
    }
}

impl State {
    fn under_way(&self) -> u32 {
        let count = self.sent.iter().filter(|sent| !self.acked.has(sent.number)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The next packet to send, lost ones first, and whether it was sent before.
    fn next_to_send(&mut self) -> Option<(u32, bool)> {
        while let Some(number) = self.lost.pop_front() {
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

    /// Marks what an ACK acknowledges, and measures the round trip.
    fn learn(&mut self, packet: &Packet, now: Instant) {
        if !self.acked.has(packet.number)
            && let Some(sent) = self.sent.iter().rev().find(|sent| sent.number == packet.number)
        {
            self.latest = self.latest.max(sent.at);
            if !sent.is_again {
                self.sample(now - sent.at);
            }
        }
        self.acked.take(packet.number);
        while self.acked.until() < packet.extra {
            self.acked.take(self.acked.until());
        }
    }

    /// Takes in a round trip (RFC 6298 §2).
    fn sample(&mut self, round_trip: Duration) {
        let ps = round_trip.as_ps();
        self.round_trip = Some(match self.round_trip {
            None => (round_trip, Duration::from_ps(ps / 2)),
            Some((smooth, variation)) => {
                let off = smooth.as_ps().abs_diff(ps);
                let variation = variation.as_ps() / 4 * 3 + off / 4;
                let smooth = smooth.as_ps() / 8 * 7 + ps / 8;
                (Duration::from_ps(smooth), Duration::from_ps(variation))
            }
        });
    }

    /// Finds lost packets (RFC 8985 §6.2), with a smoothed round trip as the window for reordering.
    fn find_losses(&mut self, now: Instant) {
        let window = self.round_trip.map_or(Duration::MAX, |(smooth, _)| smooth);
        while let Some(&sent) = self.sent.front() {
            if !self.acked.has(sent.number) {
                if sent.at.saturating_add(window) >= self.latest {
                    return;
                }
                self.lost.push_back(sent.number);
                if sent.at >= self.cut_at {
                    self.threshold = (self.window / 2.0).max(THRESHOLD_MIN);
                    self.window = self.threshold;
                    self.cut_at = now;
                }
            }
            self.sent.pop_front();
        }
    }

    /// Counts ACKs and marks, and cuts the window by their share (RFC 8257 §3.3 and §3.4).
    fn count_mark(&mut self, is_marked: bool, new: u32) {
        self.acks += new;
        self.marks += u32::from(is_marked);
        if is_marked && !self.is_cut {
            // What is under way was sent before the cut; its marks do not count for another.
            self.is_cut = true;
            self.window_end = self.next;
            self.window = (self.window * (1.0 - self.alpha / 2.0)).max(1.0);
            self.threshold = self.window;
        }
        if self.acked.until() >= self.window_end {
            let share = f64::from(self.marks.min(self.acks)) / f64::from(self.acks);
            self.alpha += GAIN * (share - self.alpha);
            (self.acks, self.marks, self.is_cut) = (0, 0, false);
            self.window_end = self.next;
        }
    }
}

impl Ends for Tcp {
    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let packets = net.frame.packets(net.flow(flow).bytes);
        let window = f64::from(self.config.window);
        self.flows.open(flow, |old| {
            let State { acked, held, mut sent, mut lost, .. } = old.unwrap_or_default();
            sent.clear();
            lost.clear();
            let (acked, held) = (acked.reset(packets), held.reset(packets));
            State { packets, window, acked, held, sent, lost, ..State::default() }
        });
        if self.config.has_handshake {
            let &crate::Flow { src, dst, .. } = net.flow(flow);
            net.send(src, Packet::control(net.frame.header, flow, Kind::Request, dst));
        } else {
            self.resume(net, flow);
            if let Some(state) = self.flows.get_mut(flow) {
                state.is_connected = true;
            }
            self.send(net, flow);
        }
        self.arm(net, flow);
    }

    fn receive(&mut self, net: &mut Net<'_>, _: u32, packet: Packet) {
        match packet.kind {
            Kind::Data => {
                let Some(state) = self.flows.get_mut(packet.flow) else { return };
                acknowledge(net, &mut state.held, state.packets, &packet);
            }
            Kind::Ack => self.ack(net, &packet),
            Kind::Request => {
                let flow = net.flow(packet.flow);
                net.send(
                    flow.dst,
                    Packet::control(net.frame.header, packet.flow, Kind::Grant, flow.src),
                );
            }
            Kind::Grant => {
                let Some(state) = self.flows.get_mut(packet.flow) else { return };
                if !state.is_connected {
                    state.is_connected = true;
                    state.backoff = 0;
                    self.send(net, packet.flow);
                    self.arm(net, packet.flow);
                }
            }
            // Its switches do not trim, and readers' requests are not its own.
            Kind::Header | Kind::Nack | Kind::Returned | Kind::Read => {}
        }
    }

    fn timer(&mut self, net: &mut Net<'_>, timer: Timer) {
        let flow = timer.of;
        let Some(state) = self.flows.get_mut(flow) else { return };
        state.is_armed = false;
        if state.due > net.now() {
            state.is_armed = true;
            net.timer(state.due, 0, flow);
            return;
        }
        state.backoff = (state.backoff + 1).min(BACKOFF_MAX);
        if state.is_connected {
            state.threshold = (state.window / 2.0).max(THRESHOLD_MIN);
            state.window = 1.0;
            state.cut_at = net.now();
            state.lost.extend(state.sent.drain(..).map(|sent| sent.number));
            self.send(net, flow);
        } else {
            let &crate::Flow { src, dst, .. } = net.flow(flow);
            net.send(src, Packet::control(net.frame.header, flow, Kind::Request, dst));
        }
        self.arm(net, flow);
    }
}
