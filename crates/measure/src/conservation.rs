//! Bytes take time: what a link has carried against what it could.
//!
//! DESIGN NOTES
//!
//! The law is checked with other means than those that enforce it: bytes are counted where pages
//! move, and capacity is the bandwidth integrated over the supervisor's clock. One window may be
//! ahead of the clock: pages that are being written back, whose time is reserved and not yet over.
//!
//! A write-back has its time on the link before its frame can be taken, so a program that only
//! writes runs at the bandwidth of its link. Every run is checked; one that moved more bytes than
//! its links could carry is invalid.

use serde::{Deserialize, Serialize};

/// What one link carried during a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkUse {
    /// Name of the tier behind the link; empty for the first tier.
    pub tier: String,
    /// What transfers share: `half-duplex` (one queue), `full-duplex` (a queue for each direction)
    /// or `per-fault` (none).
    pub link: String,
    /// Bytes fetched over the link, prefetched ones included.
    pub fetched_bytes: u64,
    /// Bytes written back over the link.
    pub written_back_bytes: u64,
    /// Bytes that one direction of the link could carry during the run; `None` if the bandwidth was
    /// infinite at any time.
    pub capacity_bytes: Option<u64>,
    /// Bytes by which traffic may be ahead of the capacity: pages on their way.
    pub window_bytes: u64,
    /// Whether the bandwidth bounds fetches and write-backs; if not, more than the capacity may be
    /// carried.
    pub conserves: bool,
}
