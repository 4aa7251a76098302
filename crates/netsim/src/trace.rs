//! Traces of packets: each port on the way, the wait there, and what became of the packet.

use measure::Instant;

use crate::packet::{Kind, Packet};

/// A packet as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedPacket {
    /// Its flow.
    pub flow: u32,
    /// What it was for.
    pub kind: Kind,
    /// Of data, the number within the flow; of other packets, up to the transport.
    pub number: u32,
    /// The lowest is sent first, where queues look at it.
    pub priority: u32,
    /// The host that sent it.
    pub src: u32,
    /// The host it was sent to.
    pub dst: u32,
    /// On the wire, header included.
    pub bytes: u32,
    /// When it reached its host's port.
    pub sent: Instant,
}

/// A packet at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Index among the traced packets.
    pub packet: u32,
    /// The port, and the link it sends on.
    pub link: u32,
    /// When the packet reached the port.
    pub came: Instant,
    /// What became of it.
    pub fate: Fate,
    /// The kind at that time: data may have become a header.
    pub kind: Kind,
    /// Bytes on the wire at that time.
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

/// Traces of the first packets of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// In order of sending.
    pub packets: Vec<TracedPacket>,
    /// In the order in which they ended: with the arrival at the far end, or a drop.
    pub hops: Vec<Hop>,
    /// Packets sent after the last one traced.
    pub omitted_count: u64,
}

/// A packet that is under way.
#[derive(Debug, Clone, Copy)]
struct Under {
    /// The index in the trace; `None` if the packet is not traced.
    packet: Option<u32>,
    came: Instant,
}

/// A trace under construction.
#[derive(Debug)]
pub(crate) struct Tracer {
    pub(crate) trace: Trace,
    most: u32,
    /// By place in the arena of packets.
    under: Vec<Under>,
}

impl Tracer {
    /// A tracer of the first `most` packets.
    pub(crate) fn new(most: u32) -> Self {
        Self { trace: Trace::default(), most, under: Vec::new() }
    }

    /// Starts the trace of the packet at `index`, which `host` sends.
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

    /// Records that the packet at `index` has crossed `link`: when it left, and when it arrived.
    pub(crate) fn crossed(&mut self, index: u32, held: &Packet, link: u32, times: [Instant; 2]) {
        let [left, arrived] = times;
        self.hop(index, held, link, Fate::Crossed { left, arrived });
        self.under[index as usize].came = arrived;
    }

    /// Records that the packet at `index` was dropped at `link`'s port.
    pub(crate) fn dropped(&mut self, index: u32, held: &Packet, link: u32, at: Instant) {
        self.hop(index, held, link, Fate::Dropped { at });
    }

    /// Adds a hop, if the packet is traced.
    fn hop(&mut self, index: u32, held: &Packet, link: u32, fate: Fate) {
        let Under { packet: Some(packet), came } = self.under[index as usize] else { return };
        let Packet { kind, bytes, is_marked, .. } = *held;
        self.trace.hops.push(Hop { packet, link, came, fate, kind, bytes, is_marked });
    }
}
