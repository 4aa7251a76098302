//! Range locks of a namespace, so that no write comes between the read and the write of a command
//! that does both (SBC-3 5.2, 5.13).
//!
//! Writes of either protocol hold a stripe shared; a command that reads first holds it exclusively.
//! A stripe is every 64th piece of 1 MiB. Commands that wait on other shards are woken by mail.
//!
//! Preempt and Abort over NVMe holds every stripe exclusively before it is answered: all writes of
//! the preempted host have ended then.
//!
//! Invariants:
//! - A stripe is held exclusively by one command, or shared by any number.
//! - A refused command learns when to try again: `leave` returns whether commands wait.
//! - Once a command waits for a stripe exclusively no new one shares it, so that the wait ends.

use std::sync::atomic::{AtomicU32, Ordering};

const STRIPES: usize = 64;
const PIECE_SHIFT: u32 = 20;

const ALONE: u32 = 1 << 31;
const WANTED: u32 = 1 << 30;

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Stripes {
    states: [AtomicU32; STRIPES],
    waiting: AtomicU32,
}

/// Bytes that a command holds, exclusively (`is_alone`) or shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) offset: u64,
    /// Above 0.
    pub(crate) length: u64,
    pub(crate) is_alone: bool,
}

/// What a command holds, or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    None,
    Waits(Hold),
    Has(Hold),
}

impl Default for Stripes {
    fn default() -> Self {
        Self { states: std::array::from_fn(|_| AtomicU32::new(0)), waiting: AtomicU32::new(0) }
    }
}

impl Hold {
    // The stripes of the range, each once.
    fn stripes(&self) -> impl Iterator<Item = usize> + use<> {
        let first = self.offset >> PIECE_SHIFT;
        let last = (self.offset + self.length.max(1) - 1) >> PIECE_SHIFT;
        let count = (last - first + 1).min(STRIPES as u64);
        let stripe = |piece: u64| usize::try_from(piece % STRIPES as u64).unwrap_or(0);
        (first..first + count).map(stripe)
    }
}

impl Stripes {
    /// Takes `hold` for a command, or lets the command wait; `before` is what it holds or waits for
    /// now. A release (`leave`) then reports that a command waits.
    pub(crate) fn take_or_wait(&self, hold: Hold, before: Range) -> Range {
        let waits = matches!(before, Range::Waits(_));
        if !waits {
            if self.take(hold) {
                return Range::Has(hold);
            }
            self.wait();
        }
        // Try again after registering: a release in between did not know of this wait.
        if self.take(hold) {
            self.wait_no_longer(hold);
            return Range::Has(hold);
        }
        Range::Waits(hold)
    }

    /// Releases what a command holds, or ends its wait. Returns whether waiting commands may go on.
    pub(crate) fn leave(&self, range: &mut Range) -> bool {
        match std::mem::replace(range, Range::None) {
            Range::None => false,
            Range::Has(hold) => self.give(hold),
            Range::Waits(hold) => {
                self.wait_no_longer(hold);
                hold.is_alone && self.waiting.load(Ordering::Acquire) > 0
            }
        }
    }

    // Takes all stripes of `hold` or none. Returns whether it has taken them.
    fn take(&self, hold: Hold) -> bool {
        for (taken, stripe) in hold.stripes().enumerate() {
            if !self.take_stripe(stripe, hold.is_alone) {
                hold.stripes().take(taken).for_each(|stripe| self.give_stripe(stripe, hold));
                return false;
            }
        }
        true
    }

    // Takes a stripe. Returns whether it has; a refused exclusive try marks the stripe as wanted.
    fn take_stripe(&self, stripe: usize, is_alone: bool) -> bool {
        let taken = |state: u32| match is_alone {
            false => (state & (ALONE | WANTED) == 0).then_some(state + 1),
            true if state & !WANTED == 0 => Some(ALONE),
            true => Some(state | WANTED),
        };
        let state = &self.states[stripe];
        match state.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken) {
            Ok(before) => !is_alone || before & !WANTED == 0,
            Err(_) => false,
        }
    }

    // Registers a waiting command.
    fn wait(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
    }

    // Ends a wait, and removes its marks.
    fn wait_no_longer(&self, hold: Hold) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        if hold.is_alone {
            // Another command that wants the stripe marks it again when it tries.
            for stripe in hold.stripes() {
                self.states[stripe].fetch_and(!WANTED, Ordering::AcqRel);
            }
        }
    }

    // Releases `hold`. Returns whether any command waits.
    fn give(&self, hold: Hold) -> bool {
        hold.stripes().for_each(|stripe| self.give_stripe(stripe, hold));
        self.waiting.load(Ordering::Acquire) > 0
    }

    // Releases one stripe of `hold`.
    fn give_stripe(&self, stripe: usize, hold: Hold) {
        if hold.is_alone {
            self.states[stripe].fetch_and(!ALONE, Ordering::AcqRel);
        } else {
            self.states[stripe].fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    const fn hold(offset: u64, length: u64, is_alone: bool) -> Hold {
        Hold { offset, length, is_alone }
    }

    #[test]
    fn writes_share_and_others_are_alone() {
        let stripes = Stripes::default();
        let (write, both) = (hold(4096, 4096, false), hold(0, 512, true));
        assert!(stripes.take(write) && stripes.take(write));
        assert!(!stripes.take(both));
        stripes.wait();
        assert!(!stripes.take(write), "one waits to be alone");
        assert!(stripes.take(hold(MIB, 512, false)), "elsewhere");
        assert!(stripes.give(write) && !stripes.take(both) && stripes.give(write));
        assert!(stripes.take(both));
        stripes.wait_no_longer(both);
        assert!(!stripes.take(write));
        assert!(!stripes.give(both), "nobody waits");
        assert!(stripes.take(write));
    }

    #[test]
    fn all_or_nothing_is_taken() {
        let stripes = Stripes::default();
        let far = hold(3 * MIB, 512, true);
        assert!(stripes.take(far));
        let wide = hold(2 * MIB, 2 * MIB, true);
        assert!(!stripes.take(wide));
        assert!(stripes.take(hold(2 * MIB, 512, false)));
        stripes.give(hold(2 * MIB, 512, false));
        stripes.give(far);
        // Wider than there are stripes.
        let all = hold(0, 1 << 40, true);
        assert!(stripes.take(all) && !stripes.take(wide));
        stripes.give(all);
        assert!(stripes.take(wide));
    }

    #[test]
    fn whoever_gives_up_bars_nobody() {
        let stripes = Stripes::default();
        let (write, both) = (hold(0, 512, false), hold(0, 512, true));
        assert!(stripes.take(write) && !stripes.take(both));
        stripes.wait();
        stripes.wait_no_longer(both);
        assert!(stripes.take(write));
    }

    #[test]
    fn counters_behind_it_never_lose() {
        let stripes = Stripes::default();
        let number = std::sync::atomic::AtomicU64::new(0);
        let (own, plain) = (hold(0, 512, true), hold(0, 512, false));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        while !stripes.take(own) {
                            std::thread::yield_now();
                        }
                        let before = number.load(Ordering::Relaxed);
                        std::hint::spin_loop();
                        number.store(before + 1, Ordering::Relaxed);
                        stripes.give(own);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..2000 {
                    if stripes.take(plain) {
                        stripes.give(plain);
                    }
                }
            });
        });
        assert_eq!(number.into_inner(), 6000);
    }
}
