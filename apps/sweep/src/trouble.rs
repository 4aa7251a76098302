//! How a run ended that did not end well, and why one is not kept.

use experiment::journal::JournalError;

/// How a run ended, if it did not end well.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The user wants to stop.
    Interrupted,
    /// Something that is said of this run; the others go on.
    Failed(String),
    /// Nothing is concluded from this run, and why; the others go on.
    Invalid(String),
}

/// Why a run is not in its journal.
#[derive(Debug)]
pub enum NotKept {
    /// The user wants to stop.
    Interrupted,
    /// It cannot be written there.
    Journal(JournalError),
}

impl From<JournalError> for NotKept {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}
