//! The headers of PDUs, and their form on the wire (RFC 7143 11).

use crate::Residual;

use super::layout::{self, DATA_SEGMENT_LENGTH, ITT, OPCODE};

/// Bytes of a basic header segment (11.2).
pub const BHS_BYTES: usize = layout::BHS_BYTES;
/// Bytes of a digest of a header or of data (11.2.3, 11.2.4).
pub const DIGEST_BYTES: usize = 4;
/// The reserved tag: no tag (11.2.1.8).
pub const NO_TAG: u32 = u32::MAX;

/// Which digests a connection uses (13.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digests {
    /// Header digests.
    pub header: bool,
    /// Data digests.
    pub data: bool,
}

/// Sequence numbers of a request (4.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// CmdSN.
    pub cmd_sn: u32,
    /// ExpStatSN.
    pub exp_stat_sn: u32,
}

/// Sequence numbers of an answer (4.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// StatSN; 0 where there is no status.
    pub stat_sn: u32,
    /// ExpCmdSN.
    pub exp_cmd_sn: u32,
    /// MaxCmdSN.
    pub max_cmd_sn: u32,
}

/// SCSI Command (11.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct ScsiCommand {
    pub is_immediate: bool,
    /// No unsolicited data follows in PDUs of its own.
    pub is_final: bool,
    pub reads: bool,
    pub writes: bool,
    pub attribute: u8,
    pub lun: [u8; 8],
    pub itt: u32,
    pub expected_bytes: u32,
    pub numbers: Numbers,
    pub cdb: [u8; 16],
}

/// SCSI Response (11.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct ScsiResponse {
    pub residual: Residual,
    /// 0; or an error code, if the target failed before there was a status.
    pub response: u8,
    pub status: u8,
    pub itt: u32,
    pub window: Window,
    pub exp_data_sn: u32,
}

/// Task Management Function Request (11.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct TaskRequest {
    pub is_immediate: bool,
    pub function: u8,
    pub lun: [u8; 8],
    pub itt: u32,
    /// Initiator task tag of the task to manage.
    pub referenced: u32,
    pub numbers: Numbers,
    pub ref_cmd_sn: u32,
}

/// SCSI Data-Out (11.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct DataOut {
    pub is_final: bool,
    pub lun: [u8; 8],
    pub itt: u32,
    pub ttt: u32,
    pub exp_stat_sn: u32,
    pub data_sn: u32,
    pub offset: u32,
}

/// SCSI Data-In (11.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct DataIn {
    pub is_final: bool,
    /// The status of the command, if this PDU ends it without a response.
    pub status: Option<u8>,
    pub residual: Residual,
    pub lun: [u8; 8],
    pub itt: u32,
    pub window: Window,
    pub data_sn: u32,
    pub offset: u32,
}

/// Ready To Transfer (11.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct R2t {
    pub lun: [u8; 8],
    pub itt: u32,
    pub ttt: u32,
    pub window: Window,
    pub r2t_sn: u32,
    pub offset: u32,
    pub length: u32,
}

/// Asynchronous Message (11.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct AsyncMessage {
    pub lun: [u8; 8],
    pub window: Window,
    pub event: u8,
    pub parameters: [u16; 3],
}

/// Text Request and Response (11.10, 11.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct TextRequest {
    pub is_immediate: bool,
    pub is_final: bool,
    pub continues: bool,
    pub itt: u32,
    pub ttt: u32,
    pub numbers: Numbers,
}

/// See [`TextRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct TextResponse {
    pub is_final: bool,
    pub continues: bool,
    pub itt: u32,
    pub ttt: u32,
    pub window: Window,
}

/// The stage of a login, and the transition that a PDU requests or grants (11.12, 11.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct LoginStage {
    pub transits: bool,
    pub continues: bool,
    /// CSG.
    pub current: u8,
    /// NSG.
    pub next: u8,
}

/// Login Request (11.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct LoginRequest {
    pub stage: LoginStage,
    pub version_max: u8,
    pub version_min: u8,
    pub isid: [u8; 6],
    pub tsih: u16,
    pub itt: u32,
    pub cid: u16,
    pub numbers: Numbers,
}

/// Login Response (11.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub struct LoginResponse {
    pub stage: LoginStage,
    pub isid: [u8; 6],
    pub tsih: u16,
    pub itt: u32,
    pub window: Window,
    /// Status class and detail.
    pub status: u16,
}

