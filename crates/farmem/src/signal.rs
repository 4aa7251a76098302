//! Numbers of signals (signal(7), x86-64), and what a supervisor does with those it gets.

use sys::event::Signals;

pub(crate) const SIGHUP: i32 = 1;
pub(crate) const SIGINT: i32 = 2;
pub(crate) const SIGQUIT: i32 = 3;
pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGUSR1: i32 = 10;
pub(crate) const SIGTERM: i32 = 15;
pub(crate) const SIGCHLD: i32 = 17;
pub(crate) const SIGCONT: i32 = 18;
pub(crate) const SIGTSTP: i32 = 20;

/// What a supervisor takes in place of being interrupted by it.
pub(crate) const TAKEN: [i32; 8] =
    [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGTERM, SIGCHLD, SIGCONT, SIGTSTP];

/// Passes what has arrived on to the program `child`; answers whether a child has changed.
pub(crate) fn pass_on(signals: &Signals, child: u32) -> bool {
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
