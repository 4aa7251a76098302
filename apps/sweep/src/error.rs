//! Errors of a sweep.

use std::path::PathBuf;

use console::{Class, Classed};
use dispatch::{NotSent, Place};
use experiment::journal::JournalError;
use experiment::machine::Busy;

use super::file::FileError;
use super::gate::GateError;

/// Why a sweep cannot run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SweepError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{0}")]
    Start(#[from] sys::Error),
    #[error("--find {0}: give a share above 0 with its sign, such as 5%")]
    Bound(String),
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error("{}: matrix has no values; give some, or use --find", path.display())]
    NoMatrix { path: PathBuf },
    #[error(
        "{}: {key}: {name}: not found on this machine; check the name, give its path, or install \
         it",
        path.display()
    )]
    NoProgram { path: PathBuf, key: &'static str, name: String },
    #[error("--find --on {0}: a search decides each run by those before; run it with --on local")]
    FindElsewhere(Place),
    #[error(
        "{}: runs on machines of the class {class}, and this one is {own}: --find compares on \
         equal machines; name another directory with --output",
        path.display()
    )]
    OtherMachine { path: PathBuf, class: String, own: String },
    #[error("{} has no point {id}", path.display())]
    NoPoint { path: PathBuf, id: String },
    #[error(
        "{0} waits for runs with all memory local in blocks before, which say what a share is \
             of"
    )]
    Waits(String),
    #[error(transparent)]
    Engine(#[from] NotSent),
    #[error(transparent)]
    Busy(#[from] Busy),
}

impl Classed for SweepError {
    fn class(&self) -> Class {
        match self {
            Self::Start(_) | Self::Waits(_) => Class::Failed,
            Self::Busy(_) => Class::Environment,
            Self::Engine(error) => error.class(),
            _ => Class::Usage,
        }
    }
}
