//! Decodes command descriptor blocks (SPC-4 6; SBC-3 5).

use wire::Place as _;

use super::inquiry::UnitData;
use super::layout::cdb as layout;
use super::log::LogAsked;
use super::opcodes::{self, ReportedCodes};
use super::sense::Sense;

/// The blocks of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first block.
    pub first: u64,
    /// How many blocks; 0 means none, except where a command says otherwise.
    pub count: u32,
    /// FUA: written data is on the medium when the command has ended, and read data comes from the
    /// medium.
    pub forced: bool,
}

/// What a verification compares the medium with (SBC-3 5.30: BYTCHK).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Nothing: it checks that blocks can be read.
    Readable,
    /// The command's data.
    Data,
    /// The command's data, one block, with each block.
    Block,
}

/// Which values of a mode page a command requests (SPC-4 6.11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageControl {
    /// The current values.
    Current,
    /// A mask of changeable bits.
    Changeable,
    /// The values after a reset.
    Default,
    /// The stored values.
    Saved,
}

/// A decoded command. `length` is the bytes of its parameter list, `allocation` the bytes that the
/// initiator has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are named as the standard names them")]
pub enum Command {
    /// 00h.
    TestUnitReady,
    /// 03h.
    RequestSense { is_descriptor: bool, allocation: u32 },
    /// 12h: a page of vital product data, or standard data.
    Inquiry { page: Option<u8>, allocation: u32 },
    /// 15h and 55h.
    ModeSelect { is_long: bool, has_pages: bool, saves: bool, length: u32 },
    /// 16h.
    Reserve,
    /// 17h.
    Release,
    /// 1Ah and 5Ah.
    ModeSense {
        is_long: bool,
        without_blocks: bool,
        control: PageControl,
        page: u8,
        subpage: u8,
        allocation: u32,
    },
    /// 1Bh.
    StartStopUnit { starts: bool },
    /// 1Dh.
    SendDiagnostic,
    /// 25h.
    ReadCapacity,
    /// 9Eh/10h.
    ReadCapacityLong { allocation: u32 },
    /// 9Eh/12h.
    GetLbaStatus { first: u64, allocation: u32 },
    /// 08h, 28h, A8h, 88h.
    Read(Extent),
    /// 0Ah, 2Ah, AAh, 8Ah.
    Write(Extent),
    /// 2Eh, AEh, 8Eh.
    WriteAndVerify { extent: Extent, check: Check },
    /// 2Fh, AFh, 8Fh.
    Verify { extent: Extent, check: Check },
    /// 34h, 90h; a count of 0 is all from the first on.
    PreFetch(Extent),
    /// 35h, 91h; a count of 0 is all from the first on.
    SynchronizeCache(Extent),
    /// 41h, 93h; a count of 0 is all from the first on.
    WriteSame { extent: Extent, unmaps: bool, has_data: bool },
    /// 42h.
    Unmap { length: u32 },
    /// 89h.
    CompareAndWrite(Extent),
    /// 8Bh.
    OrWrite(Extent),
    /// 9Ch.
    WriteAtomic(Extent),
    /// A0h.
    ReportLuns { select: u8, allocation: u32 },
    /// A3h/0Ah.
    ReportPortGroups { is_extended: bool, allocation: u32 },
    /// A3h/0Ch.
    ReportOpcodes { asked: ReportedCodes, has_timeouts: bool, allocation: u32 },
    /// A3h/0Dh.
    ReportManagementFunctions { is_long: bool, allocation: u32 },
    /// 4Dh.
    LogSense { asked: LogAsked, allocation: u32 },
    /// 5Eh.
    ReservationIn { action: u8, allocation: u32 },
    /// 5Fh.
    ReservationOut { action: u8, scope: u8, kind: u8, length: u32 },
}

impl Command {
    /// Reads a command; bytes behind a shorter one are ignored.
    ///
    /// # Errors
    /// The sense to report: an unknown command, or an invalid field.
    pub fn read(cdb: &[u8; 16], unit: &UnitData) -> Result<Self, Sense> {
        let opcode = opcodes::find(cdb, unit)?;
        if let Some(action) = opcode.action {
            return with_action(cdb, action);
        }
        match layout::OPERATION_CODE.get(cdb) {
            0x00 | 0x03 | 0x12 | 0x15..=0x1d | 0x25 | 0x4d | 0x55 | 0x5a | 0xa0 => primary(cdb),
            _ => block(cdb, opcode.length()),
        }
    }
}

