//! pFabric: switches send and drop by what flows have left, and hosts hardly control their rate.
//!
//! As in its paper (Alizadeh et al., SIGCOMM 2013, §4): flows start with a window of the
//! bandwidth-delay product, packets carry what their flow has left, every packet is acknowledged
//! by itself, a small fixed timeout is the only sign of loss and leads back to slow start, and
//! after five timeouts in a row the sender probes with headers until one is answered.
//!
//! A host is ordered as a switch's queue, but what waits there is flows and not packets: when its
//! link is free it sends a packet of the flow that had least left when it came in line. So a
//! packet that has not left is neither dropped nor takes part in a timeout.
//!
//! Alone a flow takes its ideal time, if the window covers the round trip.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use measure::{Duration, Instant};

use crate::ends::{Ends, acknowledge};
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

/// Settings of pFabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PFabricConfig {
    /// Packets under way at the start of a flow.
    pub window: u32,
    /// How long a sender waits for an ACK of something new.
    pub timeout: Duration,
    /// Timeouts in a row after which a sender probes.
    pub probe_after: u32,
}

impl PFabricConfig {
    /// Timeouts in a row after which a sender probes (§4.2).
    const PROBE_AFTER: u32 = 5;

    /// The settings of Gao et al. §4, with a window that covers the round trip of `fabric`.
    #[must_use]
    pub fn for_fabric(fabric: &Fabric) -> Self {
        let window = fabric.round_trip_packets().max(WINDOW_MIN);
        Self { window, timeout: TIMEOUT_OF_GAO, probe_after: Self::PROBE_AFTER }
    }
}

impl Settings for PFabricConfig {
    type Ends = PFabric;

    fn slots(&mut self) -> Vec<(Parameter, Slot<'_>)> {
        let Self { window, timeout, probe_after } = self;
        vec![
            (WINDOW, Slot::Count(window)),
            (TIMEOUT, Slot::Time(timeout)),
            (PROBES, Slot::Count(probe_after)),
        ]
    }

    fn ends(self, fabric: &Fabric, flows: usize) -> Result<PFabric, SimError> {
        Ok(PFabric::new(self, flows, fabric.topology.host_count()))
    }
}

impl Definition for PFabric {
    type Settings = PFabricConfig;

    const DESCRIPTION: Description = Description {
        name: "pfabric",
        summary: "switches send and drop by what flows have left; hosts start at line rate",
        paper: "Alizadeh et al., SIGCOMM 2013",
        omits: "limits on windows, as there",
    };

    fn fabric(topology: Topology, switching: Switching) -> Result<Fabric, SimError> {
        Ok(Fabric::new(topology, switching, Discipline::Urgency))
    }

    fn settings(fabric: &Fabric) -> PFabricConfig {
        PFabricConfig::for_fabric(fabric)
    }
}

const PROBES: Parameter = Parameter::new(
    "probe-after",
    "Timeouts in a row after which a sender probes with headers",
    "Alizadeh et al. 2013, §4.2",
)
.counting("TIMEOUTS");
/// The window and the timeout of Gao et al. §4.
const WINDOW_MIN: u32 = 12;
const TIMEOUT_OF_GAO: Duration = Duration::from_us(45);
/// The least window after a timeout at which growth is still exponential.
const THRESHOLD_MIN: u32 = 2;

#[derive(Debug, Default)]
struct State {
    packets: u32,
    // The sender's part.
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
    /// When the timeout is due, while packets are under way.
    due: Instant,
    is_armed: bool,
    /// Whether the flow is in line at its host.
    is_waiting: bool,
    // The receiver's part.
    held: Held,
}

/// All flows.
#[derive(Debug)]
pub(crate) struct PFabric {
    config: PFabricConfig,
    flows: Slots<State>,
    /// By host: flows in line, each with the packets that it had left when it got in line.
    lines: Vec<BinaryHeap<Reverse<(u32, u32)>>>,
}

impl PFabric {
    fn new(config: PFabricConfig, flows: usize, hosts: u32) -> Self {
        Self { config, flows: Slots::new(flows), lines: vec![BinaryHeap::new(); hosts as usize] }
    }

