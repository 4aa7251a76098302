//! The places of header fields (11), for encoding and decoding. Names are those of the RFC.

use wire::{Be, Be24, Bit, Bits, Byte, Bytes};

/// Bytes of a basic header segment (11.2).
pub(crate) const BHS_BYTES: usize = 48;
/// Unit of TotalAHSLength.
pub(crate) const AHS_UNIT: usize = 4;

// Of every PDU (11.2.1).
pub(crate) const OPCODE: Bits = Bits::at(0, 5, 0); // Opcode
pub(crate) const IMMEDIATE: Bit = Bit::at(0, 6); // I
pub(crate) const FLAGS: Byte = Byte::at(1); // F, and what is of the opcode
pub(crate) const TOTAL_AHS_LENGTH: Byte = Byte::at(4); // TotalAHSLength
pub(crate) const DATA_SEGMENT_LENGTH: Be24 = Be24::at(5); // DataSegmentLength
pub(crate) const LUN: Bytes<8> = Bytes::at(8); // LUN
pub(crate) const ITT: Be<u32> = Be::at(16); // Initiator Task Tag
pub(crate) const TTT: Be<u32> = Be::at(20); // Target Transfer Tag

// Numbers of requests (4.2.2).
pub(crate) const CMD_SN: Be<u32> = Be::at(24); // CmdSN
pub(crate) const EXP_STAT_SN: Be<u32> = Be::at(28); // ExpStatSN

// Numbers of answers (4.2.2).
pub(crate) const STAT_SN: Be<u32> = Be::at(24); // StatSN
pub(crate) const EXP_CMD_SN: Be<u32> = Be::at(28); // ExpCmdSN
pub(crate) const MAX_CMD_SN: Be<u32> = Be::at(32); // MaxCmdSN

// SCSI Command (11.3).
pub(crate) const ATTR: Bits = Bits::at(1, 2, 0); // ATTR
pub(crate) const EXPECTED_LENGTH: Be<u32> = Be::at(20); // Expected Data Transfer Length
pub(crate) const CDB: Bytes<16> = Bytes::at(32); // SCSI Command Descriptor Block

// SCSI Response (11.4), SCSI Data-In (11.7).
pub(crate) const RESPONSE: Byte = Byte::at(2); // Response; Reason of Reject (11.17)
pub(crate) const STATUS: Byte = Byte::at(3); // Status
pub(crate) const EXP_DATA_SN: Be<u32> = Be::at(36); // ExpDataSN
pub(crate) const RESIDUAL_COUNT: Be<u32> = Be::at(44); // Residual Count
/// In the data of a SCSI Response, before sense data (11.4.7).
pub(crate) const SENSE_LENGTH: Be<u16> = Be::at(0); // SenseLength
pub(crate) const SENSE_AT: usize = 2;

// Task Management Function Request (11.5).
pub(crate) const FUNCTION: Bits = Bits::at(1, 6, 0); // Function
pub(crate) const REFERENCED_TASK_TAG: Be<u32> = Be::at(20); // Referenced Task Tag
pub(crate) const REF_CMD_SN: Be<u32> = Be::at(32); // RefCmdSN

// SCSI Data-Out and Data-In (11.7), R2T (11.8).
pub(crate) const DATA_SN: Be<u32> = Be::at(36); // DataSN, R2TSN
pub(crate) const BUFFER_OFFSET: Be<u32> = Be::at(40); // Buffer Offset
pub(crate) const DESIRED_LENGTH: Be<u32> = Be::at(44); // Desired Data Transfer Length

// Asynchronous Message (11.9).
pub(crate) const ASYNC_EVENT: Byte = Byte::at(36); // AsyncEvent
pub(crate) const PARAMETER_1: Be<u16> = Be::at(38); // Parameter1, of three

// Login Request and Response (11.12, 11.13).
pub(crate) const CSG: Bits = Bits::at(1, 3, 2); // Current Stage
pub(crate) const NSG: Bits = Bits::at(1, 1, 0); // Next Stage
pub(crate) const VERSION_MAX: Byte = Byte::at(2); // Version-max
pub(crate) const VERSION_MIN: Byte = Byte::at(3); // Version-min
pub(crate) const ISID: Bytes<6> = Bytes::at(8); // ISID
pub(crate) const TSIH: Be<u16> = Be::at(14); // TSIH
pub(crate) const CID: Be<u16> = Be::at(20); // CID, of Logout Request (11.14), too
pub(crate) const LOGIN_STATUS: Be<u16> = Be::at(36); // Status-Class, Status-Detail

// Logout Request (11.14).
pub(crate) const REASON: Bits = Bits::at(1, 6, 0); // Reason Code

/// FLAGS: F; of Login, T.
pub(crate) const FINAL: u8 = 1 << 7;
/// FLAGS of Text and Login: C.
pub(crate) const CONTINUE: u8 = 1 << 6;
/// FLAGS of SCSI Command: R and W.
pub(crate) const READS: u8 = 1 << 6;
pub(crate) const WRITES: u8 = 1 << 5;
/// FLAGS of SCSI Response and SCSI Data-In: O, U; of the latter, S.
pub(crate) const OVERFLOW: u8 = 1 << 2;
pub(crate) const UNDERFLOW: u8 = 1 << 1;
pub(crate) const HAS_STATUS: u8 = 1 << 0;