// Decodes commands of SPC-4 6, and READ CAPACITY(10).
fn primary(cdb: &[u8; 16]) -> Result<Command, Sense> {
    use layout::{log_sense, mode_select, mode_sense, report, request_sense, start_stop};
    Ok(match layout::OPERATION_CODE.get(cdb) {
        0x00 => Command::TestUnitReady,
        0x03 => Command::RequestSense {
            is_descriptor: request_sense::DESC.get(cdb),
            allocation: request_sense::ALLOCATION_LENGTH.get(cdb).into(),
        },
        0x12 => inquiry(cdb)?,
        code @ (0x15 | 0x55) => {
            let is_long = code == 0x55;
            let length = match is_long {
                true => mode_select::LENGTH_10.get(cdb).into(),
                false => mode_select::LENGTH_6.get(cdb).into(),
            };
            let (has_pages, saves) = (mode_select::PF.get(cdb), mode_select::SP.get(cdb));
            Command::ModeSelect { is_long, has_pages, saves, length }
        }
        0x16 => Command::Reserve,
        0x17 => Command::Release,
        code @ (0x1a | 0x5a) => {
            let is_long = code == 0x5a;
            let allocation = match is_long {
                true => mode_sense::LENGTH_10.get(cdb).into(),
                false => mode_sense::LENGTH_6.get(cdb).into(),
            };
            let control = match mode_sense::PC.get(cdb) {
                0 => PageControl::Current,
                1 => PageControl::Changeable,
                2 => PageControl::Default,
                _ => PageControl::Saved,
            };
            let without_blocks = mode_sense::DBD.get(cdb);
            let page = mode_sense::PAGE_CODE.get(cdb);
            let subpage = mode_sense::SUBPAGE_CODE.get(cdb);
            Command::ModeSense { is_long, without_blocks, control, page, subpage, allocation }
        }
        0x1b => Command::StartStopUnit { starts: start_stop::START.get(cdb) },
        0x1d => Command::SendDiagnostic,
        0x25 => Command::ReadCapacity,
        0x4d => {
            // Only cumulative values: there are no thresholds (SPC-4 6.8).
            if log_sense::PC.get(cdb) != 1 {
                return Err(Sense::wrong(log_sense::PC));
            }
            let page = log_sense::PAGE_CODE.get(cdb);
            let subpage = log_sense::SUBPAGE_CODE.get(cdb);
            let asked = LogAsked { page, subpage, first: log_sense::PARAMETER_POINTER.get(cdb) };
            let allocation = log_sense::ALLOCATION_LENGTH.get(cdb).into();
            Command::LogSense { asked, allocation }
        }
        0xa0 => Command::ReportLuns {
            select: report::SELECT_REPORT.get(cdb),
            allocation: report::ALLOCATION_LENGTH.get(cdb),
        },
        _ => return Err(Sense::INVALID_OPCODE),
    })
}

// Decodes INQUIRY.
fn inquiry(cdb: &[u8; 16]) -> Result<Command, Sense> {
    use layout::inquiry::{ALLOCATION_LENGTH, EVPD, PAGE_CODE};
    let (is_page, page) = (EVPD.get(cdb), PAGE_CODE.get(cdb));
    // SPC-4 6.6.1: without EVPD there is no page.
    if !is_page && page != 0 {
        return Err(Sense::wrong(PAGE_CODE));
    }
    let allocation = ALLOCATION_LENGTH.get(cdb).into();
    Ok(Command::Inquiry { page: is_page.then_some(page), allocation })
}

