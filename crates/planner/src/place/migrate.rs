//! A new placement that needs few moves from the current one.

use std::collections::BTreeSet;

use super::pack::Servers;
use super::unit::Units;
use super::{PlaceError, Placement, Problem, bound};
use crate::cost::Dimension;

/// One replica that changes its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// Number of the tenant.
    pub tenant: usize,
    /// Its server before; `None` if the replica is new or its server is lost.
    pub from: Option<u32>,
    /// Its server afterwards.
    pub to: u32,
}

/// A new placement and the moves to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// The new placement.
    pub placement: Placement,
    /// The moves, in the order of tenants.
    pub moves: Vec<Move>,
}

/// Keeps every replica that can stay, places the rest, and empties servers as long as the moves for
/// that have at most `budget_bytes` together. `now` has the current servers of each tenant, fewer
/// than replicas or none if it is new. `lost` servers are not used.
///
/// # Errors
/// As [`super::place`]; when there are too few servers, for the first tenant without a place.
pub fn migrate(
    problem: &Problem,
    now: &[Vec<u32>],
    lost: &BTreeSet<u32>,
    budget_bytes: u64,
) -> Result<Migration, PlaceError> {
    let units = Units::of(problem)?;
    let (bound, _) = bound::of(&units);
    let mut servers = Servers::new(&units);
    let highest = now.iter().flatten().chain(lost).max().map_or(0, |most| *most as usize + 1);
    servers.open(highest.max(problem.pool.count.unwrap_or(0) as usize));
    let old = |unit: usize| -> Option<u32> {
        let members = &units.all[unit].members;
        let places = now.get(members[0])?;
        places.get(unit - units.all[unit].first).copied().filter(|server| !lost.contains(server))
    };
    for unit in 0..units.all.len() {
        if let Some(server) = old(unit).map(|server| server as usize)
            && problem.pool.count.is_none_or(|count| server < count as usize)
            && servers.fits(server, unit)
        {
            servers.put(server, unit);
        }
    }
    for unit in 0..units.all.len() {
        if servers.at[unit].is_none() {
            let place = servers.best_for(unit, usize::MAX);
            let place = place.or_else(|| spare(&mut servers, unit, lost, problem.pool.count));
            let place = place.ok_or_else(|| homeless(problem, &units, unit, &servers, lost))?;
            servers.put(place, unit);
        }
    }
    save(&mut servers, budget_bytes, &old);
    let moves = moves(&servers, now, lost);
    let mut places = vec![Vec::new(); problem.tenants.len()];
    for (unit, server) in servers.at.iter().enumerate() {
        let Some(server) = server else { continue };
        for &member in &units.all[unit].members {
            places[member].push(number(*server));
        }
    }
    let is_best = servers.used() <= bound;
    let placement = Placement { places, servers: servers.used(), bound, is_best };
    Ok(Migration { placement, moves })
}

/// The index of a server as its number.
fn number(server: usize) -> u32 {
    u32::try_from(server).unwrap_or(u32::MAX)
}

/// An empty server that fits `unit` and is not lost; adds servers if `count` is `None`.
fn spare(
    servers: &mut Servers<'_>,
    unit: usize,
    lost: &BTreeSet<u32>,
    count: Option<u32>,
) -> Option<usize> {
    let racks = servers.units.racks as usize;
    if count.is_none() {
        servers.open(servers.all.len() + racks);
    }
    (0..servers.all.len()).find(|&server| {
        servers.all[server].inside.is_empty()
            && !lost.contains(&number(server))
            && servers.fits(server, unit)
    })
}

/// Empties servers, those with the least capacity in use first, while the moves fit the budget.
fn save(servers: &mut Servers<'_>, budget_bytes: u64, old: &dyn Fn(usize) -> Option<u32>) {
    let capacity = Dimension::Capacity as usize;
    let mut left = budget_bytes;
    let mut order: Vec<usize> =
        (0..servers.all.len()).filter(|server| !servers.all[*server].inside.is_empty()).collect();
    order.sort_by_key(|server| (servers.all[*server].used[capacity], *server));
    for server in order {
        // A unit that has to move anyway costs nothing more if it moves elsewhere.
        let staying = servers.all[server].inside.iter();
        let staying = staying.filter(|unit| old(**unit).map(|at| at as usize) == Some(server));
        let bytes: u64 = staying.map(|unit| servers.units.all[*unit].sizes[capacity]).sum();
        if bytes <= left && budget_bytes > 0 && servers.empty(server) {
            left -= bytes;
        }
    }
}

/// The moves from `now` to the places of `servers`, by tenant and new server.
fn moves(servers: &Servers<'_>, now: &[Vec<u32>], lost: &BTreeSet<u32>) -> Vec<Move> {
    let mut moves = Vec::new();
    let units = &servers.units.all;
    for (index, (unit, place)) in units.iter().zip(&servers.at).enumerate() {
        let Some(to) = place.map(number) else { continue };
        for &tenant in &unit.members {
            let from = now.get(tenant).and_then(|places| places.get(index - unit.first)).copied();
            if from != Some(to) {
                let from = from.filter(|server| !lost.contains(server));
                moves.push(Move { tenant, from, to });
            }
        }
    }
    moves.sort_by_key(|one| (one.tenant, one.to));
    moves
}

/// The error that `unit` fits on no server: names the dimension that most servers lack.
fn homeless(
    problem: &Problem,
    units: &Units,
    unit: usize,
    servers: &Servers<'_>,
    lost: &BTreeSet<u32>,
) -> PlaceError {
    let sizes = units.all[unit].sizes;
    // How many servers lack room for the unit in dimension `at`.
    let lacks = |at: usize| {
        let full = servers.all.iter().enumerate().filter(|(server, state)| {
            !lost.contains(&number(*server))
                && state.used[at] > units.each[at].saturating_sub(sizes[at])
        });
        full.count()
    };
    let short = (0..sizes.len()).rev().max_by_key(|at| lacks(*at)).unwrap_or(0);
    let count = problem.pool.count.unwrap_or(0);
    PlaceError::Count {
        tenant: problem.tenants[units.all[unit].members[0]].name.clone(),
        dimension: Dimension::ALL[short],
        count: count.saturating_sub(number(lost.len())),
        found: count.saturating_sub(number(lost.len())) + 1,
        proof: " (if nobody else moves)",
    }
}
