//! Where text goes: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal as _, Write};

use crate::{Class, Classed, Failure, speech};

/// Standard output does not take a result.
#[derive(Debug, thiserror::Error)]
#[error("write to standard output: {0}; check where it leads")]
pub struct StdoutError(#[from] io::Error);

impl Classed for StdoutError {
    fn class(&self) -> Class {
        Class::Failed
    }
}

/// Prints a result. A reader that has gone away (`afar … | head`) is no error.
///
/// # Errors
/// When standard output cannot be written to for another reason.
pub fn answer(text: &str) -> Result<(), Failure> {
    show(text).map(|_is_read| ())
}

/// Prints a part of a result; whether a reader is left for the next part.
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

/// Standard output as one end of a protocol with the process that started this one.
pub fn pipe() -> io::StdoutLock<'static> {
    io::stdout().lock()
}

/// Whether messages go to a terminal.
#[must_use]
pub fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Prints a message. Without a reader of standard error nobody is left to hear that it failed.
pub fn say(text: &str) {
    let _unheard = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints what the user did not ask for and may want to know, unless `--quiet` was given.
pub fn note(text: &str) {
    if !speech::is_quiet() {
        say(text);
    }
}

/// Prints what only somebody wants to know who gave `--verbose`.
pub fn detail(text: impl FnOnce() -> String) {
    if speech::is_verbose() {
        say(&format!("afar: {}\n", text()));
    }
}
