//! Where text goes: results to standard output, everything else to standard error.

use std::io::{self, Write};

/// Prints a result. A reader that has gone away (`afar … | head`) is no error.
///
/// # Errors
/// When standard output cannot be written to for another reason.
pub(crate) fn answer(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// As [`answer`], of which there is more to come; whether there is still somebody who reads it.
///
/// # Errors
/// As [`answer`].
pub(crate) fn show(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        other => other.map(|()| true),
    }
}

/// Tells the user something. Without a reader there is nobody left to tell that it failed.
pub(crate) fn say(text: &str) {
    let _unheard = io::stderr().lock().write_all(text.as_bytes());
}
