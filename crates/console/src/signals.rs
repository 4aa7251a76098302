//! Signals by which a user ends a command, received as messages so that its results are written.

use sys::event::{SIGHUP, SIGINT, SIGTERM, Signals};

/// Receives Ctrl-C and SIGTERM. Call it before the command starts a thread, so that no thread is
/// interrupted.
///
/// # Errors
/// When the kernel is out of descriptors.
pub fn interrupts() -> sys::Result<Signals> {
    Signals::receive(&[SIGINT, SIGTERM])
}

/// As [`interrupts`], and SIGHUP.
///
/// # Errors
/// When the kernel is out of descriptors.
pub fn interrupts_and_hangups() -> sys::Result<Signals> {
    Signals::receive(&[SIGHUP, SIGINT, SIGTERM])
}
