//! The pages of the processes of each budget, kept as sums, so that no wake-up has to look at every
//! process.
//!
//! A process that may have changed is *touched*; its pages are entered here when the budgets are
//! restored next. A budget that a fault has found short is looked at as well.

use std::collections::BTreeSet;

use measure::Fraction;
use rand_core::SeedableRng;
use rand_pcg::Pcg32;

use crate::common::{Common, Front};
use crate::page::PageIndex;
use crate::policy::PolicyKind;
use crate::probation::Room;
use crate::turns::{Givers, Turns};

/// The pages of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holding {
    /// The budget of the process.
    pub budget: usize,
    /// By tier: pages with contents.
    pub populated: Vec<u64>,
    /// By tier: local pages.
    pub resident: Vec<u64>,
    /// By tier: pages that it can give up, and their ages.
    pub fronts: Vec<Front>,
    /// Pages on their way out.
    pub dropping: u64,
    /// Pages with contents, including those that were counted and not logged.
    pub pages: u64,
    /// The local ones among `pages`.
    pub local_pages: u64,
}

/// The pages of all processes of a budget.
#[derive(Debug, Clone)]
struct Sum {
    members: BTreeSet<usize>,
    populated: Vec<u64>,
    resident: Vec<u64>,
    dropping: u64,
    /// By tier.
    turns: Vec<Turns>,
    /// First touches are only counted.
    unlimited: bool,
}

/// Processes and budgets.
#[derive(Debug)]
pub struct Members {
    holdings: Vec<Option<Holding>>,
    sums: Vec<Sum>,
    live: BTreeSet<usize>,
    free: BTreeSet<usize>,
    touched: BTreeSet<usize>,
    short: BTreeSet<usize>,
    pages: u64,
    local_pages: u64,
    rng: Pcg32,
    common: Vec<Common>,
}

impl Members {
    /// `slots` free slots, and as many budgets of `tiers` tiers. `share` is the share of a budget
    /// on probation, `None` for the policy's own; draws follow from `seed`.
    pub fn new(
        (slots, tiers): (usize, usize),
        policy: PolicyKind,
        share: Option<Fraction>,
        seed: u64,
    ) -> Self {
        let sum = |budget| Sum {
            members: BTreeSet::new(),
            populated: vec![0; tiers],
            resident: vec![0; tiers],
            dropping: 0,
            // A process has a budget of its own, or one with those of higher slots.
            turns: vec![Turns::new(policy, budget, slots); tiers],
            unlimited: false,
        };
        Self {
            holdings: vec![None; slots],
            sums: (0..slots).map(sum).collect(),
            rng: Pcg32::seed_from_u64(seed),
            common: (0..tiers).map(|_| Common::of(policy, share)).collect(),
            live: BTreeSet::new(),
            free: (0..slots).collect(),
            touched: BTreeSet::new(),
            short: BTreeSet::new(),
            pages: 0,
            local_pages: 0,
        }
    }

    /// By tier: what the residencies of a shared budget share.
    pub fn common(&self) -> &[Common] {
        &self.common
    }

    /// The lowest free slot.
    pub fn free_slot(&self) -> Option<usize> {
        self.free.first().copied()
    }

    /// How many slots are free.
    pub fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Slots in use.
    pub const fn live(&self) -> &BTreeSet<usize> {
        &self.live
    }

    /// The slot in use after `slot`, in rotation; `None` if none is in use.
    pub fn next_live(&self, slot: usize) -> Option<usize> {
        self.live.range(slot + 1..).next().or_else(|| self.live.first()).copied()
    }

    /// Enters the pages of the process in `slot`; `None` if it has ended.
    pub fn settle(&mut self, slot: usize, now: Option<Holding>) {
        if self.holdings[slot] == now {
            return;
        }
        if let Some(before) = self.holdings[slot].take() {
            self.count(slot, &before, false);
        }
        match now {
            Some(now) => {
                self.live.insert(slot);
                self.free.remove(&slot);
                self.count(slot, &now, true);
                self.holdings[slot] = Some(now);
            }
            None => {
                self.live.remove(&slot);
                self.free.insert(slot);
            }
        }
    }

    // Adds a holding to the sums, or subtracts it.
    fn count(&mut self, slot: usize, holding: &Holding, add: bool) {
        let change = |sum: &mut u64, by: u64| {
            *sum = if add { *sum + by } else { sum.saturating_sub(by) };
        };
        change(&mut self.pages, holding.pages);
        change(&mut self.local_pages, holding.local_pages);
        let sum = &mut self.sums[holding.budget];
        change(&mut sum.dropping, holding.dropping);
        for (sum, &pages) in sum.populated.iter_mut().zip(&holding.populated) {
            change(sum, pages);
        }
        for (sum, &pages) in sum.resident.iter_mut().zip(&holding.resident) {
            change(sum, pages);
        }
        for (turns, front) in sum.turns.iter_mut().zip(&holding.fronts) {
            turns.count(slot, front, add);
        }
        if add {
            sum.members.insert(slot);
        } else {
            sum.members.remove(&slot);
        }
    }

