//! Flows, what became of each, and how payload is cut into packets.

use measure::{Duration, Instant};

use crate::error::SimError;

/// What starts a flow, and when it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Exchange {
    /// The sender has bytes; the caller says what ends the flow ([`End`](crate::End)).
    #[default]
    OneWay,
    /// The receiver requests the bytes, and is done when it has every one.
    Read,
    /// The sender has bytes, and is done when it knows that the receiver has every one.
    Write,
}

/// Bytes from one host to another. A flow's index is its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flow {
    /// When the sender has the bytes, or the reader requests them.
    pub start: Instant,
    /// The sending host.
    pub src: u32,
    /// The receiving host.
    pub dst: u32,
    /// Payload.
    pub bytes: u64,
    /// What starts the flow, and what ends it.
    pub exchange: Exchange,
}

/// What became of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowRecord {
    /// When the receiver had every byte.
    pub received: Option<Instant>,
    /// When the sender learned that; `None` if it learns it later, with others.
    pub finished: Option<Instant>,
    /// Whether the flow ended with its last byte, and its sender is told later, together with
    /// others.
    pub is_told_later: bool,
    /// Data packets sent, repeated ones included.
    pub sent: u32,
    /// Data packets dropped or trimmed.
    pub data_drops: u32,
    /// Other packets dropped.
    pub control_drops: u32,
    /// Why the flow will never finish, for variants whose flows may hang.
    pub stranded: Option<&'static str>,
}

impl FlowRecord {
    /// Whether the flow has ended, for its sender or with its last byte.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.finished.is_some() || self.is_told_later
    }

    /// The time from the start until the sender knows of the end; `None` if it does not know (yet).
    #[must_use]
    pub fn fct(&self, flow: &Flow) -> Option<Duration> {
        self.finished.map(|finished| finished - flow.start)
    }
}

/// How payload is cut into packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Payload of a full packet.
    pub payload: u32,
    /// Header of every packet, and the whole of packets that carry no data.
    pub header: u32,
    /// Whether the last packet of a flow is filled up, too.
    pub is_padded: bool,
}

impl Default for Frame {
    /// 1500 B packets with 40 B of header, and a last one as short as it comes.
    fn default() -> Self {
        Self { payload: 1460, header: 40, is_padded: false }
    }
}

/// The most packets of a flow: their numbers and sums of them stay in 31 bits.
const PACKETS_MAX: u64 = 1 << 30;

impl Frame {
    /// Bytes of a full packet on the wire.
    #[must_use]
    pub const fn full(self) -> u32 {
        self.payload + self.header
    }

    /// How many packets a flow of `bytes` has.
    ///
    /// # Panics
    /// Beyond 2³⁰ packets; flows are checked before a run.
    #[must_use]
    pub fn packets(self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(u64::from(self.payload))).expect("flows are checked")
    }

    /// Bytes on the wire of packet `number` of a flow of `bytes`: the last may be short.
    #[must_use]
    pub fn wire(self, bytes: u64, number: u32) -> u32 {
        if self.is_padded {
            return self.full();
        }
        let rest = bytes.saturating_sub(u64::from(number) * u64::from(self.payload));
        let payload = rest.min(u64::from(self.payload));
        self.header + u32::try_from(payload).unwrap_or(self.payload)
    }
}

/// Refuses an empty list, and flows that are empty, too long, to themselves or of hosts from
/// `host_count` on.
pub(crate) fn check(flows: &[Flow], host_count: u32, frame: Frame) -> Result<(), SimError> {
    if flows.is_empty() {
        return Err(SimError::NoFlows);
    }
    let most = PACKETS_MAX * u64::from(frame.payload);
    for (index, flow) in (0_u32..).zip(flows) {
        if flow.bytes == 0 {
            return Err(SimError::Empty { flow: index });
        }
        if flow.bytes > most {
            return Err(SimError::Huge { flow: index, bytes: flow.bytes, most });
        }
        if let Some(&host) = [flow.src, flow.dst].iter().find(|&&host| host >= host_count) {
            return Err(SimError::NoHost { flow: index, host, count: host_count });
        }
        if flow.src == flow.dst {
            return Err(SimError::Loop { flow: index, host: flow.src });
        }
    }
    Ok(())
}
