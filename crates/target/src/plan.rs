//! What a command of an I/O queue takes, and what its outcome is called.

use std::sync::Arc;

use nvme::{Access, Data, Io, Range, Status, VERIFY_BYTES, access};

use backend::{Backend, Failure, Geometry, Operation, Request};

use super::meter::Kind;
use super::stripes::Hold;

/// Bytes of a range of Dataset Management (NVM Command Set 3.2.3).
const RANGE_BYTES: u32 = 16;

/// What a command is about, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// What is done to the device; for most commands, all of it.
    pub(crate) first: Operation,
    /// From where on, and how many bytes.
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// Where the command's own data is.
    pub(crate) data: Data,
    /// Bytes of data that the host sends or gets.
    pub(crate) bytes: u32,
    /// Memory that it takes.
    pub(crate) memory_bytes: u32,
    /// What is read goes to the host.
    pub(crate) answers: bool,
    /// What is read is compared with what the host sends.
    pub(crate) compares: bool,
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

/// A request that is to be made.
pub(crate) struct Step {
    pub(crate) request: Request,
    /// To another device than the command's.
    pub(crate) other: Option<Arc<dyn Backend>>,
}

impl Plan {
    /// What it writes, so that nothing comes between a command that reads it first (SCSI has some).
    pub(crate) fn hold(&self) -> Option<Hold> {
        if self.fences {
            let length = self.geometry.bytes();
            return Some(Hold { offset: 0, length, is_alone: true });
        }
        if self.is_fused {
            let (offset, length) = (self.offset, self.length);
            return Some(Hold { offset, length, is_alone: true });
        }
        let [offset, length] = match self.first {
            Operation::Write { .. } | Operation::Zero { .. } => [self.offset, self.length],
            Operation::Discard if self.range_count > 0 => [0, self.geometry.bytes()],
            Operation::Read | Operation::Flush | Operation::Discard => return None,
        };
        (length > 0).then_some(Hold { offset, length, is_alone: false })
    }

    /// The request for its whole range.
    pub(crate) const fn request(&self, operation: Operation) -> Request {
        Request { operation, offset: self.offset, length: self.length }
    }
}

/// What a command takes, if it can be done.
pub(crate) fn plan(io: Io, data: Data, geometry: Geometry) -> Result<Plan, Status> {
    let nothing = Plan {
        first: Operation::Flush,
        offset: 0,
        length: 0,
        data,
        bytes: 0,
        memory_bytes: 0,
        answers: false,
        compares: false,
        range_count: 0,
        geometry,
        all: false,
        access: access(io),
        reserves: None,
        is_fused: false,
        fences: false,
    };
    let over = |range: Range, first: Operation| {
        let place = geometry.range(range.first, u64::from(range.count));
        let [offset, length] = place.ok_or(Status::LBA_OUT_OF_RANGE.do_not_retry())?;
        Ok::<_, Status>(Plan { first, offset, length, ..nothing })
    };
    match io {
        Io::Flush => Ok(nothing),
        Io::Read(range) => Ok(Plan { answers: true, ..with_data(over(range, Operation::Read)?)? }),
        Io::Write(range) => with_data(over(range, Operation::Write { forced: range.forced })?),
        Io::Compare(range) => {
            Ok(Plan { compares: true, ..with_data(over(range, Operation::Read)?)? })
        }
        Io::Verify(range) => {
            let plan = over(range, Operation::Read)?;
            let bytes = u32::try_from(plan.length).unwrap_or(u32::MAX);
            let fits = bytes <= VERIFY_BYTES;
            if fits { Ok(Plan { memory_bytes: bytes, ..plan }) } else { Err(too_much()) }
        }
        Io::WriteZeroes { range, deallocates } => {
            over(range, Operation::Zero { deallocates, forced: range.forced })
        }
        Io::DatasetManagement { range_count, deallocates } => {
            // Linux always sends room for 256; what is more than that is not this command's.
            let bytes = length_of(data);
            if bytes < u32::from(range_count) * RANGE_BYTES || bytes > 256 * RANGE_BYTES {
                return Err(Status::SGL_LENGTH_INVALID.do_not_retry());
            }
            let first = Operation::Discard;
            // Hints about how blocks will be used are not taken.
            let range_count = if deallocates { range_count } else { 0 };
            Ok(Plan { first, bytes, memory_bytes: bytes, range_count, ..nothing })
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
    if u64::from(bytes) != plan.length {
        return Err(Status::SGL_LENGTH_INVALID.do_not_retry());
    }
    Ok(Plan { bytes, memory_bytes: bytes, ..plan })
}

// Its data is keys, which are looked at when they are there, or what the host has room for.
fn reservation(io: Io, plan: Plan, most: u32) -> Result<Plan, Status> {
    let bytes = length_of(plan.data);
    if bytes == 0 || bytes > most {
        return Err(Status::SGL_LENGTH_INVALID.do_not_retry());
    }
    // Preempt and abort (Base 7.4): others' writes cannot be aborted, so they are waited for.
    let fences = matches!(io, Io::ReservationAcquire { action: 2, .. });
    Ok(Plan { bytes, memory_bytes: bytes, reserves: Some(io), fences, ..plan })
}

const fn length_of(data: Data) -> u32 {
    match data {
        Data::None => 0,
        Data::InCapsule { length, .. } | Data::Transport { length } => length,
    }
}

/// The requests of a command, the first last; `others` are devices beside its own.
pub(crate) fn steps(
    plan: &Plan,
    data: Option<&[u8]>,
    others: Vec<Arc<dyn Backend>>,
) -> Result<Vec<Step>, Status> {
    if plan.first != Operation::Discard {
        let request = plan.request(plan.first);
        let own = Step { request, other: None };
        let others = others.into_iter().map(|other| Step { request, other: Some(other) });
        return Ok(others.chain([own]).collect());
    }
    let ranges = data.unwrap_or_default().chunks_exact(RANGE_BYTES as usize);
    let mut steps = Vec::new();
    for range in ranges.take(usize::from(plan.range_count)) {
        let number = |at: usize, bytes: usize| {
            let field = range[at..at + bytes].iter().rev();
            field.fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
        };
        // Attributes, blocks, the first (NVM Command Set 3.2.3).
        let place = plan.geometry.range(number(8, 8), number(4, 4));
        let [offset, length] = place.ok_or(Status::LBA_OUT_OF_RANGE.do_not_retry())?;
        if length > 0 {
            let request = Request { operation: Operation::Discard, offset, length };
            steps.push(Step { request, other: None });
        }
    }
    steps.reverse();
    Ok(steps)
}

/// How a command ends whose device has failed.
pub(crate) const fn failed(failure: Failure, operation: Operation) -> Status {
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

/// What a command is counted as.
pub(crate) const fn kind_of(plan: &Plan) -> Kind {
    match plan.first {
        Operation::Read if plan.answers => Kind::Read,
        Operation::Write { .. } => Kind::Write,
        _ => Kind::Other,
    }
}

/// See [`kind_of`], and its bytes.
pub(crate) const fn counted(plan: &Plan) -> (Kind, u32) {
    match kind_of(plan) {
        Kind::Other => (Kind::Other, 0),
        kind => (kind, plan.bytes),
    }
}
