//! Which process gives up the next page, when several share one budget.
//!
//! ```text
//!  process 0:  3  7  8 ...  ─┐
//!  process 1:  1  2  9 ...  ─┼─►  1  2  3  4  5  7  8  9 ...
//!  process 2:  4  5    ...  ─┘
//! ```
//!
//! Each page gets a [stamp](crate::policy::Stamps) when it enters its queue, and the process whose
//! first page has the lowest is next. So the queues of all processes act as one: the budget gives
//! up what a single policy over all of its pages would. With RANDOM, whose pages have no age, a
//! process gives up pages in proportion to its pages.
//!
//! What S3-FIFO remembers of pages that it gave up is each process's own.
//!
//! No table has the pages of all processes. So the pages of a child are as old as those they are
//! copies of, a process ends without a search for its pages, and a process whose helper is stopped
//! is skipped.

use std::collections::{BTreeMap, BTreeSet, btree_set};
use std::iter::Peekable;

use rand_core::Rng;
use rand_pcg::Pcg32;

use crate::common::Front;
use crate::page::PageIndex;
use crate::policy::PolicyKind;
use crate::probation::Room;
use crate::residency::Residency;

/// A stamp and a slot.
type Head = (u64, usize);

/// The line of pages on probation, behind those of active pages.
const PROBATION: usize = 2;

/// Access to the residencies of processes.
pub trait Givers {
    /// The residency of `slot`, and how many of its pages may be unmapped now. `None` if it gives
    /// nothing up.
    fn giver(&mut self, slot: usize) -> Option<(&mut Residency, u64)>;
}

/// The pages that the processes of one budget can give up.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    policy: PolicyKind,
    /// The first pages of all processes, by line.
    lines: [BTreeSet<Head>; 3],
    active: [u64; 2],
    waiting: u64,
    weights: Weights,
}

impl Turns {
    /// No process, under `policy`. Of `slots` slots, `first` is the lowest that has pages; those
    /// before it, if any, come last.
    pub(crate) fn new(policy: PolicyKind, first: usize, slots: usize) -> Self {
        Self {
            policy,
            lines: Default::default(),
            active: [0; 2],
            waiting: 0,
            weights: Weights::new(first, slots),
        }
    }

    /// Adds the pages of `slot` that can be given up, or removes them.
    pub(crate) fn count(&mut self, slot: usize, front: &Front, add: bool) {
        for (line, head) in self.lines.iter_mut().zip(front.heads) {
            match head {
                Some(stamp) if add => line.insert((stamp, slot)),
                Some(stamp) => line.remove(&(stamp, slot)),
                None => false,
            };
        }
        let change = |sum: &mut u64, by: u64| {
            *sum = if add { *sum + by } else { sum.saturating_sub(by) };
        };
        self.active.iter_mut().zip(front.active).for_each(|(sum, by)| change(sum, by));
        change(&mut self.waiting, front.waiting);
        if self.policy.draws() {
            self.weights.set(slot, if add { front.active[0] } else { 0 });
        }
    }

    /// Moves up to `most` pages into the order of leaving. Stops at a page that is still being
    /// unmapped, unless no page is leaving and none `is_leaving` already.
    pub(crate) fn leave(
        &self,
        givers: &mut impl Givers,
        most: u64,
        is_leaving: bool,
    ) -> Vec<(usize, PageIndex)> {
        let mut given = Vec::new();
        let mut merge = Merge::of([&self.lines[PROBATION]]);
        while (given.len() as u64) < most
            && let Some((slot, until)) = merge.next(0)
        {
            let Some((residency, room)) = givers.giver(slot) else { continue };
            while (given.len() as u64) < most
                && let Some(page) = residency.leave_next(until)
            {
                given.push((slot, page));
            }
            match residency.next_to_leave() {
                Some((stamp, is_unmapped)) if is_unmapped || stamp > until => {
                    merge.enter(slot, [Some(stamp)]);
                }
                Some(_) if room > 0 && (is_leaving || !given.is_empty()) => break,
                _ => {}
            }
        }
        given
    }

