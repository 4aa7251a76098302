//! Errors of a single run.

use experiment::journal::JournalError;

/// Why a run has no figure.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The user has interrupted the sweep.
    Interrupted,
    /// The run failed, with the reason; others go on.
    Failed(String),
    /// The run is invalid, with the reason; others go on.
    Invalid(String),
}

/// Why a run was not added to the journal.
#[derive(Debug)]
pub enum NotKept {
    /// The user has interrupted the sweep.
    Interrupted,
    /// The journal cannot be written.
    Journal(JournalError),
}

impl From<JournalError> for NotKept {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}
