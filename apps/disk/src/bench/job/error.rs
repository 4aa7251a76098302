//! What is wrong in a job file, and what has no effect there.

/// What is wrong with a job file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobError {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// Something that a job file says to no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) line: usize,
    pub(crate) text: String,
}
