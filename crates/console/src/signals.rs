//! Signals by which a user ends a command, received as messages so that its results are kept.

use sys::event::{SIGHUP, SIGINT, SIGTERM, Signals};

/// Receives Ctrl-C and the request to end. Called before the command starts a thread, so that no
/// thread is interrupted.
///
/// # Errors
/// When the kernel is out of descriptors.
pub fn interrupts() -> sys::Result<Signals> {
    Signals::receive(&[SIGINT, SIGTERM])
}

/// As [`interrupts`], and the loss of the terminal as well.
///
/// # Errors
/// When the kernel is out of descriptors.
pub fn interrupts_and_hangups() -> sys::Result<Signals> {
    Signals::receive(&[SIGHUP, SIGINT, SIGTERM])
}
