//! How long the supervisor of `farmem` polls for faults on pages of a blade, and whether a page may
//! arrive in time. The caller says what time it is.

use measure::Spins;

/// Longest time to poll after a fault.
const LOOK_MAX_NS: u64 = 200_000;
/// The time to poll at first.
const LOOK_BEGIN_NS: u64 = 50_000;
/// A shorter time is not worth the calls.
const LOOK_MIN_NS: u64 = 10_000;
/// Least time between two moves to another processor.
const MOVE_NS: u64 = 2_000_000;
/// A tick with fewer spins is not judged; if more than one in `SPINS_EXPIRED` expire, no fault
/// spins for `REST_TICKS`.
const SPINS_FEW: u64 = 16;
const SPINS_EXPIRED: u64 = 5;
const REST_TICKS: u32 = 10;
/// One pause has a weight of one in so many in the average.
const PAUSES: u64 = 16;
/// A fetch moves the median by one part in so many.
const STEP: u64 = 32;

/// If faults come this long after the last page, pages may leave in between. A page takes about
/// 3 us to leave, so the next fault waits for 1 us or so.
const PAUSE_NS: u64 = 2_000;
/// A longer pause counts as one of this length.
const PAUSE_MAX_NS: u64 = 20_000;

/// How long to poll, and how long a fetch takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    look_ns: u64,
    /// How long a fetch takes, in the median.
    fetch_ns: u64,
    /// When the last page came, in nanoseconds of the run.
    came_ns: u64,
    /// How long after a page the next fault comes, on average.
    pause_ns: u64,
    /// When the supervisor last moved to another processor, by the monotonic clock.
    moved_ns: u64,
    /// Spins as they were last judged.
    spins: Spins,
    /// Ticks for which the supervisor does not poll.
    rests: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            look_ns: LOOK_BEGIN_NS,
            fetch_ns: 0,
            came_ns: 0,
            pause_ns: 0,
            moved_ns: 0,
            spins: Spins::default(),
            rests: 0,
        }
    }
}

impl Patience {
    /// How long to poll after the last fault, in nanoseconds.
    #[must_use]
    pub const fn look_ns(self) -> u64 {
        if self.rests > 0 { 0 } else { self.look_ns }
    }

    /// Judges the spins since the start, at each tick: where many expire, the supervisor did not
    /// get the processor, and for some time no thread spins.
    pub fn judge(&mut self, spins: Spins) {
        let before = std::mem::replace(&mut self.spins, spins);
        let expired = spins.expired_count - before.expired_count;
        let all = spins.answered_count - before.answered_count + expired;
        self.rests = self.rests.saturating_sub(1);
        if all >= SPINS_FEW && expired * SPINS_EXPIRED > all {
            self.rests = REST_TICKS;
        }
    }

    /// Adapts the time to poll to a fault that came after a sleep of `slept_ns`.
    pub fn woken(&mut self, slept_ns: u64) {
        self.look_ns = match slept_ns < LOOK_MAX_NS {
            true => (self.look_ns * 2).clamp(LOOK_MIN_NS, LOOK_MAX_NS),
            false if self.look_ns / 2 < LOOK_MIN_NS => 0,
            false => self.look_ns / 2,
        };
    }

    /// Whether the supervisor may move to another processor at `now_ns`. Notes the move then.
    pub fn may_move(&mut self, now_ns: u64) -> bool {
        let may = now_ns.saturating_sub(self.moved_ns) >= MOVE_NS;
        if may {
            self.moved_ns = now_ns;
        }
        may
    }

    /// Enters a fetch, whose page came at `now_ns`. Its time moves the median by a step, however
    /// long it took: a few pages that waited for an eviction say nothing about the next one.
    pub const fn fetched(&mut self, took_ns: u64, now_ns: u64) {
        self.came_ns = now_ns;
        self.fetch_ns = match self.fetch_ns {
            0 => took_ns,
            before if took_ns > before => before + before / STEP,
            before => before - before / STEP,
        };
    }