    /// Puts `flow` in line at its host, if it may send.
    fn line_up(&mut self, net: &mut Net<'_>, flow: u32) {
        let Some(state) = self.flows.get_mut(flow) else { return };
        if !state.is_waiting && state.may_send() {
            state.is_waiting = true;
            let src = net.flow(flow).src;
            self.lines[src as usize].push(Reverse((state.left(), flow)));
            net.await_link(src);
        }
    }

    /// Sends a packet of `flow`, which was first in line at `host`. Returns whether it had one.
    fn send(&mut self, net: &mut Net<'_>, host: u32, flow: u32) -> bool {
        // The flow may have ended meanwhile.
        let Some(state) = self.flows.get_mut(flow) else { return false };
        state.is_waiting = false;
        if state.is_probing(self.config.probe_after) {
            return false;
        }
        let number = state.next_to_send();
        if state.under_way == 0 || !state.is_armed {
            state.due = net.now() + self.config.timeout;
        }
        if !state.is_armed {
            state.is_armed = true;
            net.timer(state.due, 0, flow);
        }
        let Some(number) = number else { return false };
        state.under_way += 1;
        let &crate::Flow { dst, bytes, .. } = net.flow(flow);
        let data = Packet {
            number,
            priority: state.left(),
            bytes: net.frame.wire(bytes, number),
            ..Packet::control(net.frame.header, flow, Kind::Data, dst)
        };
        net.send(host, data);
        if state.may_send() {
            state.is_waiting = true;
            self.lines[host as usize].push(Reverse((state.left(), flow)));
        }
        true
    }

    /// The sender takes an ACK in.
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
            state.due = net.now() + self.config.timeout;
            grow(state);
            self.line_up(net, packet.flow);
        }
    }
}

impl State {
    /// How many packets are not acknowledged.
    fn left(&self) -> u32 {
        self.packets - self.acked.count()
    }

    /// Whether more than `after` timeouts came in a row.
    fn is_probing(&self, after: u32) -> bool {
        self.timeouts > after
    }

    /// Whether the window is open and a packet is left to send.
    fn may_send(&mut self) -> bool {
        self.under_way < self.window && (self.next < self.packets || self.has_again())
    }

    /// Whether a lost packet is left to send again.
    fn has_again(&mut self) -> bool {
        while self.again < self.again_end && self.acked.has(self.again) {
            self.again += 1;
        }
        self.again < self.again_end
    }

    /// The next packet to send, lost ones first; `None` if none is left.
    fn next_to_send(&mut self) -> Option<u32> {
        let next = if self.has_again() { &mut self.again } else { &mut self.next };
        let number = *next;
        (number < self.packets).then(|| {
            *next += 1;
            number
        })
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
        self.line_up(net, flow);
    }

    fn link_free(&mut self, net: &mut Net<'_>, host: u32) {
        while let Some(Reverse((_, flow))) = self.lines[host as usize].pop() {
            if self.send(net, host, flow) {
                break;
            }
        }
        if self.lines[host as usize].is_empty() {
            net.leave_link(host);
        }
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
                state.timeouts = 0;
                state.due = net.now() + self.config.timeout;
                self.line_up(net, packet.flow);
            }
            // Its switches do not trim, and readers' requests are not its own.
            Kind::Header | Kind::Nack | Kind::Returned | Kind::Read => {}
        }
    }

    fn timer(&mut self, net: &mut Net<'_>, timer: Timer) {
        let flow = timer.of;
        let Some(state) = self.flows.get_mut(flow) else { return };
        state.is_armed = false;
        // What is in line at its host is not lost; the timeout begins when it is sent.
        if state.is_waiting && !state.is_probing(self.config.probe_after) && state.under_way == 0 {
            return;
        }
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
        if state.is_probing(self.config.probe_after) {
            state.due = net.now() + self.config.timeout;
            state.is_armed = true;
            net.timer(state.due, 0, flow);
            let &crate::Flow { src, dst, .. } = net.flow(flow);
            net.send(src, Packet::control(net.frame.header, flow, Kind::Request, dst));
        } else {
            self.line_up(net, flow);
        }
    }
}

/// Grows the window per ACK up to the threshold, then by one per window.
fn grow(state: &mut State) {
    if state.window < state.threshold {
        state.window += 1;
    } else {
        state.acks += 1;
        if state.acks >= state.window {
            state.acks = 0;
            state.window += 1;
        }
    }
}
