//! A link to far memory in a table that the kernel side reads; `bpf/link.h` is the same in C.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use measure::{Bytes, LinkConfig, LinkMode};
use sys::memory::SharedView;

/// Words of one link.
pub(crate) const LINK_WORDS: usize = 16;
/// Entries of the table of completion times.
pub(crate) const PROFILE_ENTRIES: usize = 4096;
/// Ways of sharing, in the order of their numbers.
const LINK_MODES: [LinkMode; 3] = [LinkMode::HalfDuplex, LinkMode::PerFault, LinkMode::FullDuplex];

/// The link of one tier.
pub(crate) struct LinkTable<'a> {
    words: &'a [AtomicU64],
    halves: &'a [AtomicU32],
}

impl<'a> LinkTable<'a> {
    /// The link with this number in a table of links.
    pub(crate) fn of(links: &'a SharedView, number: usize) -> Self {
        let words = &links.words64()[number * LINK_WORDS..][..LINK_WORDS];
        let halves = &links.words32()[number * LINK_WORDS * 2..][..LINK_WORDS * 2];
        Self { words, halves }
    }

    /// Sets it to `link`. Draws from a profile, whose quantiles go to `profile`, follow from
    /// `seed`.
    pub(crate) fn set(&self, link: &LinkConfig, profile: &[AtomicU32], seed: u64) {
        let page = link.bandwidth.map_or(0, |rate| rate.transfer_time(Bytes::PAGE).as_ps());
        self.rtt_ps().store(link.rtt.as_ps(), Ordering::Release);
        self.page_ps().store(page, Ordering::Release);
        let mode = LINK_MODES.iter().position(|mode| *mode == link.mode).unwrap_or(0);
        self.mode().store(u32::try_from(mode).unwrap_or(0), Ordering::Release);
        if let Some(times) = &link.profile {
            let quantiles = times.table(Bytes::PAGE, PROFILE_ENTRIES);
            for (entry, time) in profile.iter().zip(quantiles) {
                let ns = u32::try_from(time.as_ns()).unwrap_or(u32::MAX);
                entry.store(ns, Ordering::Relaxed);
            }
        }
        self.profile_state().store(seed, Ordering::Relaxed);
        self.profiled().store(u32::from(link.profile.is_some()), Ordering::Release);
    }

    pub(crate) fn rtt_ps(&self) -> &'a AtomicU64 {
        &self.words[0]
    }
    pub(crate) fn page_ps(&self) -> &'a AtomicU64 {
        &self.words[1]
    }
    pub(crate) fn constant_ns(&self) -> &'a AtomicU64 {
        &self.words[2]
    }
    pub(crate) fn mode(&self) -> &'a AtomicU32 {
        &self.halves[6]
    }
    pub(crate) fn profiled(&self) -> &'a AtomicU32 {
        &self.halves[7]
    }
    pub(crate) fn profile_state(&self) -> &'a AtomicU64 {
        &self.words[4]
    }
    /// Instant, in picoseconds of the run, at which the way in is free.
    pub(crate) fn fetch_free_ps(&self) -> &'a AtomicU64 {
        &self.words[8]
    }
    /// Instant at which the way out is free, when it is not the same.
    pub(crate) fn write_free_ps(&self) -> &'a AtomicU64 {
        &self.words[9]
    }
}

/// Whether a fetch over `link` takes any time.
pub(crate) fn delays(link: &LinkConfig) -> bool {
    !link.rtt.is_zero() || link.bandwidth.is_some() || link.profile.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_agrees_with_the_header() {
        let header = include_str!("../bpf/link.h");
        let size = format!("_Static_assert(sizeof(struct link) == {}, ", LINK_WORDS * 8);
        assert!(header.contains(&size));
        assert!(header.contains(&format!("#define PROFILE_ENTRIES {PROFILE_ENTRIES}\n")));
        for (number, mode) in ["HALF_DUPLEX", "PER_FAULT", "FULL_DUPLEX"].iter().enumerate() {
            assert!(header.contains(&format!("#define LINK_{mode} {number}U\n")), "{mode}");
        }
    }
}
