//! The device's work for a command (SBC-3 5), and helpers for its data.

use wire::Place as _;

use super::cdb::{Check, Command, Extent};
use super::inquiry::UnitData;
use super::layout::cdb::{OPERATION_CODE, blocks};
use super::layout::report::unmap;
use super::sense::Sense;

/// An operation on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Reads for the initiator.
    Read,
    /// Writes the initiator's data.
    Write {
        /// FUA: the data is on the medium when the command has ended.
        forced: bool,
        /// Others see all of the data or nothing.
        is_atomic: bool,
    },
    /// A write that ends within a block: the rest of that block stays. It serves an initiator that
    /// sends less data than its command says (RFC 7143 11.4.5.1).
    Patch {
        /// As for a write.
        forced: bool,
    },
    /// Writes to the medium and reads again; compares the data, too, with `compares`.
    WriteAndVerify {
        /// Whether the data that was read is compared.
        compares: bool,
    },
    /// Reads, and compares with the initiator's data: [`compare`].
    Verify(Check),
    /// Puts all earlier writes on the medium.
    Flush,
    /// Writes one block repeatedly: the initiator's, or zeros. If it `unmaps` and the block
    /// [`is_zero`], blocks can be deallocated.
    WriteSame {
        /// Whether the block comes from the initiator; otherwise it is zeros.
        has_data: bool,
        /// Whether blocks may be deallocated.
        unmaps: bool,
    },
    /// Compares the first half of the data with the medium and, if they are equal, writes the
    /// second half; no other write to these blocks comes in between (SBC-3 5.2).
    CompareAndWrite {
        /// As for a write.
        forced: bool,
    },
    /// Writes the bitwise OR of the data and the medium: [`or_into`]; no other write to these
    /// blocks comes in between (SBC-3 5.13).
    OrWrite {
        /// As for a write.
        forced: bool,
    },
}

impl Operation {
    /// Whether it changes the medium.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::Verify(_) | Self::Flush)
    }
}

/// The direction of a command's data, and its bytes according to the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// No data.
    None,
    /// To the initiator.
    In(u64),
    /// From the initiator.
    Out(u64),
}

/// The checked work of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The operation.
    pub operation: Operation,
    /// From this byte on.
    pub offset: u64,
    /// Length in bytes, whole blocks; 0 for a flush.
    pub length: u64,
    /// The command's data.
    pub transfer: Transfer,
    /// Bytes of data according to the command, for the residual, even if fewer come.
    pub about_bytes: u64,
}

/// The plan of a plain read or write with `sent_bytes` of data; `None` for other commands, and for
/// those that need [`super::LogicalUnit::begin`].
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

/// A range to deallocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnmapRange {
    /// From this byte on.
    pub offset: u64,
    /// Length in bytes; above 0.
    pub length: u64,
}

/// The difference between an initiator's expected length and a command's (RFC 7143 11.4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Residual {
    /// No difference.
    #[default]
    None,
    /// So many bytes more would have been moved.
    Overflow(u32),
    /// So many bytes fewer were moved.
    Underflow(u32),
}

impl Residual {
    /// The residual of a command with `actual` bytes of which the initiator expects `expected`.
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

/// Checks a block command against the unit. Returns its plan; `None` if there is nothing to do
/// (SBC-3 5).
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

// A command's blocks and operation, its maximum of blocks, and the bytes of data for each byte of
// the blocks.
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
    /// The plan for `sent_bytes` of data, if the initiator sends fewer than the command says;
    /// `None` if nothing is left, and an error if the operation needs all data.
    ///
    /// Plain writes then write the data that comes, and report a residual (RFC 7143 11.4.5.1);
    /// other operations are refused.
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

// The blocks of a WRITE SAME: a count of 0 means all from the first on (SBC-3 5.38).
fn all_from(extent: Extent, unit: &UnitData) -> Extent {
    if extent.count > 0 || extent.first >= unit.block_count {
        return extent;
    }
    let count = u32::try_from(unit.block_count - extent.first).unwrap_or(u32::MAX);
    Extent { count, ..extent }
}

// The byte of the CDB with the number of blocks.
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

/// Decodes the parameter list of UNMAP.
///
/// # Errors
/// When the list is truncated, or exceeds the unit's blocks or limits.
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

/// Compares a device's data with the initiator's, which is repeated if it is shorter.
///
/// # Errors
/// A miscompare at the first byte that differs (SBC-3 5.2, 5.30).
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

/// Sets `device` to its bitwise OR with `data`.
pub fn or_into(device: &mut [u8], data: &[u8]) {
    for (there, byte) in device.iter_mut().zip(data) {
        *there |= byte;
    }
}
