//! Decodes bytes into headers and pieces of data (RFC 7143 11.2).
//!
//! ```text
//!                                      ┌───────── no data ──────────┐
//! header ─► additional ─► its digest ──┤                            ├─► header
//!                                      └─► data ─► padding ─► digest ┘
//! ```
//!
//! Invariants:
//! - A header is returned when all of it has come, a piece of data once its PDU's length has been
//!   checked; only one header is buffered.
//! - After a fatal error every call returns that error.

use super::layout::{AHS_UNIT, DATA_SEGMENT_LENGTH, TOTAL_AHS_LENGTH};
use super::pdu::{BHS_BYTES, DIGEST_BYTES, Digests, Header, padding_of};

/// Bytes of additional header segments at most (11.2.1.5: 255 words).
const AHS_BYTES_MAX: usize = 255 * AHS_UNIT;
const HEADER_BYTES_MAX: usize = BHS_BYTES + AHS_BYTES_MAX + DIGEST_BYTES;
/// Bytes of data in a PDU at most, before anything else is negotiated (13.12).
pub const DEFAULT_DATA_BYTES: u32 = 8192;

/// A decoded part of a PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A header, and how many bytes of data follow it.
    Header(Header, u32),
    /// The next piece of the PDU's data; not empty.
    Data(&'a [u8]),
    /// The end of the PDU's data.
    End {
        /// The digest is right, or there is none.
        is_intact: bool,
    },
}

/// Why a connection has to be closed: with error recovery level 0 every such error is fatal
/// (7.1.4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fatal {
    /// The header digest is wrong (7.8).
    #[error("a header is not what its digest says")]
    HeaderDigest,
    /// A PDU has more data than negotiated.
    #[error("{length} bytes of data in a PDU, of {limit} at most")]
    TooMuchData {
        /// Bytes of the PDU.
        length: u32,
        /// Bytes that were negotiated.
        limit: u32,
    },
    /// A PDU is not allowed now.
    #[error("a PDU with opcode {opcode:#04x} came out of order")]
    Sequence {
        /// Its opcode.
        opcode: u8,
    },
    /// Commands are missing, and cannot be recovered (4.2.2.1).
    #[error("command {came} came when {expected} was expected")]
    MissingCommands {
        /// CmdSN of the one that came.
        came: u32,
        /// ExpCmdSN.
        expected: u32,
    },
    /// The login has failed; the answer says so.
    #[error("the login ended with status {0:#06x}")]
    Login(u16),
    /// The target does not use the digests that this end requires (13.1).
    #[error("it does not use the digests that are required")]
    NoDigests,
    /// The target failed authentication, or does not use CHAP (12.1).
    #[error("the target takes no CHAP, or has not proved who it is")]
    NoProof,
    /// A target's answer fits no request.
    #[error("an answer with opcode {opcode:#04x} fits nothing that was asked")]
    Unasked {
        /// Its opcode.
        opcode: u8,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Reading the header until it has `needed` bytes.
    Header {
        needed: usize,
    },
    /// Reading data; `left` bytes are to come.
    Data {
        left: u32,
    },
    /// Reading padding; `left` bytes are to come.
    Padding {
        left: usize,
    },
    /// Reading the data digest; `filled` bytes have come.
    Digest {
        bytes: [u8; DIGEST_BYTES],
        filled: usize,
    },
    Failed(Fatal),
}

