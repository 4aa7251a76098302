//! Command descriptor blocks read once into what they ask for (SPC-4 6; SBC-3 5).

use wire::{be16_at, be24_at, be32_at, be64_at};

use super::inquiry::UnitData;
use super::log::LogAsked;
use super::opcodes::{self, ReportedCodes};
use super::sense::Sense;

/// Blocks that a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first.
    pub first: u64,
    /// How many; 0 is none, except where a command says otherwise.
    pub count: u32,
    /// FUA: what is written is on the medium when the command has ended, and what is read is
    /// what is there.
    pub forced: bool,
}

/// What a verification compares with (SBC-3 5.30: BYTCHK).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Nothing: that it can be read.
    Readable,
    /// Data that comes with the command.
    Data,
    /// One block that comes with the command, with each block.
    Block,
}

/// Which values of a mode page are meant (SPC-4 6.11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageControl {
    /// Those in force.
    Current,
    /// Ones where they can be changed.
    Changeable,
    /// Those after a reset.
    Default,
    /// Those that are kept.
    Saved,
}

/// What is asked for. Lengths are bytes: of parameters to come, or that there is room for.
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

const FUA: u8 = 1 << 3;

impl Command {
    /// Reads a command; bytes behind a shorter one are ignored.
    ///
    /// # Errors
    /// What its sender is told: there is no such command, or a field is wrong.
    pub fn read(cdb: &[u8; 16], unit: &UnitData) -> Result<Self, Sense> {
        let opcode = opcodes::find(cdb, unit)?;
        if let Some(action) = opcode.action {
            return with_action(cdb, action);
        }
        match cdb[0] {
            0x00 | 0x03 | 0x12 | 0x15..=0x1d | 0x25 | 0x4d | 0x55 | 0x5a | 0xa0 => primary(cdb),
            _ => block(cdb, opcode.length()),
        }
    }
}

// SPC-4 6, and READ CAPACITY(10).
fn primary(cdb: &[u8; 16]) -> Result<Command, Sense> {
    Ok(match cdb[0] {
        0x00 => Command::TestUnitReady,
        0x03 => {
            Command::RequestSense { is_descriptor: cdb[1] & 1 != 0, allocation: u32::from(cdb[4]) }
        }
        0x12 => {
            let is_page = cdb[1] & 1 != 0;
            // SPC-4 6.6.1: without EVPD there is no page.
            if !is_page && cdb[2] != 0 {
                return Err(Sense::in_cdb(2, None));
            }
            let allocation = u32::from(be16_at(cdb, 3));
            Command::Inquiry { page: is_page.then_some(cdb[2]), allocation }
        }
        code @ (0x15 | 0x55) => {
            let is_long = code == 0x55;
            let length = if is_long { u32::from(be16_at(cdb, 7)) } else { u32::from(cdb[4]) };
            let (has_pages, saves) = (cdb[1] & 0x10 != 0, cdb[1] & 1 != 0);
            Command::ModeSelect { is_long, has_pages, saves, length }
        }
        0x16 => Command::Reserve,
        0x17 => Command::Release,
        code @ (0x1a | 0x5a) => {
            let is_long = code == 0x5a;
            let allocation = if is_long { u32::from(be16_at(cdb, 7)) } else { u32::from(cdb[4]) };
            let control = match cdb[2] >> 6 {
                0 => PageControl::Current,
                1 => PageControl::Changeable,
                2 => PageControl::Default,
                _ => PageControl::Saved,
            };
            let without_blocks = cdb[1] & 8 != 0;
            let (page, subpage) = (cdb[2] & 0x3f, cdb[3]);
            Command::ModeSense { is_long, without_blocks, control, page, subpage, allocation }
        }
        0x1b => Command::StartStopUnit { starts: cdb[4] & 1 != 0 },
        0x1d => Command::SendDiagnostic,
        0x25 => Command::ReadCapacity,
        0x4d => {
            // PC: what has been counted, for there are no thresholds (SPC-4 6.8).
            if cdb[2] >> 6 != 1 {
                return Err(Sense::in_cdb(2, Some(7)));
            }
            let (page, subpage, first) = (cdb[2] & 0x3f, cdb[3], be16_at(cdb, 5));
            let asked = LogAsked { page, subpage, first };
            Command::LogSense { asked, allocation: u32::from(be16_at(cdb, 7)) }
        }
        0xa0 => Command::ReportLuns { select: cdb[2], allocation: be32_at(cdb, 6) },
        _ => return Err(Sense::INVALID_OPCODE),
    })
}

