//! What reads have brought, of those whose bytes are known.

use super::stamp::Wrong;

/// See the module's description.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checks {
    /// Reads whose bytes were compared with what they had to be.
    pub checked_count: u64,
    /// Reads that brought what had never been written, or nothing where something had been.
    pub lost_count: u64,
    /// Reads that brought what belongs elsewhere.
    pub misdirected_count: u64,
    /// Reads that brought parts of several writes.
    pub torn_count: u64,
    /// Reads that brought an older write.
    pub stale_count: u64,
}

impl Checks {
    /// Reads that brought the wrong bytes.
    #[must_use]
    pub const fn wrong_count(&self) -> u64 {
        self.lost_count + self.misdirected_count + self.torn_count + self.stale_count
    }

    pub(super) const fn add(&mut self, wrong: Wrong) {
        let count = match wrong {
            Wrong::Lost => &mut self.lost_count,
            Wrong::Misdirected => &mut self.misdirected_count,
            Wrong::Torn => &mut self.torn_count,
            Wrong::Stale => &mut self.stale_count,
        };
        *count += 1;
    }

    pub(super) const fn merge(&mut self, other: &Self) {
        self.checked_count += other.checked_count;
        self.lost_count += other.lost_count;
        self.misdirected_count += other.misdirected_count;
        self.torn_count += other.torn_count;
        self.stale_count += other.stale_count;
    }
}
