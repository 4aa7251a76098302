//! Decodes bytes into headers and pieces of data (TCP 3.3 and 3.5).
//!
//! ```text
//!          ┌──────────────── no data ────────────────┐
//! header ──┤                                         ├─► header
//!          └─► padding ─► data ─► data digest ─► end ┘
//! ```
//!
//! Invariants:
//! - A header is returned when all of it has been checked, a piece of data once its PDU's length
//!   has been; only one header is buffered.
//! - After a fatal error every call returns that error.

use wire::Place;

use super::layout::pdu::{
    COMMON_BYTES, DATAL, DATAO, FLAGS, HLEN, MAXH2CDATA, PDA, PDO, PFV, PLEN, TYPE,
};
use super::pdu::{
    DIGEST_BYTES, Digests, FatalStatus, HEADER_BYTES_MAX, Header, Kind, Layout, TermReq, digest_of,
};

/// The end of a connection that reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The host, which reads what controllers send.
    Host,
    /// The controller, which reads what hosts send.
    Controller,
}

/// Limits of data from a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of data in a command capsule, at most.
    pub capsule_data_bytes: u32,
    /// Bytes of data in an H2CData or C2HData PDU, at most.
    pub data_bytes: u32,
}

/// A decoded part of a PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A checked header, and how many bytes of data follow it.
    Header(Header, u32),
    /// The next piece of the PDU's data; not empty.
    Data(&'a [u8]),
    /// The end of the PDU's data. A wrong data digest fails the command, not the connection (TCP
    /// 3.3.1.2).
    End {
        /// The digest is right, or there is none.
        is_intact: bool,
    },
}

/// Why a connection has to end (TCP 3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{status:?} at {information} of a PDU's header")]
pub struct Fatal {
    /// The kind of error.
    pub status: FatalStatus,
    /// The offset of the invalid field in the header, or the received digest.
    pub information: u32,
}

