//! pFabric, TCP and DCTCP as the simulator of 2016 had them: one sender with a window.
//!
//! Not as their papers have it:
//! - The timeout is fixed; there is no estimate, no backoff, no fast retransmission.
//! - After a timeout the sender skips what the receiver has, by looking at the receiver. If that is
//!   all of its window and the ACK was lost, the flow hangs: nothing is ever sent again.
//! - TCP starts with one packet after its handshake, whatever window is asked for, grows by one
//!   per ACK for ever, and does not repeat a lost SYN.
//! - DCTCP never grows; its fraction of marked ACKs is 0 unless all are marked.
//! - pFabric has no probe mode.

use measure::{Duration, Instant};

use crate::ends::Ends;
use crate::event::Timer;
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::slots::{Held, Slots};

/// Which of the three transports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowKind {
    PFabric,
    Tcp,
    Dctcp,
}

/// Timers: the timeout of a flow.
const TIMEOUT: u8 = 0;
/// Does nothing, but it was an event, and a heap's order depends on what is in it.
const FINISHED: u8 = 1;

/// Weight of the newest fraction in DCTCP's average.
const DCTCP_GAIN: f64 = 0.0625;

/// Timeouts after which nothing can be under way that would still end a flow.
const SILENT_MAX: u32 = 16;

const SYN_LOST: &str = "its SYN or the answer was lost and this variant does not repeat it";
const ACK_LOST: &str = "an ACK was lost and this variant sends nothing that would bring another";

#[derive(Debug, Default)]
struct State {
    packets: u32,
    window: u32,
    threshold: u32,
    /// ACKs since the window last grew, past slow start.
    acks: u32,
    next: u32,
    unacked: u32,
    /// Packets the receiver has beyond the first it lacks, by the last ACK.
    sacked: u32,
    /// When the timeout is due.
    due: Option<Instant>,
    held: Held,
    alpha: f64,
    /// Whether the latest ACKs were marked, the latest in the lowest bit.
    marks: u32,
    /// Timeouts in a row at which nothing was sent.
    silent: u32,
}

/// All flows.
#[derive(Debug)]
pub(crate) struct Window {
    kind: WindowKind,
    initial: u32,
    most: u32,
    timeout: Duration,
    flows: Slots<State>,
}

impl Window {
    pub(crate) fn new(kind: WindowKind, flows: usize) -> Self {
        let (initial, most) = match kind {
            WindowKind::PFabric => (12, 15),
            WindowKind::Tcp => (1, 15),
            WindowKind::Dctcp => (2, 15),
        };
        Self { kind, initial, most, timeout: Duration::from_us(45), flows: Slots::new(flows) }
    }

    /// Sends the packets of `flow` that the window allows and the receiver lacks.
    fn send_pending(&mut self, net: &mut Net<'_>, flow: u32) {
        let Some(state) = self.flows.get_mut(flow) else { return };
        if state.held.count() == state.packets {
            return;
        }
        let end = (state.unacked + state.window + state.sacked).min(state.packets);
        let src = net.flow(flow).src;
        while state.next < end {
            let number = state.next;
            if !state.held.has(number) {
                let packet = data(net, flow, number, priority(self.kind, state));
                net.send(src, packet);
            }
            state.next += 1;
            if state.due.is_none() {
                arm(state, net, flow, self.timeout);
            }
        }
    }

    /// The sender takes an ACK in.
    fn ack(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let flow = packet.flow;
        let Some(state) = self.flows.get_mut(flow) else { return };
        state.sacked = packet.extra;
        state.next = state.next.max(packet.number);
        if packet.number > state.unacked {
            state.unacked = packet.number;
            match self.kind {
                WindowKind::PFabric => grow_past_threshold(state, self.most),
                WindowKind::Tcp => state.window = (state.window + 1).min(self.most),
                WindowKind::Dctcp => shrink_by_marks(state, packet.is_marked),
            }
            self.send_pending(net, flow);
            let Some(state) = self.flows.get_mut(flow) else { return };
            if state.due.take().is_some() && state.unacked < state.packets {
                arm(state, net, flow, self.timeout);
            }
        }
        if self.flows.get(flow).is_some_and(|state| packet.number == state.packets) {
            self.flows.close(flow);
            net.finished(flow);
            net.timer(net.now(), FINISHED, flow);
        }
    }

