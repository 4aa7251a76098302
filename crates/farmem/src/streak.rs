//! Calls of one thread in a row: the supervisor keeps to one processor meanwhile.
//!
//! The kernel wakes the supervisor on a processor that is idle, and then the caller where the
//! supervisor is (`SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`). So with each call both move to another
//! processor, which has to be woken: in a virtual machine, with an interrupt that takes 9 µs. Where
//! the supervisor stays on one, the caller stays with it, and nothing has to be woken.
//!
//! Whoever only calls has nothing else to do meanwhile. As soon as the calls are further apart, or
//! faults wait for frames, the supervisor may work beside the program again.

use sys::processors::{Processors, current};

/// Calls in a row before it stays.
const CALLS_MIN: u32 = 16;
/// Time between two calls in a row, at most.
const APART_NS: u64 = 100_000;

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Streak {
    thread: u32,
    count: u32,
    called_ns: u64,
    /// Where the supervisor may work otherwise, while it stays.
    elsewhere: Option<Processors>,
}

impl Streak {
    /// A thread has called, at a time of the monotonic clock.
    pub(crate) fn called(&mut self, thread: u32, now_ns: u64) {
        if self.counts(thread, now_ns) {
            self.stay();
        } else if self.count == 0 {
            self.leave();
        }
    }

    /// There is something else to do.
    pub(crate) fn end(&mut self) {
        self.count = 0;
        self.leave();
    }

    /// Time has passed.
    pub(crate) fn look(&mut self, now_ns: u64) {
        if now_ns > self.called_ns + APART_NS {
            self.end();
        }
    }

    // Whether it was the last that it takes.
    const fn counts(&mut self, thread: u32, now_ns: u64) -> bool {
        let goes_on = thread == self.thread && now_ns <= self.called_ns + APART_NS;
        (self.thread, self.called_ns) = (thread, now_ns);
        self.count = if goes_on { self.count.saturating_add(1) } else { 0 };
        self.count == CALLS_MIN
    }

    fn stay(&mut self) {
        let Ok(all) = Processors::of(0) else { return };
        if all.only(current()).is_some_and(|one| one.give(0).is_ok()) {
            self.elsewhere = Some(all);
        }
    }

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