// Decodes commands with a service action.
fn with_action(cdb: &[u8; 16], action: u8) -> Result<Command, Sense> {
    use layout::{capacity, report, reserve};
    Ok(match (layout::OPERATION_CODE.get(cdb), action) {
        (0x5e, action) => {
            let allocation = reserve::ALLOCATION_LENGTH.get(cdb).into();
            Command::ReservationIn { action, allocation }
        }
        (0x5f, action) => {
            let (scope, kind) = (reserve::SCOPE.get(cdb), reserve::TYPE.get(cdb));
            Command::ReservationOut { action, scope, kind, length: reserve::LENGTH.get(cdb) }
        }
        (0x9e, 0x10) => {
            // SBC-3 5.16: PMI and the address with it are obsolete, and were only ever 0.
            if capacity::PMI.get(cdb) {
                return Err(Sense::in_cdb(capacity::PMI.byte(), None));
            }
            if capacity::LBA.get(cdb) != 0 {
                return Err(Sense::wrong(capacity::LBA));
            }
            Command::ReadCapacityLong { allocation: capacity::ALLOCATION_LENGTH.get(cdb) }
        }
        (0x9e, _) => {
            let allocation = capacity::ALLOCATION_LENGTH.get(cdb);
            Command::GetLbaStatus { first: capacity::LBA.get(cdb), allocation }
        }
        (0xa3, 0x0a) => {
            let format = report::FORMAT.get(cdb);
            if format > 1 {
                return Err(Sense::wrong(report::FORMAT));
            }
            let allocation = report::ALLOCATION_LENGTH.get(cdb);
            Command::ReportPortGroups { is_extended: format == 1, allocation }
        }
        (0xa3, 0x0c) => {
            let code = report::REQUESTED_CODE.get(cdb);
            let action = report::REQUESTED_ACTION.get(cdb);
            let asked = match report::OPTIONS.get(cdb) {
                report::ALL => ReportedCodes::All,
                report::CODE => ReportedCodes::Code(code),
                report::ACTION => ReportedCodes::Action(code, action),
                report::EITHER => ReportedCodes::Either(code, action),
                _ => return Err(Sense::wrong(report::OPTIONS)),
            };
            let allocation = report::ALLOCATION_LENGTH.get(cdb);
            Command::ReportOpcodes { asked, has_timeouts: report::RCTD.get(cdb), allocation }
        }
        (0xa3, _) => {
            // SPC-4 6.36: at least four bytes.
            let allocation = report::ALLOCATION_LENGTH.get(cdb);
            if allocation < 4 {
                return Err(Sense::wrong(report::ALLOCATION_LENGTH));
            }
            Command::ReportManagementFunctions { is_long: report::REPD.get(cdb), allocation }
        }
        _ => return Err(Sense::INVALID_OPCODE),
    })
}

// Decodes block commands (SBC-3 5): commands of the same length have the same layout of LBA and
// length.
fn block(cdb: &[u8; 16], length: usize) -> Result<Command, Sense> {
    use layout::blocks::*;
    let (first, count) = match length {
        // SBC-3 5.8, 5.32: 21 bits, and 0 blocks are 256.
        6 => {
            let count = if LENGTH_6.get(cdb) == 0 { 256 } else { LENGTH_6.get(cdb).into() };
            (u64::from(LBA_6.get(cdb) & LBA_6_MASK), count)
        }
        10 => (LBA_10.get(cdb).into(), LENGTH_10.get(cdb).into()),
        12 => (LBA_12.get(cdb).into(), LENGTH_12.get(cdb)),
        _ => (LBA_16.get(cdb), LENGTH_16.get(cdb)),
    };
    let extent = Extent { first, count, forced: length > 6 && FUA.get(cdb) };
    let unforced = Extent { forced: false, ..extent };
    Ok(match layout::OPERATION_CODE.get(cdb) {
        0x08 | 0x28 | 0xa8 | 0x88 => Command::Read(extent),
        0x0a | 0x2a | 0xaa | 0x8a => Command::Write(extent),
        0x2e | 0xae | 0x8e => Command::WriteAndVerify { extent: unforced, check: check(cdb)? },
        0x2f | 0xaf | 0x8f => Command::Verify { extent: unforced, check: check(cdb)? },
        0x34 | 0x90 => Command::PreFetch(unforced),
        0x35 | 0x91 => Command::SynchronizeCache(unforced),
        code @ (0x41 | 0x93) => {
            let has_data = code == 0x41 || !NDOB.get(cdb);
            Command::WriteSame { extent: unforced, unmaps: UNMAP.get(cdb), has_data }
        }
        0x42 => Command::Unmap { length: LENGTH_10.get(cdb).into() },
        0x89 => {
            Command::CompareAndWrite(Extent { count: COMPARE_LENGTH.get(cdb).into(), ..extent })
        }
        0x8b => Command::OrWrite(extent),
        0x9c => Command::WriteAtomic(Extent { count: ATOMIC_LENGTH.get(cdb).into(), ..extent }),
        _ => return Err(Sense::INVALID_OPCODE),
    })
}

// Decodes BYTCHK (SBC-3 5.30, table "BYTCHK").
fn check(cdb: &[u8; 16]) -> Result<Check, Sense> {
    use layout::blocks::BYTCHK;
    match (BYTCHK.get(cdb), layout::OPERATION_CODE.get(cdb)) {
        (0, _) => Ok(Check::Readable),
        (1, _) => Ok(Check::Data),
        // Valid in VERIFY only.
        (3, 0x2f | 0xaf | 0x8f) => Ok(Check::Block),
        _ => Err(Sense::wrong(BYTCHK)),
    }
}
