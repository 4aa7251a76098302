//! How much of its memory a group may keep.

use measure::{Bytes, LocalSize, PAGE_BYTES};

use super::{SWAP_BUDGET_MIN, SwapConfig};

/// A change of the limit by less than one part in so many is not made: each makes the kernel look
/// for pages to give up.
const STEP: u64 = 64;

/// Everything that a group has, at one moment.
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

/// The limit that `config` asks for, in bytes; none for no limit.
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

/// Whether going from one limit to the other is worth it.
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
    fn small_changes_are_not_made() {
        assert!(!differs(Some(64 * MIB), Some(65 * MIB)));
        assert!(differs(Some(64 * MIB), Some(66 * MIB)));
        assert!(differs(None, Some(66 * MIB)) && differs(Some(66 * MIB), None));
        assert!(!differs(None, None));
    }
}
