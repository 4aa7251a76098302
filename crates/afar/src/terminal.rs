//! Where text goes: results to standard output, everything else to standard error.

use std::io::{self, Write};

use crate::failure::{Class, Classed, Failure};

/// Standard output does not take a result.
#[derive(Debug, thiserror::Error)]
#[error("write to standard output: {0}; check where it leads")]
pub(crate) struct StdoutError(#[from] io::Error);

impl Classed for StdoutError {
    fn class(&self) -> Class {
        Class::Failed
    }
}

/// Prints a result. A reader that has gone away (`afar … | head`) is no error.
///
/// # Errors
/// When standard output cannot be written to for another reason.
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    show(text).map(|_is_read| ())
}

/// Prints a part of a result; whether a reader is left for the next part.
///
/// # Errors
/// As [`answer`].
pub(crate) fn show(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        other => Ok(other.map(|()| true).map_err(StdoutError)?),
    }
}

/// Prints a message. Without a reader of standard error nobody is left to hear that it failed.
pub(crate) fn say(text: &str) {
    let _unheard = io::stderr().lock().write_all(text.as_bytes());
}
