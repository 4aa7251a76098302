//! The supported commands, and their valid bits.
//!
//! One table serves both for checks and for REPORT SUPPORTED OPERATION CODES (SPC-4 6.35).

use super::inquiry::UnitData;
use super::layout::cdb::{OPERATION_CODE, SERVICE_ACTION, report as asked_for};
use super::layout::report::opcodes as layout;
use super::sense::Sense;

/// Which commands to report (SPC-4 6.35: REPORTING OPTIONS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedCodes {
    /// All.
    All,
    /// One without service actions.
    Code(u8),
    /// One with this service action.
    Action(u8, u16),
    /// One with this service action, or without if it has none.
    Either(u8, u16),
}

/// The property that a logical unit needs for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Blocks can be deallocated.
    Thin,
    /// Atomic writes of several blocks are supported.
    Atomic,
    /// Access states of ports are reported.
    PortStates,
}

/// A supported command.
pub(super) struct Opcode {
    pub(super) code: u8,
    pub(super) action: Option<u8>,
    needs: Needs,
    /// CDB usage data: the operation code, then the bits that may be set, for each byte of the CDB.
    usage: &'static [u8],
}

// A command without service actions.
const fn plain(code: u8, usage: &'static [u8]) -> Opcode {
    Opcode { code, action: None, needs: Needs::Nothing, usage }
}

// A command with a service action.
const fn action(code: u8, action: u8, usage: &'static [u8]) -> Opcode {
    Opcode { code, action: Some(action), needs: Needs::Nothing, usage }
}

// In order of opcodes and service actions. Of byte 1: 10h DPO, 08h FUA or UNMAP or ANCHOR, as the
// command has it; protection information and NACA are not supported, and
// group numbers only where they are all that makes a difference.
#[rustfmt::skip] // one row, one line
const OPCODES: [Opcode; 52] = [
    plain(0x00, b"\x00\0\0\0\0\0"),                                    // TEST UNIT READY
    plain(0x03, b"\x03\x01\0\0\xff\0"),                                // REQUEST SENSE
    plain(0x08, b"\x08\x1f\xff\xff\xff\0"),                            // READ(6)
    plain(0x0a, b"\x0a\x1f\xff\xff\xff\0"),                            // WRITE(6)
    plain(0x12, b"\x12\x01\xff\xff\xff\0"),                            // INQUIRY
    plain(0x15, b"\x15\x11\0\0\xff\0"),                                // MODE SELECT(6)
    plain(0x16, b"\x16\0\0\0\0\0"),                                    // RESERVE(6)
    plain(0x17, b"\x17\0\0\0\0\0"),                                    // RELEASE(6)
    plain(0x1a, b"\x1a\x08\xff\xff\xff\0"),                            // MODE SENSE(6)
    plain(0x1b, b"\x1b\x01\0\0\x01\0"),                                // START STOP UNIT
    plain(0x1d, b"\x1d\x04\0\0\0\0"),                                  // SEND DIAGNOSTIC
    plain(0x25, b"\x25\0\0\0\0\0\0\0\0\0"),                            // READ CAPACITY(10)
    plain(0x28, b"\x28\x18\xff\xff\xff\xff\0\xff\xff\0"),              // READ(10)
    plain(0x2a, b"\x2a\x18\xff\xff\xff\xff\0\xff\xff\0"),              // WRITE(10)
    plain(0x2e, b"\x2e\x16\xff\xff\xff\xff\0\xff\xff\0"),              // WRITE AND VERIFY(10)
    plain(0x2f, b"\x2f\x16\xff\xff\xff\xff\0\xff\xff\0"),              // VERIFY(10)
    plain(0x34, b"\x34\x02\xff\xff\xff\xff\x1f\xff\xff\0"),              // PRE-FETCH(10)
    plain(0x35, b"\x35\x02\xff\xff\xff\xff\0\xff\xff\0"),              // SYNCHRONIZE CACHE(10)
    plain(0x41, b"\x41\0\xff\xff\xff\xff\0\xff\xff\0"),              // WRITE SAME(10)
    Opcode { needs: Needs::Thin, ..plain(0x42, b"\x42\0\0\0\0\0\0\xff\xff\0") }, // UNMAP
    plain(0x4d, b"\x4d\0\xff\xff\0\xff\xff\xff\xff\0"),                // LOG SENSE
    plain(0x55, b"\x55\x11\0\0\0\0\0\xff\xff\0"),                      // MODE SELECT(10)
    plain(0x5a, b"\x5a\x18\xff\xff\0\0\0\xff\xff\0"),                  // MODE SENSE(10)
    action(0x5e, 0x00, b"\x5e\x1f\0\0\0\0\0\xff\xff\0"),               // READ KEYS
    action(0x5e, 0x01, b"\x5e\x1f\0\0\0\0\0\xff\xff\0"),               // READ RESERVATION
    action(0x5e, 0x02, b"\x5e\x1f\0\0\0\0\0\xff\xff\0"),               // REPORT CAPABILITIES
    action(0x5e, 0x03, b"\x5e\x1f\0\0\0\0\0\xff\xff\0"),               // READ FULL STATUS
    action(0x5f, 0x00, b"\x5f\x1f\xff\0\0\xff\xff\xff\xff\0"),         // REGISTER
    action(0x5f, 0x01, b"\x5f\x1f\xff\0\0\xff\xff\xff\xff\0"),         // RESERVE
    action(0x5f, 0x02, b"\x5f\x1f\xff\0\0\xff\xff\xff\xff\0"),         // RELEASE
    action(0x5f, 0x03, b"\x5f\x1f\xff\0\0\xff\xff\xff\xff\0"),         // CLEAR
    action(0x5f, 0x04, b"\x5f\x1f\xff\0\0\xff\xff\xff\xff\0"),         // PREEMPT
    action(0x5f, 0x05, b"\x5f\x1f\xff\0\0\xff\xff\xff\xff\0"),         // PREEMPT AND ABORT
    action(0x5f, 0x06, b"\x5f\x1f\xff\0\0\xff\xff\xff\xff\0"),         // REGISTER AND IGNORE
    plain(0x88, b"\x88\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0"), // READ(16)
    plain(0x89, b"\x89\x18\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\xff\0\0"), // COMPARE AND WRITE
    plain(0x8a, b"\x8a\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0"), // WRITE(16)
    plain(0x8b, b"\x8b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0"), // ORWRITE(16)
    plain(0x8e, b"\x8e\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0"), // ... VERIFY(16)
    plain(0x8f, b"\x8f\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0"), // VERIFY(16)
    plain(0x90, b"\x90\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x1f\0"), // PRE-FETCH(16)
    plain(0x91, b"\x91\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0"), // SYNC... (16)
    plain(0x93, b"\x93\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0"), // WRITE SAME(16)
    Opcode {                                                           // WRITE ATOMIC(16)
        needs: Needs::Atomic,
        ..plain(0x9c, b"\x9c\x18\xff\xff\xff\xff\xff\xff\xff\xff\0\0\xff\xff\0\0")
    },
    action(0x9e, 0x10, b"\x9e\x1f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0"), // (16)
    action(0x9e, 0x12, b"\x9e\x1f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0"), // STATUS
    plain(0xa0, b"\xa0\0\xff\0\0\0\xff\xff\xff\xff\0\0"),              // REPORT LUNS
    Opcode {                                                           // ... TARGET PORT GROUPS
        needs: Needs::PortStates,
        ..action(0xa3, 0x0a, b"\xa3\xff\0\0\0\0\xff\xff\xff\xff\0\0")
    },
    action(0xa3, 0x0c, b"\xa3\x1f\x87\xff\xff\xff\xff\xff\xff\xff\0\0"), // ... OPERATION CODES
    action(0xa3, 0x0d, b"\xa3\x1f\x80\0\0\0\xff\xff\xff\xff\0\0"),     // ... MANAGEMENT FUNCTIONS
    plain(0xa8, b"\xa8\x18\xff\xff\xff\xff\xff\xff\xff\xff\0\0"),      // READ(12)
    plain(0xaa, b"\xaa\x18\xff\xff\xff\xff\xff\xff\xff\xff\0\0"),      // WRITE(12)
];