    /// The receiver takes a data packet in and acknowledges it.
    fn data(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        let mut is_last = false;
        if state.held.take(packet.number) {
            net.new_data(state.held.count());
            is_last = state.held.count() == state.packets;
        }
        let flow = net.flow(packet.flow);
        let ack = Packet {
            dst: flow.src,
            number: state.held.until(),
            extra: state.held.beyond(),
            priority: 0,
            bytes: net.frame.header,
            kind: Kind::Ack,
            ..*packet
        };
        if is_last {
            net.received(packet.flow);
        }
        net.send(flow.dst, ack);
    }
}

impl Ends for Window {
    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let packets = net.frame.packets(net.flow(flow).bytes);
        let window = self.initial;
        self.flows.open(flow, |old| State {
            packets,
            window,
            threshold: 100_000,
            held: old.map(|old| old.held).unwrap_or_default().reset(packets),
            ..State::default()
        });
        if self.kind != WindowKind::Tcp {
            self.send_pending(net, flow);
            return;
        }
        net.send(
            net.flow(flow).src,
            Packet::control(net.frame.header, flow, Kind::Request, net.flow(flow).dst),
        );
    }

    fn receive(&mut self, net: &mut Net<'_>, _: u32, packet: Packet) {
        match packet.kind {
            Kind::Data => self.data(net, &packet),
            Kind::Ack => self.ack(net, &packet),
            Kind::Request => {
                let flow = net.flow(packet.flow);
                net.send(
                    flow.dst,
                    Packet::control(net.frame.header, packet.flow, Kind::Grant, flow.src),
                );
            }
            Kind::Grant => self.send_pending(net, packet.flow),
            // Its switches do not trim, and readers' requests are not its own.
            Kind::Header | Kind::Nack | Kind::Returned | Kind::Read => {}
        }
    }

    fn timer(&mut self, net: &mut Net<'_>, timer: Timer) {
        let flow = timer.of;
        if timer.kind == FINISHED {
            return;
        }
        let Some(state) = self.flows.get_mut(flow) else { return };
        if state.due != Some(net.now()) {
            return;
        }
        if self.kind == WindowKind::PFabric {
            state.threshold = (state.window / 2).max(2);
        }
        state.next = state.unacked;
        state.window = 1;
        let sent = net.records[flow as usize].sent;
        self.send_pending(net, flow);
        let Some(state) = self.flows.get_mut(flow) else { return };
        arm(state, net, flow, self.timeout);
        state.silent = if net.records[flow as usize].sent == sent { state.silent + 1 } else { 0 };
        if state.silent == SILENT_MAX {
            net.stranded(flow, ACK_LOST);
            self.flows.close(flow);
        }
    }

    fn silence(&mut self, net: &mut Net<'_>) {
        for flow in net.flow_indices() {
            if self.flows.get(flow).is_some() {
                net.stranded(flow, SYN_LOST);
            }
        }
    }
}

/// Data packet `number` of `flow`.
fn data(net: &Net<'_>, flow: u32, number: u32, priority: u32) -> Packet {
    Packet {
        number,
        priority,
        bytes: net.frame.full(),
        ..Packet::control(net.frame.header, flow, Kind::Data, net.flow(flow).dst)
    }
}

/// For pFabric the packets left, as far as the sender knows; for the others 1.
fn priority(kind: WindowKind, state: &State) -> u32 {
    match kind {
        WindowKind::PFabric => state.packets.wrapping_sub(state.unacked).wrapping_sub(state.sacked),
        WindowKind::Tcp | WindowKind::Dctcp => 1,
    }
}

/// Sets the timeout of a flow.
fn arm(state: &mut State, net: &mut Net<'_>, flow: u32, timeout: Duration) {
    let due = net.now() + timeout;
    state.due = Some(due);
    net.timer(due, TIMEOUT, flow);
}

/// Grows the window per ACK up to the threshold, then by one per window.
fn grow_past_threshold(state: &mut State, most: u32) {
    if state.window < state.threshold {
        state.window += 1;
    } else {
        state.acks += 1;
        if state.acks >= state.window {
            state.acks = 0;
            state.window += 1;
        }
    }
    state.window = state.window.min(most);
}

/// Shrinks the window by the fraction of marked ACKs (DCTCP).
fn shrink_by_marks(state: &mut State, is_marked: bool) {
    state.marks = state.marks << 1 | u32::from(is_marked);
    let latest = (1 << state.window) - 1;
    let fraction = if state.marks & latest == latest { 1.0 } else { 0.0 };
    state.alpha = (1.0 - DCTCP_GAIN) * state.alpha + DCTCP_GAIN * fraction;
    let window = f64::from(state.window) * (1.0 - state.alpha / 2.0) + 0.5;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the window only shrinks, from 2, and never below half"
    )]
    let window = window as u32;
    state.window = window;
}
