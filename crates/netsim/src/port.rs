//! A port: a queue, and the link it sends on.

use std::num::NonZeroU64;

use measure::{BitsPerSec, Bytes, Duration, Instant};

use crate::fabric::{Fabric, PortStats, Switching};
use crate::queue::{Discipline, Queue};
use crate::topology::{Link, Node};

/// Picoseconds that a byte takes at 1 b/s.
const BYTE_PS: u64 = 8_000_000_000_000;

#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) to: Node,
    pub(crate) delay: Duration,
    /// The time of one byte, if that is a whole number of picoseconds.
    pub(crate) byte_ps: Option<NonZeroU64>,
    pub(crate) rate: BitsPerSec,
    /// The time from the start of a packet until the far end may forward it; `Duration::MAX` if it
    /// must have arrived whole.
    pub(crate) header_time: Duration,
    pub(crate) free_at: Instant,
    /// `free_at` as `Order::Heap` sums it up, in seconds.
    pub(crate) free_sum: f64,
    /// Whether an event or the list of called ports will serve it.
    pub(crate) is_called: bool,
    /// Whether its host's transport has something to send here.
    pub(crate) is_awaited: bool,
    pub(crate) discipline: Discipline,
    pub(crate) queue: Queue,
    pub(crate) queued_bytes: u64,
    pub(crate) buffer: u64,
    /// Packets that came over this link to a choice of ways: headers, and data.
    pub(crate) sprayed: [u32; 2],
    pub(crate) stats: PortStats,
}

impl Port {
    pub(crate) fn new(fabric: &Fabric, link: &Link) -> Self {
        let config = match link.from {
            Node::Host(_) => fabric.host_port,
            Node::Switch(_) => fabric.switch_port,
        };
        let rate = link.rate.get();
        let header = Bytes::new(u64::from(fabric.frame.header));
        let is_cut =
            fabric.switching == Switching::CutThrough && matches!(link.to, Node::Switch(_));
        Self {
            to: link.to,
            delay: link.delay,
            byte_ps: NonZeroU64::new(BYTE_PS / rate).filter(|_| BYTE_PS.is_multiple_of(rate)),
            rate: link.rate,
            header_time: if is_cut { link.rate.transfer_time(header) } else { Duration::MAX },
            free_at: Instant::ZERO,
            free_sum: 0.0,
            is_called: false,
            is_awaited: false,
            discipline: config.discipline,
            queue: Queue::new(config.discipline),
            queued_bytes: 0,
            buffer: config.buffer.map_or(u64::MAX, Bytes::get),
            sprayed: [0; 2],
            stats: PortStats::default(),
        }
    }

    /// How long `bytes` occupy the link.
    #[inline]
    pub(crate) fn time(&self, bytes: u32) -> Duration {
        match self.byte_ps {
            Some(ps) => Duration::from_ps(ps.get() * u64::from(bytes)),
            None => self.rate.transfer_time(Bytes::new(u64::from(bytes))),
        }
    }

    /// The time from the start of a packet that takes `time` until the far end may forward or use
    /// it, without the link's delay.
    #[inline]
    pub(crate) fn ahead(&self, time: Duration) -> Duration {
        self.header_time.min(time)
    }
}
