//! Output: a progress line on the terminal, answers, and errors.

use std::cell::Cell;
use std::io::{IsTerminal, Write};

/// A progress line on standard error, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: Cell<bool>,
    terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { shown: Cell::new(false), terminal: std::io::stderr().is_terminal() }
    }

    /// Replaces the line by `text`.
    pub(crate) fn show(&self, text: &str) {
        if !self.terminal {
            return;
        }
        let short: String = text.chars().take(78).collect();
        self.put(true, &format!("\r{short}\x1b[K"));
    }

    /// Erases the line.
    pub(crate) fn erase(&self) {
        if self.shown.get() {
            self.put(false, "\r\x1b[K");
        }
    }

    /// Writes `text` to the terminal; `shows` says whether a line is visible then.
    fn put(&self, shows: bool, text: &str) {
        self.shown.set(shows);
        let mut stderr = std::io::stderr().lock();
        let _closed = stderr.write_all(text.as_bytes());
        let _unflushed = stderr.flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.erase();
    }
}

/// Prints `text` on standard output. A reader that has gone away is no error.
pub(crate) fn answer(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _closed = stdout.write_all(text.as_bytes());
    let _unflushed = stdout.flush();
}

/// Prints an error, one sentence, on standard error.
pub(crate) fn complain(text: &str) {
    let _closed = writeln!(std::io::stderr(), "bench: {text}");
}
