//! How long a flow takes that is alone in the network: a closed form.
//!
//! Packets leave at line rate, and packet `k` starts on a link when it has come there and the
//! packet before it has left: a sum of delays and a maximum of serialisations. Only the last
//! packet may be short, so only it and the one before need a look of their own. Where packets are
//! sprayed over several ways they share the links before and the last one; in between a short
//! packet may overtake a full one.
//!
//! Left out: ways that are together slower than the sender, where the form is a lower bound.

use measure::{Bytes, Duration};

use crate::fabric::{Balance, Fabric, Switching};
use crate::flow::{Exchange, Flow};
use crate::topology::{Link, Node};

/// Times of flows that are alone.
#[derive(Debug, Clone, Copy)]
pub struct Ideal<'a> {
    fabric: &'a Fabric,
}

impl<'a> Ideal<'a> {
    /// Times in `fabric`.
    #[must_use]
    pub const fn new(fabric: &'a Fabric) -> Self {
        Self { fabric }
    }

    /// The time from the start of `flow` until its receiver has every byte, sent at line rate; of a
    /// read, the request included.
    ///
    /// # Panics
    /// If the flow names no hosts of the fabric.
    #[must_use]
    pub fn received(&self, flow: &Flow) -> Duration {
        let asked = match flow.exchange {
            Exchange::Read => {
                let path = self.fabric.topology.path(flow.dst, flow.src);
                self.one(&path, self.fabric.requests.bytes)
            }
            Exchange::OneWay | Exchange::Write => Duration::ZERO,
        };
        asked + self.sent(flow)
    }

    /// The time from the first bit sent until the receiver has every byte.
    fn sent(&self, flow: &Flow) -> Duration {
        let path = self.fabric.topology.path(flow.src, flow.dst);
        let frame = self.fabric.frame;
        let packets = frame.packets(flow.bytes);
        let short = frame.wire(flow.bytes, packets - 1);
        if packets == 1 {
            return self.one(&path, short);
        }
        let full = frame.full();
        let spread = self.spread(&path, flow.dst);
        // The packet before the last two, the one before the last, and the last: when each comes
        // to a link.
        let (mut sum, mut slowest) = (Duration::ZERO, Duration::ZERO);
        let (mut previous, mut last) = (Duration::ZERO, Duration::ZERO);
        for (hop, link) in path.iter().enumerate() {
            let time = serialise(link, full);
            if !spread.contains(&hop) {
                slowest = slowest.max(time);
                let (before, mut free) = match packets {
                    2 => (Duration::ZERO, Duration::ZERO),
                    _ => {
                        let before = sum + slowest.saturating_mul(u64::from(packets) - 3);
                        (before, before + time)
                    }
                };
                let mut pass = |at: Duration, bytes| {
                    let start = at.max(free);
                    free = start + serialise(link, bytes);
                    start
                };
                let has_spread = !spread.is_empty() && hop >= spread.end;
                if has_spread && last < before {
                    // The last packet is so short and the ways are so slow that it overtook both,
                    // long ago.
                    previous = pass(previous, full);
                } else if last < previous {
                    last = pass(last, short);
                    previous = pass(previous, full);
                } else {
                    previous = pass(previous, full);
                    last = pass(last, short);
                }
            }
            sum += self.ahead(link, full);
            previous += self.ahead(link, full);
            last += self.ahead(link, short);
        }
        previous.max(last)
    }

    /// The time from the start of `flow` until its sender has the ACK of the last byte.
    ///
    /// # Panics
    /// If the flow names no hosts of the fabric.
    #[must_use]
    pub fn acknowledged(&self, flow: &Flow) -> Duration {
        self.received(flow) + self.control(flow.dst, flow.src)
    }

    /// The time of a packet without data from `src` to `dst`.
    ///
    /// # Panics
    /// If these are not hosts of the fabric.
    #[must_use]
    pub fn control(&self, src: u32, dst: u32) -> Duration {
        self.one(&self.fabric.topology.path(src, dst), self.fabric.frame.header)
    }

    /// The hops of a path on which consecutive packets take different links.
    fn spread(&self, path: &[Link], dst: u32) -> std::ops::Range<usize> {
        let has_choice = |link: &Link| match link.from {
            Node::Switch(switch) => self.fabric.topology.ways(switch, dst).count > 1,
            Node::Host(_) => false,
        };
        match path.iter().position(has_choice) {
            Some(first) if self.fabric.balance == Balance::Spray => first..path.len() - 1,
            _ => 0..0,
        }
    }

    /// The time of one packet of `bytes` along `path`.
    fn one(&self, path: &[Link], bytes: u32) -> Duration {
        path.iter().map(|link| self.ahead(link, bytes)).sum()
    }

    /// The time from a packet's first bit on a link until the far end may forward or use it.
    fn ahead(&self, link: &Link, bytes: u32) -> Duration {
        let is_cut = self.fabric.switching == Switching::CutThrough;
        let bytes = match link.to {
            Node::Switch(_) if is_cut => bytes.min(self.fabric.frame.header),
            _ => bytes,
        };
        serialise(link, bytes) + link.delay
    }
}

/// How long `bytes` occupy `link`.
fn serialise(link: &Link, bytes: u32) -> Duration {
    link.rate.transfer_time(Bytes::new(u64::from(bytes)))
}
