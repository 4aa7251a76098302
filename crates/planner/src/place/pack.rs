//! Server by server, what goes best with the room that is left; then the emptiest are given up.

use super::unit::{DIMENSIONS, Unit, Units};
use super::{PlaceError, Problem};
use crate::cost::Dimension;

/// Where everybody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The servers of each tenant's replicas.
    pub places: Vec<Vec<u32>>,
    /// Servers with somebody on them.
    pub servers: u32,
    /// No placement has fewer.
    pub bound: u32,
    /// Whether no placement has fewer than this one.
    pub is_best: bool,
}

/// Everything that is tried is known to end: so many looks at whether something fits, at most.
const LOOKS_MAX: u64 = 400_000_000;
/// Up to so many units each is compared with all others, and several rules are tried.
pub(super) const SMALL: usize = 20_000;
/// Beyond, so many of the largest and so many from all over.
const LARGEST: usize = 48;
const SPREAD: usize = 144;
/// Servers that cannot be given up, one after another, before that is left.
const FAILURES_MAX: u32 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The largest dot product of sizes and room.
    Dot,
    /// The least room left, by its square.
    Near,
}

#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) used: [u64; DIMENSIONS],
    members: u32,
    bursty: u32,
    tails: u32,
    pub(super) inside: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Servers<'a> {
    pub(super) units: &'a Units,
    pub(super) all: Vec<State>,
    /// By unit.
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

    pub(super) fn open(&mut self, count: usize) {
        if self.all.len() < count {
            self.all.resize_with(count, State::default);
        }
    }

    pub(super) fn used(&self) -> u32 {
        let used = self.all.iter().filter(|state| !state.inside.is_empty()).count();
        u32::try_from(used).unwrap_or(u32::MAX)
    }

    /// Whether a server that there is has room for a unit, and nothing on it objects.
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

    /// Shares of a server that are free.
    fn room(&self, server: usize) -> [f64; DIMENSIONS] {
        let used = self.all[server].used;
        std::array::from_fn(|at| match self.units.each[at] {
            u64::MAX => 0.0,
            each => 1.0 - used[at] as f64 / each as f64,
        })
    }

    fn score(&self, rule: Rule, room: &[f64; DIMENSIONS], unit: usize) -> f64 {
        let shares = &self.units.all[unit].shares;
        let of = |at: usize| match rule {
            Rule::Dot => self.weights[at] * room[at] * shares[at],
            Rule::Near => -self.weights[at] * (room[at] - shares[at]).powi(2),
        };
        (0..DIMENSIONS).map(of).sum()
    }

    /// Fills one server after another.
    pub(super) fn fill(&mut self, rule: Rule) {
        let most = |unit: &Unit| unit.shares.iter().copied().fold(0.0, f64::max);
        let mut left: Vec<usize> = (0..self.units.all.len()).collect();
        left.sort_by(|one, other| {
            let [one, other] = [one, other].map(|unit| most(&self.units.all[*unit]));
            other.total_cmp(&one)
        });
        let mut waiting = Waiting { left, gone: 0, turn: 0 };
        let mut server = 0;
        while !waiting.is_empty() {
            self.open(server + 1);
            while let Some(position) = self.next(rule, server, &mut waiting) {
                self.put(server, waiting.remove(position));
            }
            server += 1;
        }
    }

    /// What is best put there next.
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

    /// Tries to find other places for everybody on the emptiest servers, until that fails often.
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

    /// Moves everybody away, or nobody.
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

    /// The server in use that a unit leaves least room on.
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

    /// In numbers of servers that begin at 0 in every rack.
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

/// Stands where a unit was that has a place.
const GONE: usize = usize::MAX;

/// Units without a place, the largest first.
struct Waiting {
    left: Vec<usize>,
    gone: usize,
    turn: usize,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.left.len() == self.gone
    }

    fn remove(&mut self, position: usize) -> usize {
        let unit = std::mem::replace(&mut self.left[position], GONE);
        self.gone += 1;
        if self.gone * 8 > self.left.len() {
            self.left.retain(|unit| *unit != GONE);
            self.gone = 0;
        }
        unit
    }

    /// Positions to look at: all if there are few, else the first ones and some from all over,
    /// others each time.
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
