//! The links of a run: the table that the trap reads, reservations, and changes.

use std::sync::atomic::Ordering;

use measure::{Direction, LinkConfig};

use super::config::LEAD_NS;
use super::report::Retune;
use super::supervisor::Supervisor;
use super::trap::Trap;

impl Supervisor<'_> {
    /// Writes the links of all tiers to the table that the trap reads.
    pub(crate) fn write_links(&mut self) {
        let mut delayed = false;
        let mut longest_ns = 0;
        for (tier, config) in self.config.tiers.iter().enumerate() {
            self.write_link(tier, &config.link);
            delayed |= tables::delays(&config.link);
            longest_ns = longest_ns.max(config.link.longest_page_delay().as_ns());
        }
        // Twice, because a page may wait for the one before it.
        let stretches = self.kernel.trap.as_mut().map_or(0, |trap| trap.stretch(longest_ns * 2));
        self.kernel.tables.stretches().store(stretches, Ordering::Release);
        let rests = delayed && self.kernel.trap.as_mut().is_some_and(Trap::rest);
        self.kernel.tables.lead_ns().store(if rests { LEAD_NS } else { 0 }, Ordering::Release);
        self.kernel.tables.reference().store(self.config.reference, Ordering::Release);
        let prefetches = self.config.prefetch != paging::prefetch::Prefetch::None;
        let timed = delayed || self.config.record || prefetches;
        self.kernel.tables.timed().store(u32::from(timed), Ordering::Release);
    }

    fn write_link(&self, tier: usize, link: &LinkConfig) {
        let table = self.kernel.tables.link(tier);
        table.constant_ns().store(self.config.constant_ns, Ordering::Release);
        table.set(link, self.kernel.tables.profile(tier), self.config.seed);
    }

    /// Reserves a write-back on the link of `tier`. Returns its end in picoseconds of the run.
    pub(crate) fn reserve_write_back(&self, tier: usize) -> u64 {
        let profile = self.kernel.tables.profile(tier);
        self.kernel.tables.link(tier).reserve(Direction::WriteBack, self.now_ps(), profile).1
    }

    /// Picoseconds since the start of the run.
    pub(crate) fn now_ps(&self) -> u64 {
        self.now_ns() * 1000
    }

    /// Nanoseconds since the start of the run.
    pub(crate) fn now_ns(&self) -> u64 {
        let epoch = self.kernel.tables.epoch_ns().load(Ordering::Relaxed);
        sys::clock::monotonic_ns().saturating_sub(epoch)
    }

    /// Applies a change of a link or a budget to the running program.
    pub(crate) fn retune(&mut self, change: &Retune) {
        let Some(tier) = self.config.tiers.get_mut(change.tier) else {
            return;
        };
        if let Some(rtt) = change.rtt {
            tier.link.rtt = rtt;
        }
        if let Some(bandwidth) = change.bandwidth {
            tier.link.bandwidth = bandwidth;
        }
        if let Some(local) = change.local {
            tier.local = Some(local);
        }
        let bandwidth = tier.link.bandwidth;
        self.books.totals.retuned(change.tier, bandwidth);
        self.write_links();
        self.touch_all();
        self.restore_budgets();
    }
}
