//! Queues of ports.
//!
//! A queue decides the order of packets and which are dropped. The port knows the limit in bytes,
//! and asks for victims until the rest fits. The packet on the wire is not in the queue.

use std::collections::VecDeque;

use crate::packet::{Kind, Packet, Packets};

/// How packets wait at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// In order of arrival; what does not fit is dropped.
    DropTail,
    /// As `DropTail`; a packet is marked if at least so many packets are queued with it (DCTCP).
    Mark {
        /// The threshold K.
        packets: u32,
    },
    /// pFabric: the flow of the most urgent packet sends its earliest one; the least urgent packet
    /// is dropped, of several the latest.
    Urgency,
    /// Levels of priority, each in order of arrival; what does not fit is dropped.
    Levels,
    /// NDP: so many data packets are queued, and one more is trimmed to its header. Headers are
    /// queued apart and sent first, up to ten in a row; one that does not fit returns to its
    /// sender.
    Trim {
        /// The most data packets that are queued.
        packets: u32,
    },
    /// Headers first, then a packet of each flow in turn; what does not fit is dropped.
    Turns,
}

/// Headers that are sent in a row while data waits (Handley et al. 2017, §3).
const HEADERS_IN_A_ROW: u32 = 10;

/// Levels of `Discipline::Levels`.
pub(crate) const LEVELS: usize = 8;

#[derive(Debug)]
pub(crate) enum Queue {
    Fifo(VecDeque<u32>),
    Urgency(Vec<Entry>),
    Levels(Box<[VecDeque<u32>; LEVELS]>),
    Trim(Box<Trim>),
    Turns(Box<Turns>),
}

#[derive(Debug, Default)]
pub(crate) struct Turns {
    headers: VecDeque<u32>,
    /// Flows with queued packets, the next one to send first.
    flows: VecDeque<(u32, VecDeque<u32>)>,
    count: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Trim {
    headers: VecDeque<u32>,
    data: VecDeque<u32>,
    /// Headers sent since data was last sent or none was queued.
    in_a_row: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    priority: u32,
    flow: u32,
    packet: u32,
}

impl Queue {
    pub(crate) fn new(discipline: Discipline) -> Self {
        match discipline {
            Discipline::DropTail | Discipline::Mark { .. } => Self::Fifo(VecDeque::new()),
            Discipline::Urgency => Self::Urgency(Vec::new()),
            Discipline::Levels => Self::Levels(Box::default()),
            Discipline::Trim { .. } => Self::Trim(Box::default()),
            Discipline::Turns => Self::Turns(Box::default()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fifo(fifo) => fifo.len(),
            Self::Urgency(entries) => entries.len(),
            Self::Levels(levels) => levels.iter().map(VecDeque::len).sum(),
            Self::Trim(trim) => trim.headers.len() + trim.data.len(),
            Self::Turns(turns) => turns.headers.len() + turns.count,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Fifo(fifo) => fifo.is_empty(),
            Self::Urgency(entries) => entries.is_empty(),
            Self::Levels(levels) => levels.iter().all(VecDeque::is_empty),
            Self::Trim(trim) => trim.headers.is_empty() && trim.data.is_empty(),
            Self::Turns(turns) => turns.headers.is_empty() && turns.flows.is_empty(),
        }
    }

    /// Queues the packet at `index`.
    pub(crate) fn push(&mut self, index: u32, packets: &Packets) {
        let packet = packets.get(index);
        match self {
            Self::Fifo(fifo) => fifo.push_back(index),
            Self::Urgency(entries) => {
                entries.push(Entry { priority: packet.priority, flow: packet.flow, packet: index });
            }
            Self::Levels(levels) => {
                levels[(packet.priority as usize).min(LEVELS - 1)].push_back(index);
            }
            Self::Trim(trim) => match packet.kind {
                Kind::Data => trim.data.push_back(index),
                _ => trim.headers.push_back(index),
            },
            Self::Turns(turns) => match packet.kind {
                Kind::Data => turns.push(packet.flow, index),
                _ => turns.headers.push_back(index),
            },
        }
    }

    /// Removes and returns the packet to send next; `None` if the queue is empty.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        match self {
            Self::Fifo(fifo) => fifo.pop_front(),
            Self::Urgency(entries) => pop_urgent(entries),
            Self::Levels(levels) => levels.iter_mut().find_map(VecDeque::pop_front),
            Self::Trim(trim) => trim.pop(),
            Self::Turns(turns) => turns.headers.pop_front().or_else(|| turns.pop()),
        }
    }

    /// How many data packets are queued; 0 for all disciplines but `Trim`.
    #[inline]
    pub(crate) fn data_len(&self) -> usize {
        match self {
            Self::Trim(trim) => trim.data.len(),
            _ => 0,
        }
    }

    /// Removes the last data packet of a `Trim` queue; `None` for other disciplines.
    pub(crate) fn pop_data(&mut self) -> Option<u32> {
        match self {
            Self::Trim(trim) => trim.data.pop_back(),
            _ => None,
        }
    }

