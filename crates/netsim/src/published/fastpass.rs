//! Fastpass as the simulator of 2016 had it: an arbiter says who may send when.
//!
//! Not as its paper has it:
//! - An epoch is 8.5 packet times for 8 packets, and senders begin when the schedule reaches them,
//!   each for itself, so slots of different senders do not line up. One that comes late is sent
//!   as if it had come in time.
//! - No paths are chosen.
//! - After its last packet a flow waits one epoch and asks again for what is not acknowledged; with
//!   a round trip longer than an epoch it sends nearly everything twice. Packets that were
//!   scheduled for a flow that has finished are sent all the same.
//! - A lost request is not repeated: the flow never starts and the arbiter never stops.
//! - Requests from the arbiter's rack are delivered at the port of that rack's first host.

use measure::Duration;

use crate::ends::Ends;
use crate::event::Timer;
use crate::heap::Heap;
use crate::moment::Moment;
use crate::net::Net;
use crate::packet::{Kind, Packet};
use crate::slots::Held;

/// Slots, of one packet each, in an epoch.
const SLOTS: usize = 8;
/// Length of an epoch, in halves of a packet's time.
const EPOCH_HALVES: u64 = 17;
/// Priority of data; everything else has 0.
const DATA_PRIORITY: u32 = 1;
/// Hosts of a rack.
const RACK: u32 = 16;

/// Timers, in the order in which they go off at one instant.
const FINISHED: u8 = 1;
const EPOCH: u8 = 2;
const SLOT: u8 = 3;
const ASK_AGAIN: u8 = 4;

#[derive(Debug, Default)]
struct State {
    packets: u32,
    /// Packets that the sender still needs slots for.
    rest: u32,
    acked: Held,
    received: Held,
    last_sent: Option<u32>,
    is_finished: bool,
    // The arbiter's part.
    is_known: bool,
    is_over: bool,
    wanted: u32,
}

/// Which flow sends in each slot of an epoch.
#[derive(Debug, Clone, Copy, Default)]
struct Schedule {
    start: Moment,
    flows: [Option<u32>; SLOTS],
}

/// All flows, and the arbiter.
#[derive(Debug)]
pub(crate) struct Fastpass {
    flows: Vec<State>,
    /// The host that is the arbiter.
    arbiter: u32,
    /// Flows that the arbiter knows, those that need the fewest slots on top.
    known: Heap<u32>,
    /// Schedules that are under way to their senders.
    schedules: Vec<Schedule>,
    free: Vec<u32>,
}

