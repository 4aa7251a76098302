//! Streaks: while one thread makes calls, or faults, in a row, the supervisor stays on a processor.
//!
//! The kernel wakes the supervisor on a processor that is idle, and then the caller where the
//! supervisor is (`SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`). So with each call both move to another
//! processor, which has to be woken: in a virtual machine, with an interrupt that takes 9 µs. Where
//! the supervisor stays on one, the caller stays with it, and nothing has to be woken.
//!
//! A thread that only makes calls does nothing else meanwhile. As soon as the calls are further
//! apart, or faults wait for frames, the supervisor may run beside the program again.
//!
//! A thread whose fault userfaultfd reports sleeps until its page is mapped. The supervisor stays
//! where that thread is: the kernel then wakes neither on a processor that is idle. In a virtual
//! machine a fetch without a delay takes 7 µs so, and 35 µs otherwise.

use sys::processors::{Processors, current, last_of};

/// Calls in a row after which the supervisor stays.
const CALLS_MIN: u32 = 16;
/// The longest time between two calls in a row.
const APART_NS: u64 = 100_000;
/// The longest time between two faults in a row.
const FAULTS_APART_NS: u64 = 1_000_000;
/// After so many faults in a row it is seen whether their thread has moved.
const FAULTS_MANY: u32 = 256;

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Streak {
    thread: u32,
    count: u32,
    /// When the streak ends unless it goes on.
    until_ns: u64,
    /// The processors that the supervisor may use otherwise; `None` while it does not stay.
    elsewhere: Option<Processors>,
}

impl Streak {
    /// Counts a call of `thread` at `now_ns` of the monotonic clock.
    pub(crate) fn called(&mut self, thread: u32, now_ns: u64) {
        if self.counts(thread, now_ns, APART_NS) == CALLS_MIN {
            self.stay(current());
        } else if self.count == 0 {
            self.leave();
        }
    }

    /// Counts a fault of `thread`, which sleeps until it is served, at `now_ns` of the monotonic
    /// clock.
    pub(crate) fn faulted(&mut self, thread: u32, now_ns: u64) {
        match self.counts(thread, now_ns, FAULTS_APART_NS) {
            0 => self.leave(),
            count if count % FAULTS_MANY == CALLS_MIN => {
                last_of(thread).into_iter().for_each(|processor| self.stay(processor));
            }
            _ => {}
        }
    }

    /// Ends the streak: the supervisor has other work.
    pub(crate) fn end(&mut self) {
        self.count = 0;
        self.leave();
    }

    /// Ends the streak if the last call or fault is too long ago.
    pub(crate) fn look(&mut self, now_ns: u64) {
        if now_ns > self.until_ns {
            self.end();
        }
    }

    // Counts a call or a fault, which the next may follow by `apart_ns`. Returns how many there were
    // in a row, without the first.
    const fn counts(&mut self, thread: u32, now_ns: u64, apart_ns: u64) -> u32 {
        let goes_on = thread == self.thread && now_ns <= self.until_ns;
        (self.thread, self.until_ns) = (thread, now_ns + apart_ns);
        self.count = if goes_on { self.count.saturating_add(1) } else { 0 };
        self.count
    }

    // Binds the supervisor to a processor, if it may use that.
    fn stay(&mut self, on: usize) {
        let Some(all) = self.elsewhere.take().or_else(|| Processors::of(0).ok()) else { return };
        let is_there = all.only(on).is_some_and(|one| one.give(0).is_ok());
        if !is_there {
            let _as_before = all.give(0);
        }
        self.elsewhere = is_there.then_some(all);
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
        let mut counted = |thread, now_ns| streak.counts(thread, now_ns, APART_NS) == CALLS_MIN;
        assert!(!(1..=16).any(|call| counted(7, call * APART_NS)), "the first begins it");
        assert!(counted(7, 17 * APART_NS));
        assert!(!counted(7, 18 * APART_NS), "it was told before");
        assert!(!(19..=35).any(|call| counted(7, call * (APART_NS + 1))), "with pauses");
        assert!(!(1..=40).any(|call| counted(call, 40 * APART_NS)), "of one each");
    }

    #[test]
    fn the_supervisor_stays_where_the_thread_is_that_faults() {
        let before = Processors::of(0).expect("it is there");
        let thread = sys::process::thread();
        let mut streak = Streak::default();
        for fault in 0..=u64::from(CALLS_MIN) {
            streak.faulted(thread, 1 + fault * FAULTS_APART_NS);
        }
        assert_eq!(Processors::of(0).expect("it is there").count(), 1);
        // A fault of another thread, as of a program with several.
        streak.faulted(thread + 1, 1 + u64::from(CALLS_MIN) * FAULTS_APART_NS);
        assert_eq!(Processors::of(0).expect("it is there").count(), before.count());
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