#[rustfmt::skip] // one row, one line
const VERIFIES: [Opcode; 2] = [
    plain(0xae, b"\xae\x16\xff\xff\xff\xff\xff\xff\xff\xff\0\0"),      // WRITE AND VERIFY(12)
    plain(0xaf, b"\xaf\x16\xff\xff\xff\xff\xff\xff\xff\xff\0\0"),      // VERIFY(12)
];

/// WRITE SAME(16), whose byte 1 may have UNMAP; WRITE SAME(10) may not have it (LBPWS10).
const WRITE_SAME: u8 = 0x93;
const UNMAP: u8 = 1 << 3;

impl Opcode {
    // Whether a logical unit supports the command.
    fn is_there(&self, unit: &UnitData) -> bool {
        match self.needs {
            Needs::Nothing => true,
            Needs::Thin => unit.is_thin,
            Needs::Atomic => unit.atomic_blocks > 0,
            Needs::PortStates => unit.has_port_states(),
        }
    }

    /// Bytes of the CDB.
    pub(super) const fn length(&self) -> usize {
        self.usage.len()
    }

    // The valid bits of a byte of the CDB, for a logical unit.
    fn usage(&self, unit: &UnitData, at: usize) -> u8 {
        let has_unmap = unit.is_thin || self.code != WRITE_SAME || at != 1;
        if has_unmap { self.usage[at] } else { self.usage[at] & !UNMAP }
    }
}

// All commands that a logical unit supports.
fn all(unit: &UnitData) -> impl Iterator<Item = &'static Opcode> {
    OPCODES.iter().chain(&VERIFIES).filter(|one| one.is_there(unit))
}