    /// Moves as many active pages to probation as are wanted there, to be unmapped.
    pub(crate) fn probe(
        &mut self,
        givers: &mut impl Givers,
        room: Room,
        rng: &mut Pcg32,
    ) -> Vec<(usize, PageIndex)> {
        let (all, waiting) = (self.active.iter().sum(), self.waiting);
        let [first, second, _] = &self.lines;
        let mut merge = Merge::of([first, second]);
        let draws = Draws { weights: &mut self.weights, before: Vec::new() };
        let mut probe = Probe {
            policy: self.policy,
            active: self.active,
            begun: None,
            draws,
            given: Vec::new(),
            taken: BTreeMap::new(),
        };
        let mut wanted = u64::MAX;
        while probe.count() < wanted
            && let Some(line) = self.policy.line(probe.active, probe.begun)
        {
            let next = merge.next(line).or_else(|| probe.draws.next(rng));
            let Some((slot, until)) = next else {
                // The processes with the other pages give nothing up now.
                probe.active[line] = 0;
                continue;
            };
            let taken = probe.taken.get(&slot).copied().unwrap_or(0);
            let giver = givers.giver(slot).filter(|&(_, most)| most > taken);
            let Some((residency, most)) = giver else {
                probe.draws.set(slot, 0);
                continue;
            };
            wanted = wanted.min(residency.wanted(room, all, waiting));
            let most = (most - taken).min(wanted - probe.count().min(wanted));
            probe.take((slot, residency), (line, until), most);
            let [first, second, _] = residency.front(false).heads;
            merge.enter(slot, [first, second]);
        }
        probe.given
    }
}

/// Pages on their way to probation.
struct Probe<'a> {
    policy: PolicyKind,
    /// Active pages of all processes, by line.
    active: [u64; 2],
    /// The line in which the search for the next page has begun.
    begun: Option<usize>,
    draws: Draws<'a>,
    given: Vec<(usize, PageIndex)>,
    /// How many pages were taken from each slot.
    taken: BTreeMap<usize, u64>,
}

impl Probe<'_> {
    const fn count(&self) -> u64 {
        self.given.len() as u64
    }

    // Takes up to `most` pages of one process, while it is its turn.
    fn take(
        &mut self,
        (slot, residency): (usize, &mut Residency),
        (line, until): (usize, u64),
        most: u64,
    ) {
        for _ in 0..most {
            let before = residency.active();
            let page = residency.probe_next(line, until);
            for (sum, (before, after)) in
                self.active.iter_mut().zip(before.into_iter().zip(residency.active()))
            {
                *sum = sum.saturating_sub(before) + after;
            }
            if self.policy.draws() {
                self.draws.set(slot, residency.active()[0]);
            }
            self.begun = page.is_none().then_some(line);
            let Some(page) = page else { break };
            self.given.push((slot, page));
            *self.taken.entry(slot).or_default() += 1;
            // Pages without an age are drawn one by one.
            if self.policy.draws() || self.policy.line(self.active, None) != Some(line) {
                break;
            }
        }
    }
}

/// Merges the lines of all processes into one each.
struct Merge<'a, const N: usize> {
    /// Heads of processes that have not had a turn yet.
    far: [Peekable<btree_set::Iter<'a, Head>>; N],
    /// Heads of the others, as they are now.
    near: [BTreeSet<Head>; N],
    /// The heads in `near`, by slot.
    known: BTreeMap<usize, [Option<u64>; N]>,
}

