//! One error for every system call: what was tried, and what the kernel said.

use std::io;

/// A system operation that failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {source}")]
pub struct Error {
    /// What was being done, in words a user can act on.
    pub operation: &'static str,
    /// The operating system's answer.
    #[source]
    pub source: io::Error,
}

impl Error {
    /// Wraps the operating system's answer with the operation that got it.
    pub fn new(operation: &'static str, source: impl Into<io::Error>) -> Self {
        Self { operation, source: source.into() }
    }

    /// The last error of the calling thread (`errno`).
    #[must_use]
    pub fn last(operation: &'static str) -> Self {
        Self { operation, source: io::Error::last_os_error() }
    }

    /// The `errno` value, when the error came from the kernel.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

/// Result of a system operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Turns a negative result, by the C convention, into an [`Error`].
pub(crate) fn check(operation: &'static str, result: libc::c_long) -> Result<libc::c_long> {
    if result < 0 { Err(Error::last(operation)) } else { Ok(result) }
}

/// Adds the name of the operation to an error of `rustix`.
pub(crate) trait During<T> {
    /// Names the operation that failed.
    fn during(self, operation: &'static str) -> Result<T>;
}

impl<T, E: Into<io::Error>> During<T> for std::result::Result<T, E> {
    fn during(self, operation: &'static str) -> Result<T> {
        self.map_err(|source| Error::new(operation, source))
    }
}
