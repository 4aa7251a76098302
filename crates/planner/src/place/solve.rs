//! Solves a problem: heuristic, exact search and integer program.

use super::pack::{Placement, Rule, SMALL, Servers};
use super::unit::{Unit, Units};
use super::{PlaceError, Problem, bound, exact};

/// Places all tenants on few servers: a heuristic, then an exact search if there are few units.
///
/// # Errors
/// When no placement exists, or none was found with as many servers as the pool has.
pub fn place(problem: &Problem) -> Result<Placement, PlaceError> {
    place_watched(problem, &mut |_| {})
}

/// As [`place`], and says again and again how much of the work is done: from 0 to 1.
///
/// # Errors
/// As [`place`].
pub fn place_watched(
    problem: &Problem,
    watch: &mut dyn FnMut(f64),
) -> Result<Placement, PlaceError> {
    let units = Units::of(problem)?;
    let found = Found::of(&units, watch);
    found.servers.hand_out(problem, found.bound, found.dimension, found.is_best)
}

/// As [`place`], then lets HiGHS search for `at_most` for a placement with fewer servers or for a
/// proof that there is none. With too many tenants for HiGHS the result is that of [`place`];
/// [`Placement::is_best`] says whether the optimum is proven.
///
/// # Errors
/// As [`place`].
#[cfg(feature = "highs")]
pub fn place_exactly(
    problem: &Problem,
    at_most: std::time::Duration,
) -> Result<Placement, PlaceError> {
    let units = Units::of(problem)?;
    let mut found = Found::of(&units, &mut |_| {});
    if !found.is_best
        && let Some(answer) =
            super::milp::search(&units, found.servers.used(), found.bound, at_most)
    {
        found.bound = answer.bound;
        found.servers = answer.better.unwrap_or(found.servers);
        found.is_best = found.servers.used() <= found.bound;
    }
    found.servers.hand_out(problem, found.bound, found.dimension, found.is_best)
}

/// The best placement found so far, not yet checked against the size of the pool.
struct Found<'a> {
    servers: Servers<'a>,
    bound: u32,
    /// The index of the dimension that the bound comes from.
    dimension: usize,
    is_best: bool,
}

impl<'a> Found<'a> {
    /// Tries the rules of the heuristic, and tells `watch` which share is placed.
    fn of(units: &'a Units, watch: &mut dyn FnMut(f64)) -> Self {
        let (bound, dimension) = bound::of(units);
        let rules: &[Rule] =
            if units.all.len() <= SMALL { &[Rule::Dot, Rule::Near] } else { &[Rule::Dot] };
        let mut best: Option<Servers<'_>> = None;
        for &rule in rules {
            let mut servers = Servers::new(units);
            servers.fill(rule, watch);
            servers.give_up();
            if best.as_ref().is_none_or(|best| servers.used() < best.used()) {
                best = Some(servers);
            }
            if best.as_ref().is_some_and(|best| best.used() <= bound) {
                break;
            }
        }
        let mut servers = best.unwrap_or_else(|| Servers::new(units));
        let mut is_best = servers.used() <= bound;
        if !is_best && let Some(found) = exact::search(units, servers.used(), bound) {
            is_best = true;
            servers = found.unwrap_or(servers);
        }
        Self { servers, bound, dimension, is_best }
    }
}

/// How many servers first fit needs, with the largest units first: a baseline for a placement.
///
/// # Errors
/// As [`place`].
pub fn first_fit(problem: &Problem) -> Result<u32, PlaceError> {
    let units = Units::of(problem)?;
    let mut servers = Servers::new(&units);
    let sum = |unit: &Unit| unit.shares.iter().sum::<f64>();
    let mut order: Vec<usize> = (0..units.all.len()).collect();
    order.sort_by(|one, other| sum(&units.all[*other]).total_cmp(&sum(&units.all[*one])));
    for unit in order {
        let mut at = 0;
        while !servers.fits(at, unit) {
            at += 1;
            servers.open(at + 1);
        }
        servers.put(at, unit);
    }
    Ok(servers.used())
}
