//! From a problem to a placement, by every way there is.

use super::pack::{Placement, Rule, SMALL, Servers};
use super::unit::{Unit, Units};
use super::{PlaceError, Problem, bound, exact};

/// Finds servers for everybody, as few as it can.
///
/// # Errors
/// When there is no placement, or none in as many servers as there are.
pub fn place(problem: &Problem) -> Result<Placement, PlaceError> {
    let units = Units::of(problem)?;
    let found = Found::of(&units);
    found.servers.hand_out(problem, found.bound, found.dimension, found.is_best)
}

/// As [`place`], and has HiGHS look for fewer servers, or for the proof that there are none, for at
/// most a time. Too many tenants for that are placed as ever; [`Placement::is_best`] says whether
/// it was proven.
///
/// # Errors
/// As [`place`].
#[cfg(feature = "highs")]
pub fn place_exactly(
    problem: &Problem,
    at_most: std::time::Duration,
) -> Result<Placement, PlaceError> {
    let units = Units::of(problem)?;
    let mut found = Found::of(&units);
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

/// What has been found before it is handed out.
struct Found<'a> {
    servers: Servers<'a>,
    bound: u32,
    /// What the bound is of.
    dimension: usize,
    is_best: bool,
}

impl<'a> Found<'a> {
    fn of(units: &'a Units) -> Self {
        let (bound, dimension) = bound::of(units);
        let rules: &[Rule] =
            if units.all.len() <= SMALL { &[Rule::Dot, Rule::Near] } else { &[Rule::Dot] };
        let mut best: Option<Servers<'_>> = None;
        for &rule in rules {
            let mut servers = Servers::new(units);
            servers.fill(rule);
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

/// First fit, in the order of the list: what a placement is compared with.
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