/// Finds the command of a CDB, and checks that only valid bits are set.
pub(super) fn find(cdb: &[u8; 16], unit: &UnitData) -> Result<&'static Opcode, Sense> {
    let mut of_code = all(unit).filter(|one| one.code == OPERATION_CODE.get(cdb)).peekable();
    of_code.peek().ok_or(Sense::INVALID_OPCODE)?;
    let is_action =
        |one: &&Opcode| one.action.is_none_or(|action| action == SERVICE_ACTION.get(cdb));
    let found = of_code.find(is_action).ok_or_else(|| Sense::wrong(SERVICE_ACTION))?;
    for (at, byte) in (0..found.length()).zip(cdb).skip(1) {
        let wrong = byte & !found.usage(unit, at);
        if wrong != 0 {
            let bit = u8::try_from(wrong.ilog2()).ok();
            return Err(Sense::in_cdb(u16::try_from(at).unwrap_or(0), bit));
        }
    }
    Ok(found)
}

/// The data of REPORT SUPPORTED OPERATION CODES (SPC-4 6.35).
pub(super) fn report(
    unit: &UnitData,
    asked: ReportedCodes,
    has_timeouts: bool,
) -> Result<Vec<u8>, Sense> {
    match asked {
        ReportedCodes::All => Ok(list(unit, has_timeouts)),
        ReportedCodes::Code(code) => {
            // A command with service actions needs one in the request.
            if all(unit).any(|one| one.code == code && one.action.is_some()) {
                return Err(Sense::wrong(asked_for::OPTIONS));
            }
            Ok(one(unit, code, None, has_timeouts))
        }
        ReportedCodes::Action(code, action) => {
            if all(unit).any(|one| one.code == code && one.action.is_none()) {
                return Err(Sense::wrong(asked_for::OPTIONS));
            }
            Ok(one(unit, code, u8::try_from(action).ok(), has_timeouts))
        }
        ReportedCodes::Either(code, action) => {
            let has_actions = all(unit).any(|one| one.code == code && one.action.is_some());
            let action = u8::try_from(action).ok();
            let asked = if has_actions { action } else { action.filter(|&action| action != 0) };
            Ok(one(unit, code, asked, has_timeouts))
        }
    }
}

// A command timeouts descriptor without timeouts (SPC-4 6.35.4).
const NO_TIMEOUTS: [u8; 12] = [0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

// The descriptors of all commands.
fn list(unit: &UnitData, has_timeouts: bool) -> Vec<u8> {
    use layout::*;
    let mut data = vec![0; HEADER_BYTES];
    for one in all(unit) {
        let mut entry = [0; DESCRIPTOR_BYTES];
        CODE.put(&mut entry, one.code);
        ACTION.put(&mut entry, one.action.unwrap_or(0).into());
        CTDP.put(&mut entry, has_timeouts);
        SERVACTV.put(&mut entry, one.action.is_some());
        CDB_LENGTH.put(&mut entry, u16::try_from(one.length()).unwrap_or(0));
        data.extend_from_slice(&entry);
        if has_timeouts {
            data.extend_from_slice(&NO_TIMEOUTS);
        }
    }
    let length = u32::try_from(data.len() - HEADER_BYTES).unwrap_or(u32::MAX);
    LENGTH.put(&mut data, length);
    data
}

// The description of one command.
fn one(unit: &UnitData, code: u8, action: Option<u8>, has_timeouts: bool) -> Vec<u8> {
    use layout::*;
    let found = all(unit).find(|one| one.code == code && one.action == action);
    let mut data = vec![0; HEADER_BYTES];
    let Some(found) = found else {
        SUPPORT.put(&mut data, MISSING);
        return data;
    };
    ONE_CTDP.put(&mut data, has_timeouts);
    SUPPORT.put(&mut data, STANDARD);
    CDB_SIZE.put(&mut data, u16::try_from(found.length()).unwrap_or(0));
    data.extend((0..found.length()).map(|at| found.usage(unit, at)));
    // The usage data has the service action in its own bits.
    if let Some(action) = action {
        SERVICE_ACTION.put(&mut data[HEADER_BYTES..], action);
    }
    if has_timeouts {
        data.extend_from_slice(&NO_TIMEOUTS);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_as_long_as_their_group_says() {
        let rows: Vec<&Opcode> = OPCODES.iter().chain(&VERIFIES).collect();
        for pair in rows.windows(2) {
            let key = |one: &Opcode| (one.code, one.action);
            assert!(key(pair[0]) < key(pair[1]), "{:#x}", pair[1].code);
        }
        for row in rows {
            // The group code says how long it is (SPC-4 4.2.5.1).
            let expected = [6, 10, 10, 0, 16, 12][usize::from(row.code >> 5)];
            assert_eq!((row.length(), row.usage[0]), (expected, row.code), "{:#x}", row.code);
        }
    }
}
