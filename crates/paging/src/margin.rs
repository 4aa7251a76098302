//! Frames kept free beyond a batch, on a machine where evictions have come late.
//!
//! A system call that copies much proceeds without frames before its processor can be held: a
//! kernel without preemption cannot stop it on its way, so 1 MiB through a pipe may be 256 pages
//! too many. So does everything where real-time priority is refused. Once that has happened, as
//! many more frames are kept free, and ever fewer while it does not happen again.
//!
//! Otherwise no frame is kept free where a link takes time: 100 free frames of 4,096 cost LRU 4 %
//! more fetches.

/// The margin of one budget: none until faults have been late for a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Margin {
    pages: u64,
    changed_ns: u64,
}

/// How long an unneeded margin stays before it is halved.
const HALF_LIFE_NS: u64 = 1_000_000_000;
/// A margin is at most one in so many pages of a budget.
const MOST: u64 = 8;

impl Margin {
    /// Adapts and returns the margin, in pages. `free` is negative if faults found no frame; up to
    /// half a `batch` of those is tolerated.
    pub const fn look(&mut self, free: i64, limit: u64, batch: u64, now_ns: u64) -> u64 {
        let late = if free < 0 { free.unsigned_abs() } else { 0 };
        if late > batch / 2 {
            let wanted = self.pages + late * 2;
            let most = limit / MOST;
            self.pages = if wanted < most { wanted } else { most };
            self.changed_ns = now_ns;
        } else if self.pages > 0 && now_ns.saturating_sub(self.changed_ns) >= HALF_LIFE_NS {
            self.pages /= 2;
            self.changed_ns = now_ns;
        }
        self.pages
    }

    /// The margin as it was last adapted, in pages.
    pub const fn pages(&self) -> u64 {
        self.pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_late_evictions_and_goes_when_there_are_none() {
        let mut margin = Margin::default();
        assert_eq!(margin.look(-4, 8000, 8, 0), 0);
        assert_eq!(margin.look(-30, 8000, 8, 0), 60);
        assert_eq!(margin.look(-10, 8000, 8, 1), 80, "what it had was not enough");
        assert_eq!(margin.look(-5000, 8000, 8, 2), 1000, "an eighth at most");
        assert_eq!(margin.look(5, 8000, 8, HALF_LIFE_NS), 1000);
        assert_eq!(margin.look(5, 8000, 8, 2 + HALF_LIFE_NS), 500);
        assert_eq!(margin.look(5, 8000, 8, 3 + HALF_LIFE_NS), 500);
        for second in 2..12 {
            margin.look(0, 8000, 8, 2 + second * HALF_LIFE_NS);
        }
        assert_eq!(margin.pages(), 0);
        assert_eq!(margin.look(-1, 7, 0, 0), 0, "a few pages have no room for one");
    }
}
