//! Links, connections over them, and bytes under way or arrived.

use std::collections::VecDeque;
use std::net::SocketAddr;

use workload::Draw;

/// A link between two places, in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Latency of a byte, in nanoseconds.
    pub latency_ns: u64,
    /// The largest random addition to the latency, in nanoseconds.
    pub jitter_ns: u64,
    /// Bandwidth in bytes per second.
    pub bytes_per_s: u64,
    /// Segments in a million that are lost and retransmitted.
    pub dropped_ppm: u32,
    /// The link is cut until this time.
    pub cut_until_ns: u64,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            latency_ns: 20_000,
            jitter_ns: 30_000,
            bytes_per_s: 1_250_000_000,
            dropped_ppm: 0,
            cut_until_ns: 0,
        }
    }
}

/// The time after which lost segments are retransmitted (RFC 6298; Linux' least).
const RETRANSMIT_NS: u64 = 200_000_000;
/// The most bytes that one end has sent and the other has not read.
pub(crate) const WINDOW: usize = 1 << 20;
/// The most bytes of a segment.
const SEGMENT: u64 = 16 << 10;

impl Link {
    /// When a segment of `bytes` that is sent now will have arrived.
    pub(crate) fn arrival_ns(&self, now_ns: u64, bytes: usize, draw: &mut Draw) -> u64 {
        let is_lost = draw.below(1_000_000) < u64::from(self.dropped_ppm);
        let lost_ns = if is_lost { RETRANSMIT_NS } else { 0 };
        let wire_ns = bytes as u64 * 1_000_000_000 / self.bytes_per_s.max(1);
        self.clear_ns(now_ns) + self.latency_ns + draw.below(self.jitter_ns + 1) + wire_ns + lost_ns
    }

    /// The earliest time from `now_ns` on at which the link is not cut.
    pub(crate) fn clear_ns(&self, now_ns: u64) -> u64 {
        now_ns.max(self.cut_until_ns)
    }
}

/// What is under way to an end.
#[derive(Debug)]
pub(crate) enum Parcel {
    Bytes(Vec<u8>),
    /// The peer sends nothing more.
    Fin,
    Reset,
}

/// A request of a ring that waits for an end of a connection.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) ring: usize,
    pub(crate) token: u64,
    pub(crate) bytes: Vec<u8>,
    /// The place in `bytes` where receiving, or the rest to be sent, begins.
    pub(crate) from: usize,
}

/// One end of a connection; the number of the other end differs in the lowest bit.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) address: SocketAddr,
    pub(crate) link: usize,
    pub(crate) process: usize,
    /// Parcels under way to this end, in order.
    pub(crate) coming: VecDeque<Parcel>,
    pub(crate) arrivals: Arrivals,
    /// Bytes that have arrived and were not read.
    pub(crate) inbox: VecDeque<u8>,
    /// Bytes under way and in the inbox.
    pub(crate) unread: usize,
    /// Bytes sent from this end that have arrived at the other.
    pub(crate) acknowledged: u64,
    pub(crate) receive: Option<Waiting>,
    pub(crate) send: Option<Waiting>,
    pub(crate) state: EndState,
    /// How long a blocking read waits.
    pub(crate) patience_ns: Option<u64>,
}

/// When parcels arrive at an end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrivals {
    /// When the last parcel under way arrives.
    pub(crate) last_ns: u64,
    /// No parcel arrives before this time.
    pub(crate) held_until_ns: u64,
}

/// The state of an end.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub(crate) struct EndState {
    /// The handshake is complete.
    pub(crate) is_connected: bool,
    /// The peer sends nothing more.
    pub(crate) is_finished: bool,
    /// The connection was reset.
    pub(crate) is_reset: bool,
    /// This end sends nothing more.
    pub(crate) has_shut: bool,
    /// This end reads nothing more.
    pub(crate) is_deaf: bool,
    /// Unsent bytes are dropped when it is closed.
    pub(crate) forgets: bool,
    /// All handles are dropped.
    pub(crate) is_closed: bool,
}

impl End {
    pub(crate) fn new(address: SocketAddr, link: usize, process: usize) -> Self {
        Self {
            address,
            link,
            process,
            coming: VecDeque::new(),
            arrivals: Arrivals::default(),
            inbox: VecDeque::new(),
            unread: 0,
            acknowledged: 0,
            receive: None,
            send: None,
            state: EndState::default(),
            patience_ns: None,
        }
    }

    /// Whether a read would return at once.
    pub(crate) fn is_readable(&self) -> bool {
        let EndState { is_finished, is_reset, is_deaf, is_closed, .. } = self.state;
        !self.inbox.is_empty() || is_finished || is_reset || is_deaf || is_closed
    }

    /// Reads bytes that have arrived. Returns how many: at times fewer than there are, as a kernel
    /// may.
    pub(crate) fn take(&mut self, into: &mut [u8], draw: &mut Draw) -> usize {
        let most = into.len().min(self.inbox.len());
        let is_short = most > 1 && draw.below(8) == 0;
        let drawn = 1 + usize::try_from(draw.below(most as u64)).unwrap_or(0);
        let count = if is_short { drawn } else { most };
        for (place, byte) in into.iter_mut().zip(self.inbox.drain(..count)) {
            *place = byte;
        }
        self.unread -= count;
        count
    }
}

/// How many of `left` bytes are sent in the next segment, by chance.
pub(crate) fn segment(left: usize, draw: &mut Draw) -> usize {
    let most = match draw.below(16) {
        0 => 1 + draw.below(64),
        1..4 => 1 + draw.below(SEGMENT),
        _ => SEGMENT,
    };
    left.min(usize::try_from(most).unwrap_or(left))
}
