//! The outcome of a command, and the steps before it.

use super::cdb::Command;
use super::inquiry;
use super::layout::cdb;
use super::log::{LogAsked, LogFigures};
use super::plan::{Plan, UnmapRange};
use super::sense::{Sense, Status};

/// An I_T nexus: a number that the target gives to an initiator's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nexus(pub u64);

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Its status.
    pub status: Status,
    /// Its sense data, for CHECK CONDITION.
    pub sense: Option<Sense>,
    /// Data for the initiator, cut to its allocation length.
    pub data: Vec<u8>,
    /// Bytes that the command would transfer in full, for the residual.
    pub about_bytes: u64,
}

/// The next step of a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Answer it.
    Answer(Outcome),
    /// Report the logical units: [`super::report_luns`].
    ReportLuns {
        /// SELECT REPORT.
        select: u8,
        /// Bytes that there is room for.
        allocation: u32,
    },
    /// Build a log page: [`LogAsked::page`].
    Log {
        /// The requested page.
        asked: LogAsked,
        /// Bytes that there is room for.
        allocation: u32,
    },
    /// Receive a parameter list of so many bytes, and pass it to
    /// [`super::LogicalUnit::parameters`].
    Parameters(Command, u32),
    /// Execute a plan on the device.
    Device(Plan),
    /// Deallocate ranges.
    Unmap(Vec<UnmapRange>),
    /// Abort all commands of these nexuses, then answer.
    Abort(Vec<Nexus>, Outcome),
}

impl Outcome {
    /// Success with data.
    #[must_use]
    pub fn data(data: Vec<u8>) -> Self {
        let about_bytes = data.len() as u64;
        Self { data, about_bytes, ..Self::default() }
    }

    /// The outcome of LOG SENSE: the requested page with these figures.
    #[must_use]
    pub fn log(asked: LogAsked, figures: &LogFigures, allocation: u32) -> Self {
        match asked.page(figures) {
            Ok(mut data) => {
                data.truncate(usize::try_from(allocation).unwrap_or(usize::MAX));
                Self::data(data)
            }
            Err(sense) => Self::check(sense),
        }
    }

    /// Success without data; the residual refers to `about_bytes`.
    #[must_use]
    pub fn good(about_bytes: u64) -> Self {
        Self { about_bytes, ..Self::default() }
    }

    /// CHECK CONDITION with this sense.
    #[must_use]
    pub fn check(sense: Sense) -> Self {
        Self { status: Status::CheckCondition, sense: Some(sense), ..Self::default() }
    }

    /// RESERVATION CONFLICT.
    #[must_use]
    pub fn conflict() -> Self {
        Self { status: Status::ReservationConflict, ..Self::default() }
    }
}

/// The step of a command to a logical unit that does not exist (SPC-4 5.5, SAM-5 5.11).
#[must_use]
pub fn absent(command: &[u8; 16]) -> Step {
    use cdb::{inquiry::EVPD, report, request_sense};
    let cut = |mut data: Vec<u8>, room| {
        data.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        Step::Answer(Outcome::data(data))
    };
    match cdb::OPERATION_CODE.get(command) {
        0x12 if !EVPD.get(command) => {
            let room: u32 = cdb::inquiry::ALLOCATION_LENGTH.get(command).into();
            cut(inquiry::absent(), room)
        }
        0x03 => {
            let is_descriptor = request_sense::DESC.get(command);
            let sense = Sense::LOGICAL_UNIT_NOT_SUPPORTED.write(is_descriptor);
            cut(sense, request_sense::ALLOCATION_LENGTH.get(command).into())
        }
        0xa0 => Step::ReportLuns {
            select: report::SELECT_REPORT.get(command),
            allocation: report::ALLOCATION_LENGTH.get(command),
        },
        _ => Step::Answer(Outcome::check(Sense::LOGICAL_UNIT_NOT_SUPPORTED)),
    }
}
