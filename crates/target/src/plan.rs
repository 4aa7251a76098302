//! What a command of an I/O queue takes, and what its outcome is called.

use nvme::{
    Access, DATASET_RANGE_BYTES, Data, Io, Range, Status, VERIFY_BYTES, access, read_dataset_ranges,
};

use backend::{Failure, Geometry, Operation};

use super::stripes::Hold;
use super::work::{Deed, Finding, Work};

/// What a command is about, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What is done to the device; `None` if nothing is, or its data says that.
    pub(crate) work: Option<Work>,
    /// Where the command's own data is.
    pub(crate) data: Data,
    /// Bytes of data that the host sends or gets.
    pub(crate) bytes: u32,
    /// Its data goes to the host.
    pub(crate) answers: bool,
    /// Its data says where, in so many ranges.
    pub(crate) range_count: u16,
    pub(crate) geometry: Geometry,
    /// It is for every namespace.
    pub(crate) all: bool,
    /// What it does to its namespace, for reservations.
    pub(crate) access: Access,
    /// It is about reservations.
    pub(crate) reserves: Option<Io>,
    /// What it compares is written by the next command, and by nobody else in between.
    pub(crate) is_fused: bool,
    /// It ends when nothing is under way any more of what others were writing before.
    pub(crate) fences: bool,
}

impl Plan {
    /// What it holds, where its work does that.
    pub(crate) fn hold(&self, work: Option<&Work>) -> Option<Hold> {
        let device_bytes = self.geometry.bytes();
        let [offset, length] = match work {
            _ if self.fences => [0, device_bytes],
            Some(work) if self.is_fused => work.place(),
            work => return work?.hold(device_bytes),
        };
        Some(Hold { offset, length, is_alone: true })
    }

    /// What its data says is to be done, where that says it (NVM Command Set 3.2.3).
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

/// What a command takes, if it can be done.
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
            // Linux always sends room for 256; what is more than that is not this command's.
            let bytes = length_of(data);
            let ranges = bytes as usize / DATASET_RANGE_BYTES;
            if ranges < range_count.into() || bytes as usize > 256 * DATASET_RANGE_BYTES {
                return Err(Status::SGL_LENGTH_INVALID.do_not_retry());
            }
            // Hints about how blocks will be used are not taken.
            let range_count = if deallocates { range_count } else { 0 };
            Ok(Plan { bytes, range_count, ..nothing })
        }
        Io::ReservationReport { .. } => reservation(io, Plan { answers: true, ..nothing }, 1 << 20),
        Io::ReservationRegister { .. }
        | Io::ReservationAcquire { .. }
        | Io::ReservationRelease { .. } => reservation(io, nothing, 4096),
    }
}

const fn too_much() -> Status {
    Status::INVALID_FIELD.do_not_retry()
}

// Its data is as long as its blocks.
fn with_data(plan: Plan) -> Result<Plan, Status> {
    let bytes = length_of(plan.data);
    if plan.work.as_ref().is_none_or(|work| work.length != u64::from(bytes)) {
        return Err(Status::SGL_LENGTH_INVALID.do_not_retry());
    }
    Ok(Plan { bytes, ..plan })
}

// Its data is keys, which are looked at when they are there, or what the host has room for.
fn reservation(io: Io, plan: Plan, most: u32) -> Result<Plan, Status> {
    let bytes = length_of(plan.data);
    if bytes == 0 || bytes > most {
        return Err(Status::SGL_LENGTH_INVALID.do_not_retry());
    }
    // Preempt and abort (Base 7.4): others' writes cannot be aborted, so they are waited for.
    let fences = matches!(io, Io::ReservationAcquire { action: 2, .. });
    Ok(Plan { bytes, reserves: Some(io), fences, ..plan })
}

const fn length_of(data: Data) -> u32 {
    match data {
        Data::None => 0,
        Data::InCapsule { length, .. } | Data::Transport { length } => length,
    }
}

/// How a command ends of which this has become.
pub(crate) const fn status_of(finding: Finding) -> Status {
    match finding {
        Finding::Done => Status::SUCCESS,
        Finding::Differs(_) => Status::COMPARE_FAILURE.do_not_retry(),
        Finding::Failed(failure, operation) => failed(failure, operation),
    }
}

const fn failed(failure: Failure, operation: Operation) -> Status {
    match (failure, operation) {
        (Failure::NoSpace, _) => Status::CAPACITY_EXCEEDED.do_not_retry(),
        (Failure::WriteProtected, _) => Status::NAMESPACE_WRITE_PROTECTED.do_not_retry(),
        (Failure::OutOfRange, _) => Status::LBA_OUT_OF_RANGE.do_not_retry(),
        (Failure::Medium, Operation::Read) => Status::UNRECOVERED_READ_ERROR.do_not_retry(),
        (Failure::Medium, _) => Status::WRITE_FAULT.do_not_retry(),
        // Another try may find a way.
        (Failure::Lost | Failure::Refused(_), _) => Status::INTERNAL_ERROR,
    }
}
