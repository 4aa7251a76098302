//! Why there is no validation.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use ::experiment::machine::Busy;
use console::{Class, Classed, OutputError};
use records::RecordError;

/// Why there is no validation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValidateError {
    #[error("keep records in {}: {source}; check the path and its permissions", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("start the program: {0}")]
    Start(io::Error),
    #[error("the {kind} run ended with {status}: {last}")]
    Program { kind: String, status: ExitStatus, last: String },
    #[error("the {kind} run: {last}")]
    Refused { kind: String, status: ExitStatus, last: String },
    #[error("the {kind} run: {why}")]
    Invalid { kind: String, why: String },
    #[error("read what the {kind} run has measured: {why}")]
    Read { kind: String, why: String },
    #[error("read the faults of the real run: {0}")]
    Faults(#[from] RecordError),
    #[error(
        "the real run fetched {count} pages: too few to know how long one takes; give less \
         --local, or a program that uses more memory"
    )]
    TooFew { count: u64 },
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    System(#[from] sys::Error),
}

impl Classed for ValidateError {
    fn class(&self) -> Class {
        match self {
            Self::Directory { .. } | Self::TooFew { .. } => Class::Usage,
            Self::Output(error) => error.class(),
            Self::Busy(_) => Class::Environment,
            // `afar run` exits with these for a usage error and for a lack of this machine.
            Self::Refused { status, .. } => match status.code() {
                Some(code) if code == i32::from(Class::Usage.status()) => Class::Usage,
                Some(code) if code == i32::from(Class::Environment.status()) => Class::Environment,
                _ => Class::Failed,
            },
            Self::Invalid { .. } => Class::Invalid,
            Self::Start(_)
            | Self::Program { .. }
            | Self::Read { .. }
            | Self::Faults(_)
            | Self::System(_) => Class::Failed,
        }
    }
}

/// Why a validation stops early.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The user pressed Ctrl-C.
    Interrupted,
    /// A run or a file failed.
    Error(ValidateError),
}

impl<E: Into<ValidateError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}
