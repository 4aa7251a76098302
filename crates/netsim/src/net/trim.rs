//! Trimming (NDP): the header of a data packet that finds no room is sent on, or else back.

use super::{Net, hash};
use crate::packet::{ANY_WAY, Kind};
use crate::topology::Node;

impl Net<'_> {
    /// Whether `packet` fits in the queue of a port that holds at most `most` data packets.
    #[inline]
    pub(super) fn has_room(&self, index: u32, packet: u32, most: u32) -> bool {
        let port = &self.ports[index as usize];
        let held = self.packets.get(packet);
        let is_full = held.kind == Kind::Data && port.queue.data_len() >= most as usize;
        !is_full && port.queued_bytes + u64::from(held.bytes) <= port.buffer
    }

    /// `packet` finds no room: trims its payload, or that of the last one queued.
    ///
    /// A hash decides which of the two (by chance in Handley et al. 2017, §3), so that no flow in
    /// step with others always loses.
    #[cold]
    #[inline(never)]
    pub(super) fn trim(&mut self, index: u32, packet: u32, most: u32) {
        let held = *self.packets.get(packet);
        if held.kind != Kind::Data {
            self.turn_back(index, packet);
            return;
        }
        let port = &mut self.ports[index as usize];
        let trimmed = u32::try_from(port.stats.trimmed_packets).unwrap_or(u32::MAX);
        let mut victim = packet;
        if hash(held.flow, trimmed, index) & 1 == 0
            && let Some(last) = port.queue.pop_data()
        {
            let bytes = u64::from(self.packets.get(last).bytes);
            port.queued_bytes -= bytes;
            self.ledger.queued -= bytes;
            // A short packet may make less room than a full one needs.
            let (stays, goes) =
                if self.has_room(index, packet, most) { (packet, last) } else { (last, packet) };
            self.admit(index, stays);
            victim = goes;
        }
        self.cut(index, victim);
        match self.has_room(index, victim, most) {
            true => self.admit(index, victim),
            false => self.turn_back(index, victim),
        }
    }

    /// Cuts the payload off `packet`.
    fn cut(&mut self, index: u32, packet: u32) {
        let header = self.frame.header;
        let held = self.packets.get_mut(packet);
        self.ledger.dropped += u64::from(held.bytes - header);
        held.bytes = header;
        held.kind = Kind::Header;
        held.priority = 0;
        self.records[held.flow as usize].data_drops += 1;
        self.ports[index as usize].stats.trimmed_packets += 1;
    }

    /// Handles a packet that finds no room as a header: a trimmed one returns to its sender, once;
    /// any other is dropped.
    fn turn_back(&mut self, index: u32, packet: u32) {
        let held = self.packets.get_mut(packet);
        let Node::Switch(switch) = self.topology.links()[index as usize].from else {
            return self.discard(index, packet);
        };
        if held.kind != Kind::Header {
            return self.discard(index, packet);
        }
        held.kind = Kind::Returned;
        held.dst = self.flows[held.flow as usize].src;
        held.way = ANY_WAY;
        let group = self.topology.ways(switch, held.dst);
        let choice = hash(held.flow, held.number, switch) % group.count;
        let out = self.topology.port(group, choice);
        self.enqueue(out, packet);
    }
}
