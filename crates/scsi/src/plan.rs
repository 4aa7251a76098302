//! What a command takes of a device (SBC-3 5), and what is done with its data.

use wire::Place as _;

use super::cdb::{Check, Command, Extent};
use super::inquiry::UnitData;
use super::layout::cdb::{OPERATION_CODE, blocks};
use super::layout::report::unmap;
use super::sense::Sense;

/// What is done to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// What is there goes to the initiator.
    Read,
    /// What comes is written; whole, as others see it, if it is atomic.
    Write {
        /// It is on the medium when the command has ended.
        forced: bool,
        /// All of it is seen, or nothing.
        is_atomic: bool,
    },
    /// As a write, of less than the last block: what comes takes the place of the beginning of what
    /// is there, and the rest of that stays. An initiator that sends less than it asks for gets
    /// this far (RFC 7143 11.4.5.1).
    Patch {
        /// As for a write.
        forced: bool,
    },
    /// What comes is written, put on the medium and read again; compared too with `compares`.
    WriteAndVerify {
        /// Whether what was read is compared.
        compares: bool,
    },
    /// What is there is read, and compared with what comes: [`compare`].
    Verify(Check),
    /// Everything written before is put on the medium.
    Flush,
    /// One block is written again and again: that which comes, or zeros. If it `unmaps` and the
    /// block [`is_zero`], room can be given back.
    WriteSame {
        /// The block comes from the initiator; else it is zeros.
        has_data: bool,
        /// The room may be given back.
        unmaps: bool,
    },
    /// The first half of what comes is compared with what is there and, if they are the same, the
    /// second half written; nothing else is done to these blocks meanwhile (SBC-3 5.2).
    CompareAndWrite {
        /// As for a write.
        forced: bool,
    },
    /// What comes is or-ed with what is there: [`or_into`]; nothing else is done to these blocks
    /// meanwhile (SBC-3 5.13).
    OrWrite {
        /// As for a write.
        forced: bool,
    },
}

impl Operation {
    /// Whether it changes what is there.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::Verify(_) | Self::Flush)
    }
}

/// Which way the data of a command goes, and how many bytes of it there are as the command says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// None.
    None,
    /// To the initiator.
    In(u64),
    /// From the initiator.
    Out(u64),
}

/// What a command takes, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// What is done.
    pub operation: Operation,
    /// From this byte on.
    pub offset: u64,
    /// To so many bytes, whole blocks; 0 for a flush.
    pub length: u64,
    /// Its data.
    pub transfer: Transfer,
    /// Bytes that the command is about, for the residual: its data's, unless less of that comes.
    pub about_bytes: u64,
}

/// What a command takes that reads or writes and nothing else, with which `sent_bytes` come; `None`
/// for others, and for those that [`super::LogicalUnit::begin`] has to say more about.
#[must_use]
pub fn read_write(cdb: &[u8; 16], sent_bytes: u32, unit: &UnitData) -> Option<Plan> {
    if !matches!(OPERATION_CODE.get(cdb), 0x28 | 0x2a | 0x88 | 0x8a) {
        return None;
    }
    let command = Command::read(cdb, unit).ok()?;
    let plan = plan(command, cdb, unit).ok()??;
    let is_whole = match plan.transfer {
        Transfer::Out(bytes) => bytes == u64::from(sent_bytes),
        _ => true,
    };
    is_whole.then_some(plan)
}

/// Blocks to give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnmapRange {
    /// From this byte on.
    pub offset: u64,
    /// So many bytes; above 0.
    pub length: u64,
}

/// How what an initiator expected differs from what a command was about (RFC 7143 11.4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Residual {
    /// Not at all.
    #[default]
    None,
    /// So many bytes more would have been moved.
    Overflow(u32),
    /// So many bytes fewer were moved.
    Underflow(u32),
}

impl Residual {
    /// Of a command that an initiator expects `expected` bytes for, and that is about `actual`.
    #[must_use]
    pub fn of(expected: u32, actual: u64) -> Self {
        let expected = u64::from(expected);
        let clamp = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX);
        match actual {
            actual if actual > expected => Self::Overflow(clamp(actual - expected)),
            actual if actual < expected => Self::Underflow(clamp(expected - actual)),
            _ => Self::None,
        }
    }

    /// RESIDUAL COUNT.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Overflow(count) | Self::Underflow(count) => count,
        }
    }
}

