//! The headers of PDUs, and their form on the wire (TCP 3.6).

use wire::Le;

use super::layout::pdu::{
    BYTES_MAX, CCCID, CCSQE, COMMAND_BYTES, DATAL, DATAO, DDGST_ENABLE, DDGSTF, DGST, FEI, FES,
    FLAGS, HDGST_ENABLE, HDGSTF, HLEN, INITIALIZE_BYTES, LAST_PDU, MAXH2CDATA, MAXR2T, OTHER_BYTES,
    PDA, PDO, PLEN, RCCQE, SUCCESS, TTAG, TYPE,
};

/// Bytes of a header digest and of a data digest (TCP 3.3.1).
pub const DIGEST_BYTES: usize = 4;
/// Bytes of a header and its digest at most.
pub const HEADER_BYTES_MAX: usize = BYTES_MAX;
/// The type of a PDU (TCP 3.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Initialize connection request.
    IcReq = 0x00,
    /// Initialize connection response.
    IcResp = 0x01,
    /// The host terminates the connection.
    H2cTermReq = 0x02,
    /// The controller terminates the connection.
    C2hTermReq = 0x03,
    /// Command capsule.
    CapsuleCmd = 0x04,
    /// Response capsule.
    CapsuleResp = 0x05,
    /// Data to the controller.
    H2cData = 0x06,
    /// Data to the host.
    C2hData = 0x07,
    /// Ready to transfer.
    R2t = 0x09,
}

/// Which digests a connection uses (TCP 3.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digests {
    /// Header digests.
    pub header: bool,
    /// Data digests.
    pub data: bool,
}

/// The layout of PDUs in one direction of a connection, negotiated by ICReq and ICResp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    /// Digests of both directions.
    pub digests: Digests,
    /// Data begins at a multiple of 4 · (this + 1) bytes: CPDA to the controller, HPDA to the host
    /// (TCP 3.3.2); 0 to 31.
    pub alignment: u8,
}

/// Initialize connection request (TCP 3.6.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IcReq {
    /// Alignment of the data that the host wants to receive; 0 to 31.
    pub hpda: u8,
    /// Digests that the host requests.
    pub digests: Digests,
    /// R2Ts that may be outstanding for a command, less one.
    pub maxr2t: u32,
}

/// Initialize connection response (TCP 3.6.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IcResp {
    /// Alignment of the data that the controller wants to receive; 0 to 31.
    pub cpda: u8,
    /// Digests in use.
    pub digests: Digests,
    /// Bytes of data in an H2CData PDU at most; a multiple of 4, at least 4096.
    pub maxh2cdata: u32,
}

/// Why a connection ends (TCP 3.6.2.4 and 3.6.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermReq {
    /// Fatal error status, as received: newer peers may use other values.
    pub status: u16,
    /// The offset of the invalid field in the header, or the digest.
    pub information: u32,
}

/// Fatal error status (TCP 3.6.2.4, 3.6.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum FatalStatus {
    /// A field of a header is invalid.
    InvalidHeaderField = 1,
    /// A PDU is not allowed now.
    Sequence = 2,
    /// A header digest is wrong.
    HeaderDigest = 3,
    /// Data is outside of the requested range.
    DataOutOfRange = 4,
    /// More data than negotiated.
    DataLimitExceeded = 5,
    /// A parameter is not supported.
    UnsupportedParameter = 6,
}

/// The header of a PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// [`Kind::IcReq`].
    IcReq(IcReq),
    /// [`Kind::IcResp`].
    IcResp(IcResp),
    /// [`Kind::H2cTermReq`].
    H2cTermReq(TermReq),
    /// [`Kind::C2hTermReq`].
    C2hTermReq(TermReq),
    /// [`Kind::CapsuleCmd`]: a submission queue entry.
    CapsuleCmd([u8; 64]),
    /// [`Kind::CapsuleResp`]: a completion queue entry.
    CapsuleResp([u8; 16]),
    /// [`Kind::H2cData`].
    H2cData {
        /// Command that the data belongs to.
        cid: u16,
        /// Transfer tag of the R2T that it answers.
        ttag: u16,
        /// Offset in the data of the command.
        offset: u32,
        /// Bytes in this PDU.
        length: u32,
        /// Whether it is the last PDU for the R2T.
        last: bool,
    },
    /// [`Kind::C2hData`].
    C2hData {
        /// Command that the data belongs to.
        cid: u16,
        /// Offset in the data of the command.
        offset: u32,
        /// Bytes in this PDU.
        length: u32,
        /// Whether it is the last PDU for the command.
        last: bool,
        /// Whether the command has succeeded and no response capsule follows.
        success: bool,
    },
    /// [`Kind::R2t`].
    R2t {
        /// Command whose data is requested.
        cid: u16,
        /// Transfer tag for the data.
        ttag: u16,
        /// Offset in the data of the command.
        offset: u32,
        /// Bytes requested.
        length: u32,
    },
}

