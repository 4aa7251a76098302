//! The progress of a load.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Lets another thread watch a load and stop it.
#[derive(Debug, Default)]
pub struct Progress {
    pub(crate) ended: AtomicU64,
    stop: AtomicBool,
    waits: Mutex<()>,
    stopped: Condvar,
}

impl Progress {
    /// How many requests have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Has the load make no further requests.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let _guard = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopped.notify_all();
    }

    /// Waits for `time`, or until the load is stopped.
    pub(crate) fn pause(&self, time: std::time::Duration) {
        let guard = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let _woken = self.stopped.wait_timeout_while(guard, time, |()| !self.has_stopped());
    }

    /// Whether the load has been told to stop.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