/// What a command takes; `None` if there is nothing to do (SBC-3 5).
pub(super) fn plan(
    command: Command,
    cdb: &[u8; 16],
    unit: &UnitData,
) -> Result<Option<Plan>, Sense> {
    let (extent, operation, most, factor) = shape(command, unit)?;
    if !unit.holds(extent.first, u64::from(extent.count)) {
        return Err(Sense::LBA_OUT_OF_RANGE.about(extent.first));
    }
    if extent.count > most {
        return Err(Sense::in_cdb(count_byte(cdb), None));
    }
    if matches!(command, Command::PreFetch(_)) {
        return Ok(None);
    }
    if operation == Operation::Flush {
        let transfer = Transfer::None;
        return Ok(Some(Plan { operation, offset: 0, length: 0, transfer, about_bytes: 0 }));
    }
    if extent.count == 0 {
        return Ok(None);
    }
    let [offset, length] =
        [extent.first, u64::from(extent.count)].map(|blocks| blocks << unit.block_shift);
    let one = matches!(
        operation,
        Operation::Verify(Check::Block) | Operation::WriteSame { has_data: true, .. }
    );
    let bytes = if one { u64::from(unit.block_bytes()) } else { length * factor };
    let transfer = match operation {
        Operation::Read => Transfer::In(bytes),
        _ if bytes > 0 => Transfer::Out(bytes),
        _ => Transfer::None,
    };
    Ok(Some(Plan { operation, offset, length, transfer, about_bytes: bytes }))
}

// Where, what, how many blocks at most, and how many bytes come or go for a byte of them.
fn shape(command: Command, unit: &UnitData) -> Result<(Extent, Operation, u32, u64), Sense> {
    let limits = &unit.limits;
    Ok(match command {
        Command::Read(extent) => (extent, Operation::Read, limits.transfer_blocks, 1),
        Command::Verify { extent, check } => {
            let factor = u64::from(check != Check::Readable);
            (extent, Operation::Verify(check), limits.transfer_blocks, factor)
        }
        Command::PreFetch(extent) | Command::SynchronizeCache(extent) => {
            (extent, Operation::Flush, u32::MAX, 0)
        }
        Command::Write(extent) => {
            let write = Operation::Write { forced: extent.forced, is_atomic: false };
            (extent, write, limits.transfer_blocks, 1)
        }
        Command::WriteAtomic(extent) => {
            let write = Operation::Write { forced: extent.forced, is_atomic: true };
            (extent, write, u32::from(unit.atomic_blocks), 1)
        }
        Command::WriteAndVerify { extent, check } => {
            let compares = check != Check::Readable;
            (extent, Operation::WriteAndVerify { compares }, limits.transfer_blocks, 1)
        }
        Command::WriteSame { extent, unmaps, has_data } => {
            let operation = Operation::WriteSame { has_data, unmaps };
            (all_from(extent, unit), operation, limits.write_same_blocks, 0)
        }
        Command::CompareAndWrite(extent) => {
            let operation = Operation::CompareAndWrite { forced: extent.forced };
            (extent, operation, u32::from(limits.compare_blocks), 2)
        }
        Command::OrWrite(extent) => {
            let operation = Operation::OrWrite { forced: extent.forced };
            (extent, operation, limits.transfer_blocks, 1)
        }
        _ => return Err(Sense::INVALID_OPCODE),
    })
}

