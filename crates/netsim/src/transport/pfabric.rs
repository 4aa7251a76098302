//! pFabric: switches send and drop by what flows have left, and hosts hardly control their rate.
//!
//! As in its paper (Alizadeh et al., SIGCOMM 2013, §4): flows start with a window of the
//! bandwidth-delay product, packets carry what their flow has left, every packet is acknowledged
//! by itself, a small fixed timeout is the only sign of loss and leads back to slow start, and
//! after five timeouts in a row the sender probes with headers until one is answered.
//!
//! The host's own queue is ordered as a switch's, and drops nothing: what does not fit there is
//! still in the sender's memory.
//!
//! Left out: the window has a limit (§4 has none), a quarter above its start.
//!
//! Alone a flow takes its ideal time, if the window covers the round trip.

use measure::{Duration, Instant};

use crate::event::Timer;
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::slots::{Held, Slots};
use crate::transport::{Ends, acknowledge};

/// Settings of pFabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PFabricConfig {
    /// Packets under way at the start of a flow.
    pub window: u32,
    /// The most packets under way.
    pub window_max: u32,
    /// How long nothing new may be acknowledged.
    pub timeout: Duration,
}

/// Timeouts in a row after which a sender probes (§4.2).
const PROBE_AFTER: u32 = 5;
/// The least window after a timeout at which growth is still exponential.
const THRESHOLD_MIN: u32 = 2;

#[derive(Debug, Default)]
struct State {
    packets: u32,
    // The sender's.
    acked: Held,
    /// The first packet that was never sent.
    next: u32,
    /// Packets before this were lost with the last timeout and are sent again, up to `next` then.
    again: u32,
    again_end: u32,
    under_way: u32,
    window: u32,
    threshold: u32,
    /// ACKs since the window last grew, past slow start.
    acks: u32,
    timeouts: u32,
    due: Instant,
    is_armed: bool,
    // The receiver's.
    held: Held,
}

/// All flows.
#[derive(Debug)]
pub(crate) struct PFabric {
    config: PFabricConfig,
    flows: Slots<State>,
}

impl PFabric {
    pub(crate) fn new(config: PFabricConfig, flows: usize) -> Self {
        Self { config, flows: Slots::new(flows) }
    }

    fn send(&mut self, net: &mut Net<'_>, flow: u32) {
        let Some(state) = self.flows.get_mut(flow) else { return };
        let &crate::Flow { src, dst, bytes, .. } = net.flow(flow);
        while state.under_way < state.window {
            let Some(number) = next_to_send(state) else { break };
            state.under_way += 1;
            let data = Packet {
                number,
                priority: state.packets - state.acked.count(),
                bytes: net.frame.wire(bytes, number),
                ..Packet::control(net, flow, Kind::Data, dst)
            };
            net.send(src, data);
        }
    }

    /// Lets the timeout begin anew.
    fn arm(&mut self, net: &mut Net<'_>, flow: u32) {
        let timeout = self.config.timeout;
        let Some(state) = self.flows.get_mut(flow) else { return };
        state.due = net.now() + timeout;
        if !state.is_armed {
            state.is_armed = true;
            net.timer(state.due, 0, flow);
        }
    }

    fn ack(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let Some(state) = self.flows.get_mut(packet.flow) else { return };
        let before = state.acked.count();
        state.acked.take(packet.number);
        while state.acked.until() < packet.extra {
            state.acked.take(state.acked.until());
        }
        let new = state.acked.count() - before;
        state.under_way = state.under_way.saturating_sub(new);
        if state.acked.count() == state.packets {
            self.flows.close(packet.flow);
            net.finished(packet.flow);
            return;
        }
        if new > 0 {
            state.timeouts = 0;
            grow(state, self.config.window_max);
            self.send(net, packet.flow);
            self.arm(net, packet.flow);
        }
    }
}

impl Ends for PFabric {
    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let packets = net.frame.packets(net.flow(flow).bytes);
        let window = self.config.window;
        self.flows.open(flow, |old| {
            let State { acked, held, .. } = old.unwrap_or_default();
            State {
                packets,
                window,
                threshold: u32::MAX,
                acked: acked.reset(packets),
                held: held.reset(packets),
                ..State::default()
            }
        });
        self.send(net, flow);
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
                net.send(flow.dst, Packet::control(net, packet.flow, Kind::Grant, flow.src));
            }
            Kind::Grant => {
                let Some(state) = self.flows.get_mut(packet.flow) else { return };
                state.timeouts = 0;
                self.send(net, packet.flow);
                self.arm(net, packet.flow);
            }
            // Its switches do not trim.
            Kind::Header | Kind::Nack | Kind::Returned => {}
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
        state.timeouts += 1;
        state.threshold = (state.window / 2).max(THRESHOLD_MIN);
        state.window = 1;
        state.under_way = 0;
        state.again = state.acked.until();
        state.again_end = state.next;
        if state.timeouts > PROBE_AFTER {
            let &crate::Flow { src, dst, .. } = net.flow(flow);
            net.send(src, Packet::control(net, flow, Kind::Request, dst));
        } else {
            self.send(net, flow);
        }
        self.arm(net, flow);
    }
}

/// What was lost first, then what was never sent.
fn next_to_send(state: &mut State) -> Option<u32> {
    while state.again < state.again_end {
        let number = state.again;
        state.again += 1;
        if !state.acked.has(number) {
            return Some(number);
        }
    }
    let number = state.next;
    (number < state.packets).then(|| {
        state.next += 1;
        number
    })
}

fn grow(state: &mut State, most: u32) {
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