impl<'a, const N: usize> Merge<'a, N> {
    fn of(lines: [&'a BTreeSet<Head>; N]) -> Self {
        Self {
            far: lines.map(|line| line.iter().peekable()),
            near: std::array::from_fn(|_| BTreeSet::new()),
            known: BTreeMap::new(),
        }
    }

    /// The slot whose turn it is in a line, and the stamp up to which it is. It has no further turn
    /// unless it is [entered](Self::enter) again. `None` if the line is empty.
    fn next(&mut self, line: usize) -> Option<(usize, u64)> {
        loop {
            let near = self.near[line].first().copied();
            let far = self.far[line].peek().map(|&&head| head);
            let is_far = far.is_some_and(|far| near.is_none_or(|near| far < near));
            if is_far {
                self.far[line].next();
            }
            let (_, slot) = if is_far { far } else { near }?;
            if is_far && self.known.contains_key(&slot) {
                continue;
            }
            self.enter(slot, [None; N]);
            let near = self.near[line].first().copied();
            let rest = near.into_iter().chain(self.far[line].peek().map(|&&head| head)).min();
            // Of two pages of the same age, that of the lower slot goes first.
            let until = rest.map(|(stamp, other)| stamp - u64::from(other < slot));
            return Some((slot, until.unwrap_or(u64::MAX)));
        }
    }

    /// Enters the new heads of `slot`.
    fn enter(&mut self, slot: usize, heads: [Option<u64>; N]) {
        let before = self.known.insert(slot, heads).unwrap_or([None; N]);
        for ((near, before), now) in self.near.iter_mut().zip(before).zip(heads) {
            before.map(|stamp| near.remove(&(stamp, slot)));
            now.map(|stamp| near.insert((stamp, slot)));
        }
    }
}

/// Changes of weights that are undone on drop.
struct Draws<'a> {
    weights: &'a mut Weights,
    before: Vec<(usize, u64)>,
}

impl Draws<'_> {
    fn set(&mut self, slot: usize, weight: u64) {
        let before = self.weights.set(slot, weight);
        self.before.push((slot, before));
    }

    // Draws the slot whose turn it is, for pages of any age.
    fn next(&self, rng: &mut Pcg32) -> Option<(usize, u64)> {
        self.weights.draw(rng).map(|slot| (slot, u64::MAX))
    }
}

impl Drop for Draws<'_> {
    fn drop(&mut self) {
        for (slot, weight) in self.before.drain(..).rev() {
            self.weights.set(slot, weight);
        }
    }
}

/// A weight for each slot, and their sums: the leaves of a tree, and its inner nodes.
#[derive(Debug, Clone)]
struct Weights {
    /// The slot at the first leaf; the others follow, and those before it come last.
    first: usize,
    slots: usize,
    /// The root is at 1, the children of `n` are at `2n` and `2n + 1`.
    nodes: Vec<u64>,
}

impl Weights {
    const fn new(first: usize, slots: usize) -> Self {
        Self { first, slots, nodes: Vec::new() }
    }

    /// Sets the weight of a slot. Returns the one before.
    fn set(&mut self, slot: usize, weight: u64) -> u64 {
        let place = (slot + self.slots - self.first) % self.slots;
        let mut leaves = self.nodes.len() / 2;
        if place >= leaves {
            if weight == 0 {
                return 0;
            }
            let before = self.nodes.split_off(leaves);
            leaves = (place + 1).next_power_of_two();
            self.nodes = vec![0; leaves * 2];
            self.nodes[leaves..][..before.len()].copy_from_slice(&before);
            (1..leaves).rev().for_each(|node| self.sum(node));
        }
        let before = std::mem::replace(&mut self.nodes[leaves + place], weight);
        let mut node = (leaves + place) / 2;
        while node > 0 {
            self.sum(node);
            node /= 2;
        }
        before
    }

    // Recomputes an inner node.
    fn sum(&mut self, node: usize) {
        self.nodes[node] = self.nodes[node * 2] + self.nodes[node * 2 + 1];
    }

    /// Draws a slot in proportion to its weight; `None` if all weights are 0.
    fn draw(&self, rng: &mut Pcg32) -> Option<usize> {
        let all = *self.nodes.get(1).filter(|&&all| all > 0)?;
        let leaves = self.nodes.len() / 2;
        // The high half of a product maps a draw onto `0..all`.
        let product = u128::from(rng.next_u64()) * u128::from(all);
        let mut left = u64::try_from(product >> 64).unwrap_or(0);
        let mut node = 1;
        while node < leaves {
            node *= 2;
            if left >= self.nodes[node] {
                left -= self.nodes[node];
                node += 1;
            }
        }
        Some((node - leaves + self.first) % self.slots)
    }
}