impl Kind {
    /// All types, in order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::IcReq,
        Self::IcResp,
        Self::H2cTermReq,
        Self::C2hTermReq,
        Self::CapsuleCmd,
        Self::CapsuleResp,
        Self::H2cData,
        Self::C2hData,
        Self::R2t,
    ];

    /// The type with this number; `None` for a reserved one.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// HLEN: bytes of the header without digest.
    #[must_use]
    pub const fn header_bytes(self) -> u8 {
        match self {
            Self::IcReq | Self::IcResp => INITIALIZE_BYTES,
            Self::CapsuleCmd => COMMAND_BYTES,
            _ => OTHER_BYTES,
        }
    }

    /// Whether headers of this type have a digest if header digests are in use. Those that
    /// negotiate digests, and those that terminate a connection, do not (TCP 3.3.1.1).
    #[must_use]
    pub const fn has_header_digest(self) -> bool {
        !matches!(self, Self::IcReq | Self::IcResp | Self::H2cTermReq | Self::C2hTermReq)
    }

    /// Whether data of this type has a digest if data digests are in use.
    #[must_use]
    pub const fn has_data_digest(self) -> bool {
        matches!(self, Self::CapsuleCmd | Self::H2cData | Self::C2hData)
    }

    /// Whether PDUs of this type may have data.
    #[must_use]
    pub const fn has_data(self) -> bool {
        self.has_data_digest() || matches!(self, Self::H2cTermReq | Self::C2hTermReq)
    }
}

impl Layout {
    /// Bytes of the header with its digest.
    pub(crate) const fn header_end(self, kind: Kind) -> usize {
        let digest = self.digests.header && kind.has_header_digest();
        kind.header_bytes() as usize + if digest { DIGEST_BYTES } else { 0 }
    }

    /// PDO: the offset of data.
    pub(crate) const fn data_begin(self, kind: Kind) -> usize {
        let end = self.header_end(kind);
        if kind.has_data_digest() { end.next_multiple_of(self.unit()) } else { end }
    }

    /// Bytes of the data digest.
    pub(crate) const fn data_digest_bytes(self, kind: Kind) -> usize {
        if self.digests.data && kind.has_data_digest() { DIGEST_BYTES } else { 0 }
    }

    /// The unit of which PDO is a multiple, in bytes.
    pub(crate) const fn unit(self) -> usize {
        4 * (self.alignment as usize + 1)
    }
}