/// The header of a PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are named as the RFC names them")]
pub enum Header {
    /// 00h (11.18).
    NopOut { is_immediate: bool, lun: [u8; 8], itt: u32, ttt: u32, numbers: Numbers },
    /// 01h.
    Command(ScsiCommand),
    /// 02h.
    TaskRequest(TaskRequest),
    /// 03h.
    LoginRequest(LoginRequest),
    /// 04h.
    TextRequest(TextRequest),
    /// 05h.
    DataOut(DataOut),
    /// 06h (11.14).
    LogoutRequest { is_immediate: bool, reason: u8, itt: u32, cid: u16, numbers: Numbers },
    /// 10h (11.16).
    Snack { itt: u32, exp_stat_sn: u32 },
    /// 20h (11.19).
    NopIn { lun: [u8; 8], itt: u32, ttt: u32, window: Window },
    /// 21h.
    Response(ScsiResponse),
    /// 22h (11.6).
    TaskResponse { response: u8, itt: u32, window: Window },
    /// 23h.
    LoginResponse(LoginResponse),
    /// 24h.
    TextResponse(TextResponse),
    /// 25h.
    DataIn(DataIn),
    /// 26h (11.15).
    LogoutResponse { response: u8, itt: u32, window: Window },
    /// 31h.
    R2t(R2t),
    /// 32h.
    Async(AsyncMessage),
    /// 3Fh (11.17); its data is the rejected header.
    Reject { reason: u8, window: Window },
    /// Any other.
    Other { opcode: u8, is_immediate: bool, itt: u32, cmd_sn: u32 },
}

impl Header {
    /// Its opcode.
    #[must_use]
    pub const fn opcode(&self) -> u8 {
        match self {
            Self::NopOut { .. } => 0x00,
            Self::Command(_) => 0x01,
            Self::TaskRequest(_) => 0x02,
            Self::LoginRequest(_) => 0x03,
            Self::TextRequest(_) => 0x04,
            Self::DataOut(_) => 0x05,
            Self::LogoutRequest { .. } => 0x06,
            Self::Snack { .. } => 0x10,
            Self::NopIn { .. } => 0x20,
            Self::Response(_) => 0x21,
            Self::TaskResponse { .. } => 0x22,
            Self::LoginResponse(_) => 0x23,
            Self::TextResponse(_) => 0x24,
            Self::DataIn(_) => 0x25,
            Self::LogoutResponse { .. } => 0x26,
            Self::R2t(_) => 0x31,
            Self::Async(_) => 0x32,
            Self::Reject { .. } => 0x3f,
            Self::Other { opcode, .. } => *opcode & 0x3f,
        }
    }

    /// Its initiator task tag; [`NO_TAG`] or 0 for PDUs without one.
    #[must_use]
    pub fn itt(&self) -> u32 {
        ITT.get(&self.bytes(0))
    }

    /// Whether a request is immediate, and its CmdSN; `None` for PDUs without a CmdSN.
    pub(crate) const fn turn(&self) -> Option<(bool, u32)> {
        match *self {
            Self::NopOut { is_immediate, numbers, .. }
            | Self::LogoutRequest { is_immediate, numbers, .. }
            | Self::Command(ScsiCommand { is_immediate, numbers, .. })
            | Self::TaskRequest(TaskRequest { is_immediate, numbers, .. })
            | Self::TextRequest(TextRequest { is_immediate, numbers, .. }) => {
                Some((is_immediate, numbers.cmd_sn))
            }
            _ => None,
        }
    }

    /// Whether it is a request with the reserved tag, which only answers to pings may have
    /// (11.2.1.8).
    pub(crate) const fn lacks_tag(&self) -> bool {
        matches!(
            self,
            Self::Command(ScsiCommand { itt: NO_TAG, .. })
                | Self::TaskRequest(TaskRequest { itt: NO_TAG, .. })
                | Self::TextRequest(TextRequest { itt: NO_TAG, .. })
                | Self::LogoutRequest { itt: NO_TAG, .. }
        )
    }

    /// Appends everything before the data of a PDU with `data_bytes` of data: header and header
    /// digest. The data and [`trailer`] of it follow.
    pub fn encode(&self, digests: Digests, data_bytes: usize, out: &mut Vec<u8>) {
        let bytes = self.bytes(data_bytes);
        out.extend_from_slice(&bytes);
        if digests.header {
            out.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        }
    }

    // The encoded header.
    fn bytes(&self, data_bytes: usize) -> [u8; BHS_BYTES] {
        let mut bytes = [0; BHS_BYTES];
        OPCODE.put(&mut bytes, self.opcode());
        // DataSegmentLength has 24 bits; every negotiated limit fits.
        let length = u32::try_from(data_bytes).unwrap_or(u32::MAX).min(0xff_ffff);
        DATA_SEGMENT_LENGTH.put(&mut bytes, length);
        self.put_request(&mut bytes);
        self.put_answer(&mut bytes);
        bytes
    }
}

/// Appends padding to four bytes and the data digest behind the data of a PDU (11.2.3, 11.2.4);
/// nothing if there is no data.
pub fn trailer(data: &[u8], digests: Digests, out: &mut Vec<u8>) {
    if data.is_empty() {
        return;
    }
    let padding = &[0; 3][..padding_of(data.len())];
    out.extend_from_slice(padding);
    if digests.data {
        let digest = crc32c::crc32c_append(crc32c::crc32c(data), padding);
        out.extend_from_slice(&digest.to_le_bytes());
    }
}

/// Bytes of padding behind `length` bytes of data.
pub(crate) const fn padding_of(length: usize) -> usize {
    length.next_multiple_of(4) - length
}