fn with_action(cdb: &[u8; 16], action: u8) -> Result<Command, Sense> {
    Ok(match (cdb[0], action) {
        (0x5e, action) => Command::ReservationIn { action, allocation: u32::from(be16_at(cdb, 7)) },
        (0x5f, action) => {
            let (scope, kind) = (cdb[2] >> 4, cdb[2] & 0xf);
            Command::ReservationOut { action, scope, kind, length: be32_at(cdb, 5) }
        }
        (0x9e, 0x10) => {
            // SBC-3 5.16: PMI and the address with it are obsolete, and were only ever 0.
            if cdb[14] & 1 != 0 || be64_at(cdb, 2) != 0 {
                let byte = if cdb[14] & 1 != 0 { 14 } else { 2 };
                return Err(Sense::in_cdb(byte, None));
            }
            Command::ReadCapacityLong { allocation: be32_at(cdb, 10) }
        }
        (0x9e, _) => Command::GetLbaStatus { first: be64_at(cdb, 2), allocation: be32_at(cdb, 10) },
        (0xa3, 0x0a) => {
            // SPC-4 6.37: PARAMETER DATA FORMAT.
            if cdb[1] >> 5 > 1 {
                return Err(Sense::in_cdb(1, Some(7)));
            }
            let is_extended = cdb[1] >> 5 == 1;
            Command::ReportPortGroups { is_extended, allocation: be32_at(cdb, 6) }
        }
        (0xa3, 0x0c) => {
            let (code, action) = (cdb[3], be16_at(cdb, 4));
            let asked = match cdb[2] & 7 {
                0 => ReportedCodes::All,
                1 => ReportedCodes::Code(code),
                2 => ReportedCodes::Action(code, action),
                3 => ReportedCodes::Either(code, action),
                _ => return Err(Sense::in_cdb(2, Some(2))),
            };
            let has_timeouts = cdb[2] & 0x80 != 0;
            Command::ReportOpcodes { asked, has_timeouts, allocation: be32_at(cdb, 6) }
        }
        (0xa3, _) => {
            // SPC-4 6.36: at least four bytes.
            let allocation = be32_at(cdb, 6);
            if allocation < 4 {
                return Err(Sense::in_cdb(6, None));
            }
            Command::ReportManagementFunctions { is_long: cdb[2] & 0x80 != 0, allocation }
        }
        _ => return Err(Sense::INVALID_OPCODE),
    })
}

// SBC-3 5: where and how much is at the same place in commands of the same length.
fn block(cdb: &[u8; 16], length: usize) -> Result<Command, Sense> {
    let (first, count) = match length {
        // SBC-3 5.8, 5.32: 21 bits, and 0 blocks are 256.
        6 => {
            let count = if cdb[4] == 0 { 256 } else { u32::from(cdb[4]) };
            (u64::from(be24_at(cdb, 1) & 0x1f_ffff), count)
        }
        10 => (u64::from(be32_at(cdb, 2)), u32::from(be16_at(cdb, 7))),
        12 => (u64::from(be32_at(cdb, 2)), be32_at(cdb, 6)),
        _ => (be64_at(cdb, 2), be32_at(cdb, 10)),
    };
    let extent = Extent { first, count, forced: length > 6 && cdb[1] & FUA != 0 };
    let unforced = Extent { forced: false, ..extent };
    Ok(match cdb[0] {
        0x08 | 0x28 | 0xa8 | 0x88 => Command::Read(extent),
        0x0a | 0x2a | 0xaa | 0x8a => Command::Write(extent),
        0x2e | 0xae | 0x8e => Command::WriteAndVerify { extent: unforced, check: check(cdb)? },
        0x2f | 0xaf | 0x8f => Command::Verify { extent: unforced, check: check(cdb)? },
        0x34 | 0x90 => Command::PreFetch(unforced),
        0x35 | 0x91 => Command::SynchronizeCache(unforced),
        0x41 | 0x93 => {
            let has_data = cdb[0] == 0x41 || cdb[1] & 1 == 0;
            Command::WriteSame { extent: unforced, unmaps: cdb[1] & 8 != 0, has_data }
        }
        0x42 => Command::Unmap { length: u32::from(be16_at(cdb, 7)) },
        0x89 => Command::CompareAndWrite(Extent { count: u32::from(cdb[13]), ..extent }),
        0x8b => Command::OrWrite(extent),
        0x9c => Command::WriteAtomic(Extent { count: u32::from(be16_at(cdb, 12)), ..extent }),
        _ => return Err(Sense::INVALID_OPCODE),
    })
}

// SBC-3 5.30, table "BYTCHK".
fn check(cdb: &[u8; 16]) -> Result<Check, Sense> {
    match (cdb[1] >> 1 & 3, cdb[0]) {
        (0, _) => Ok(Check::Readable),
        (1, _) => Ok(Check::Data),
        // Of VERIFY only.
        (3, 0x2f | 0xaf | 0x8f) => Ok(Check::Block),
        _ => Err(Sense::in_cdb(1, Some(2))),
    }
}
