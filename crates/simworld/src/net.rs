//! Links, and connections over them: what is on its way, and what has come.

use std::collections::VecDeque;
use std::net::SocketAddr;

use workload::Draw;

/// A link between two places, each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// How long a byte is under way, in nanoseconds.
    pub latency_ns: u64,
    /// How much longer than that at most, by chance.
    pub jitter_ns: u64,
    /// Bytes a second.
    pub bytes_per_s: u64,
    /// Segments in a million that are lost and sent again.
    pub dropped_ppm: u32,
    /// Nothing passes before this time.
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

/// After so long what was lost is sent again (RFC 6298; what Linux does at least).
const RETRANSMIT_NS: u64 = 200_000_000;
/// Bytes that one end has sent and the other has not read, at most.
pub(crate) const WINDOW: usize = 1 << 20;
/// Bytes of a segment at most.
const SEGMENT: u64 = 16 << 10;

impl Link {
    /// When a segment that is sent now will have come.
    pub(crate) fn arrival_ns(&self, now_ns: u64, bytes: usize, draw: &mut Draw) -> u64 {
        let is_lost = draw.below(1_000_000) < u64::from(self.dropped_ppm);
        let lost_ns = if is_lost { RETRANSMIT_NS } else { 0 };
        let wire_ns = bytes as u64 * 1_000_000_000 / self.bytes_per_s.max(1);
        self.clear_ns(now_ns) + self.latency_ns + draw.below(self.jitter_ns + 1) + wire_ns + lost_ns
    }

    /// From when on something passes.
    pub(crate) fn clear_ns(&self, now_ns: u64) -> u64 {
        now_ns.max(self.cut_until_ns)
    }
}

/// What is on its way to an end.
#[derive(Debug)]
pub(crate) enum Parcel {
    Bytes(Vec<u8>),
    /// The last.
    Fin,
    Reset,
}

/// A request of a ring that waits for an end.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) ring: usize,
    pub(crate) token: u64,
    pub(crate) bytes: Vec<u8>,
    /// From here on bytes come, or are still to go.
    pub(crate) from: usize,
}

/// One end of a connection; the other has the number beside it.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) address: SocketAddr,
    pub(crate) link: usize,
    pub(crate) process: usize,
    /// What is on its way here, in order.
    pub(crate) coming: VecDeque<Parcel>,
    pub(crate) arrivals: Arrivals,
    /// Bytes that have come and were not read.
    pub(crate) inbox: VecDeque<u8>,
    /// Bytes on their way and in the inbox.
    pub(crate) unread: usize,
    /// Bytes of this end that have come to the other.
    pub(crate) acknowledged: u64,
    pub(crate) receive: Option<Waiting>,
    pub(crate) send: Option<Waiting>,
    pub(crate) state: EndState,
    /// How long a blocking read waits.
    pub(crate) patience_ns: Option<u64>,
}

/// When things come to an end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arrivals {
    /// The last that is on its way.
    pub(crate) last_ns: u64,
    /// Nothing does before this time.
    pub(crate) held_until_ns: u64,
}

/// What has become of an end.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub(crate) struct EndState {
    /// The handshake is over.
    pub(crate) is_connected: bool,
    /// The peer has sent its last.
    pub(crate) is_finished: bool,
    /// The connection was reset.
    pub(crate) is_reset: bool,
    /// It sends nothing more.
    pub(crate) has_shut: bool,
    /// It reads nothing more.
    pub(crate) is_deaf: bool,
    /// What was to be sent is forgotten when it is closed.
    pub(crate) forgets: bool,
    /// Nobody has it any more.
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

    /// Whether a read would end at once.
    pub(crate) fn is_readable(&self) -> bool {
        let EndState { is_finished, is_reset, is_deaf, is_closed, .. } = self.state;
        !self.inbox.is_empty() || is_finished || is_reset || is_deaf || is_closed
    }

    /// Takes bytes that have come; how many. Some of them at times, as a kernel does.
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

/// How many bytes of so many are the next segment.
pub(crate) fn segment(left: usize, draw: &mut Draw) -> usize {
    let most = match draw.below(16) {
        0 => 1 + draw.below(64),
        1..4 => 1 + draw.below(SEGMENT),
        _ => SEGMENT,
    };
    left.min(usize::try_from(most).unwrap_or(left))
}
