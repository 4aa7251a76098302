//! The limit of a group's local memory.

use std::time::Duration;

use measure::{Bytes, LocalSize, PAGE_BYTES};

use crate::{SWAP_BUDGET_MIN, SwapConfig};

/// The limit is not changed by less than one part in so many: each change makes the kernel look for
/// pages to evict.
const STEP: u64 = 64;

/// A group may turn over at most one part in so many of its limit from one measurement to the next;
/// it can turn over `BYTES_PER_MS` in a millisecond, some 250 pages. A measurement takes 40 µs.
///
/// Measurements also help the kernel. It decides which pages may be evicted by counts that it
/// updates when they are read, or every two seconds. A small group that swaps fast has changed by
/// then: the kernel finds its list of old pages empty, which by the counts it is not, so it makes
/// no page old, finds none to evict, and ends a process (seen on Linux 6.18 with 24 MiB, measured
/// every 10 ms).
const TURNOVER: u64 = 128;
const BYTES_PER_MS: u64 = 1 << 20;
const PERIOD_MIN: Duration = Duration::from_micros(250);
const PERIOD_MAX: Duration = Duration::from_millis(10);

/// How often to measure a group with this limit while it swaps.
pub(crate) fn period(limit: Option<u64>) -> Duration {
    let Some(limit) = limit else { return PERIOD_MAX };
    let micros = limit / TURNOVER * 1000 / BYTES_PER_MS;
    // In steps, so that a limit that creeps does not set the timer all the time.
    Duration::from_micros(micros.next_power_of_two()).clamp(PERIOD_MIN, PERIOD_MAX)
}

/// The memory of a group at one moment, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Footprint {
    pub(crate) resident: u64,
    pub(crate) swapped: u64,
}

impl Footprint {
    pub(crate) fn total(self) -> u64 {
        self.resident + self.swapped
    }
}

/// The limit of `config`, in bytes; `None` for no limit.
pub(crate) fn wanted(config: &SwapConfig, footprint: Footprint) -> Option<u64> {
    let bytes = match config.local? {
        LocalSize::Bytes(bytes) => bytes,
        LocalSize::Fraction(share) if share == measure::Fraction::ONE => return None,
        LocalSize::Fraction(share) => {
            share.of(config.of.unwrap_or_else(|| Bytes::new(footprint.total())))
        }
    };
    let pages = bytes.get().max(SWAP_BUDGET_MIN.get()).div_ceil(PAGE_BYTES);
    Some(pages * PAGE_BYTES)
}

/// Whether two limits differ enough to be worth a change.
pub(crate) fn differs(now: Option<u64>, wanted: Option<u64>) -> bool {
    match (now, wanted) {
        (Some(now), Some(wanted)) => now.abs_diff(wanted) > now / STEP,
        (now, wanted) => now != wanted,
    }
}

#[cfg(test)]
mod tests {
    use measure::LinkConfig;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn config(local: &str, of: Option<u64>) -> SwapConfig {
        SwapConfig {
            program: Vec::new(),
            local: Some(local.parse().unwrap()),
            of: of.map(Bytes::new),
            link: LinkConfig::like_gao(measure::Duration::ZERO, None),
            seed: 1,
            record: false,
            page_cluster: None,
            keeper: Vec::new(),
        }
    }

    #[test]
    fn a_share_follows_what_is_in_use() {
        let footprint = Footprint { resident: 40 * MIB, swapped: 60 * MIB };
        assert_eq!(wanted(&config("25%", None), footprint), Some(25 * MIB));
        assert_eq!(wanted(&config("25%", Some(64 * MIB)), footprint), Some(16 * MIB));
        assert_eq!(wanted(&config("12MiB", None), footprint), Some(12 * MIB));
        assert_eq!(wanted(&config("100%", None), footprint), None, "all of it is no limit");
        let nothing = Footprint::default();
        assert_eq!(wanted(&config("25%", None), nothing), Some(4 * MIB), "the least there is");
    }

    #[test]
    fn small_groups_are_looked_at_more_often() {
        let micros = |mib: u64| period(Some(mib * MIB)).as_micros();
        assert_eq!([4, 8, 24, 64, 1024].map(micros), [250, 250, 256, 512, 8192]);
        assert_eq!(period(None), PERIOD_MAX);
    }

    #[test]
    fn small_changes_are_not_made() {
        assert!(!differs(Some(64 * MIB), Some(65 * MIB)));
        assert!(differs(Some(64 * MIB), Some(66 * MIB)));
        assert!(differs(None, Some(66 * MIB)) && differs(Some(66 * MIB), None));
        assert!(!differs(None, None));
    }
}
