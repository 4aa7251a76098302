//! A packing heuristic: fills server by server with the unit that best matches the free room, then
//! tries to empty the least loaded servers.

use super::unit::{DIMENSIONS, Unit, Units};
use super::{PlaceError, Problem};
use crate::cost::Dimension;

/// The servers of all tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The servers of each tenant's replicas.
    pub places: Vec<Vec<u32>>,
    /// How many servers have tenants.
    pub servers: u32,
    /// A lower bound: no placement has fewer servers.
    pub bound: u32,
    /// Whether it is proven that no placement has fewer servers than this one.
    pub is_best: bool,
}

/// A limit of tests whether a unit fits, so that emptying servers ends.
const LOOKS_MAX: u64 = 400_000_000;
/// Up to this many units, every step considers all of them and several rules are tried.
pub(super) const SMALL: usize = 20_000;
/// With more units a step considers this many of the largest,
const LARGEST: usize = 48;
/// and this many spread over the rest.
const SPREAD: usize = 144;
/// How many servers in a row may fail to be emptied before [`Servers::give_up`] stops.
const FAILURES_MAX: u32 = 64;

/// How the next unit for a server is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The largest dot product of its sizes and the free room.
    Dot,
    /// The smallest weighted square of the room that it leaves.
    Near,
}

/// What is on one server.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) used: [u64; DIMENSIONS],
    members: u32,
    bursty: u32,
    tails: u32,
    pub(super) inside: Vec<usize>,
}

/// Servers and the units on them.
#[derive(Debug, Clone)]
pub(super) struct Servers<'a> {
    pub(super) units: &'a Units,
    pub(super) all: Vec<State>,
    /// The server of each unit; `None` if it has not been placed.
    pub(super) at: Vec<Option<usize>>,
    weights: [f64; DIMENSIONS],
    looks: u64,
}

impl<'a> Servers<'a> {
    pub(super) fn new(units: &'a Units) -> Self {
        let mut weights = [0.0; DIMENSIONS];
        for unit in &units.all {
            for (weight, share) in weights.iter_mut().zip(unit.shares) {
                *weight += share;
            }
        }
        let most = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let weights = weights.map(|weight| weight / most);
        let at = vec![None; units.all.len()];
        Self { units, all: vec![State::default()], at, weights, looks: 0 }
    }

    /// Adds empty servers until there are `count`.
    pub(super) fn open(&mut self, count: usize) {
        if self.all.len() < count {
            self.all.resize_with(count, State::default);
        }
    }

    /// How many servers have units.
    pub(super) fn used(&self) -> u32 {
        let used = self.all.iter().filter(|state| !state.inside.is_empty()).count();
        u32::try_from(used).unwrap_or(u32::MAX)
    }

    /// Whether `server` has room for `unit` and no rule about replicas, racks, tails or neighbours
    /// forbids it.
    pub(super) fn fits(&self, server: usize, unit: usize) -> bool {
        let (state, new) = (&self.all[server], &self.units.all[unit]);
        let has_room = (0..DIMENSIONS)
            .all(|at| state.used[at] <= self.units.each[at].saturating_sub(new.sizes[at]));
        let members = state.members as usize + new.members.len();
        if !has_room || members > self.units.tenants_max as usize {
            return false;
        }
        if state.bursty + new.bursty > 1 && (state.tails > 0 || new.has_tail) {
            return false;
        }
        if !new.apart.is_empty() {
            let mut words = state.inside.iter().flat_map(|one| &self.units.all[*one].apart);
            if words.any(|word| new.apart.contains(word)) {
                return false;
            }
        }
        let rack = |server: usize| server % self.units.racks as usize;
        if new.rack.is_some_and(|only| rack(server) != only as usize) {
            return false;
        }
        let mut others = (new.first..new.first + new.replicas as usize)
            .filter(|other| *other != unit)
            .filter_map(|other| self.at[other]);
        others
            .all(|other| other != server && (self.units.racks == 1 || rack(other) != rack(server)))
    }

