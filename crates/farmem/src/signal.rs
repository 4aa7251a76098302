//! Numbers of signals (signal(7), x86-64), and how a supervisor passes them on.

use sys::event::Signals;

/// The terminal is gone.
pub const SIGHUP: i32 = 1;
/// Ctrl-C.
pub const SIGINT: i32 = 2;
/// Ctrl-\\.
pub const SIGQUIT: i32 = 3;
/// Cannot be caught.
pub const SIGKILL: i32 = 9;
/// Has no meaning to the supervisor.
pub const SIGUSR1: i32 = 10;
/// A request to end.
pub const SIGTERM: i32 = 15;
/// A child has ended, stopped or continued.
pub const SIGCHLD: i32 = 17;
/// A stopped process goes on.
pub const SIGCONT: i32 = 18;
/// Ctrl-Z.
pub const SIGTSTP: i32 = 20;

/// Signals that a supervisor receives as messages, without being interrupted.
pub const TAKEN: [i32; 8] = [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGTERM, SIGCHLD, SIGCONT, SIGTSTP];

/// Passes received signals on to the program `child`. Returns whether a child process has changed.
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