/// Decodes the bytes that one end of a connection receives.
///
/// ```
/// use scsi::iscsi::{Decoder, Digests, Event, Header, NO_TAG, Numbers};
/// let numbers = Numbers { cmd_sn: 7, exp_stat_sn: 1 };
/// let ping =
///     Header::NopOut { is_immediate: true, lun: [0; 8], itt: 5, ttt: NO_TAG, numbers };
/// let mut bytes = Vec::new();
/// ping.encode(Digests::default(), 0, &mut bytes);
/// let mut decoder = Decoder::new();
/// let mut input = &bytes[..];
/// assert_eq!(decoder.next(&mut input), Ok(Some(Event::Header(ping, 0))));
/// assert_eq!(decoder.next(&mut input), Ok(None));
/// ```
#[derive(Debug)]
pub struct Decoder {
    digests: Digests,
    data_bytes: u32,
    phase: Phase,
    header: [u8; HEADER_BYTES_MAX],
    filled: usize,
    additional: usize,
    /// CRC-32C of the data so far, and the data's length.
    crc: u32,
    length: u32,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder for a new connection.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            digests: Digests { header: false, data: false },
            data_bytes: DEFAULT_DATA_BYTES,
            phase: Phase::Header { needed: BHS_BYTES },
            header: [0; HEADER_BYTES_MAX],
            filled: 0,
            additional: 0,
            crc: 0,
            length: 0,
        }
    }

    /// Sets the negotiated digests and the bytes of data in a PDU at most.
    pub const fn agree(&mut self, digests: Digests, data_bytes: u32) {
        (self.digests, self.data_bytes) = (digests, data_bytes);
    }

    /// Takes bytes off the front of `input` until an event is complete; `None` if more bytes are
    /// needed.
    ///
    /// # Errors
    /// When the connection has to be closed; later calls return the same error.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, Fatal> {
        let event = self.step(input);
        if let Err(fatal) = event {
            self.phase = Phase::Failed(fatal);
        }
        event
    }

    /// Whether a PDU has come in part.
    #[must_use]
    pub fn is_within_pdu(&self) -> bool {
        self.phase != Phase::Header { needed: BHS_BYTES } || self.filled > 0
    }

    /// The bytes of the latest header.
    #[must_use]
    pub fn latest_header(&self) -> &[u8] {
        &self.header[..BHS_BYTES]
    }

    /// The latest header, decoded.
    pub(crate) fn latest(&self) -> Header {
        let mut bytes = [0; BHS_BYTES];
        bytes.copy_from_slice(self.latest_header());
        Header::decode(&bytes)
    }

    /// The additional header segments of the latest header.
    #[must_use]
    pub fn additional(&self) -> &[u8] {
        &self.header[BHS_BYTES..BHS_BYTES + self.additional]
    }

    // Goes on until an event is complete or the input ends.
    fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, Fatal> {
        loop {
            match self.phase {
                Phase::Failed(fatal) => return Err(fatal),
                Phase::Header { needed } => {
                    let bytes = take(input, needed - self.filled);
                    self.header[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
                    self.filled += bytes.len();
                    if self.filled < needed {
                        return Ok(None);
                    }
                    let whole = if needed == BHS_BYTES { self.check_lengths()? } else { needed };
                    if whole == self.filled {
                        return self.header(whole).map(Some);
                    }
                    self.phase = Phase::Header { needed: whole };
                }
                Phase::Data { left: 0 } => {
                    let left = padding_of(self.length as usize);
                    self.phase = Phase::Padding { left };
                }
                Phase::Data { left } => return Ok(self.data(input, left)),
                Phase::Padding { left } => {
                    let bytes = take(input, left);
                    self.crc = crc32c::crc32c_append(self.crc, bytes);
                    let left = left - bytes.len();
                    self.phase = Phase::Padding { left };
                    if left > 0 {
                        return Ok(None);
                    }
                    if !self.digests.data {
                        return Ok(Some(self.end(true)));
                    }
                    self.phase = Phase::Digest { bytes: [0; DIGEST_BYTES], filled: 0 };
                }
                Phase::Digest { mut bytes, filled } => {
                    let more = take(input, DIGEST_BYTES - filled);
                    bytes[filled..filled + more.len()].copy_from_slice(more);
                    let filled = filled + more.len();
                    self.phase = Phase::Digest { bytes, filled };
                    if filled < DIGEST_BYTES {
                        return Ok(None);
                    }
                    return Ok(Some(self.end(u32::from_le_bytes(bytes) == self.crc)));
                }
            }
        }
    }

    // Takes a piece of data, as much as is there.
    fn data<'a>(&mut self, input: &mut &'a [u8], left: u32) -> Option<Event<'a>> {
        let bytes = take(input, left as usize);
        if bytes.is_empty() {
            return None;
        }
        if self.digests.data {
            self.crc = crc32c::crc32c_append(self.crc, bytes);
        }
        // At most `left`, which fits.
        let taken = u32::try_from(bytes.len()).unwrap_or(left);
        self.phase = Phase::Data { left: left - taken };
        Some(Event::Data(bytes))
    }

    // Ends a PDU with data.
    fn end<'a>(&mut self, is_intact: bool) -> Event<'a> {
        self.begin_header();
        Event::End { is_intact }
    }

    // Begins the next header.
    const fn begin_header(&mut self) {
        self.phase = Phase::Header { needed: BHS_BYTES };
        (self.filled, self.crc) = (0, 0);
    }

    // Checks TotalAHSLength and DataSegmentLength (11.2.1.5, 11.2.1.6). Returns the bytes of the
    // whole header.
    fn check_lengths(&mut self) -> Result<usize, Fatal> {
        self.additional = usize::from(TOTAL_AHS_LENGTH.get(&self.header)) * AHS_UNIT;
        let length = DATA_SEGMENT_LENGTH.get(&self.header);
        if length > self.data_bytes && !self.digests.header {
            return Err(Fatal::TooMuchData { length, limit: self.data_bytes });
        }
        let digest = if self.digests.header { DIGEST_BYTES } else { 0 };
        Ok(BHS_BYTES + self.additional + digest)
    }

    // Checks and decodes a complete header.
    fn header<'a>(&mut self, whole: usize) -> Result<Event<'a>, Fatal> {
        if self.digests.header {
            let (header, digest) = self.header[..whole].split_at(whole - DIGEST_BYTES);
            if crc32c::crc32c(header).to_le_bytes() != digest {
                return Err(Fatal::HeaderDigest);
            }
        }
        let length = DATA_SEGMENT_LENGTH.get(&self.header);
        if length > self.data_bytes {
            return Err(Fatal::TooMuchData { length, limit: self.data_bytes });
        }
        self.length = length;
        if length == 0 {
            self.begin_header();
        } else {
            self.phase = Phase::Data { left: length };
        }
        Ok(Event::Header(self.latest(), length))
    }
}

// Takes up to `most` bytes off the front of `input`.
fn take<'a>(input: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(most.min(input.len()));
    *input = rest;
    taken
}
