//! What a SCSI command has a device do, one request after the other (SBC-3 5).

use scsi::{
    Check, Operation as Asked, Outcome, Plan, Sense, Transfer, UnmapRange, compare, is_zero,
    or_into,
};

use backend::{Failure, Operation, Request};

use super::super::stripes::Hold;

/// Bytes that a block is repeated to, to be written at once.
const REPEATED_BYTES: u64 = 1 << 20;

/// The memory that a request moves data to or from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The command's own data.
    Own,
    /// What is there besides, of at least so many bytes.
    Scratch(usize),
    /// None.
    None,
}

/// What is to be done next for a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// This is asked of the device.
    Ask(Request, Side),
    /// It has ended; its own data goes to the initiator if that is what it is for.
    End(Outcome),
}

/// Bytes of memory for a command's own data.
pub(crate) fn memory_bytes(plan: &Plan) -> u64 {
    match (plan.operation, plan.transfer) {
        (Asked::Patch { .. }, _) => plan.length,
        (_, Transfer::In(bytes) | Transfer::Out(bytes)) => bytes,
        (_, Transfer::None) => 0,
    }
}

/// Bytes that nobody else may write meanwhile, or that it writes itself.
pub(crate) fn hold(plan: &Plan) -> Option<Hold> {
    let is_alone = matches!(
        plan.operation,
        Asked::Patch { .. }
            | Asked::CompareAndWrite { .. }
            | Asked::OrWrite { .. }
            | Asked::Write { is_atomic: true, .. }
    );
    let hold = Hold { offset: plan.offset, length: plan.length, is_alone };
    plan.operation.writes().then_some(hold)
}

/// What follows the `stage`-th request of a command, from 0: `own` is its data, and `scratch` what
/// was read besides.
pub(crate) fn next(plan: &Plan, stage: u64, own: &mut [u8], scratch: &mut [u8]) -> Act {
    let length = index(plan.length);
    let ask = |operation, side| {
        Act::Ask(Request { operation, offset: plan.offset, length: plan.length }, side)
    };
    let write = |forced| ask(Operation::Write { forced }, Side::Own);
    let good = Act::End(Outcome::good(plan.about_bytes));
    match (plan.operation, stage) {
        (Asked::Read, 0) => ask(Operation::Read, Side::Own),
        (Asked::Write { forced, .. }, 0) => write(forced),
        (Asked::Flush, 0) => {
            Act::Ask(Request { operation: Operation::Flush, offset: 0, length: 0 }, Side::None)
        }
        (Asked::WriteAndVerify { .. }, 0) => write(true),
        (Asked::WriteAndVerify { .. }, 1)
        | (Asked::Verify(_) | Asked::CompareAndWrite { .. } | Asked::OrWrite { .. }, 0) => {
            ask(Operation::Read, Side::Scratch(length))
        }
        (Asked::WriteAndVerify { compares: true }, 2) => match compare(&scratch[..length], own) {
            Ok(()) => good,
            Err(sense) => Act::End(Outcome::check(sense)),
        },
        (Asked::Verify(Check::Data | Check::Block), 1) => match compare(&scratch[..length], own) {
            Ok(()) => good,
            Err(sense) => {
                Act::End(Outcome { about_bytes: plan.about_bytes, ..Outcome::check(sense) })
            }
        },
        (Asked::CompareAndWrite { forced }, 1) => {
            let (expected, _) = own.split_at(length);
            if let Err(sense) = compare(&scratch[..length], expected) {
                let outcome = Outcome::check(sense);
                return Act::End(Outcome { about_bytes: plan.about_bytes, ..outcome });
            }
            own.copy_within(length..2 * length, 0);
            write(forced)
        }
        (Asked::OrWrite { forced }, 1) => {
            or_into(&mut own[..length], &scratch[..length]);
            write(forced)
        }
        (Asked::Patch { forced }, _) => patch(plan, stage, forced, own, scratch),
        (Asked::WriteSame { has_data, unmaps }, _) => {
            write_same(plan, stage, [has_data, unmaps], own, scratch)
        }
        _ => good,
    }
}

