//! Destinations of text: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal as _, Write};

use crate::{Class, Classed, Failure, speech};

/// Standard output cannot be written to.
#[derive(Debug, thiserror::Error)]
#[error("write to standard output: {0}; check where it leads")]
pub struct StdoutError(#[from] io::Error);

impl Classed for StdoutError {
    fn class(&self) -> Class {
        Class::Failed
    }
}

/// Prints a result. A closed pipe (`afar … | head`) is no error.
///
/// # Errors
/// When standard output cannot be written to for another reason.
pub fn answer(text: &str) -> Result<(), Failure> {
    show(text).map(|_is_read| ())
}

/// Prints a part of a result. Returns whether a reader is left for the next part.
///
/// # Errors
/// As [`answer`].
pub fn show(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        other => Ok(other.map(|()| true).map_err(StdoutError)?),
    }
}

/// Standard output as a channel to the process that started this one.
pub fn pipe() -> io::StdoutLock<'static> {
    io::stdout().lock()
}

/// Whether standard error is a terminal.
#[must_use]
pub fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Prints a message. A failure is ignored: there is no reader to report it to.
pub fn say(text: &str) {
    let _unheard = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a note that the user did not request, unless `--quiet` was given.
pub fn note(text: &str) {
    if !speech::is_quiet() {
        say(text);
    }
}

/// Prints a detail, only if `--verbose` was given.
pub fn detail(text: impl FnOnce() -> String) {
    if speech::is_verbose() {
        say(&format!("afar: {}\n", text()));
    }
}
