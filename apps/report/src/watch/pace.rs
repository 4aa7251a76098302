//! The pace of looks: only while somebody watches, with a hundredth of a processor at most.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The shortest pause between two looks.
pub(super) const PERIOD: Duration = Duration::from_secs(1);
/// The pause after a look is this many times its processor time.
const SHARE: u32 = 100;
/// The longest pause between two looks.
const PERIOD_MAX: Duration = Duration::from_secs(60);

/// The pause after a look that took `cost` of processor time.
pub(super) fn pause(cost: Duration) -> Duration {
    (cost * SHARE).clamp(PERIOD, PERIOD_MAX)
}

/// The number of watchers.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    count: Mutex<usize>,
    changed: Condvar,
}

/// One watcher, who is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Watcher<W: AsRef<Watchers>>(W);

impl Watchers {
    /// The number of watchers, locked.
    fn count(&self) -> std::sync::MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until somebody watches.
    pub(super) fn wait(&self) {
        let none = |count: &mut usize| *count == 0;
        let _some = self.changed.wait_while(self.count(), none);
    }
}

impl<W: AsRef<Watchers>> Watcher<W> {
    /// Counts one more watcher; `None` if there are `most` already.
    pub(super) fn enter(watchers: W, most: usize) -> Option<Self> {
        {
            let mut count = watchers.as_ref().count();
            if *count >= most {
                return None;
            }
            *count += 1;
        }
        watchers.as_ref().changed.notify_all();
        Some(Self(watchers))
    }
}

impl<W: AsRef<Watchers>> Drop for Watcher<W> {
    fn drop(&mut self) {
        *self.0.as_ref().count() -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn looks_take_a_hundredth_of_a_processor_at_most() {
        assert_eq!(pause(Duration::ZERO), Duration::from_secs(1));
        assert_eq!(pause(Duration::from_millis(10)), Duration::from_secs(1));
        for ms in [11, 50, 300] {
            let cost = Duration::from_millis(ms);
            assert!(cost.as_secs_f64() / pause(cost).as_secs_f64() <= 0.01, "{ms}");
        }
        assert_eq!(pause(Duration::from_secs(3600)), PERIOD_MAX);
    }

    #[test]
    fn nobody_is_let_in_beyond_the_most_and_who_goes_makes_room() {
        let watchers = Arc::new(Watchers::default());
        let enter = || Watcher::enter(Arc::clone(&watchers), 2);
        let (one, other) = (enter(), enter());
        assert!(one.is_some() && other.is_some() && enter().is_none());
        drop(one);
        assert!(enter().is_some());
        // Somebody is there: it does not wait.
        watchers.wait();
    }
}