    /// Notes a fault at `at_ns`.
    pub fn asked(&mut self, at_ns: u64) {
        let pause_ns = at_ns.saturating_sub(self.came_ns).min(PAUSE_MAX_NS);
        self.pause_ns = self.pause_ns - self.pause_ns / PAUSES + pause_ns / PAUSES;
    }

    /// Whether there is time between two faults for work that no fault waits for.
    #[must_use]
    pub const fn has_pauses(self) -> bool {
        self.pause_ns >= PAUSE_NS
    }

    /// Whether a fetch takes no longer than `longest_ns`, in the median.
    #[must_use]
    pub const fn is_within(self, longest_ns: u64) -> bool {
        self.fetch_ns <= longest_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supervisor_looks_longer_where_faults_follow_soon_and_not_where_they_do_not() {
        let mut patience = Patience::default();
        assert_eq!(patience.look_ns(), LOOK_BEGIN_NS);
        for _ in 0..9 {
            patience.woken(LOOK_MAX_NS - 1);
        }
        assert_eq!(patience.look_ns(), LOOK_MAX_NS);
        for _ in 0..9 {
            patience.woken(LOOK_MAX_NS);
        }
        assert_eq!(patience.look_ns(), 0);
        // And comes back.
        patience.woken(1);
        assert_eq!(patience.look_ns(), LOOK_MIN_NS);
    }

    #[test]
    fn a_page_is_spun_for_if_pages_come_in_time() {
        let mut patience = Patience::default();
        // Nothing is known yet.
        assert!(patience.is_within(1_000));
        patience.fetched(30_000, 0);
        assert!(!patience.is_within(20_000) && patience.is_within(30_000));
        for _ in 0..99 {
            patience.fetched(8_000, 0);
        }
        assert!(patience.is_within(10_000) && !patience.is_within(5_000));
        // One in four takes long.
        for _ in 0..99 {
            (0..3).for_each(|_| patience.fetched(8_000, 0));
            patience.fetched(400_000, 0);
        }
        assert!(patience.is_within(10_000) && !patience.is_within(5_000));
    }

    #[test]
    fn no_thread_spins_for_a_second_where_many_spins_expire() {
        let mut patience = Patience::default();
        let spins = |answered_count, expired_count| Spins { answered_count, expired_count };
        // Too few to tell, and few of many.
        patience.judge(spins(0, 15));
        patience.judge(spins(80, 35));
        assert_eq!(patience.look_ns(), LOOK_BEGIN_NS);
        patience.judge(spins(159, 56));
        assert_eq!(patience.look_ns(), 0);
        for tick in 1..=REST_TICKS {
            assert_eq!(patience.look_ns(), 0, "{tick}");
            patience.judge(spins(159, 56));
        }
        assert_eq!(patience.look_ns(), LOOK_BEGIN_NS);
    }

    #[test]
    fn a_pause_is_the_time_from_a_page_to_the_next_fault() {
        let mut patience = Patience::default();
        let mut now_ns = 0;
        let mut faults = |patience: &mut Patience, pause_ns: u64| {
            for _ in 0..64 {
                now_ns += pause_ns;
                patience.asked(now_ns);
                now_ns += 5_000;
                patience.fetched(5_000, now_ns);
            }
        };
        faults(&mut patience, PAUSE_NS / 2);
        assert!(!patience.has_pauses());
        faults(&mut patience, PAUSE_NS * 2);
        assert!(patience.has_pauses());
        // A long pause is soon forgotten.
        faults(&mut patience, 1_000_000_000);
        faults(&mut patience, PAUSE_NS / 2);
        assert!(!patience.has_pauses());
    }

    #[test]
    fn the_supervisor_does_not_move_all_the_time() {
        let mut patience = Patience::default();
        assert!(patience.may_move(MOVE_NS));
        assert!(!patience.may_move(MOVE_NS * 2 - 1));
        assert!(patience.may_move(MOVE_NS * 2));
    }
}
