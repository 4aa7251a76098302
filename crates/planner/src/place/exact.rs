//! Branch and bound over all placements of few units, for one with the fewest servers.
//!
//! Written here, because rules about replicas, racks, neighbours and bursty writers take a row of 0
//! and 1 for each pair of tenant and server, too many for the integer-program solvers in Rust from
//! some 30 tenants on. The search is bounded by steps and not by time, so that the same input has
//! the same answer.

use super::pack::Servers;
use super::unit::{DIMENSIONS, Units};

/// Limits of units and racks for which a search starts, and of its steps.
const UNITS_MAX: usize = 24;
const RACKS_MAX: u32 = 64;
const STEPS_MAX: u64 = 3_000_000;

/// Searches a placement with fewer than `found` servers, and stops early at `bound`. `None` if
/// the search exceeds its limits; `Some(None)` if it proves that there is no such placement.
pub(super) fn search(units: &Units, found: u32, bound: u32) -> Option<Option<Servers<'_>>> {
    if units.all.len() > UNITS_MAX || units.racks > RACKS_MAX {
        return None;
    }
    let mut order: Vec<usize> = (0..units.all.len()).collect();
    let most = |unit: usize| units.all[unit].shares.iter().copied().fold(0.0, f64::max);
    order.sort_by(|one, other| most(*other).total_cmp(&most(*one)));
    let mut rest = vec![[0_u128; DIMENSIONS]; order.len() + 1];
    for (at, &unit) in order.iter().enumerate().rev() {
        rest[at] = rest[at + 1];
        for (sum, size) in rest[at].iter_mut().zip(units.all[unit].sizes) {
            *sum += u128::from(size);
        }
    }
    let mut search =
        Search { order, rest, fewest: found, bound, best: None, steps: 0, is_over: false };
    let mut servers = Servers::new(units);
    // All `found` servers may be in the same rack.
    servers.open(found as usize * units.racks as usize);
    search.step(&mut servers, 0, 0);
    (!search.is_over).then_some(search.best)
}

struct Search<'a> {
    order: Vec<usize>,
    /// The sum of the sizes yet to be placed, from each step on.
    rest: Vec<[u128; DIMENSIONS]>,
    fewest: u32,
    bound: u32,
    best: Option<Servers<'a>>,
    steps: u64,
    /// Whether the search has exceeded its steps.
    is_over: bool,
}

impl<'a> Search<'a> {
    /// Places the unit at position `at` of the order in every way, and all later units after it.
    fn step(&mut self, servers: &mut Servers<'a>, at: usize, used: u32) {
        self.steps += 1;
        self.is_over |= self.steps > STEPS_MAX;
        let Some(&unit) = self.order.get(at) else {
            self.fewest = used;
            self.best = Some(servers.clone());
            return;
        };
        // Empty servers of a rack are alike: only the first one is tried.
        let racks = servers.units.racks as usize;
        let mut is_opened = vec![false; racks];
        for server in 0..servers.all.len() {
            if self.is_over || self.fewest <= self.bound {
                return;
            }
            let is_empty = servers.all[server].inside.is_empty();
            if is_empty && std::mem::replace(&mut is_opened[server % racks], true) {
                continue;
            }
            let more = used + u32::from(is_empty);
            if more >= self.fewest || !servers.fits(server, unit) {
                continue;
            }
            servers.put(server, unit);
            if self.least(servers, at + 1, more) < self.fewest {
                self.step(servers, at + 1, more);
            }
            servers.take(unit);
        }
    }

    /// A lower bound of the servers of this branch: the units to come may be split.
    fn least(&self, servers: &Servers<'_>, at: usize, used: u32) -> u32 {
        let mut most = used;
        for dimension in 0..DIMENSIONS {
            let each = servers.units.each[dimension];
            if each == u64::MAX {
                continue;
            }
            let taken = servers.all.iter().filter(|state| !state.inside.is_empty());
            let room: u128 = taken.map(|state| u128::from(each - state.used[dimension])).sum();
            let more = self.rest[at][dimension].saturating_sub(room).div_ceil(u128::from(each));
            most = most.max(used + u32::try_from(more).unwrap_or(u32::MAX - used));
        }
        most
    }
}
