//! The units of a placement: tenants that must be together, once for each replica.

use std::collections::BTreeMap;

use super::{PlaceError, Problem};
use crate::cost::Dimension;

pub(super) const DIMENSIONS: usize = Dimension::ALL.len();

/// An amount of every dimension.
pub(super) type Sizes = [u64; DIMENSIONS];

/// One replica of tenants that must be together.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) sizes: Sizes,
    /// The sizes as shares of a server.
    pub(super) shares: [f64; DIMENSIONS],
    pub(super) members: Vec<usize>,
    pub(super) bursty: u32,
    pub(super) has_tail: bool,
    /// The only rack that it may be in; `None` for any.
    pub(super) rack: Option<u32>,
    /// Numbers of the words that keep it apart; sorted.
    pub(super) apart: Vec<u32>,
    /// The number of the unit that is the first replica.
    pub(super) first: usize,
    pub(super) replicas: u32,
}

/// The units of a problem, and the limits of a server.
#[derive(Debug, Clone)]
pub(super) struct Units {
    pub(super) all: Vec<Unit>,
    /// How much a server has; `u64::MAX` where there is no limit.
    pub(super) each: Sizes,
    pub(super) racks: u32,
    pub(super) tenants_max: u32,
}

impl Units {
    /// The units of `problem`.
    ///
    /// # Errors
    /// When a rule cannot be satisfied, however many servers there are.
    pub(super) fn of(problem: &Problem) -> Result<Self, PlaceError> {
        let Problem { tenants, pool } = problem;
        if tenants.is_empty() {
            return Err(PlaceError::NoTenants);
        }
        let each = Dimension::ALL.map(|dimension| pool.server.get(dimension).unwrap_or(u64::MAX));
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for index in 0..tenants.len() {
            groups.entry(root(problem, index)?).or_default().push(index);
        }
        let mut words: BTreeMap<&str, u32> = BTreeMap::new();
        for word in tenants.iter().filter_map(|tenant| tenant.apart.as_deref()) {
            let next = u32::try_from(words.len()).unwrap_or(u32::MAX);
            words.entry(word).or_insert(next);
        }
        let racks = pool.racks.max(1);
        let tenants_max = pool.tenants_max.unwrap_or(u32::MAX);
        let mut units = Self { all: Vec::new(), each, racks, tenants_max };
        for members in groups.into_values() {
            let unit = units.unit(problem, members, &words)?;
            for _ in 0..unit.replicas {
                units.all.push(unit.clone());
            }
        }
        Ok(units)
    }

    /// The unit of `members`, which must be together.
    fn unit(
        &self,
        problem: &Problem,
        members: Vec<usize>,
        words: &BTreeMap<&str, u32>,
    ) -> Result<Unit, PlaceError> {
        let tenants = &problem.tenants;
        let lead = &tenants[members[0]];
        let mut sum = lead.wants;
        let mut apart: BTreeMap<u32, usize> = BTreeMap::new();
        for &member in &members {
            let tenant = &tenants[member];
            if member != members[0] {
                sum = sum.plus(tenant.wants).map_err(|error| match error {
                    crate::cost::CostError::Amount(dimension) => PlaceError::Amount(dimension),
                    _ => PlaceError::Amount(Dimension::Capacity),
                })?;
            }
            if tenant.replicas != lead.replicas {
                let names = (lead.name.clone(), tenant.name.clone());
                return Err(PlaceError::Unequal(names.0, names.1));
            }
            let word = tenant.apart.as_deref().and_then(|word| words.get(word));
            if let Some(other) = word.and_then(|word| apart.insert(*word, member)) {
                let names = (tenants[other].name.clone(), tenant.name.clone());
                return Err(PlaceError::Contradiction(names.0, names.1));
            }
        }
        self.fits_alone(problem, &members, &sum)?;
        let rack = self.rack_of(problem, &members)?;
        let all = || members.iter().map(|&member| &tenants[member]);
        let bursty = u32::try_from(all().filter(|one| one.bursty).count()).unwrap_or(u32::MAX);
        if let Some(tail) = all().find(|one| one.tail).filter(|_| bursty > 1) {
            return Err(PlaceError::Tail(tail.name.clone()));
        }
        let sizes = Dimension::ALL.map(|dimension| sum.get(dimension));
        let share = |at: usize| match self.each[at] {
            u64::MAX => 0.0,
            each => sizes[at] as f64 / each as f64,
        };
        Ok(Unit {
            sizes,
            shares: std::array::from_fn(share),
            bursty,
            has_tail: all().any(|one| one.tail),
            rack,
            apart: apart.into_keys().collect(),
            first: self.all.len(),
            replicas: lead.replicas.max(1),
            members,
        })
    }

    /// The rack that a member must be in, and therefore all of them; `None` for any.
    fn rack_of(&self, problem: &Problem, members: &[usize]) -> Result<Option<u32>, PlaceError> {
        let mut found: Option<(u32, usize)> = None;
        for &member in members {
            let tenant = &problem.tenants[member];
            let Some(rack) = tenant.rack else { continue };
            let name = tenant.name.clone();
            if rack >= self.racks {
                return Err(PlaceError::NoRack { tenant: name, rack, racks: self.racks });
            }
            if tenant.replicas > 1 && self.racks > 1 {
                let replicas = tenant.replicas;
                return Err(PlaceError::Scope { tenant: name, replicas, rack });
            }
            if let Some((_, other)) = found.replace((rack, member)).filter(|one| one.0 != rack) {
                return Err(PlaceError::Contradiction(problem.tenants[other].name.clone(), name));
            }
        }
        Ok(found.map(|(rack, _)| rack))
    }

    /// Checks that an empty server has room for `members`, and that their replicas fit the pool.
    fn fits_alone(
        &self,
        problem: &Problem,
        members: &[usize],
        sum: &crate::cost::Demand,
    ) -> Result<(), PlaceError> {
        let lead = &problem.tenants[members[0]];
        let others = u32::try_from(members.len() - 1).unwrap_or(u32::MAX);
        for (at, dimension) in Dimension::ALL.into_iter().enumerate() {
            let (wanted, each) = (sum.get(dimension), self.each[at]);
            if wanted > 0 && problem.pool.server.get(dimension).is_none() {
                return Err(PlaceError::Unsaid(lead.name.clone(), dimension));
            }
            if wanted > each {
                let and = if others > 0 { " with those that stay with it" } else { "" };
                let tenant = lead.name.clone();
                let less = wanted - each;
                return Err(PlaceError::TooLarge { tenant, and, dimension, wanted, each, less });
            }
        }
        if others >= self.tenants_max {
            let tenant = lead.name.clone();
            return Err(PlaceError::TooMany { tenant, others, most: self.tenants_max });
        }
        let servers = problem.pool.count.unwrap_or(u32::MAX);
        let (racks, places) = match self.racks {
            1 => (servers, "servers"),
            racks if racks > servers => (servers, "servers"),
            racks => (racks, "racks"),
        };
        if lead.replicas > racks {
            let (tenant, replicas) = (lead.name.clone(), lead.replicas);
            return Err(PlaceError::Replicas { tenant, replicas, racks, places });
        }
        Ok(())
    }
}

/// The last tenant of the chain of `with` that begins at `index`.
fn root(problem: &Problem, index: usize) -> Result<usize, PlaceError> {
    let mut at = index;
    for _ in 0..=problem.tenants.len() {
        match problem.tenants[at].with {
            Some(next) => at = next,
            None => return Ok(at),
        }
    }
    Err(PlaceError::Circle(problem.tenants[index].name.clone()))
}