impl Header {
    /// Its type.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::IcReq(_) => Kind::IcReq,
            Self::IcResp(_) => Kind::IcResp,
            Self::H2cTermReq(_) => Kind::H2cTermReq,
            Self::C2hTermReq(_) => Kind::C2hTermReq,
            Self::CapsuleCmd(_) => Kind::CapsuleCmd,
            Self::CapsuleResp(_) => Kind::CapsuleResp,
            Self::H2cData { .. } => Kind::H2cData,
            Self::C2hData { .. } => Kind::C2hData,
            Self::R2t { .. } => Kind::R2t,
        }
    }

    /// Appends everything before the data of a PDU with `data_bytes` of data: header, header
    /// digest, padding. The caller appends the data and, with data digests, its [`data_digest`].
    ///
    /// # Panics
    /// When the PDU has 4 GiB or more, which no negotiated limit allows.
    pub fn encode(&self, layout: Layout, data_bytes: usize, out: &mut Vec<u8>) {
        let kind = self.kind();
        let (end, hlen) = (layout.header_end(kind), usize::from(kind.header_bytes()));
        let begin = if data_bytes > 0 { layout.data_begin(kind) } else { end };
        let after = if data_bytes > 0 { layout.data_digest_bytes(kind) } else { 0 };
        let plen = u32::try_from(begin + data_bytes + after).expect("a PDU is below 4 GiB");
        let mut bytes = [0; HEADER_BYTES_MAX];
        let mut flags = self.flags();
        if layout.digests.header && kind.has_header_digest() {
            flags |= HDGSTF;
        }
        if after > 0 {
            flags |= DDGSTF;
        }
        TYPE.put(&mut bytes, kind as u8);
        FLAGS.put(&mut bytes, flags);
        HLEN.put(&mut bytes, kind.header_bytes());
        // At most 144: where 72 + 4 bytes end with units of 72. Reserved where a connection ends.
        let has_offset = data_bytes > 0 && kind.has_data_digest();
        let pdo = if has_offset { u8::try_from(begin).unwrap_or(u8::MAX) } else { 0 };
        PDO.put(&mut bytes, pdo);
        PLEN.put(&mut bytes, plen);
        self.put_fields(&mut bytes);
        if end > hlen {
            let digest = crc32c::crc32c(&bytes[..hlen]);
            digest_of(kind).put(&mut bytes, digest);
        }
        out.extend_from_slice(&bytes[..end]);
        out.resize(out.len() + begin - end, 0);
    }

    // The flags of the header, without those of digests.
    const fn flags(&self) -> u8 {
        match self {
            Self::H2cData { last: true, .. } | Self::C2hData { last: true, success: false, .. } => {
                LAST_PDU
            }
            // SUCCESS is valid only with LAST_PDU (TCP 3.6.2.9).
            Self::C2hData { last: true, success: true, .. } => LAST_PDU | SUCCESS,
            _ => 0,
        }
    }

    // Encodes the fields behind the common header.
    fn put_fields(&self, bytes: &mut [u8; HEADER_BYTES_MAX]) {
        match *self {
            Self::IcReq(IcReq { hpda, digests, maxr2t }) => {
                PDA.put(bytes, hpda);
                DGST.put(bytes, digests.bits());
                MAXR2T.put(bytes, maxr2t);
            }
            Self::IcResp(IcResp { cpda, digests, maxh2cdata }) => {
                PDA.put(bytes, cpda);
                DGST.put(bytes, digests.bits());
                MAXH2CDATA.put(bytes, maxh2cdata);
            }
            Self::H2cTermReq(TermReq { status, information })
            | Self::C2hTermReq(TermReq { status, information }) => {
                FES.put(bytes, status);
                FEI.put(bytes, information);
            }
            Self::CapsuleCmd(entry) => CCSQE.put(bytes, &entry),
            Self::CapsuleResp(entry) => RCCQE.put(bytes, &entry),
            Self::H2cData { cid, ttag, offset, length, .. }
            | Self::R2t { cid, ttag, offset, length } => {
                put_range(bytes, cid, ttag, offset, length);
            }
            Self::C2hData { cid, offset, length, .. } => put_range(bytes, cid, 0, offset, length),
        }
    }

    /// Decodes the complete header of a PDU of `kind`.
    pub(crate) fn decode(kind: Kind, bytes: &[u8; HEADER_BYTES_MAX]) -> Self {
        let flags = FLAGS.get(bytes);
        let (cid, ttag) = (CCCID.get(bytes), TTAG.get(bytes));
        let (offset, length) = (DATAO.get(bytes), DATAL.get(bytes));
        let last = flags & LAST_PDU != 0;
        let term = TermReq { status: FES.get(bytes), information: FEI.get(bytes) };
        let (alignment, digests) = (PDA.get(bytes), Digests::from_bits(DGST.get(bytes)));
        match kind {
            Kind::IcReq => {
                let maxr2t = MAXR2T.get(bytes);
                Self::IcReq(IcReq { hpda: alignment, digests, maxr2t })
            }
            Kind::IcResp => {
                let maxh2cdata = MAXH2CDATA.get(bytes);
                Self::IcResp(IcResp { cpda: alignment, digests, maxh2cdata })
            }
            Kind::H2cTermReq => Self::H2cTermReq(term),
            Kind::C2hTermReq => Self::C2hTermReq(term),
            Kind::CapsuleCmd => Self::CapsuleCmd(CCSQE.get(bytes)),
            Kind::CapsuleResp => Self::CapsuleResp(RCCQE.get(bytes)),
            Kind::H2cData => Self::H2cData { cid, ttag, offset, length, last },
            Kind::C2hData => {
                let success = flags & SUCCESS != 0;
                Self::C2hData { cid, offset, length, last, success }
            }
            Kind::R2t => Self::R2t { cid, ttag, offset, length },
        }
    }
}

/// HDGST: the place of the header digest, behind the header.
#[inline]
pub(crate) const fn digest_of(kind: Kind) -> Le<u32> {
    Le::at(kind.header_bytes() as u16)
}

impl Digests {
    // The bits of DGST.
    const fn bits(self) -> u8 {
        let header = if self.header { HDGST_ENABLE } else { 0 };
        header | if self.data { DDGST_ENABLE } else { 0 }
    }

    // Decodes DGST; reserved bits are ignored, as reserved fields are (Base 1.8).
    const fn from_bits(bits: u8) -> Self {
        Self { header: bits & HDGST_ENABLE != 0, data: bits & DDGST_ENABLE != 0 }
    }

    /// The digests that the flags of a header announce.
    pub(crate) const fn from_flags(flags: u8) -> Self {
        Self { header: flags & HDGSTF != 0, data: flags & DDGSTF != 0 }
    }
}

// Encodes the fields of data PDUs and R2T.
fn put_range(bytes: &mut [u8; HEADER_BYTES_MAX], cid: u16, ttag: u16, offset: u32, length: u32) {
    CCCID.put(bytes, cid);
    TTAG.put(bytes, ttag);
    DATAO.put(bytes, offset);
    DATAL.put(bytes, length);
}

/// The CRC-32C of `data`, as it stands behind the data of a PDU (DDGST; NVMe/TCP 3.3.1.2).
#[must_use]
pub fn data_digest(data: &[u8]) -> [u8; DIGEST_BYTES] {
    crc32c::crc32c(data).to_le_bytes()
}
