//! Packets one by one: where each came, how long it waited, and what became of it.

use measure::Instant;

use crate::packet::{Kind, Packet};

/// A packet as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedPacket {
    /// Whose it is.
    pub flow: u32,
    /// What it was for.
    pub kind: Kind,
    /// Of data, which packet of its flow; of others between the ends of the transport.
    pub number: u32,
    /// The smallest goes first, where queues look at it.
    pub priority: u32,
    /// The host that sent it.
    pub src: u32,
    /// The host it was sent to.
    pub dst: u32,
    /// On the wire, header included.
    pub bytes: u32,
    /// When its host's port had it.
    pub sent: Instant,
}

/// A packet at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// By its place among the packets.
    pub packet: u32,
    /// The port, and the link it sends on.
    pub link: u32,
    /// When the packet came.
    pub came: Instant,
    /// What became of it.
    pub fate: Fate,
    /// What it was by then: data may have become a header.
    pub kind: Kind,
    /// On the wire, by then.
    pub bytes: u32,
    /// Whether it had been marked.
    pub is_marked: bool,
}

/// What becomes of a packet at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was sent.
    Crossed {
        /// When its first bit left.
        left: Instant,
        /// When the far end could act on it: with cut-through a switch, once it has the header.
        arrived: Instant,
    },
    /// It was dropped.
    Dropped {
        /// When.
        at: Instant,
    },
}

/// What became of the first packets of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// In the order in which they were sent.
    pub packets: Vec<TracedPacket>,
    /// In the order in which they ended.
    pub hops: Vec<Hop>,
    /// Packets sent when there were as many as were wanted.
    pub omitted_count: u64,
}

/// A packet that is under way.
#[derive(Debug, Clone, Copy)]
struct Under {
    /// `None` if it is not followed.
    packet: Option<u32>,
    came: Instant,
}

/// A trace that grows.
#[derive(Debug)]
pub(crate) struct Tracer {
    pub(crate) trace: Trace,
    most: u32,
    /// By place in the arena of packets.
    under: Vec<Under>,
}

impl Tracer {
    /// Follows the first `most` packets.
    pub(crate) fn new(most: u32) -> Self {
        Self { trace: Trace::default(), most, under: Vec::new() }
    }

    /// `host` sends what is at `index`.
    pub(crate) fn sent(&mut self, index: u32, held: &Packet, host: u32, now: Instant) {
        let number = u32::try_from(self.trace.packets.len()).unwrap_or(u32::MAX);
        let packet = (number < self.most).then_some(number);
        let place = index as usize;
        if place >= self.under.len() {
            self.under.resize(place + 1, Under { packet: None, came: now });
        }
        self.under[place] = Under { packet, came: now };
        if packet.is_none() {
            self.trace.omitted_count += 1;
            return;
        }
        self.trace.packets.push(TracedPacket {
            flow: held.flow,
            kind: held.kind,
            number: held.number,
            priority: held.priority,
            src: host,
            dst: held.dst,
            bytes: held.bytes,
            sent: now,
        });
    }

    /// It has crossed a link: when it left, and when it arrived.
    pub(crate) fn crossed(&mut self, index: u32, held: &Packet, link: u32, times: [Instant; 2]) {
        let [left, arrived] = times;
        self.hop(index, held, link, Fate::Crossed { left, arrived });
        self.under[index as usize].came = arrived;
    }

    /// It was dropped.
    pub(crate) fn dropped(&mut self, index: u32, held: &Packet, link: u32, at: Instant) {
        self.hop(index, held, link, Fate::Dropped { at });
    }

    fn hop(&mut self, index: u32, held: &Packet, link: u32, fate: Fate) {
        let Under { packet: Some(packet), came } = self.under[index as usize] else { return };
        let Packet { kind, bytes, is_marked, .. } = *held;
        self.trace.hops.push(Hop { packet, link, came, fate, kind, bytes, is_marked });
    }
}
