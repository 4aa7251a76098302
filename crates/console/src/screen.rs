//! The terminal as a screen for a view that is redrawn.

use std::fmt::Write;
use std::io::{self, IsTerminal};

use crate::{Failure, terminal};

/// Sequences: to the alternate screen without cursor and wrapping (xterm's private modes, DEC STD
/// 070), and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const ERASE_LINE: &str = "\x1b[K\r\n";
const ERASE_BELOW: &str = "\x1b[J";
/// Rows if the terminal does not report its size.
const ROWS: usize = 24;

/// The whole terminal, for a view that is drawn again and again. Dropping it restores the terminal.
pub struct Screen(());

impl Screen {
    /// Takes the terminal over, if standard output is one that can be drawn on; else `None`.
    pub fn enter() -> Option<Self> {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if is_dumb || !io::stdout().is_terminal() {
            return None;
        }
        terminal::show(ENTER).ok().map(|_| Self(()))
    }

    /// Draws as many lines of `text` as fit. Returns whether a reader is left.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub fn draw(&self, text: &str) -> Result<bool, Failure> {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        let rows = size.ok().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0);
        terminal::show(&frame(text, rows.unwrap_or(ROWS)))
    }
}

// The sequence that draws `text`. The last row stays free: a line feed there would scroll.
fn frame(text: &str, rows: usize) -> String {
    let mut frame = HOME.to_owned();
    for line in text.lines().take(rows.saturating_sub(1)) {
        let _infallible = write!(frame, "{line}{ERASE_LINE}");
    }
    frame + ERASE_BELOW
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _gone = terminal::show(LEAVE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_fits_the_terminal() {
        let frame = frame("a\nb\nc\n", 3);
        assert_eq!(frame, "\x1b[Ha\x1b[K\r\nb\x1b[K\r\n\x1b[J");
    }
}
