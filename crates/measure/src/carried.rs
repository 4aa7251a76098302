//! The account of a link: bytes carried against bytes that it could carry.

use crate::{BitsPerSec, LinkConfig, LinkMode, LinkUse, PAGE_BYTES};

/// Nanoseconds in a second, bits in a byte.
const BIT_NS_PER_BYTE: u128 = 8_000_000_000;

/// The account of one link.
#[derive(Debug)]
pub struct Carried {
    tier: String,
    mode: LinkMode,
    /// Whether the link's bandwidth bounds what it carries.
    conserves: bool,
    fetched_pages: u64,
    written_pages: u64,
    rate: Option<BitsPerSec>,
    // Capacity up to `since_ns`, in bits per second times nanoseconds; `None` if it was ever
    // infinite.
    capacity: Option<u128>,
    since_ns: u64,
}

impl Carried {
    /// The account of the link of `tier`, from `now_ns` on; `holds_writes` if write-backs are
    /// waited for.
    pub fn new(tier: &str, link: &LinkConfig, holds_writes: bool, now_ns: u64) -> Self {
        Self {
            tier: tier.to_owned(),
            mode: link.mode,
            conserves: holds_writes && link.mode != LinkMode::PerFault,
            fetched_pages: 0,
            written_pages: 0,
            rate: link.bandwidth,
            capacity: Some(0),
            since_ns: now_ns,
        }
    }

    /// Counts `pages` fetched pages.
    pub const fn fetched(&mut self, pages: u64) {
        self.fetched_pages += pages;
    }

    /// Counts `pages` pages that were written back.
    pub const fn written(&mut self, pages: u64) {
        self.written_pages += pages;
    }

    /// Changes the bandwidth from `now_ns` on; `None` is infinite.
    pub fn retuned(&mut self, rate: Option<BitsPerSec>, now_ns: u64) {
        let ns = u128::from(now_ns.saturating_sub(self.since_ns));
        self.capacity = match (self.capacity, self.rate) {
            (Some(capacity), Some(rate)) => Some(capacity + u128::from(rate.get()) * ns),
            // An infinite bandwidth, now or earlier, has no capacity to compare with.
            _ => None,
        };
        (self.rate, self.since_ns) = (rate, now_ns);
    }

    /// Closes the account at `now_ns`; `window` pages may be ahead of the clock.
    pub fn finish(mut self, now_ns: u64, window: u64) -> LinkUse {
        self.retuned(self.rate, now_ns);
        let bytes = |capacity: u128| u64::try_from(capacity / BIT_NS_PER_BYTE).unwrap_or(u64::MAX);
        LinkUse {
            tier: self.tier,
            link: self.mode.to_string(),
            fetched_bytes: self.fetched_pages * PAGE_BYTES,
            written_back_bytes: self.written_pages * PAGE_BYTES,
            capacity_bytes: self.capacity.map(bytes),
            window_bytes: window * PAGE_BYTES,
            conserves: self.conserves,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Duration;

    use super::*;

    #[test]
    fn capacity_follows_the_bandwidth_over_time() {
        let link = LinkConfig::like_gao(Duration::from_us(5), BitsPerSec::from_gbps(8));
        let mut carried = Carried::new("far", &link, true, 1_000_000_000);
        carried.fetched(3);
        carried.written(2);
        // A second at 8 Gb/s, half of one at 16.
        carried.retuned(Some(BitsPerSec::from_gbps(16)), 2_000_000_000);
        let used = carried.finish(2_500_000_000, 10);
        assert_eq!(used.capacity_bytes, Some(2_000_000_000));
        assert_eq!((used.fetched_bytes, used.written_back_bytes), (3 * 4096, 2 * 4096));
        assert_eq!((used.window_bytes, used.conserves), (40_960, true));
    }

    #[test]
    fn a_link_that_was_infinite_once_has_no_capacity() {
        let link = LinkConfig::like_gao(Duration::from_us(5), None);
        let mut carried = Carried::new("", &link, true, 0);
        carried.retuned(Some(BitsPerSec::from_gbps(1)), 5);
        assert_eq!(carried.finish(100, 0).capacity_bytes, None);
    }
}
