//! The checks and needs of a command of an I/O queue, and the status of its outcome.

use nvme::{
    Access, DATASET_RANGE_BYTES, Data, Io, Range, Status, VERIFY_BYTES, access, read_dataset_ranges,
};

use backend::{Failure, Geometry, Operation};

use super::stripes::Hold;
use super::work::{Deed, Finding, Work};

/// A checked command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The work of the device; `None` if there is none, or the command's data says what it is.
    pub(crate) work: Option<Work>,
    /// Where the command's own data is.
    pub(crate) data: Data,
    /// Bytes of data that the host sends or gets.
    pub(crate) bytes: u32,
    /// Whether the data goes to the host.
    pub(crate) answers: bool,
    /// How many ranges of blocks the data lists (Dataset Management); 0 for other commands.
    pub(crate) range_count: u16,
    pub(crate) geometry: Geometry,
    /// Whether the command is for every namespace (Flush).
    pub(crate) all: bool,
    /// The kind of access, for reservations.
    pub(crate) access: Access,
    /// The command, if it is one about reservations.
    pub(crate) reserves: Option<Io>,
    /// Whether it is a fused Compare: nobody else may write between it and its Write.
    pub(crate) is_fused: bool,
    /// Whether it ends only after all writes of others that were under way (Preempt and Abort).
    pub(crate) fences: bool,
}

impl Plan {
    /// The range that the command has to hold; `None` if none.
    pub(crate) fn hold(&self, work: Option<&Work>) -> Option<Hold> {
        let device_bytes = self.geometry.bytes();
        let [offset, length] = match work {
            _ if self.fences => [0, device_bytes],
            Some(work) if self.is_fused => work.place(),
            work => return work?.hold(device_bytes),
        };
        Some(Hold { offset, length, is_alone: true })
    }

    /// The work that the ranges in a Dataset Management command's data say (NVM Command Set 3.2.3);
    /// `None` for other commands.
    pub(crate) fn ranges(&self, data: &[u8]) -> Result<Option<Work>, Status> {
        if self.range_count == 0 {
            return Ok(None);
        }
        let mut ranges = Vec::new();
        for (first, count) in read_dataset_ranges(data).take(usize::from(self.range_count)) {
            let place = self.geometry.range(first, count.into());
            let [offset, length] = place.ok_or(Status::LBA_OUT_OF_RANGE.do_not_retry())?;
            ranges.extend((length > 0).then_some([offset, length]));
        }
        Ok(Some(Work::of_device(Deed::Discard(ranges))))
    }
}

/// Checks a command against the namespace's geometry. Returns its plan, or the status it fails
/// with.
pub(crate) fn plan(io: Io, data: Data, geometry: Geometry) -> Result<Plan, Status> {
    let nothing = Plan {
        work: None,
        data,
        bytes: 0,
        answers: false,
        range_count: 0,
        geometry,
        all: false,
        access: access(io),
        reserves: None,
        is_fused: false,
        fences: false,
    };
    let over = |range: Range, deed: Deed| {
        let place = geometry.range(range.first, u64::from(range.count));
        let [offset, length] = place.ok_or(Status::LBA_OUT_OF_RANGE.do_not_retry())?;
        Ok::<_, Status>(Plan { work: Some(Work { deed, offset, length }), ..nothing.clone() })
    };
    match io {
        Io::Flush => Ok(Plan { work: Some(Work::of_device(Deed::Flush)), ..nothing }),
        Io::Read(range) => Ok(Plan { answers: true, ..with_data(over(range, Deed::Read)?)? }),
        Io::Write(range) => {
            let write = Deed::Write { forced: range.forced, is_alone: false };
            with_data(over(range, write)?)
        }
        Io::Compare(range) => with_data(over(range, Deed::Compare)?),
        Io::Verify(range) => {
            let plan = over(range, Deed::Check)?;
            let fits =
                plan.work.as_ref().is_some_and(|work| work.length <= u64::from(VERIFY_BYTES));
            if fits { Ok(plan) } else { Err(too_much()) }
        }
        Io::WriteZeroes { range, deallocates } => {
            over(range, Deed::Zero { deallocates, forced: range.forced })
        }
        Io::DatasetManagement { range_count, deallocates } => {
            // Linux always sends 256 ranges; more is an invalid length.
            let bytes = length_of(data);
            let ranges = bytes as usize / DATASET_RANGE_BYTES;
            if ranges < range_count.into() || bytes as usize > 256 * DATASET_RANGE_BYTES {
                return Err(Status::SGL_LENGTH_INVALID.do_not_retry());
            }
            // Without deallocation the ranges are only hints, which are ignored.
            let range_count = if deallocates { range_count } else { 0 };
            Ok(Plan { bytes, range_count, ..nothing })
        }
        Io::ReservationReport { .. } => reservation(io, Plan { answers: true, ..nothing }, 1 << 20),
        Io::ReservationRegister { .. }
        | Io::ReservationAcquire { .. }
        | Io::ReservationRelease { .. } => reservation(io, nothing, 4096),
    }
}

// The status of a Verify of too many blocks.
const fn too_much() -> Status {
    Status::INVALID_FIELD.do_not_retry()
}

// Checks that the data is as long as the blocks, and sets its length.
fn with_data(plan: Plan) -> Result<Plan, Status> {
    let bytes = length_of(plan.data);
    if plan.work.as_ref().is_none_or(|work| work.length != u64::from(bytes)) {
        return Err(Status::SGL_LENGTH_INVALID.do_not_retry());
    }
    Ok(Plan { bytes, ..plan })
}

// The plan of a reservation command, whose data is keys or a report of at most `most` bytes.
fn reservation(io: Io, plan: Plan, most: u32) -> Result<Plan, Status> {
    let bytes = length_of(plan.data);
    if bytes == 0 || bytes > most {
        return Err(Status::SGL_LENGTH_INVALID.do_not_retry());
    }
    // Preempt and Abort (Base 7.4): others' writes cannot be aborted, so the command waits for
    // them.
    let fences = matches!(io, Io::ReservationAcquire { action: 2, .. });
    Ok(Plan { bytes, reserves: Some(io), fences, ..plan })
}

// The length of a command's data in bytes.
const fn length_of(data: Data) -> u32 {
    match data {
        Data::None => 0,
        Data::InCapsule { length, .. } | Data::Transport { length } => length,
    }
}

/// The NVMe status of a finding.
pub(crate) const fn status_of(finding: Finding) -> Status {
    match finding {
        Finding::Done => Status::SUCCESS,
        Finding::Differs(_) => Status::COMPARE_FAILURE.do_not_retry(),
        Finding::Failed(failure, operation) => failed(failure, operation),
    }
}

// The NVMe status of a device's failure.
const fn failed(failure: Failure, operation: Operation) -> Status {
    match (failure, operation) {
        (Failure::NoSpace, _) => Status::CAPACITY_EXCEEDED.do_not_retry(),
        (Failure::WriteProtected, _) => Status::NAMESPACE_WRITE_PROTECTED.do_not_retry(),
        (Failure::OutOfRange, _) => Status::LBA_OUT_OF_RANGE.do_not_retry(),
        (Failure::Medium, Operation::Read) => Status::UNRECOVERED_READ_ERROR.do_not_retry(),
        (Failure::Medium, _) => Status::WRITE_FAULT.do_not_retry(),
        // A retry may succeed on another path.
        (Failure::Lost | Failure::Refused(_), _) => Status::INTERNAL_ERROR,
    }
}