impl Fatal {
    /// The header of the PDU with which end `by` terminates the connection; its data is
    /// [`Decoder::offending_header`].
    #[must_use]
    pub const fn term_req(self, by: End) -> Header {
        let term = TermReq { status: self.status as u16, information: self.information };
        match by {
            End::Host => Header::H2cTermReq(term),
            End::Controller => Header::C2hTermReq(term),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Reading the header until it has `needed` bytes.
    Header {
        needed: usize,
    },
    /// Skipping `left` bytes of padding before `data` bytes of data.
    Padding {
        left: usize,
        data: u32,
    },
    /// Reading data; `left` bytes are to come.
    Data {
        left: u32,
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
/// use nvme::{Decoder, Digests, End, Event, Header, IcReq, Layout, Limits};
/// let mut bytes = Vec::new();
/// let request = Header::IcReq(IcReq { hpda: 0, digests: Digests::default(), maxr2t: 0 });
/// request.encode(Layout::default(), 0, &mut bytes);
/// let limits = Limits { capsule_data_bytes: 8192, data_bytes: 131_072 };
/// let mut decoder = Decoder::new(End::Controller, limits);
/// let mut input = &bytes[..];
/// assert_eq!(decoder.next(&mut input), Ok(Some(Event::Header(request, 0))));
/// assert_eq!(decoder.next(&mut input), Ok(None));
/// ```
#[derive(Debug)]
pub struct Decoder {
    end: End,
    limits: Limits,
    /// Known once ICReq and ICResp have been exchanged.
    layout: Option<Layout>,
    phase: Phase,
    kind: Kind,
    header: [u8; HEADER_BYTES_MAX],
    filled: usize,
    /// Bytes of the latest header, also after it was returned.
    latest: usize,
    /// CRC-32C of the data so far.
    crc: u32,
}

impl Decoder {
    /// A decoder for a new connection.
    #[must_use]
    pub const fn new(end: End, limits: Limits) -> Self {
        Self {
            end,
            limits,
            layout: None,
            phase: Phase::Header { needed: COMMON_BYTES },
            kind: Kind::IcReq,
            header: [0; HEADER_BYTES_MAX],
            filled: 0,
            latest: 0,
            crc: 0,
        }
    }

    /// Sets the layout of incoming PDUs, as negotiated by ICReq and ICResp.
    pub const fn agree(&mut self, layout: Layout) {
        self.layout = Some(layout);
    }

    /// Takes bytes off the front of `input` until an event is complete; `None` if more bytes are
    /// needed.
    ///
    /// # Errors
    /// When the connection has to end; later calls return the same error.
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
        self.phase != Phase::Header { needed: COMMON_BYTES } || self.filled > 0
    }

    /// The received bytes of the latest header, which a fatal error refers to.
    #[must_use]
    pub fn offending_header(&self) -> &[u8] {
        &self.header[..self.latest]
    }

    // Goes on until an event is complete or the input ends.
    fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, Fatal> {
        loop {
            match self.phase {
                Phase::Failed(fatal) => return Err(fatal),
                Phase::Header { needed } => {
                    let missing = needed - self.filled;
                    let bytes = take(input, missing);
                    self.header[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
                    self.filled += bytes.len();
                    self.latest = self.filled;
                    if bytes.len() < missing {
                        return Ok(None);
                    }
                    if needed == COMMON_BYTES {
                        let needed = self.check_common()?;
                        self.phase = Phase::Header { needed };
                    } else {
                        return self.header().map(Some);
                    }
                }
                Phase::Padding { left, data } => {
                    let left = left - take(input, left).len();
                    self.phase = Phase::Padding { left, data };
                    if left > 0 {
                        return Ok(None);
                    }
                    self.phase = Phase::Data { left: data };
                }
                Phase::Data { left: 0 } => {
                    let digest = self.layout().data_digest_bytes(self.kind);
                    if digest == 0 {
                        return Ok(Some(self.end_of_data(true)));
                    }
                    self.phase = Phase::Digest { bytes: [0; DIGEST_BYTES], filled: 0 };
                }
                Phase::Data { left } => return Ok(self.data(input, left)),
                Phase::Digest { mut bytes, filled } => {
                    let more = take(input, DIGEST_BYTES - filled);
                    bytes[filled..filled + more.len()].copy_from_slice(more);
                    let filled = filled + more.len();
                    self.phase = Phase::Digest { bytes, filled };
                    if filled < DIGEST_BYTES {
                        return Ok(None);
                    }
                    return Ok(Some(self.end_of_data(u32::from_le_bytes(bytes) == self.crc)));
                }
            }
        }
    }

    // The negotiated layout, or the default before.
    fn layout(&self) -> Layout {
        self.layout.unwrap_or_default()
    }

    // Takes a piece of data, as much as is there.
    fn data<'a>(&mut self, input: &mut &'a [u8], left: u32) -> Option<Event<'a>> {
        let bytes = take(input, left as usize);
        if bytes.is_empty() {
            return None;
        }
        if self.layout().data_digest_bytes(self.kind) > 0 {
            self.crc = crc32c::crc32c_append(self.crc, bytes);
        }
        // At most `left`, which fits.
        let taken = u32::try_from(bytes.len()).unwrap_or(left);
        self.phase = Phase::Data { left: left - taken };
        Some(Event::Data(bytes))
    }

    // Ends a PDU with data.
    fn end_of_data<'a>(&mut self, is_intact: bool) -> Event<'a> {
        self.begin_header();
        Event::End { is_intact }
    }

    // Begins the next header.
    const fn begin_header(&mut self) {
        self.phase = Phase::Header { needed: COMMON_BYTES };
        self.filled = 0;
        self.crc = 0;
    }

    // Checks type, flags, HLEN, PDO and PLEN (TCP 3.6.1). Returns the bytes of the whole header.
    fn check_common(&mut self) -> Result<usize, Fatal> {
        let header = &self.header;
        let kind = Kind::from_byte(TYPE.get(header)).ok_or_else(|| invalid(TYPE))?;
        let is_ours = match self.end {
            End::Controller => {
                matches!(kind, Kind::IcReq | Kind::H2cTermReq | Kind::CapsuleCmd | Kind::H2cData)
            }
            End::Host => {
                !matches!(kind, Kind::IcReq | Kind::H2cTermReq | Kind::CapsuleCmd | Kind::H2cData)
            }
        };
        let is_first = matches!(kind, Kind::IcReq | Kind::IcResp);
        let is_term = matches!(kind, Kind::H2cTermReq | Kind::C2hTermReq);
        // ICReq and ICResp come first, and once (TCP 3.4.1).
        if !is_ours || (is_first == self.layout.is_some() && !is_term) {
            return Err(fatal(FatalStatus::Sequence, TYPE));
        }
        if HLEN.get(header) != kind.header_bytes() {
            return Err(invalid(HLEN));
        }
        let layout = self.layout();
        let said = Digests::from_flags(FLAGS.get(header));
        if said.header != (layout.digests.header && kind.has_header_digest()) {
            return Err(invalid(FLAGS));
        }
        let (plen, end) = (PLEN.get(header) as usize, layout.header_end(kind));
        if plen < end || (plen > end && !kind.has_data()) {
            return Err(invalid(PLEN));
        }
        if plen > end {
            self.check_data(kind, plen, end)?;
        }
        self.kind = kind;
        Ok(end)
    }

    // Checks the data digest flag, offset and length of a PDU's data.
    fn check_data(&self, kind: Kind, plen: usize, end: usize) -> Result<(), Fatal> {
        let (layout, pdo) = (self.layout(), usize::from(PDO.get(&self.header)));
        if !kind.has_data_digest() {
            // The data of a terminating PDU is a header, 128 bytes at most (TCP 3.6.2.4).
            return if plen <= end + HEADER_BYTES_MAX { Ok(()) } else { Err(invalid(PLEN)) };
        }
        if Digests::from_flags(FLAGS.get(&self.header)).data != layout.digests.data {
            return Err(invalid(FLAGS));
        }
        if pdo < end || pdo > plen || !pdo.is_multiple_of(layout.unit()) {
            return Err(invalid(PDO));
        }
        // A PDU with a data offset must have at least a byte of data.
        if plen <= pdo + layout.data_digest_bytes(kind) {
            return Err(invalid(PLEN));
        }
        let length = plen - pdo - layout.data_digest_bytes(kind);
        // Exceeding MAXH2CDATA is a status of its own (TCP 3.6.2.4); IOCCSZ bounds capsules.
        match kind {
            Kind::CapsuleCmd if length > self.limits.capsule_data_bytes as usize => {
                return Err(invalid(PLEN));
            }
            Kind::CapsuleCmd => {}
            _ if length > self.limits.data_bytes as usize => {
                return Err(fatal(FatalStatus::DataLimitExceeded, PLEN));
            }
            _ => {}
        }
        Ok(())
    }

    // Checks and decodes a complete header.
    fn header<'a>(&mut self) -> Result<Event<'a>, Fatal> {
        let (kind, layout) = (self.kind, self.layout());
        let hlen = usize::from(kind.header_bytes());
        let end = layout.header_end(kind);
        let digest = digest_of(kind);
        if end > hlen && crc32c::crc32c(&self.header[..hlen]) != digest.get(&self.header) {
            let information = digest.get(&self.header);
            return Err(Fatal { status: FatalStatus::HeaderDigest, information });
        }
        let plen = PLEN.get(&self.header);
        let begin = match (plen as usize > end, kind.has_data_digest()) {
            (true, true) => usize::from(PDO.get(&self.header)),
            _ => end,
        };
        let after = if plen as usize > end { layout.data_digest_bytes(kind) } else { 0 };
        // Both are far below 256.
        let overhead = u32::try_from(begin + after).unwrap_or(u32::MAX);
        let data = plen.saturating_sub(overhead);
        let header = Header::decode(kind, &self.header);
        check_fields(&header, &self.header, data)?;
        if data == 0 {
            self.begin_header();
        } else {
            self.phase = Phase::Padding { left: begin - end, data };
        }
        Ok(Event::Header(header, data))
    }
}

// Checks the fields of a header, with `data` bytes of data behind it.
fn check_fields(header: &Header, bytes: &[u8; HEADER_BYTES_MAX], data: u32) -> Result<(), Fatal> {
    match *header {
        // PFV is 0 (TCP 3.6.2.2), alignments have five bits.
        Header::IcReq(_) | Header::IcResp(_) if PFV.get(bytes) != 0 => Err(invalid(PFV)),
        Header::IcReq(request) if request.hpda > 31 => Err(invalid(PDA)),
        Header::IcResp(response) if response.cpda > 31 => Err(invalid(PDA)),
        Header::IcResp(response)
            if response.maxh2cdata < 4096 || !response.maxh2cdata.is_multiple_of(4) =>
        {
            Err(invalid(MAXH2CDATA))
        }
        Header::H2cData { offset, length, .. } | Header::C2hData { offset, length, .. } => {
            let out_of_range = |field| fatal(FatalStatus::DataOutOfRange, field);
            if length == 0 {
                Err(out_of_range(DATAL))
            } else if length != data {
                Err(invalid(DATAL))
            } else if offset.checked_add(length).is_none() {
                Err(out_of_range(DATAO))
            } else {
                Ok(())
            }
        }
        _ => Ok(()),
    }
}

/// A fatal error because of a field of a header.
pub(crate) fn fatal(status: FatalStatus, field: impl Place) -> Fatal {
    Fatal { status, information: field.byte().into() }
}

// The fatal error of an invalid field.
fn invalid(field: impl Place) -> Fatal {
    fatal(FatalStatus::InvalidHeaderField, field)
}

// Takes up to `most` bytes off the front of `input`.
fn take<'a>(input: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(most.min(input.len()));
    *input = rest;
    taken
}
