//! Streaks: while one thread makes calls in a row, the supervisor stays on one processor.
//!
//! The kernel wakes the supervisor on a processor that is idle, and then the caller where the
//! supervisor is (`SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`). So with each call both move to another
//! processor, which has to be woken: in a virtual machine, with an interrupt that takes 9 µs. Where
//! the supervisor stays on one, the caller stays with it, and nothing has to be woken.
//!
//! A thread that only makes calls does nothing else meanwhile. As soon as the calls are further
//! apart, or faults wait for frames, the supervisor may run beside the program again.

use sys::processors::{Processors, current};

/// Calls in a row after which the supervisor stays.
const CALLS_MIN: u32 = 16;
/// The longest time between two calls in a row.
const APART_NS: u64 = 100_000;

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Streak {
    thread: u32,
    count: u32,
    called_ns: u64,
    /// The processors that the supervisor may use otherwise; `None` while it does not stay.
    elsewhere: Option<Processors>,
}

impl Streak {
    /// Counts a call of `thread` at `now_ns` of the monotonic clock.
    pub(crate) fn called(&mut self, thread: u32, now_ns: u64) {
        if self.counts(thread, now_ns) {
            self.stay();
        } else if self.count == 0 {
            self.leave();
        }
    }

    /// Ends the streak: the supervisor has other work.
    pub(crate) fn end(&mut self) {
        self.count = 0;
        self.leave();
    }

    /// Ends the streak if the last call is too long ago.
    pub(crate) fn look(&mut self, now_ns: u64) {
        if now_ns > self.called_ns + APART_NS {
            self.end();
        }
    }

    // Counts a call. Returns whether the streak has just become long enough.
    const fn counts(&mut self, thread: u32, now_ns: u64) -> bool {
        let goes_on = thread == self.thread && now_ns <= self.called_ns + APART_NS;
        (self.thread, self.called_ns) = (thread, now_ns);
        self.count = if goes_on { self.count.saturating_add(1) } else { 0 };
        self.count == CALLS_MIN
    }

    // Binds the supervisor to its current processor.
    fn stay(&mut self) {
        let Ok(all) = Processors::of(0) else { return };
        if all.only(current()).is_some_and(|one| one.give(0).is_ok()) {
            self.elsewhere = Some(all);
        }
    }

    // Lets the supervisor use all its processors again.
    fn leave(&mut self) {
        if let Some(all) = self.elsewhere.take() {
            let _as_before = all.give(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streak_is_of_one_thread_and_without_pauses() {
        let mut streak = Streak::default();
        let mut counted = |thread, now_ns| streak.counts(thread, now_ns);
        assert!(!(1..=16).any(|call| counted(7, call * APART_NS)), "the first begins it");
        assert!(counted(7, 17 * APART_NS));
        assert!(!counted(7, 18 * APART_NS), "it was told before");
        assert!(!(19..=35).any(|call| counted(7, call * (APART_NS + 1))), "with pauses");
        assert!(!(1..=40).any(|call| counted(call, 40 * APART_NS)), "of one each");
    }

    #[test]
    fn it_stays_and_leaves() {
        let before = Processors::of(0).expect("it is there");
        let mut streak = Streak::default();
        for _ in 0..=CALLS_MIN {
            streak.called(7, 1);
        }
        assert!(streak.elsewhere.is_some());
        streak.look(1 + APART_NS);
        assert!(streak.elsewhere.is_some());
        streak.look(2 + APART_NS);
        assert_eq!(streak.elsewhere.map(|_| ()), None);
        assert_eq!(Processors::of(0).expect("it is there").count(), before.count());
    }
}