impl Plan {
    /// What is left of it if no more than `sent_bytes` come with it; `None` if that is nothing, and
    /// an error if all or nothing is to be done.
    ///
    /// An initiator that sends less than its command takes is told how much less (RFC 7143
    /// 11.4.5.1) and what it has sent is written; everything else is not carried out then.
    pub(super) fn of_sent(self, sent_bytes: u32, unit: &UnitData) -> Result<Option<Self>, Sense> {
        let Transfer::Out(wanted) = self.transfer else { return Ok(Some(self)) };
        let sent = u64::from(sent_bytes);
        let is_strict = matches!(
            self.operation,
            Operation::WriteSame { .. } | Operation::CompareAndWrite { .. }
        );
        if sent == wanted || sent > wanted && !is_strict {
            return Ok(Some(self));
        }
        let forced = match self.operation {
            Operation::Write { forced, is_atomic: false } => forced,
            Operation::WriteAndVerify { .. } => true,
            _ => return Err(Sense::INVALID_FIELD_IN_INFORMATION_UNIT),
        };
        let block = u64::from(unit.block_bytes());
        let operation =
            if sent.is_multiple_of(block) { self.operation } else { Operation::Patch { forced } };
        let length = sent.next_multiple_of(block);
        let transfer = Transfer::Out(sent);
        Ok((sent > 0).then_some(Self { operation, length, transfer, ..self }))
    }
}

// SBC-3 5.38: 0 blocks are all from the first on.
fn all_from(extent: Extent, unit: &UnitData) -> Extent {
    if extent.count > 0 || extent.first >= unit.block_count {
        return extent;
    }
    let count = u32::try_from(unit.block_count - extent.first).unwrap_or(u32::MAX);
    Extent { count, ..extent }
}

// Where the number of blocks stands.
fn count_byte(cdb: &[u8; 16]) -> u16 {
    let code = OPERATION_CODE.get(cdb);
    match (code, code >> 5) {
        (0x89, _) => blocks::COMPARE_LENGTH.byte(),
        (0x9c, _) => blocks::ATOMIC_LENGTH.byte(),
        (_, 0) => blocks::LENGTH_6.byte(),
        (_, 1 | 2) => blocks::LENGTH_10.byte(),
        (_, 5) => blocks::LENGTH_12.byte(),
        _ => blocks::LENGTH_16.byte(),
    }
}

/// What the parameters of UNMAP say.
///
/// # Errors
/// When they are cut off, or ask for more than there is or may be.
pub fn unmap_ranges(data: &[u8], unit: &UnitData) -> Result<Vec<UnmapRange>, Sense> {
    if data.is_empty() {
        return Ok(Vec::new());
    }
    let (header, rest) =
        data.split_at_checked(unmap::HEADER_BYTES).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    let length = usize::from(unmap::LENGTH.get(header));
    let entries = rest.get(..length).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    let count = length / unmap::DESCRIPTOR_BYTES;
    if count > usize::try_from(unit.limits.unmap_ranges).unwrap_or(usize::MAX) {
        return Err(Sense::wrong_parameter(0, unmap::LENGTH));
    }
    let (mut ranges, mut blocks) = (Vec::with_capacity(count), 0);
    for (index, entry) in entries.chunks_exact(unmap::DESCRIPTOR_BYTES).enumerate() {
        let (first, count) = (unmap::LBA.get(entry), u64::from(unmap::COUNT.get(entry)));
        if !unit.holds(first, count) {
            return Err(Sense::LBA_OUT_OF_RANGE.about(first));
        }
        blocks += count;
        if blocks > u64::from(unit.limits.unmap_blocks) {
            let begin = unmap::HEADER_BYTES + index * unmap::DESCRIPTOR_BYTES;
            return Err(Sense::wrong_parameter(begin, unmap::COUNT));
        }
        if count > 0 {
            let [offset, length] = [first, count].map(|blocks| blocks << unit.block_shift);
            ranges.push(UnmapRange { offset, length });
        }
    }
    Ok(ranges)
}

/// Compares what is on a device with what came for it: all of it, or one block again and again.
///
/// # Errors
/// The first byte that differs (SBC-3 5.2, 5.30).
pub fn compare(device: &[u8], data: &[u8]) -> Result<(), Sense> {
    for (index, piece) in device.chunks(data.len().max(1)).enumerate() {
        if let Some(at) = piece.iter().zip(data).position(|(one, other)| one != other) {
            return Err(Sense::MISCOMPARE.about((index * data.len() + at) as u64));
        }
    }
    Ok(())
}

/// Whether all of a block is zeros.
#[must_use]
pub fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// Or-s `data` into what is there.
pub fn or_into(device: &mut [u8], data: &[u8]) {
    for (there, byte) in device.iter_mut().zip(data) {
        *there |= byte;
    }
}
