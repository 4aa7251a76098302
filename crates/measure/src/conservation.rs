//! Bytes take time: what a link has carried against what it could.
//!
//! DESIGN NOTES
//!
//! The law is checked with other means than those that enforce it: bytes are counted where pages
//! move, and time is that of the supervisor's clock, integrated over changes of the bandwidth. What
//! may be ahead of the clock is one window: pages that are on their way out, whose time is reserved
//! and not yet over.

use serde::{Deserialize, Serialize};

use crate::coverage::{Invalid, InvalidKind};
use crate::link::LinkMode;
use crate::quantity::Bytes;

/// What one link carried during a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkUse {
    /// Name of the tier behind it; empty for the first.
    pub tier: String,
    /// What transfers share, as [`LinkMode`].
    pub link: String,
    /// Bytes fetched, prefetched ones included.
    pub fetched_bytes: u64,
    /// Bytes written back.
    pub written_back_bytes: u64,
    /// Bytes that one direction could carry in the time of the run, bandwidth by time; `None` if
    /// the bandwidth was infinite at any time.
    pub capacity_bytes: Option<u64>,
    /// Bytes that may be ahead of the clock.
    pub window_bytes: u64,
    /// Whether the bandwidth bounds fetches and write-backs. Where it does not, what follows from
    /// `bytes / bandwidth` is not to be expected of the run.
    pub conserves: bool,
}

impl LinkUse {
    /// Why the run is invalid, if more bytes moved than the link can carry.
    #[must_use]
    pub fn overrun(&self) -> Option<Invalid> {
        let capacity = self.capacity_bytes.filter(|_| self.conserves)?;
        let (fetched, written) = (self.fetched_bytes, self.written_back_bytes);
        let moved = if self.link == LinkMode::HalfDuplex.to_string() {
            fetched.saturating_add(written)
        } else {
            fetched.max(written)
        };
        if moved <= capacity.saturating_add(self.window_bytes) {
            return None;
        }
        let (moved, capacity) = (Bytes::new(moved), Bytes::new(capacity));
        let of = if self.tier.is_empty() { String::new() } else { format!(" of {}", self.tier) };
        Some(Invalid {
            reason: format!(
                "the link{of} carried {moved} in a time in which it can carry {capacity}: pages \
                 moved that nobody waited for"
            ),
            remedy: "use --trap userfaultfd, where every page is waited for".to_owned(),
            kind: InvalidKind::Overrun,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(link: &str, fetched_bytes: u64, written_back_bytes: u64) -> LinkUse {
        LinkUse {
            link: link.to_owned(),
            fetched_bytes,
            written_back_bytes,
            capacity_bytes: Some(1000),
            window_bytes: 10,
            conserves: true,
            ..LinkUse::default()
        }
    }

    #[test]
    fn each_direction_has_the_bandwidth_or_both_share_it() {
        assert_eq!(used("full-duplex", 1010, 1010).overrun(), None);
        assert!(used("full-duplex", 1011, 0).overrun().is_some());
        assert!(used("full-duplex", 0, 1011).overrun().is_some());
        assert_eq!(used("half-duplex", 510, 500).overrun(), None);
        assert!(used("half-duplex", 511, 500).overrun().is_some());
    }

    #[test]
    fn without_a_bound_there_is_nothing_to_break() {
        let unbound = LinkUse { capacity_bytes: None, ..used("full-duplex", 9999, 9999) };
        assert_eq!(unbound.overrun(), None);
        let free = LinkUse { conserves: false, ..used("per-fault", 9999, 9999) };
        assert_eq!(free.overrun(), None);
    }
}
