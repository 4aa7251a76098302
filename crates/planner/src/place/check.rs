//! Checks a placement against every rule of its problem.

use std::collections::{BTreeMap, BTreeSet};

use super::{Placement, Problem};
use crate::cost::Dimension;

/// A rule that a placement violates; tenants and servers by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A tenant does not have one place for each replica.
    Missing(usize),
    /// The demand on a server exceeds what it has of a dimension.
    Full(u32, Dimension),
    /// A server has more tenants than the limit.
    Crowded(u32),
    /// Two replicas of a tenant are on a server or in a rack.
    Together(usize),
    /// A tenant is not on the servers of the tenant that it must be with.
    Separate(usize),
    /// Two tenants that must be kept apart share a server.
    Neighbours(u32),
    /// A server has a tenant with a promised tail and more than one bursty writer.
    Bursty(u32),
    /// A tenant is not in the rack that it must be in.
    Elsewhere(usize),
    /// The number of a server is beyond the size of the pool.
    NoServer(u32),
}

/// All violations of `placement`; empty if it is valid.
#[must_use]
pub fn check(problem: &Problem, placement: &Placement) -> Vec<Violation> {
    let Problem { tenants, pool } = problem;
    let mut found = Vec::new();
    let mut servers: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, tenant) in tenants.iter().enumerate() {
        let places = placement.places.get(index).map_or(&[][..], Vec::as_slice);
        if places.len() != tenant.replicas.max(1) as usize {
            found.push(Violation::Missing(index));
        }
        let racks: BTreeSet<u32> = places
            .iter()
            .map(|server| if pool.racks > 1 { server % pool.racks } else { *server })
            .collect();
        if racks.len() != places.len() {
            found.push(Violation::Together(index));
        }
        if let Some(rack) = tenant.rack
            && places.iter().any(|server| server % pool.racks.max(1) != rack)
        {
            found.push(Violation::Elsewhere(index));
        }
        if let Some(other) = tenant.with {
            let sorted = |places: &[u32]| places.iter().copied().collect::<BTreeSet<_>>();
            if sorted(places) != sorted(&placement.places[other]) {
                found.push(Violation::Separate(index));
            }
        }
        for &server in places {
            servers.entry(server).or_default().push(index);
        }
    }
    for (server, inside) in servers {
        if pool.count.is_some_and(|count| server >= count) {
            found.push(Violation::NoServer(server));
        }
        for dimension in Dimension::ALL {
            let sum: u128 =
                inside.iter().map(|&one| u128::from(tenants[one].wants.get(dimension))).sum();
            if pool.server.get(dimension).is_some_and(|each| sum > u128::from(each)) {
                found.push(Violation::Full(server, dimension));
            }
        }
        if pool.tenants_max.is_some_and(|most| inside.len() > most as usize) {
            found.push(Violation::Crowded(server));
        }
        let words: Vec<&String> =
            inside.iter().filter_map(|&one| tenants[one].apart.as_ref()).collect();
        if words.iter().collect::<BTreeSet<_>>().len() != words.len() {
            found.push(Violation::Neighbours(server));
        }
        let bursty = inside.iter().filter(|&&one| tenants[one].bursty).count();
        if bursty > 1 && inside.iter().any(|&one| tenants[one].tail) {
            found.push(Violation::Bursty(server));
        }
    }
    found
}
