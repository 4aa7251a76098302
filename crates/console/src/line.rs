//! A progress line on the terminal, which is erased afterwards.
//!
//! Drawn here and not by a library: a library (indicatif) draws at the cursor, and the program
//! under measurement writes to the same terminal. This line is drawn below the cursor, and only
//! while the terminal's foreground is ours and its input is echoed.
//!
//! A process that shows progress in its own way (a notebook) sets [`VARIABLE`] to `lines`: each
//! text is then a line of standard error that begins with [`MARK`], terminal or not.

use std::io::IsTerminal;

use rustix::termios::LocalModes;

use crate::{speech, terminal};

/// The program writes to the same terminal and may have left a line half written, so ours is drawn
/// below the cursor, which stays where it was (ECMA-48, DEC STD 070): erase below, move down and up
/// again to have a row there, save the cursor, move down, do not wrap.
const BEFORE: &str = "\x1b[J\x1bD\x1bM\x1b7\x1b[B\r\x1b[?7l";
const AFTER: &str = "\x1b[?7h\x1b8";
const ERASE: &str = "\x1b[J";

/// The environment variable by which another process requests progress lines.
const VARIABLE: &str = "AFAR_PROGRESS";
/// The first character of a progress line (ASCII, record separator): no program writes it by
/// chance.
const MARK: char = '\u{1e}';

/// A line of text that is drawn again and again: below the cursor, or for another process. Dropping
/// it erases it.
#[derive(Debug)]
pub struct Line {
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Below the cursor; whether it is drawn now.
    Terminal { drawn: bool },
    /// Standard error, for a process that reads it.
    Reader,
}

impl Line {
    /// A line, if progress is wanted and there is a terminal to draw on or a process that requests
    /// it; else `None`.
    #[must_use]
    pub fn if_watched() -> Option<Self> {
        if !speech::shows_progress() {
            return None;
        }
        if std::env::var_os(VARIABLE).is_some_and(|how| how == "lines") {
            return Some(Self { place: Place::Reader });
        }
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let place = Place::Terminal { drawn: false };
        (std::io::stderr().is_terminal() && !dumb).then_some(Self { place })
    }

    /// Draws `text` in place of the old one, if the terminal is ours.
    pub fn draw(&mut self, text: &str) {
        match &mut self.place {
            Place::Terminal { drawn } => {
                *drawn = is_ours();
                // If it is not, another process has drawn on it since.
                if *drawn {
                    terminal::say(&format!("{BEFORE}{text}{AFTER}"));
                }
            }
            Place::Reader => terminal::say(&format!("{MARK}{}\n", text.trim())),
        }
    }

    /// Erases the line until it is drawn again.
    pub fn clear(&mut self) {
        if let Place::Terminal { drawn } = &mut self.place
            && std::mem::take(drawn)
            && is_ours()
        {
            terminal::say(ERASE);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether the terminal is in line mode with echo, and we are in its foreground. An editor or a
/// prompt that draws by itself must not be disturbed.
fn is_ours() -> bool {
    let terminal = std::io::stderr();
    let lines = rustix::termios::tcgetattr(&terminal).is_ok_and(|attributes| {
        attributes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    });
    let group = rustix::process::getpgrp();
    lines && rustix::termios::tcgetpgrp(&terminal).is_ok_and(|front| front == group)
}
