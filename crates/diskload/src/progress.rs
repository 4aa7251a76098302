//! How far a load is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Shows how far a load is, and ends it, from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) ended: AtomicU64,
    stop: AtomicBool,
    waits: Mutex<()>,
    stopped: Condvar,
}

impl Progress {
    /// Requests that have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// No further request is made.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let _guard = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopped.notify_all();
    }

    /// Waits so long, or until it has stopped.
    pub(crate) fn pause(&self, time: std::time::Duration) {
        let guard = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let _woken = self.stopped.wait_timeout_while(guard, time, |()| !self.has_stopped());
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
