//! The network itself: ports send packets over links to switches, which queue them at ports.
//!
//! Invariants:
//! 1. A packet is in one place: in a queue, on a link, or with a transport. Bytes are conserved:
//!    sent = delivered + dropped + queued + on links, at every event of a debug build.
//! 2. Handlers add events; none calls another. A port that becomes able to send at an instant
//!    does so when all packets of that instant have arrived.
//! 3. A link carries one packet at a time. With cut-through a switch hands a packet on when its
//!    header is in (that a faster link may then run dry is left out); the last hop waits for all.

mod call;
mod ends;
mod look;
mod looking;
mod published;
mod sample;
mod series;
mod trim;

use measure::{Duration, Instant};

use crate::error::SimError;
use crate::event::{Events, Order, Timer, What};
use crate::fabric::{Balance, Fabric, PortStats};
use crate::flow::{Flow, FlowRecord, Frame};
use crate::moment::seconds;
use crate::packet::{ANY_WAY, Kind, Packet, Packets};
use crate::port::Port;
use crate::queue::Discipline;
use crate::stale::StaleMarks;
use crate::topology::{Node, Topology};

pub(crate) use look::Looker;
pub(crate) use sample::Sampler;
pub use sample::Samples;
pub(crate) use series::Keeper;
pub use series::{PortInterval, PortSeries};

/// Bytes by where they are; only debug builds check the sum.
#[derive(Debug, Default)]
struct Ledger {
    sent: u64,
    delivered: u64,
    dropped: u64,
    queued: u64,
    flying: u64,
}

/// Packets that tests lose on purpose.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Packets sent.
    pub(crate) sent: u64,
    /// The numbers of those that are lost, by order of sending.
    pub(crate) numbers: Vec<u64>,
}

/// The network, its flows and what became of them, as transports see them.
#[derive(Debug)]
pub(crate) struct Net<'a> {
    pub(crate) flows: &'a [Flow],
    pub(crate) records: Vec<FlowRecord>,
    pub(crate) frame: Frame,
    topology: &'a Topology,
    balance: Balance,
    now: Instant,
    /// `now` as `Order::Heap` sums it up, in seconds.
    now_sum: f64,
    pub(crate) events: Events,
    packets: Packets,
    ports: Vec<Port>,
    /// Ports to be served before the clock moves on.
    called: Vec<u32>,
    /// Marks of freed packets, if new packets inherit them.
    stale_marks: Option<StaleMarks>,
    order: Order,
    ledger: Ledger,
    /// Flows that have finished or are stranded.
    pub(crate) ended_count: u32,
    /// The run waits for flows that start in this time; for all if `None`.
    awaited: Option<[Instant; 2]>,
    /// How many awaited flows have not ended.
    pub(crate) left_count: u32,
    pub(crate) delivered_packets: u64,
    /// `delivered_packets` without duplicates.
    pub(crate) received_packets: u64,
    /// When a flow last progressed.
    pub(crate) progress_at: Instant,
    looker: Option<Box<Looker>>,
    /// Whether `send` does more than queue a packet.
    is_special: bool,
    #[cfg(test)]
    pub(crate) losses: Option<std::rc::Rc<std::cell::RefCell<Losses>>>,
}

impl<'a> Net<'a> {
    pub(crate) fn new(
        fabric: &'a Fabric,
        flows: &'a [Flow],
        order: Order,
    ) -> Result<Self, SimError> {
        crate::flow::check(flows, fabric.topology.host_count(), fabric.frame)?;
        let full = u64::from(fabric.frame.full());
        for buffer in [fabric.host_port.buffer, fabric.switch_port.buffer].into_iter().flatten() {
            if buffer.get() < full {
                return Err(SimError::Buffer { bytes: buffer.get(), packet: full });
            }
        }
        fabric.check_requests(flows, order == Order::Heap)?;
        let mut ports: Vec<Port> =
            fabric.topology.links().iter().map(|link| Port::new(fabric, link)).collect();
        for (index, port) in (0_u32..).zip(&mut ports) {
            let phase = fabric.spray_phase.get(index as usize).copied().unwrap_or(index);
            port.sprayed = [phase; 2];
        }
        Ok(Self {
            flows,
            records: vec![FlowRecord::default(); flows.len()],
            frame: fabric.frame,
            topology: &fabric.topology,
            balance: fabric.balance,
            now: Instant::ZERO,
            now_sum: seconds(EPOCH),
            events: Events::new(order),
            order,
            packets: Packets::default(),
            ports,
            called: Vec::new(),
            stale_marks: fabric.has_stale_marks.then(StaleMarks::default),
            ledger: Ledger::default(),
            ended_count: 0,
            awaited: None,
            left_count: u32::try_from(flows.len()).unwrap_or(u32::MAX),
            delivered_packets: 0,
            received_packets: 0,
            progress_at: Instant::ZERO,
            looker: None,
            is_special: order == Order::Heap,
            #[cfg(test)]
            losses: None,
        })
    }

