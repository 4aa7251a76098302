//! One line on the terminal that shows progress and is gone afterwards.
//!
//! Drawn here and not by a library: a library (indicatif) draws where the cursor is, and the
//! program that runs writes to the same terminal. This line is drawn below the cursor, and only
//! while the terminal is in our foreground and shows what is typed.
//!
//! A process that shows progress in its own way (a notebook) sets [`VARIABLE`] to `lines`: each
//! text is then a line of standard error that begins with [`MARK`], terminal or not.

use std::io::IsTerminal;

use rustix::termios::LocalModes;

use crate::{speech, terminal};

/// The program writes to the same terminal and may have left a line half written, so ours goes
/// below the cursor, which stays where it was (ECMA-48, DEC STD 070): erase what is below, go down
/// and up again to have a row there, save the cursor, go down, do not wrap.
const BEFORE: &str = "\x1b[J\x1bD\x1bM\x1b7\x1b[B\r\x1b[?7l";
const AFTER: &str = "\x1b[?7h\x1b8";
const ERASE: &str = "\x1b[J";

/// The variable by which another process asks for progress.
const VARIABLE: &str = "AFAR_PROGRESS";
/// What a line of progress begins with (ASCII, record separator): no program writes it by chance.
const MARK: char = '\u{1e}';

/// One line of text that is drawn anew: below the cursor, or for another process. Dropping it
/// erases it.
#[derive(Debug)]
pub struct Line {
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Below the cursor; whether it is there now.
    Terminal { drawn: bool },
    /// Standard error, for whoever reads it.
    Reader,
}

impl Line {
    /// A line, if there is a terminal to draw it on, or a process that asks for it, and the user
    /// wants to see progress.
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

    /// Shows `text` in place of what was there, if the terminal is ours.
    pub fn draw(&mut self, text: &str) {
        match &mut self.place {
            Place::Terminal { drawn } => {
                *drawn = is_ours();
                // Otherwise whoever took the terminal over has drawn on it since.
                if *drawn {
                    terminal::say(&format!("{BEFORE}{text}{AFTER}"));
                }
            }
            Place::Reader => terminal::say(&format!("{MARK}{}\n", text.trim())),
        }
    }

    /// Erases it, until it is drawn again.
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
