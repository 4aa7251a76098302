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
    /// Name of the tier behind it; empty for the first.
    pub tier: String,
    /// What transfers share, as [`LinkMode`](crate::LinkMode).
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