    /// Notes that the process in `slot` may have changed.
    pub fn touch(&mut self, slot: usize) {
        self.touched.insert(slot);
    }

    /// Notes that `budget` has few free frames.
    pub fn short(&mut self, budget: usize) {
        if budget < self.sums.len() {
            self.short.insert(budget);
        }
    }

    /// The processes that may have changed.
    pub const fn touched(&self) -> &BTreeSet<usize> {
        &self.touched
    }

    /// Takes the processes that may have changed since the last call.
    pub fn take_touched(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.touched)
    }

    /// Takes the budgets that are short of frames.
    pub fn take_short(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.short)
    }

    /// The processes of `budget`.
    pub fn of(&self, budget: usize) -> &BTreeSet<usize> {
        &self.sums[budget].members
    }

    /// How many pages of `budget` in `tier` have contents.
    pub fn populated(&self, budget: usize, tier: usize) -> u64 {
        self.sums[budget].populated[tier]
    }

    /// How many pages of `budget` in `tier` are local.
    pub fn resident(&self, budget: usize, tier: usize) -> u64 {
        self.sums[budget].resident[tier]
    }

    /// How many pages of `budget` are on their way out.
    pub fn dropping(&self, budget: usize) -> u64 {
        self.sums[budget].dropping
    }

    /// Moves up to `most` pages of `budget` in `tier` into the order of leaving, those longest on
    /// probation first. Returns them with their slots. Stops at a page that is still being
    /// unmapped, unless no page is leaving and none `is_leaving` already.
    pub fn leave(
        &self,
        (budget, tier): (usize, usize),
        givers: &mut impl Givers,
        most: u64,
        is_leaving: bool,
    ) -> Vec<(usize, PageIndex)> {
        self.sums[budget].turns[tier].leave(givers, most, is_leaving)
    }

    /// Moves as many active pages of `budget` in `tier` to probation as are wanted there, to be
    /// unmapped. Returns them with their slots.
    pub fn probe(
        &mut self,
        (budget, tier): (usize, usize),
        givers: &mut impl Givers,
        room: Room,
    ) -> Vec<(usize, PageIndex)> {
        self.sums[budget].turns[tier].probe(givers, room, &mut self.rng)
    }

    /// Whether `budget` has no limit, so that first touches are only counted; can be set.
    pub fn unlimited(&mut self, budget: usize) -> &mut bool {
        &mut self.sums[budget].unlimited
    }

    /// How many pages of all processes have contents, and how many of these are local.
    pub const fn pages(&self) -> (u64, u64) {
        (self.pages, self.local_pages)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn holding(budget: usize, resident: u64) -> Holding {
        Holding {
            budget,
            populated: vec![resident * 2],
            resident: vec![resident],
            fronts: vec![Front::default()],
            dropping: resident / 2,
            pages: resident * 2,
            local_pages: resident,
        }
    }

    #[test]
    fn slots_are_given_lowest_first_and_visited_in_turn() {
        let mut members = Members::new((4, 1), PolicyKind::FIFO, None, 1);
        for slot in [0, 1, 3] {
            members.settle(slot, Some(holding(0, 1)));
        }
        assert_eq!((members.free_slot(), members.free_count()), (Some(2), 1));
        assert_eq!([0, 1, 3].map(|slot| members.next_live(slot)), [1, 3, 0].map(Some));
        members.settle(0, None);
        assert_eq!(members.free_slot(), Some(0));
    }

    proptest! {
        // Against sums made anew.
        #[test]
        fn sums_are_those_of_the_processes_there_are(
            steps in prop::collection::vec(
                (0_usize..6, prop::option::of((0_usize..3, 0_u64..50))),
                1..60,
            ),
        ) {
            let mut members = Members::new((6, 1), PolicyKind::FIFO, None, 1);
            let mut model: Vec<Option<(usize, u64)>> = vec![None; 6];
            for (slot, has) in steps {
                members.settle(slot, has.map(|(budget, resident)| holding(budget, resident)));
                model[slot] = has;
                for budget in 0..3 {
                    let of: Vec<u64> = model
                        .iter()
                        .flatten()
                        .filter_map(|&(own, resident)| (own == budget).then_some(resident))
                        .collect();
                    let sum = of.iter().sum::<u64>();
                    prop_assert_eq!(members.resident(budget, 0), sum);
                    prop_assert_eq!(members.populated(budget, 0), sum * 2);
                    let dropping = of.iter().map(|resident| resident / 2).sum::<u64>();
                    prop_assert_eq!(members.dropping(budget), dropping);
                    prop_assert_eq!(members.of(budget).len(), of.len());
                }
                let all: u64 = model.iter().flatten().map(|one| one.1).sum();
                prop_assert_eq!(members.pages(), (all * 2, all));
                let live = model.iter().flatten().count();
                prop_assert_eq!((members.live().len(), members.free_count()), (live, 6 - live));
            }
        }
    }
}