    #[inline]
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// Sets the clock to the time of the next event.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Instant) {
        self.now = now;
        if self.order == Order::Heap {
            self.now_sum = self.events.peek_sum();
        }
    }

    /// The order of simultaneous events.
    pub(crate) const fn order(&self) -> Order {
        self.order
    }

    pub(crate) fn flow(&self, flow: u32) -> &'a Flow {
        &self.flows[flow as usize]
    }

    pub(crate) fn flow_indices(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.flows.len()).unwrap_or(u32::MAX)
    }

    /// Adds the event that starts `flow`; nothing for `None`.
    pub(crate) fn start_next(&mut self, flow: Option<&u32>) {
        if let Some(&flow) = flow {
            let start = self.flow(flow).start;
            if self.order == Order::Heap {
                self.events.add_published(
                    start,
                    seconds(EPOCH + (start - Instant::ZERO)),
                    What::Start,
                );
            } else {
                self.events.add(start, What::Start);
            }
        }
    }

    /// Sends a packet from `host`. Data is counted as sent by its flow.
    pub(crate) fn send(&mut self, host: u32, mut packet: Packet) {
        if packet.kind == Kind::Data {
            self.records[packet.flow as usize].sent += 1;
            if let Some(marks) = &mut self.stale_marks {
                packet.is_marked = marks.take();
            }
        }
        #[cfg(test)]
        if let Some(losses) = &self.losses {
            let mut losses = losses.borrow_mut();
            losses.sent += 1;
            if losses.numbers.contains(&(losses.sent - 1)) {
                return;
            }
        }
        self.ledger.sent += u64::from(packet.bytes);
        let index = self.packets.put(packet);
        if self.is_special {
            self.send_special(host, index);
        } else {
            self.enqueue(host, index);
        }
    }

    /// Sets a timer for flow or host `of`; `kind` orders timers of one instant.
    pub(crate) fn timer(&mut self, at: Instant, kind: u8, of: u32) {
        self.add(
            at,
            self.now_sum + seconds(at - self.now),
            What::Timer(Timer { kind, tag: 0, of }),
        );
    }

    /// Adds an event; under `Order::Heap` its time is `sum` seconds.
    fn add(&mut self, at: Instant, sum: f64, what: What) {
        match self.order {
            Order::Heap => self.events.add_published(at, sum, what),
            Order::Sequence => self.events.add(at, what),
        }
    }

    /// How long `bytes` occupy the link of `host`.
    pub(crate) fn host_time(&self, host: u32, bytes: u32) -> Duration {
        self.ports[host as usize].time(bytes)
    }

    /// When the link of `host` will have sent what is queued for it.
    pub(crate) fn host_clear_at(&self, host: u32) -> Instant {
        let port = &self.ports[host as usize];
        let queued = u32::try_from(port.queued_bytes).unwrap_or(u32::MAX);
        port.free_at.max(self.now) + port.time(queued)
    }

    /// How many ways lead from `src` to `dst`.
    pub(crate) fn way_count(&self, src: u32, dst: u32) -> u16 {
        self.topology.way_count(src, dst)
    }

    /// How long a full packet occupies each link.
    pub(crate) fn packet_times(&self) -> impl Iterator<Item = Duration> {
        let full = self.frame.full();
        self.ports.iter().map(move |port| port.time(full))
    }

    /// Writes the links of a way from `src` to `dst` into `hops`, each with the time after which a
    /// full packet reaches it.
    pub(crate) fn route(&self, src: u32, dst: u32, way: u16, hops: &mut Vec<(u32, Duration)>) {
        hops.clear();
        let (mut link, mut after, mut rest) = (src, Duration::ZERO, u32::from(way));
        loop {
            hops.push((link, after));
            let port = &self.ports[link as usize];
            let Node::Switch(switch) = port.to else { return };
            after += port.ahead(port.time(self.frame.full())) + port.delay;
            let group = self.topology.ways(switch, dst);
            link = self.topology.port(group, rest % group.count);
            rest /= group.count;
        }
    }

    /// Notes progress: a receiver now has `count` different packets of a flow.
    pub(crate) fn new_data(&mut self, count: u32) {
        self.progress_at = self.now;
        self.received_packets += 1;
        if let Some(marks) = &mut self.stale_marks {
            marks.grown(count);
        }
    }

    /// Removes `packet`, which has reached the host at the far end of `port`'s link. Returns the
    /// host and the packet.
    #[inline]
    pub(crate) fn arrive(&mut self, port: u32, packet: u32) -> (u32, Packet) {
        let packet = self.packets.take(packet);
        let bytes = u64::from(packet.bytes);
        self.ledger.flying -= bytes;
        self.ledger.delivered += bytes;
        self.delivered_packets += u64::from(packet.kind == Kind::Data);
        self.free_mark(&packet);
        let Node::Host(host) = self.ports[port as usize].to else {
            unreachable!("only links to hosts have arrivals")
        };
        (host, packet)
    }

    /// Queues `packet`, which has reached the switch at the far end of `port`'s link, at that
    /// switch's next port.
    #[inline]
    pub(crate) fn pass(&mut self, port: u32, packet: u32) {
        let from = &mut self.ports[port as usize];
        let Node::Switch(switch) = from.to else {
            unreachable!("only links to switches are passed")
        };
        let held = self.packets.get(packet);
        self.ledger.flying -= u64::from(held.bytes);
        let group = self.topology.ways(switch, held.dst);
        let choice = if group.count == 1 {
            0
        } else if held.way != ANY_WAY {
            let count = u16::try_from(group.count).unwrap_or(u16::MAX);
            let way = held.way;
            self.packets.get_mut(packet).way = way / count;
            u32::from(way % count)
        } else if self.balance == Balance::Spray && self.order == Order::Heap {
            let turn = from.sprayed[0];
            from.sprayed[0] = turn.wrapping_add(1);
            turn % group.count
        } else if self.balance == Balance::Spray {
            let turns = &mut from.sprayed[usize::from(held.kind == Kind::Data)];
            let turn = *turns % WAYS;
            *turns = turn + 1;
            let rest = u16::try_from(turn / group.count).unwrap_or(ANY_WAY);
            self.packets.get_mut(packet).way = rest;
            turn % group.count
        } else {
            hash(held.flow, held.dst, switch) % group.count
        };
        let out = self.topology.port(group, choice);
        self.enqueue(out, packet);
    }

    /// Sends the next queued packet of a port, if there is one.
    #[inline]
    pub(crate) fn serve(&mut self, index: u32) {
        let port = &mut self.ports[index as usize];
        port.is_called = false;
        let Some(packet) = port.queue.pop() else { return };
        let bytes = self.packets.get(packet).bytes;
        port.queued_bytes -= u64::from(bytes);
        self.ledger.queued -= u64::from(bytes);
        if self.order == Order::Heap {
            self.transmit_published(index, packet);
            return;
        }
        let is_waiting = port.is_awaited || !port.queue.is_empty();
        self.transmit(index, packet, self.now);
        if is_waiting {
            let port = &mut self.ports[index as usize];
            port.is_called = true;
            self.events.add(port.free_at, What::Serve { port: index });
        }
    }

    /// Puts a packet on the link of a port at `start`, from when the link is free.
    #[inline]
    fn transmit(&mut self, index: u32, packet: u32, start: Instant) {
        let bytes = self.packets.get(packet).bytes;
        self.ledger.flying += u64::from(bytes);
        let port = &mut self.ports[index as usize];
        port.stats.sent_packets += 1;
        port.stats.sent_bytes += u64::from(bytes);
        let time = port.time(bytes);
        port.free_at = start + time;
        let there = start + port.ahead(time) + port.delay;
        self.events.add(there, arrival(port, index, packet));
    }

    /// Queues a packet at a port, or trims it, or sends it at once if it is a header that nothing
    /// can overtake.
    fn enqueue(&mut self, index: u32, packet: u32) {
        let port = &mut self.ports[index as usize];
        let held = self.packets.get(packet);
        // Nothing overtakes a header that is alone, so what happens when the link is free is
        // known now and needs no event. It does not count as queued meanwhile.
        let is_alone = !port.is_called && held.kind != Kind::Data;
        if is_alone && self.order == Order::Sequence {
            let start = port.free_at.max(self.now);
            self.transmit(index, packet, start);
            return;
        }
        if let Discipline::Trim { packets } = port.discipline
            && !self.has_room(index, packet, packets)
        {
            self.trim(index, packet, packets);
            return;
        }
        self.admit(index, packet);
    }

    /// Queues a packet at a port, marks it if its discipline says so, and drops what exceeds the
    /// buffer.
    #[inline]
    fn admit(&mut self, index: u32, packet: u32) {
        let port = &mut self.ports[index as usize];
        let bytes = u64::from(self.packets.get(packet).bytes);
        port.queue.push(packet, &self.packets);
        port.queued_bytes += bytes;
        self.ledger.queued += bytes;
        if let Discipline::Mark { packets } = port.discipline
            && port.queue.len() >= packets as usize
        {
            let packet = self.packets.get_mut(packet);
            packet.is_marked |= packet.kind == Kind::Data;
        }
        if port.queued_bytes > port.buffer {
            self.drop_excess(index, packet);
        }
        let port = &mut self.ports[index as usize];
        port.stats.queued_bytes_max = port.stats.queued_bytes_max.max(port.queued_bytes);
        self.call(index);
    }

    /// Drops packets of a port until the queue fits its buffer. `latest` came last.
    #[cold]
    #[inline(never)]
    fn drop_excess(&mut self, index: u32, latest: u32) {
        while self.ports[index as usize].queued_bytes > self.ports[index as usize].buffer {
            let port = &mut self.ports[index as usize];
            let Some(victim) = port.queue.victim(latest, &self.packets) else { return };
            let bytes = u64::from(self.packets.get(victim).bytes);
            port.queued_bytes -= bytes;
            self.ledger.queued -= bytes;
            self.discard(index, victim);
        }
    }

    /// Drops a packet that is in no queue.
    fn discard(&mut self, index: u32, packet: u32) {
        self.look_at_drop(index, packet);
        let victim = self.packets.take(packet);
        self.ports[index as usize].stats.dropped_packets += 1;
        self.free_mark(&victim);
        self.ledger.dropped += u64::from(victim.bytes);
        let record = &mut self.records[victim.flow as usize];
        match victim.kind {
            Kind::Data => record.data_drops += 1,
            _ => record.control_drops += 1,
        }
    }

    /// Checks, in a debug build, that bytes are conserved.
    pub(crate) fn check(&self) {
        let Ledger { sent, delivered, dropped, queued, flying } = self.ledger;
        debug_assert_eq!(sent, delivered + dropped + queued + flying, "bytes are conserved");
    }

    /// The counters of all ports, by link.
    pub(crate) fn port_stats(&self) -> Vec<PortStats> {
        self.ports.iter().map(|port| port.stats).collect()
    }
}

/// Sprayed packets of a link before its round robin starts again; a power of two, as most choices
/// are.
const WAYS: u32 = 1 << 15;
const _: () = assert!(WAYS <= ANY_WAY as u32, "a sprayed packet has a way");

/// Where the floating-point clock of `Order::Heap` begins.
const EPOCH: Duration = Duration::from_ms(1_000);

/// The event at the end of the link of `port`: `packet` reaches a host or a switch.
const fn arrival(port: &Port, index: u32, packet: u32) -> What {
    match port.to {
        Node::Host(_) => What::Arrive { port: index, packet },
        Node::Switch(_) => What::Pass { port: index, packet },
    }
}

/// Spreads flows over ways, differently for each direction and each switch.
fn hash(flow: u32, dst: u32, switch: u32) -> u32 {
    let mut bits = u64::from(flow) << 32 | u64::from(dst);
    bits ^= u64::from(switch).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let [a, b, c, d, ..] = (bits ^ (bits >> 31)).to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}
