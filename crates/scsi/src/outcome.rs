//! How a command ends, and what is to be done before that.

use super::cdb::Command;
use super::inquiry;
use super::layout::cdb;
use super::log::{LogAsked, LogFigures};
use super::plan::{Plan, UnmapRange};
use super::sense::{Sense, Status};

/// An initiator and the way it has come, as whoever owns the target numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nexus(pub u64);

/// How a command ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Its status.
    pub status: Status,
    /// What happened, if the status says to look.
    pub sense: Option<Sense>,
    /// Data for the initiator, not more than it has room for.
    pub data: Vec<u8>,
    /// Bytes that the command was about, for the residual.
    pub about_bytes: u64,
}

/// What is to be done for a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing more.
    Answer(Outcome),
    /// To say which logical units there are: [`super::report_luns`].
    ReportLuns {
        /// SELECT REPORT.
        select: u8,
        /// Bytes that there is room for.
        allocation: u32,
    },
    /// To say what the logical unit has done: [`LogAsked::page`].
    Log {
        /// What is asked for.
        asked: LogAsked,
        /// Bytes that there is room for.
        allocation: u32,
    },
    /// To hand in so many bytes that come with the command: [`super::LogicalUnit::parameters`].
    Parameters(Command, u32),
    /// To have a device do something.
    Device(Plan),
    /// To give room back.
    Unmap(Vec<UnmapRange>),
    /// To end all commands of these initiators, then answer.
    Abort(Vec<Nexus>, Outcome),
}

impl Outcome {
    /// It was done and has this data.
    #[must_use]
    pub fn data(data: Vec<u8>) -> Self {
        let about_bytes = data.len() as u64;
        Self { data, about_bytes, ..Self::default() }
    }

    /// The page of the log that is asked for, of a logical unit that has done this.
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

    /// It was done, and was about so many bytes.
    #[must_use]
    pub fn good(about_bytes: u64) -> Self {
        Self { about_bytes, ..Self::default() }
    }

    /// It was not done, for this reason.
    #[must_use]
    pub fn check(sense: Sense) -> Self {
        Self { status: Status::CheckCondition, sense: Some(sense), ..Self::default() }
    }

    /// Another has reserved it.
    #[must_use]
    pub fn conflict() -> Self {
        Self { status: Status::ReservationConflict, ..Self::default() }
    }
}

/// What an initiator gets from a logical unit that is not there (SPC-4 5.5, SAM-5 5.11).
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
