//! When a shard frees memory to the system: once its use has been far below its peak for a period,
//! and again when the rest has been freed, too.

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Tide {
    /// Peaks of the bytes held: since memory was last freed, and since the last look.
    high: usize,
    recent: usize,
    looked_ns: u64,
    /// Memory was freed, and use may still be falling.
    is_ebbing: bool,
}

/// Time between two looks.
const PERIOD_NS: u64 = 1_000_000_000;
/// A peak in bytes below which freeing is not worth the trouble.
const LEAST: usize = 8 << 20;
/// Bytes of fluctuation that count as steady.
const RIPPLE: usize = 256 << 10;

impl Tide {
    /// Records how many bytes are held.
    pub(crate) fn note(&mut self, held: usize) {
        self.recent = self.recent.max(held);
        self.high = self.high.max(held);
    }

    /// When the next look is due; `None` if there is nothing to free.
    pub(crate) const fn next_ns(&self) -> Option<u64> {
        let is_worth_it = self.high >= LEAST || self.is_ebbing;
        if is_worth_it { Some(self.looked_ns + PERIOD_NS) } else { None }
    }

    /// Whether memory is to be freed now, while `held` bytes are held.
    pub(crate) fn has_fallen(&mut self, held: usize, now_ns: u64) -> bool {
        if self.next_ns().is_none_or(|at| at > now_ns) {
            return false;
        }
        let has_fallen = self.high >= LEAST && self.recent <= self.high / 4;
        if has_fallen {
            self.high = self.recent;
        }
        let has_ebbed = self.is_ebbing && self.recent <= held + RIPPLE;
        self.is_ebbing = has_fallen || self.is_ebbing && !has_ebbed;
        (self.recent, self.looked_ns) = (held, now_ns);
        has_fallen || has_ebbed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_when_what_is_held_has_been_little_for_a_period() {
        let mut tide = Tide::default();
        tide.note(4 << 20);
        assert_eq!(tide.next_ns(), None);
        tide.note(64 << 20);
        assert_eq!(tide.next_ns(), Some(PERIOD_NS));
        assert!(!tide.has_fallen(1 << 20, PERIOD_NS), "it was much just now");
        tide.note(2 << 20);
        assert!(!tide.has_fallen(0, PERIOD_NS + 1), "it is too early");
        assert!(tide.has_fallen(1 << 20, 2 * PERIOD_NS));
        assert_eq!(tide.next_ns(), Some(3 * PERIOD_NS), "the rest may follow");
        assert!(!tide.has_fallen(0, 3 * PERIOD_NS), "it has just left");
        assert!(tide.has_fallen(0, 4 * PERIOD_NS), "nothing has left for a period");
        assert_eq!(tide.next_ns(), None, "there is nothing more");
    }
}
