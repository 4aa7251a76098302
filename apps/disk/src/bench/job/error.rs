//! Errors in job files, and notes on options without effect.

/// An error in a job file, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobError {
    /// The line, from 1.
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// An option in a job file that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) line: usize,
    pub(crate) text: String,
}