    /// Removes the packet to drop when the buffer is exceeded: for most queues the one that came
    /// last.
    pub(crate) fn victim(&mut self, latest: u32, packets: &Packets) -> Option<u32> {
        match self {
            Self::Fifo(fifo) => fifo.pop_back(),
            Self::Urgency(entries) => {
                let mut worst = 0;
                for (index, entry) in entries.iter().enumerate() {
                    if entry.priority >= entries[worst].priority {
                        worst = index;
                    }
                }
                (worst < entries.len()).then(|| entries.remove(worst).packet)
            }
            Self::Levels(levels) => {
                let level = packets.get(latest).priority as usize;
                levels[level.min(LEVELS - 1)].pop_back()
            }
            Self::Trim(trim) => trim.data.pop_back().or_else(|| trim.headers.pop_back()),
            Self::Turns(turns) => turns.take(packets.get(latest)),
        }
    }
}

impl Turns {
    /// Queues a data packet of `flow`.
    fn push(&mut self, flow: u32, index: u32) {
        self.count += 1;
        match self.flows.iter_mut().find(|(other, _)| *other == flow) {
            Some((_, waiting)) => waiting.push_back(index),
            None => self.flows.push_back((flow, VecDeque::from([index]))),
        }
    }

    /// Removes the next packet of the flow whose turn it is.
    fn pop(&mut self) -> Option<u32> {
        let (flow, mut waiting) = self.flows.pop_front()?;
        let index = waiting.pop_front()?;
        self.count -= 1;
        if !waiting.is_empty() {
            self.flows.push_back((flow, waiting));
        }
        Some(index)
    }

    /// Removes the packet that came last, which is `packet`.
    fn take(&mut self, packet: &Packet) -> Option<u32> {
        if packet.kind != Kind::Data {
            return self.headers.pop_back();
        }
        let place = self.flows.iter().position(|(flow, _)| *flow == packet.flow)?;
        let index = self.flows[place].1.pop_back()?;
        self.count -= 1;
        if self.flows[place].1.is_empty() {
            self.flows.remove(place);
        }
        Some(index)
    }
}

impl Trim {
    /// Removes the packet to send next: headers first, up to ten in a row.
    fn pop(&mut self) -> Option<u32> {
        if self.data.is_empty() || (self.in_a_row < HEADERS_IN_A_ROW && !self.headers.is_empty()) {
            self.in_a_row = if self.data.is_empty() { 0 } else { self.in_a_row + 1 };
            return self.headers.pop_front();
        }
        self.in_a_row = 0;
        self.data.pop_front()
    }
}

/// Removes the earliest packet of the flow whose packet is the most urgent.
#[inline]
fn pop_urgent(entries: &mut Vec<Entry>) -> Option<u32> {
    if entries.len() <= 1 {
        return entries.pop().map(|entry| entry.packet);
    }
    let (mut best, rest) = entries.split_first()?;
    for entry in rest {
        if entry.priority < best.priority {
            best = entry;
        }
    }
    let flow = best.flow;
    let place = entries.iter().position(|entry| entry.flow == flow)?;
    Some(entries.remove(place).packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against flows in the order of their turns, each with its packets.
    #[test]
    fn flows_take_turns_whatever_comes_and_is_dropped() {
        let mut packets = Packets::default();
        let mut queue = Queue::new(Discipline::Turns);
        let mut model: Vec<(u32, Vec<u32>)> = Vec::new();
        let (mut draw, mut most) = (1_u32, 0);
        for _ in 0..20_000 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (what, flow) = ((draw >> 8) % 9, (draw >> 16) % 7);
            if what < 5 {
                let index = packets.put(Packet::control(1540, flow, Kind::Data, 0));
                queue.push(index, &packets);
                match model.iter_mut().find(|(other, _)| *other == flow) {
                    Some((_, waiting)) => waiting.push(index),
                    None => model.push((flow, vec![index])),
                }
                // What does not fit is what came last.
                if what == 0 {
                    assert_eq!(queue.victim(index, &packets), Some(index));
                    model.iter_mut().for_each(|(_, waiting)| waiting.retain(|one| *one != index));
                    model.retain(|(_, waiting)| !waiting.is_empty());
                    packets.take(index);
                }
            } else {
                let next = (!model.is_empty()).then(|| model.remove(0));
                let wanted = next.map(|(flow, mut waiting)| {
                    let index = waiting.remove(0);
                    if !waiting.is_empty() {
                        model.push((flow, waiting));
                    }
                    index
                });
                assert_eq!(queue.pop(), wanted);
                wanted.map(|index| packets.take(index));
            }
            let waiting: usize = model.iter().map(|(_, waiting)| waiting.len()).sum();
            assert_eq!((queue.len(), queue.is_empty()), (waiting, waiting == 0));
            most = most.max(waiting);
        }
        assert!(most > 20, "packets had to wait");
    }
}
