//! SCSI commands as work of a device, and outcomes of that work as SCSI status.

use scsi::{Check, Operation as Asked, Outcome, Plan, Sense, Transfer, UnmapRange};

use backend::{Failure, Operation};

use super::super::work::{Deed, Finding, Work};

/// The work of a command.
pub(super) fn work_of(plan: &Plan) -> Work {
    let deed = match plan.operation {
        Asked::Read => Deed::Read,
        Asked::Write { forced, is_atomic } => Deed::Write { forced, is_alone: is_atomic },
        Asked::Patch { forced } => Deed::Patch { forced, sent: data_bytes(plan) },
        Asked::WriteAndVerify { compares } => Deed::WriteAndVerify { compares },
        Asked::Verify(Check::Readable) => Deed::Check,
        Asked::Verify(Check::Data | Check::Block) => Deed::Compare,
        Asked::Flush => Deed::Flush,
        Asked::WriteSame { has_data: true, unmaps } => Deed::Repeat { deallocates: unmaps },
        Asked::WriteSame { has_data: false, unmaps } => {
            Deed::Zero { deallocates: unmaps, forced: false }
        }
        Asked::CompareAndWrite { forced } => Deed::CompareAndWrite { forced },
        Asked::OrWrite { forced } => Deed::OrWrite { forced },
    };
    Work { deed, offset: plan.offset, length: plan.length }
}

/// The work of UNMAP.
pub(super) fn unmap(ranges: &[UnmapRange]) -> Work {
    let ranges = ranges.iter().map(|range| [range.offset, range.length]);
    Work::of_device(Deed::Discard(ranges.collect()))
}

/// Bytes of memory for a command's own data.
pub(super) fn own_bytes(plan: &Plan) -> usize {
    let bytes = match plan.operation {
        Asked::Patch { .. } => plan.length,
        _ => data_bytes(plan),
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

// Bytes that the initiator sends or receives.
const fn data_bytes(plan: &Plan) -> u64 {
    match plan.transfer {
        Transfer::In(bytes) | Transfer::Out(bytes) => bytes,
        Transfer::None => 0,
    }
}

/// The SCSI outcome of a finding; residuals refer to `about_bytes`.
pub(super) fn outcome_of(finding: Finding, about_bytes: u64) -> Outcome {
    match finding {
        Finding::Done => Outcome::good(about_bytes),
        Finding::Differs(at) => {
            Outcome { about_bytes, ..Outcome::check(Sense::MISCOMPARE.about(at)) }
        }
        Finding::Failed(failure, operation) => Outcome::check(failed(failure, operation)),
    }
}

// The sense of a device's failure.
const fn failed(failure: Failure, operation: Operation) -> Sense {
    match (failure, operation) {
        (Failure::NoSpace, _) => Sense::SPACE_ALLOCATION_FAILED,
        (Failure::WriteProtected, _) => Sense::WRITE_PROTECTED,
        (Failure::OutOfRange, _) => Sense::LBA_OUT_OF_RANGE,
        (Failure::Medium, Operation::Read) => Sense::UNRECOVERED_READ_ERROR,
        (Failure::Medium, _) => Sense::WRITE_ERROR,
        (Failure::Lost | Failure::Refused(_), _) => Sense::INTERNAL_TARGET_FAILURE,
    }
}