impl Fastpass {
    pub(crate) fn new(flows: usize, arbiter: u32) -> Self {
        Self {
            flows: (0..flows).map(|_| State::default()).collect(),
            arbiter,
            known: Heap::default(),
            schedules: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Sends the arbiter how many slots `flow` needs, or that it has finished.
    fn request(&self, net: &mut Net<'_>, flow: u32) {
        let state = &self.flows[flow as usize];
        let src = net.flow(flow).src;
        let dst = if src < RACK { 0 } else { self.arbiter };
        let request = Packet {
            number: u32::from(state.is_finished),
            rest: state.rest,
            ..Packet::control(net.frame.header, flow, Kind::Request, dst)
        };
        net.send(src, request);
    }

    /// The arbiter takes in a request.
    fn hear(&mut self, packet: &Packet) {
        let state = &mut self.flows[packet.flow as usize];
        if !state.is_known {
            state.is_known = true;
            let flows = &self.flows;
            self.known.push(packet.flow, |one, other| wants_more(flows, one, other));
        }
        let state = &mut self.flows[packet.flow as usize];
        if packet.number == 1 {
            state.wanted = 0;
            state.is_over = true;
        } else {
            state.wanted = packet.rest;
        }
    }

    /// The arbiter plans an epoch: in each slot a greedy matching, flows that need least first.
    fn plan(&mut self, net: &mut Net<'_>) {
        let epoch = epoch(net, self.arbiter);
        let start = net.moment().after(epoch, 1);
        let mut schedules = vec![Schedule { start, ..Schedule::default() }; self.arbiter as usize];
        for slot in 0..SLOTS {
            self.plan_slot(net, slot, &mut schedules);
        }
        for (host, schedule) in (0_u32..).zip(schedules) {
            let Some(flow) = schedule.flows.into_iter().flatten().next() else { continue };
            let number = self.keep(schedule);
            let packet =
                Packet { number, ..Packet::control(net.frame.header, flow, Kind::Grant, host) };
            net.send(self.arbiter, packet);
        }
        net.timer(start.at, EPOCH, 0);
    }

    /// Assigns one slot: each sender and each receiver has at most one flow in it.
    fn plan_slot(&mut self, net: &Net<'_>, slot: usize, schedules: &mut [Schedule]) {
        let mut is_receiving = vec![false; schedules.len()];
        let mut tried = Vec::new();
        loop {
            let flows = &self.flows;
            let next = self.known.pop(|one, other| wants_more(flows, one, other));
            let Some(index) = next else { break };
            let state = &mut self.flows[index as usize];
            if state.is_over {
                continue;
            }
            let flow = net.flow(index);
            let place = &mut schedules[flow.src as usize].flows[slot];
            let is_taken = &mut is_receiving[flow.dst as usize];
            if state.wanted > 0 && place.is_none() && !*is_taken {
                state.wanted -= 1;
                *place = Some(index);
                *is_taken = true;
            }
            tried.push(index);
        }
        for index in tried {
            let flows = &self.flows;
            self.known.push(index, |one, other| wants_more(flows, one, other));
        }
    }

    /// Stores `schedule` and returns its index.
    fn keep(&mut self, schedule: Schedule) -> u32 {
        if let Some(place) = self.free.pop() {
            self.schedules[place as usize] = schedule;
            return place;
        }
        self.schedules.push(schedule);
        u32::try_from(self.schedules.len() - 1)
            .expect("a schedule per host and epoch is on its way")
    }

    /// A sender receives its schedule and starts it at once, or as if it had come in time.
    fn follow(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let Schedule { start, flows } = self.schedules[packet.number as usize];
        self.free.push(packet.number);
        let start = if start.is_before(net.moment()) { start } else { net.moment() };
        let epoch = epoch(net, self.arbiter);
        for (slot, flow) in (0_u32..).zip(flows) {
            if let Some(of) = flow {
                let at = start.after_part(epoch, slot, SLOTS);
                net.timer_at(at, Timer { kind: SLOT, tag: 0, of });
            }
        }
    }

    /// Sends the next packet after the last one sent that is not acknowledged.
    fn send(&mut self, net: &mut Net<'_>, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let mut number = state.last_sent.map_or(0, |last| last + 1);
        while number < state.packets && state.acked.has(number) {
            number += 1;
        }
        if number >= state.packets {
            number = if state.is_finished { state.packets } else { state.acked.until() };
        }
        state.last_sent = Some(number);
        state.rest = state.rest.saturating_sub(1);
        let is_last = state.rest == 0;
        let &crate::Flow { src, dst, .. } = net.flow(flow);
        let data = Packet {
            number,
            priority: DATA_PRIORITY,
            bytes: net.frame.full(),
            ..Packet::control(net.frame.header, flow, Kind::Data, dst)
        };
        net.send(src, data);
        if is_last {
            net.timer(net.now() + epoch(net, self.arbiter), ASK_AGAIN, flow);
        }
    }

    /// The receiver takes a data packet in and acknowledges it.
    fn data(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let flow = net.flow(packet.flow);
        let number = packet.number;
        let ack = Packet {
            number,
            ..Packet::control(net.frame.header, packet.flow, Kind::Ack, flow.src)
        };
        net.send(flow.dst, ack);
        let state = &mut self.flows[packet.flow as usize];
        if state.received.take(number) {
            net.new_data(state.received.count());
            if state.received.count() == state.packets {
                net.received(packet.flow);
            }
        }
    }

    /// The sender takes an ACK in; after the last one the flow has finished.
    fn ack(&mut self, net: &mut Net<'_>, packet: &Packet) {
        let state = &mut self.flows[packet.flow as usize];
        state.acked.take(packet.number);
        if !state.is_finished && state.acked.count() == state.packets {
            state.is_finished = true;
            (state.acked, state.received) = (Held::default(), Held::default());
            self.request(net, packet.flow);
            net.finished(packet.flow);
            net.timer(net.now(), FINISHED, packet.flow);
        }
    }
}

impl Ends for Fastpass {
    fn begin(&mut self, net: &mut Net<'_>) {
        net.timer(net.now(), EPOCH, 0);
    }

    fn start(&mut self, net: &mut Net<'_>, flow: u32) {
        let packets = net.frame.packets(net.flow(flow).bytes);
        self.flows[flow as usize] = State {
            packets,
            rest: packets,
            acked: Held::default().reset(packets),
            received: Held::default().reset(packets),
            ..State::default()
        };
        self.request(net, flow);
    }

    fn receive(&mut self, net: &mut Net<'_>, _: u32, packet: Packet) {
        match packet.kind {
            Kind::Request => self.hear(&packet),
            Kind::Grant => self.follow(net, &packet),
            Kind::Data => self.data(net, &packet),
            Kind::Ack => self.ack(net, &packet),
            // Its switches do not trim, and readers' requests are not its own.
            Kind::Header | Kind::Nack | Kind::Returned | Kind::Read => {}
        }
    }

    fn timer(&mut self, net: &mut Net<'_>, timer: Timer) {
        match timer.kind {
            EPOCH => self.plan(net),
            SLOT => self.send(net, timer.of),
            ASK_AGAIN => {
                let state = &mut self.flows[timer.of as usize];
                if !state.is_finished {
                    state.rest = state.packets - state.acked.count();
                    self.request(net, timer.of);
                }
            }
            _ => {}
        }
    }
}

/// Whether flow `one` needs more slots than `other`.
fn wants_more(flows: &[State], one: u32, other: u32) -> bool {
    flows[one as usize].wanted > flows[other as usize].wanted
}

/// The length of an epoch.
fn epoch(net: &Net<'_>, arbiter: u32) -> Duration {
    let packet_time = net.host_time(arbiter, net.frame.full());
    Duration::from_ps(packet_time.as_ps() * EPOCH_HALVES / 2)
}
