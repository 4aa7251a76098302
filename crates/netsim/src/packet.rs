//! Packets, and the arena that holds those that are under way.

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Payload of its flow.
    Data,
    /// The receiver tells which packets it has.
    Ack,
    /// The sender requests to send: SYN, RTS, a request to an arbiter.
    Request,
    /// Permission to send: SYN-ACK, token, grant, pull, an arbiter's schedule.
    Grant,
    /// A data packet whose payload a switch trimmed.
    Header,
    /// The receiver requests a packet again, after its header or because it is missing.
    Nack,
    /// A header on its way back to its sender.
    Returned,
    /// A reader requests the bytes of its flow. Not part of a transport.
    Read,
}

/// The way of packets that leave the choice to the network.
pub(crate) const ANY_WAY: u16 = u16::MAX;

/// A packet. What `number` and `extra` mean is up to its transport.
///
/// Aligned so that each is within one cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(32))]
pub(crate) struct Packet {
    pub(crate) flow: u32,
    /// The host it is sent to.
    pub(crate) dst: u32,
    pub(crate) number: u32,
    pub(crate) extra: u32,
    /// Packets that the other end still lacks, in the kinds of packet that tell it.
    pub(crate) rest: u32,
    /// For queues that look at it; the lowest is sent first.
    pub(crate) priority: u32,
    /// Bytes on the wire, header included.
    pub(crate) bytes: u32,
    /// Which of the ways to `dst`, if the sender chose: at each switch with a choice the rest of
    /// its division by the choices, and the quotient from there on.
    pub(crate) way: u16,
    pub(crate) kind: Kind,
    /// Whether congestion was experienced (ECN).
    pub(crate) is_marked: bool,
}

const _: () = assert!(size_of::<Packet>() == 32, "two packets fill a line of a cache");

impl Packet {
    /// A packet of a header alone, `header` bytes long, most urgent.
    pub(crate) const fn control(header: u32, flow: u32, kind: Kind, dst: u32) -> Self {
        Self {
            flow,
            dst,
            number: 0,
            extra: 0,
            rest: 0,
            priority: 0,
            bytes: header,
            way: ANY_WAY,
            kind,
            is_marked: false,
        }
    }
}

/// Packets under way, by index.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    arena: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    /// Stores `packet` and returns its index.
    pub(crate) fn put(&mut self, packet: Packet) -> u32 {
        if let Some(index) = self.free.pop() {
            self.arena[index as usize] = packet;
            return index;
        }
        self.arena.push(packet);
        u32::try_from(self.arena.len() - 1).expect("fewer than 2³² packets are ever under way")
    }

    /// Returns the packet at `index` and frees its place.
    pub(crate) fn take(&mut self, index: u32) -> Packet {
        self.free.push(index);
        self.arena[index as usize]
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Packet {
        &self.arena[index as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Packet {
        &mut self.arena[index as usize]
    }
}