    /// Places `unit` on `server`.
    pub(super) fn put(&mut self, server: usize, unit: usize) {
        let (state, new) = (&mut self.all[server], &self.units.all[unit]);
        for (used, size) in state.used.iter_mut().zip(new.sizes) {
            *used += size;
        }
        state.members += u32::try_from(new.members.len()).unwrap_or(u32::MAX);
        state.bursty += new.bursty;
        state.tails += u32::from(new.has_tail);
        state.inside.push(unit);
        self.at[unit] = Some(server);
    }

    /// Removes `unit` from its server.
    pub(super) fn take(&mut self, unit: usize) {
        let Some(server) = self.at[unit].take() else { return };
        let (state, old) = (&mut self.all[server], &self.units.all[unit]);
        for (used, size) in state.used.iter_mut().zip(old.sizes) {
            *used -= size;
        }
        state.members -= u32::try_from(old.members.len()).unwrap_or(u32::MAX);
        state.bursty -= old.bursty;
        state.tails -= u32::from(old.has_tail);
        state.inside.retain(|one| *one != unit);
    }

    /// The free share of each dimension of `server`; 0 for one without a limit.
    fn room(&self, server: usize) -> [f64; DIMENSIONS] {
        let used = self.all[server].used;
        std::array::from_fn(|at| match self.units.each[at] {
            u64::MAX => 0.0,
            each => 1.0 - used[at] as f64 / each as f64,
        })
    }

    /// How well `unit` matches `room` under `rule`; higher is better.
    fn score(&self, rule: Rule, room: &[f64; DIMENSIONS], unit: usize) -> f64 {
        let shares = &self.units.all[unit].shares;
        let of = |at: usize| match rule {
            Rule::Dot => self.weights[at] * room[at] * shares[at],
            Rule::Near => -self.weights[at] * (room[at] - shares[at]).powi(2),
        };
        (0..DIMENSIONS).map(of).sum()
    }

    /// Fills one server after another, and says after each which share of all is placed.
    pub(super) fn fill(&mut self, rule: Rule, watch: &mut dyn FnMut(f64)) {
        let most = |unit: &Unit| unit.shares.iter().copied().fold(0.0, f64::max);
        let mut left: Vec<usize> = (0..self.units.all.len()).collect();
        left.sort_by(|one, other| {
            let [one, other] = [one, other].map(|unit| most(&self.units.all[*unit]));
            other.total_cmp(&one)
        });
        let mut waiting = Waiting { left, gone: 0, turn: 0 };
        let (mut server, mut placed) = (0, 0_usize);
        while !waiting.is_empty() {
            self.open(server + 1);
            while let Some(position) = self.next(rule, server, &mut waiting) {
                self.put(server, waiting.remove(position));
                placed += 1;
            }
            watch(placed as f64 / self.units.all.len() as f64);
            server += 1;
        }
    }

