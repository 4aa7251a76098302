//! Numbers of signals (signal(7), x86-64), and what a supervisor does with those it gets.

use sys::event::Signals;

/// The terminal is gone.
pub const SIGHUP: i32 = 1;
/// Ctrl-C.
pub const SIGINT: i32 = 2;
/// Ctrl-\\.
pub const SIGQUIT: i32 = 3;
/// Nobody catches it.
pub const SIGKILL: i32 = 9;
/// For the program.
pub const SIGUSR1: i32 = 10;
/// An end is asked for.
pub const SIGTERM: i32 = 15;
/// A child has changed.
pub const SIGCHLD: i32 = 17;
/// A stopped process goes on.
pub const SIGCONT: i32 = 18;
/// Ctrl-Z.
pub const SIGTSTP: i32 = 20;

/// What a supervisor takes in place of being interrupted by it.
pub const TAKEN: [i32; 8] = [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGTERM, SIGCHLD, SIGCONT, SIGTSTP];

/// Passes what has arrived on to the program `child`; answers whether a child has changed.
#[must_use]
pub fn pass_on(signals: &Signals, child: u32) -> bool {
    let mut has_changed = false;
    while let Some(signal) = signals.next() {
        match signal {
            SIGCHLD => has_changed = true,
            // The terminal has sent these to the program too.
            SIGINT | SIGQUIT | SIGTSTP => {}
            other => {
                let _gone = sys::process::kill(child, other);
            }
        }
    }
    has_changed
}