// The rest of the last block is what it was.
fn patch(plan: &Plan, stage: u64, forced: bool, own: &mut [u8], scratch: &[u8]) -> Act {
    let Transfer::Out(sent) = plan.transfer else { return Act::End(Outcome::good(0)) };
    let (sent, length) = (index(sent), index(plan.length));
    let block = scratch_bytes(plan);
    match stage {
        0 => {
            let offset = plan.offset + plan.length - block as u64;
            let request = Request { operation: Operation::Read, offset, length: block as u64 };
            Act::Ask(request, Side::Scratch(block))
        }
        1 => {
            let kept = length - sent;
            own[sent..length].copy_from_slice(&scratch[block - kept..block]);
            let operation = Operation::Write { forced };
            Act::Ask(Request { operation, offset: plan.offset, length: plan.length }, Side::Own)
        }
        _ => Act::End(Outcome::good(plan.about_bytes)),
    }
}

// As little of the end as is sure to hold the last block: blocks have 4 KiB at most.
fn scratch_bytes(plan: &Plan) -> usize {
    index(plan.length.min(if plan.length.is_multiple_of(4096) { 4096 } else { 512 }))
}

fn write_same(
    plan: &Plan,
    stage: u64,
    [has_data, unmaps]: [bool; 2],
    own: &[u8],
    scratch: &mut [u8],
) -> Act {
    let block = own.len() as u64;
    if !has_data || is_zero(own) {
        if stage > 0 {
            return Act::End(Outcome::good(plan.about_bytes));
        }
        let operation = Operation::Zero { deallocates: unmaps, forced: false };
        let request = Request { operation, offset: plan.offset, length: plan.length };
        return Act::Ask(request, Side::None);
    }
    let piece = (REPEATED_BYTES / block * block).min(plan.length);
    let done = stage * piece;
    if done >= plan.length {
        return Act::End(Outcome::good(plan.about_bytes));
    }
    if let Some(room) = scratch.get_mut(..index(piece)).filter(|_| stage == 0) {
        room.chunks_exact_mut(own.len()).for_each(|one| one.copy_from_slice(own));
    }
    let (offset, length) = (plan.offset + done, piece.min(plan.length - done));
    let request = Request { operation: Operation::Write { forced: false }, offset, length };
    Act::Ask(request, Side::Scratch(index(piece)))
}

/// Bytes that have to be there before the first request is made, beside the command's own.
pub(crate) fn first_scratch(plan: &Plan, own: &[u8]) -> usize {
    match plan.operation {
        Asked::WriteSame { has_data: true, .. } if !is_zero(own) => {
            let block = own.len().max(1) as u64;
            index((REPEATED_BYTES / block * block).min(plan.length))
        }
        _ => 0,
    }
}

/// What follows the `stage`-th range that was given back.
pub(crate) fn next_unmap(ranges: &[UnmapRange], stage: u64, about_bytes: u64) -> Act {
    match ranges.get(index(stage)) {
        None => Act::End(Outcome::good(about_bytes)),
        Some(UnmapRange { offset, length }) => {
            let (offset, length) = (*offset, *length);
            Act::Ask(Request { operation: Operation::Discard, offset, length }, Side::None)
        }
    }
}

/// What an initiator is told of a device that has failed.
pub(crate) const fn failed(failure: Failure, operation: Operation) -> Sense {
    match (failure, operation) {
        (Failure::NoSpace, _) => Sense::SPACE_ALLOCATION_FAILED,
        (Failure::WriteProtected, _) => Sense::WRITE_PROTECTED,
        (Failure::OutOfRange, _) => Sense::LBA_OUT_OF_RANGE,
        (Failure::Medium, Operation::Read) => Sense::UNRECOVERED_READ_ERROR,
        (Failure::Medium, _) => Sense::WRITE_ERROR,
        (Failure::Lost | Failure::Refused(_), _) => Sense::INTERNAL_TARGET_FAILURE,
    }
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