    /// The position in `waiting` of the unit that matches `server` best; `None` if none fits.
    fn next(&self, rule: Rule, server: usize, waiting: &mut Waiting) -> Option<usize> {
        let room = self.room(server);
        let mut best: Option<(f64, usize)> = None;
        for position in waiting.candidates(SMALL) {
            let unit = waiting.left[position];
            if unit == GONE || !self.fits(server, unit) {
                continue;
            }
            let score = self.score(rule, &room, unit);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, position));
            }
        }
        best.map(|(_, position)| position)
    }

    /// Tries to empty the least loaded servers, until `FAILURES_MAX` in a row fail.
    pub(super) fn give_up(&mut self) {
        let load = |state: &State, each: &[u64; DIMENSIONS]| -> f64 {
            let shares = state.used.iter().zip(each);
            shares.map(|(used, each)| *used as f64 / *each as f64).sum()
        };
        let each = self.units.each;
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.retain(|server| !self.all[*server].inside.is_empty());
        order.sort_by(|one, other| {
            load(&self.all[*one], &each).total_cmp(&load(&self.all[*other], &each))
        });
        let mut failures = 0;
        for server in order {
            if failures == FAILURES_MAX || self.looks > LOOKS_MAX {
                break;
            }
            failures = if self.empty(server) { 0 } else { failures + 1 };
        }
    }

    /// Moves all units of `server` to other servers in use, or none. Returns whether it did.
    pub(super) fn empty(&mut self, server: usize) -> bool {
        let inside = self.all[server].inside.clone();
        for &unit in &inside {
            self.take(unit);
        }
        for &unit in &inside {
            let Some(other) = self.best_for(unit, server) else {
                for &moved in &inside {
                    self.take(moved);
                }
                for &moved in &inside {
                    self.put(server, moved);
                }
                return false;
            };
            self.put(other, unit);
        }
        true
    }

    /// The server in use, except `not`, on which `unit` leaves the least room; `None` if none fits.
    pub(super) fn best_for(&mut self, unit: usize, not: usize) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        for other in 0..self.all.len() {
            if other == not || self.all[other].inside.is_empty() {
                continue;
            }
            self.looks += 1;
            if self.fits(other, unit) {
                let score = self.score(Rule::Near, &self.room(other), unit);
                if best.is_none_or(|(most, _)| score > most) {
                    best = Some((score, other));
                }
            }
        }
        best.map(|(_, other)| other)
    }

    /// The placement, with servers numbered without gaps in every rack.
    /// An error if it needs more servers than the pool has.
    pub(super) fn hand_out(
        &self,
        problem: &Problem,
        bound: u32,
        dimension: usize,
        is_best: bool,
    ) -> Result<Placement, PlaceError> {
        let racks = self.units.racks as usize;
        let mut next: Vec<usize> = (0..racks).collect();
        let mut numbers = vec![0; self.all.len()];
        for (server, state) in self.all.iter().enumerate() {
            if !state.inside.is_empty() {
                numbers[server] = next[server % racks];
                next[server % racks] += racks;
            }
        }
        let mut places = vec![Vec::new(); problem.tenants.len()];
        let mut homeless: Option<usize> = None;
        for (unit, server) in self.at.iter().enumerate() {
            let Some(server) = server else { continue };
            let number = u32::try_from(numbers[*server]).unwrap_or(u32::MAX);
            for &member in &self.units.all[unit].members {
                if problem.pool.count.is_some_and(|count| number >= count) {
                    homeless = Some(homeless.map_or(member, |other: usize| other.min(member)));
                }
                places[member].push(number);
            }
        }
        if let (Some(count), Some(tenant)) = (problem.pool.count, homeless) {
            let highest = numbers.iter().max().map_or(0, |most| most + 1);
            let proof = if bound > count {
                ""
            } else {
                " (fewer may do: none were found, and none ruled out)"
            };
            return Err(PlaceError::Count {
                tenant: problem.tenants[tenant].name.clone(),
                dimension: Dimension::ALL[dimension],
                count,
                found: u32::try_from(highest).unwrap_or(u32::MAX),
                proof: if is_best { "" } else { proof },
            });
        }
        Ok(Placement { places, servers: self.used(), bound, is_best })
    }
}

/// Marks a position whose unit has been placed.
const GONE: usize = usize::MAX;

/// Units that have not been placed, the largest first.
struct Waiting {
    left: Vec<usize>,
    gone: usize,
    turn: usize,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.left.len() == self.gone
    }

    /// Takes out the unit at `position`.
    fn remove(&mut self, position: usize) -> usize {
        let unit = std::mem::replace(&mut self.left[position], GONE);
        self.gone += 1;
        if self.gone * 8 > self.left.len() {
            self.left.retain(|unit| *unit != GONE);
            self.gone = 0;
        }
        unit
    }

    /// Positions to consider: all if there are at most `all_below`, else the first ones and a
    /// sample of the rest that changes from call to call.
    fn candidates(&mut self, all_below: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.left.len();
        self.turn = self.turn.wrapping_add(1);
        let (first, spread) = if count <= all_below { (count, 0) } else { (LARGEST, SPREAD) };
        let rest = count - first.min(count);
        let offset = self.turn.wrapping_mul(7919);
        let step = rest / spread.max(1);
        let picked = (0..spread).map(move |index| first + (index * step + offset) % rest.max(1));
        (0..first).chain(picked)
    }
}
