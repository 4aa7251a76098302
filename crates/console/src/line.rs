//! One line on the terminal that shows progress and is gone afterwards.
//!
//! Drawn here and not by a library: a library (indicatif) draws where the cursor is, and the
//! program that runs writes to the same terminal. This line is drawn below the cursor, and only
//! while the terminal is in our foreground and shows what is typed.

use std::io::IsTerminal;

use rustix::termios::LocalModes;

use crate::terminal;

/// The program writes to the same terminal and may have left a line half written, so ours goes
/// below the cursor, which stays where it was (ECMA-48, DEC STD 070): erase what is below, go down
/// and up again to have a row there, save the cursor, go down, do not wrap.
const BEFORE: &str = "\x1b[J\x1bD\x1bM\x1b7\x1b[B\r\x1b[?7l";
const AFTER: &str = "\x1b[?7h\x1b8";
const ERASE: &str = "\x1b[J";

/// One line of text below the cursor. Dropping it erases it.
#[derive(Debug, Default)]
pub struct Line {
    drawn: bool,
}

impl Line {
    /// A line, if there is a terminal to draw it on.
    #[must_use]
    pub fn on_terminal() -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        (std::io::stderr().is_terminal() && !dumb).then(Self::default)
    }

    /// Shows `text` in place of what was there, if the terminal is ours.
    pub fn draw(&mut self, text: &str) {
        self.drawn = is_ours();
        // Otherwise whoever took the terminal over has drawn on it since.
        if self.drawn {
            terminal::say(&format!("{BEFORE}{text}{AFTER}"));
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.drawn && is_ours() {
            terminal::say(ERASE);
        }
    }
}

/// Whether the terminal takes lines and shows what is typed, and we are in its foreground. An
/// editor or a prompt that draws for itself does not want a line of ours in between.
fn is_ours() -> bool {
    let terminal = std::io::stderr();
    let lines = rustix::termios::tcgetattr(&terminal).is_ok_and(|attributes| {
        attributes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    });
    let group = rustix::process::getpgrp();
    lines && rustix::termios::tcgetpgrp(&terminal).is_ok_and(|front| front == group)
}
