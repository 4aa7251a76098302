//! The fetches of policies that know every access: written again here, so that both versions do not
//! share a mistake.

use std::collections::VecDeque;

use paging::frames::Frames;
use paging::{PageIndex, PolicyKind};

/// How many accesses of `sequence` fetch, if at most `frames` of `pages` pages are local and every
/// page was touched once before, in order.
///
/// A policy that is not among [`ORDERS`] is taken from crate `paging`: RANDOM can only be compared
/// with the same draws, and S3-FIFO has no shorter version.
pub(super) fn fetches(
    policy: PolicyKind,
    [pages, frames]: [usize; 2],
    seed: u64,
    sequence: impl Iterator<Item = usize>,
) -> u64 {
    let Some((_, order)) = ORDERS.iter().find(|(known, _)| *known == policy) else {
        return told_all(Frames::new(policy, frames, seed), pages, sequence);
    };
    let mut order = order(pages, frames);
    sequence.filter(|&page| order.fetches(page)).count() as u64
}

/// Creates a policy for a number of pages and a number of frames.
type Make = fn(usize, usize) -> Box<dyn Order>;

/// The policies that this file implements.
const ORDERS: [(PolicyKind, Make); 3] = [
    (PolicyKind::FIFO, |pages, frames| Box::new(Fifo::new(pages, frames))),
    (PolicyKind::LRU, |pages, frames| Box::new(Lru::new(pages, frames))),
    (PolicyKind::CLOCK, |pages, frames| Box::new(Clock::new(pages, frames))),
];

/// The fetches of a policy of crate `paging` that is told every access.
fn told_all(mut frames: Frames, pages: usize, sequence: impl Iterator<Item = usize>) -> u64 {
    let page = |page: usize| PageIndex::new(u32::try_from(page).unwrap_or(u32::MAX));
    (0..pages).for_each(|touched| frames.access(page(touched)));
    let before = frames.fault_count();
    sequence.for_each(|accessed| frames.access(page(accessed)));
    frames.fault_count() - before
}

/// A policy whose frames are all in use.
trait Order {
    /// Accesses `page` and makes it local. Returns whether it was not local before.
    fn fetches(&mut self, page: usize) -> bool;
}

/// FIFO: evicts the page that was fetched first.
struct Fifo {
    is_local: Vec<bool>,
    arrivals: VecDeque<usize>,
}

impl Fifo {
    fn new(pages: usize, frames: usize) -> Self {
        Self {
            is_local: (0..pages).map(|page| page >= pages - frames).collect(),
            arrivals: (pages - frames..pages).collect(),
        }
    }
}

impl Order for Fifo {
    fn fetches(&mut self, page: usize) -> bool {
        if self.is_local[page] {
            return false;
        }
        if let Some(victim) = self.arrivals.pop_front() {
            self.is_local[victim] = false;
        }
        self.arrivals.push_back(page);
        self.is_local[page] = true;
        true
    }
}

/// LRU: evicts the page whose last access is longest ago.
struct Lru {
    // The time of each page's last access; `None` if it is not local.
    last: Vec<Option<u64>>,
    // Every access with its time, including those that are no page's last one.
    accesses: VecDeque<(u64, usize)>,
    now: u64,
}

impl Lru {
    fn new(pages: usize, frames: usize) -> Self {
        let mut lru = Self { last: vec![None; pages], accesses: VecDeque::new(), now: 0 };
        (pages - frames..pages).for_each(|page| lru.access(page));
        lru
    }

    /// Records an access to `page`, which is local afterwards.
    fn access(&mut self, page: usize) {
        self.now += 1;
        self.last[page] = Some(self.now);
        self.accesses.push_back((self.now, page));
    }
}

impl Order for Lru {
    fn fetches(&mut self, page: usize) -> bool {
        let is_local = self.last[page].is_some();
        while !is_local && let Some((time, victim)) = self.accesses.pop_front() {
            if self.last[victim] == Some(time) {
                self.last[victim] = None;
                break;
            }
        }
        self.access(page);
        !is_local
    }
}

/// Corbató's CLOCK: a hand goes round the frames, clears reference bits and evicts the first page
/// whose bit is clear. Every access sets the bit, including the one that fetches the page.
struct Clock {
    frame_of: Vec<Option<usize>>,
    frames: Vec<(usize, bool)>,
    hand: usize,
}

impl Clock {
    fn new(pages: usize, frames: usize) -> Self {
        let first = pages - frames;
        Self {
            frame_of: (0..pages).map(|page| page.checked_sub(first)).collect(),
            frames: (first..pages).map(|page| (page, false)).collect(),
            hand: 0,
        }
    }
}

impl Order for Clock {
    fn fetches(&mut self, page: usize) -> bool {
        if let Some(frame) = self.frame_of[page] {
            self.frames[frame].1 = true;
            return false;
        }
        loop {
            let hand = self.hand;
            self.hand = (hand + 1) % self.frames.len();
            if !std::mem::take(&mut self.frames[hand].1) {
                let (victim, _) = std::mem::replace(&mut self.frames[hand], (page, true));
                self.frame_of[victim] = None;
                self.frame_of[page] = Some(hand);
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    // Three of five pages are local: 2, 3 and 4.
    fn count(policy: PolicyKind, sequence: &[usize]) -> u64 {
        fetches(policy, [5, 3], 1, sequence.iter().copied())
    }

    #[test]
    fn counts_are_those_by_hand() {
        // FIFO: 0 for 2, then 2 for 3, though 2 was just used. LRU: 0 for 3. CLOCK: as LRU.
        assert_eq!(count(PolicyKind::FIFO, &[2, 0, 2]), 2);
        assert_eq!(count(PolicyKind::LRU, &[2, 0, 2]), 1);
        assert_eq!(count(PolicyKind::CLOCK, &[2, 0, 2]), 1);
        // CLOCK: 0 for 3, 1 for 4, 3 for 2, and 2 for 0: all bits are set then, 3's by its load.
        assert_eq!(count(PolicyKind::CLOCK, &[2, 0, 1, 3, 0, 1, 2, 3, 1]), 4);
        assert_eq!(count(PolicyKind::CLOCK, &[2, 0, 1, 3, 0, 1, 2, 0]), 5);
    }

    #[test]
    fn nothing_is_fetched_of_what_is_local_and_all_of_a_loop_that_does_not_fit() {
        for policy in [PolicyKind::FIFO, PolicyKind::LRU, PolicyKind::CLOCK] {
            assert_eq!(count(policy, &[2, 3, 4, 4, 3, 2]), 0);
            assert_eq!(count(policy, &[0, 1, 2, 3, 4, 0, 1, 2, 3, 4]), 10);
        }
    }

    #[test]
    fn counts_are_those_of_afars_policies_that_are_told_all() {
        // CLOCK starts with all bits clear here, and some set there.
        for (policy, apart) in [(PolicyKind::FIFO, 0), (PolicyKind::LRU, 0), (PolicyKind::CLOCK, 9)]
        {
            let mut random = SplitMix64::new(3);
            let draw = |_| usize::try_from(random.below(100).min(random.below(100))).unwrap();
            let sequence: Vec<usize> = (0..20_000).map(draw).collect();
            let ours = fetches(policy, [100, 30], 1, sequence.iter().copied());
            let theirs = told_all(Frames::new(policy, 30, 1), 100, sequence.into_iter());
            assert!(ours.abs_diff(theirs) <= apart, "{policy}: {ours}, {theirs}");
        }
    }
}
