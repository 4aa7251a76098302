//! Headers of PDUs (TCP 3.6).

use wire::{Byte, Bytes, Le};

use super::entry::{completion, submission};

/// Bytes that every header begins with (TCP 3.6.1).
pub(crate) const COMMON_BYTES: usize = 8;
/// Bytes of a header and its digest at most.
pub(crate) const BYTES_MAX: usize = 128;
/// HLEN of ICReq and ICResp, of a command capsule, and of the others.
pub(crate) const INITIALIZE_BYTES: u8 = 128;
pub(crate) const COMMAND_BYTES: u8 = 72;
pub(crate) const OTHER_BYTES: u8 = 24;

pub(crate) const TYPE: Byte = Byte::at(0); // PDU-Type
pub(crate) const FLAGS: Byte = Byte::at(1); // FLAGS
pub(crate) const HLEN: Byte = Byte::at(2); // Header Length
pub(crate) const PDO: Byte = Byte::at(3); // PDU Data Offset
pub(crate) const PLEN: Le<u32> = Le::at(4); // PDU Length

// ICReq and ICResp (TCP 3.6.2.2, 3.6.2.3).
pub(crate) const PFV: Le<u16> = Le::at(8); // PDU Format Version
pub(crate) const PDA: Byte = Byte::at(10); // HPDA, CPDA: PDU Data Alignment
pub(crate) const DGST: Byte = Byte::at(11); // Digest
pub(crate) const MAXR2T: Le<u32> = Le::at(12); // Maximum Number of Outstanding R2T
pub(crate) const MAXH2CDATA: Le<u32> = Le::at(12); // Maximum Host to Controller Data length

// H2CTermReq and C2HTermReq (TCP 3.6.2.4, 3.6.2.5).
pub(crate) const FES: Le<u16> = Le::at(8); // Fatal Error Status
pub(crate) const FEI: Le<u32> = Le::at(10); // Fatal Error Information

// CapsuleCmd and CapsuleResp (TCP 3.6.2.6, 3.6.2.7).
pub(crate) const CCSQE: Bytes<{ submission::BYTES }> = Bytes::at(8); // Submission Queue Entry
pub(crate) const RCCQE: Bytes<{ completion::BYTES }> = Bytes::at(8); // Completion Queue Entry

// H2CData, C2HData, R2T (TCP 3.6.2.8 to 3.6.2.10).
pub(crate) const CCCID: Le<u16> = Le::at(8); // Command Capsule CID
pub(crate) const TTAG: Le<u16> = Le::at(10); // Transfer Tag
pub(crate) const DATAO: Le<u32> = Le::at(12); // DATAO, R2TO: Data Offset
pub(crate) const DATAL: Le<u32> = Le::at(16); // DATAL, R2TL: Data Length

/// FLAGS.
pub(crate) const HDGSTF: u8 = 1 << 0;
pub(crate) const DDGSTF: u8 = 1 << 1;
pub(crate) const LAST_PDU: u8 = 1 << 2;
pub(crate) const SUCCESS: u8 = 1 << 3;
/// DGST.
pub(crate) const HDGST_ENABLE: u8 = 1 << 0;
pub(crate) const DDGST_ENABLE: u8 = 1 << 1;
