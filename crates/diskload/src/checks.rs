//! The results of reads whose bytes are verified.

use super::stamp::Wrong;

/// Counts of verified reads, by their results.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checks {
    /// Reads whose bytes were verified.
    pub checked_count: u64,
    /// Reads that returned a block without a stamp of this load from a place that was written.
    pub lost_count: u64,
    /// Reads that returned a block of another place.
    pub misdirected_count: u64,
    /// Reads that returned parts of several writes.
    pub torn_count: u64,
    /// Reads that returned an older write.
    pub stale_count: u64,
}

impl Checks {
    /// Reads that returned wrong bytes.
    #[must_use]
    pub const fn wrong_count(&self) -> u64 {
        self.lost_count + self.misdirected_count + self.torn_count + self.stale_count
    }

    /// Counts a wrong read.
    pub(super) const fn add(&mut self, wrong: Wrong) {
        let count = match wrong {
            Wrong::Lost => &mut self.lost_count,
            Wrong::Misdirected => &mut self.misdirected_count,
            Wrong::Torn => &mut self.torn_count,
            Wrong::Stale => &mut self.stale_count,
        };
        *count += 1;
    }

    /// Adds the counts of another job.
    pub(super) const fn merge(&mut self, other: &Self) {
        self.checked_count += other.checked_count;
        self.lost_count += other.lost_count;
        self.misdirected_count += other.misdirected_count;
        self.torn_count += other.torn_count;
        self.stale_count += other.stale_count;
    }
}
