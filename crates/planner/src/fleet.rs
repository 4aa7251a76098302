//! Fleets: the demand of many tenants hour by hour, from traces or made up.
//!
//! ```text
//! trace ─► Stay (tenant, server, hours, wants) ┐
//! seed ─► tenants with days of their own ──────┴► Fleet ─► by hour, by tenant, by server
//! ```
//!
//! A made-up fleet has published marginals. Sizes and requests are those of
//! [`crate::place::fleet`]. A day is that of the key-value store ETC in Atikoglu et al., Workload
//! Analysis of a Large-Scale Key-Value Store, SIGMETRICS 2012: the means of the laws that they fit
//! to the gaps between requests of each hour. Requests, traffic and queries follow the day,
//! capacity does not, and half of the memory does. That half and the time zones have no source.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use workload::Draw;

use crate::cost::{Demand, Dimension, Server};
use crate::place;

/// A tenant's demand from one hour to another, on one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stay {
    /// The tenant, as an index of [`Fleet::tenants`].
    pub tenant: u32,
    /// The server, as an index of [`Fleet::servers`]; `None` if it is not known.
    pub server: Option<u32>,
    /// The first hour.
    pub from: u32,
    /// The hour after the last.
    pub to: u32,
    /// The demand at its peak.
    pub wants: Demand,
    /// Hours by which its day is late; `None` if its demand is the same all day.
    pub day: Option<u8>,
}

/// Tenants, servers and stays over a number of hours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fleet {
    /// Names of tenants.
    pub tenants: Vec<String>,
    /// Names of servers.
    pub servers: Vec<String>,
    /// All stays, in no order.
    pub stays: Vec<Stay>,
    /// How many hours the fleet covers; every stay ends by then.
    pub hours: u32,
}

/// Requests of each hour from midnight on (UTC), in thousandths of those of the busiest hour; noon
/// is interpolated between its neighbours.
const DAY: [u64; 24] = [
    860, 896, 915, 906, 853, 775, 713, 678, 655, 659, 697, 763, 828, 901, 948, 983, 985, 1000, 990,
    981, 970, 935, 899, 867,
];
const THOUSAND: u64 = 1_000;

impl Stay {
    /// Its demand in `hour`; nothing before and after the stay.
    #[must_use]
    pub fn at(&self, hour: u32) -> Demand {
        if !(self.from..self.to).contains(&hour) {
            return Demand::default();
        }
        let Some(late) = self.day else { return self.wants };
        let now = DAY[(hour as usize + DAY.len() - usize::from(late) % DAY.len()) % DAY.len()];
        let mut wants = self.wants;
        for dimension in Dimension::ALL {
            let part = match dimension {
                Dimension::Capacity => THOUSAND,
                Dimension::Memory => u64::midpoint(THOUSAND, now),
                _ => now,
            };
            // `part` is at most 1000, so the product cannot overflow.
            wants = wants.times(dimension, part, THOUSAND).unwrap_or(wants);
        }
        wants
    }
}

impl Fleet {
    /// A made-up fleet of `count` tenants for `hours` hours, on servers of one kind; the same for
    /// the same seed.
    #[must_use]
    pub fn made_up(count: usize, hours: u32, seed: u64, server: &Server) -> Self {
        // A generator of its own, so that tenants are those that `place::fleet` draws from `seed`.
        let mut draw = Draw::new(seed ^ 0x6461_7973);
        let mut fleet = Self { hours, ..Self::default() };
        for guest in place::fleet(count, seed) {
            let tenant = u32::try_from(fleet.tenants.len()).unwrap_or(u32::MAX);
            fleet.tenants.push(guest.name);
            // Three of five tenants are in the same time zone.
            let late = if draw.below(5) < 3 { 0 } else { draw.below(24) };
            let day = Some(u8::try_from(late).unwrap_or(0));
            let wants = guest.wants;
            fleet.stays.push(Stay { tenant, server: None, from: 0, to: hours, wants, day });
        }
        fleet.settle(server);
        fleet
    }

    /// Assigns a new server to every stay that has none, in the order of their first hours: the
    /// next one, from the last assigned on, that has room for the stay's peak (next fit).
    pub fn settle(&mut self, server: &Server) {
        let mut order: Vec<usize> = (0..self.stays.len()).collect();
        order.retain(|at| self.stays[*at].server.is_none());
        order.sort_by_key(|at| (self.stays[*at].from, *at));
        let first = self.servers.len();
        let mut used: Vec<Demand> = Vec::new();
        let mut leaving: BinaryHeap<Reverse<(u32, usize, usize)>> = BinaryHeap::new();
        let mut next = 0;
        for at in order {
            let stay = self.stays[at];
            while let Some(&Reverse((to, other, place))) = leaving.peek()
                && to <= stay.from
            {
                used[place] = minus(used[place], self.stays[other].wants);
                leaving.pop();
            }
            let found = (0..used.len()).map(|step| (next + step) % used.len());
            let found = found.take(LOOKS).find(|place| fits(server, used[*place], stay.wants));
            let place = found.unwrap_or_else(|| {
                used.push(Demand::default());
                used.len() - 1
            });
            next = place;
            used[place] = used[place].plus(stay.wants).unwrap_or(used[place]);
            leaving.push(Reverse((stay.to, at, place)));
            self.stays[at].server = u32::try_from(first + place).ok();
        }
        let count = used.len();
        self.servers.extend((0..count).map(|number| format!("server-{}", first + number)));
    }

    /// The total demand by hour, as amounts by dimension.
    #[must_use]
    pub fn hourly(&self) -> Vec<[u128; 6]> {
        let mut sums = vec![[0_u128; 6]; self.hours as usize];
        for stay in &self.stays {
            for hour in stay.from..stay.to.min(self.hours) {
                let wants = stay.at(hour);
                for dimension in Dimension::ALL {
                    let sum = &mut sums[hour as usize][dimension as usize];
                    *sum += u128::from(wants.get(dimension));
                }
            }
        }
        sums
    }

    /// The demand of each tenant by hour, over all its stays.
    ///
    /// # Errors
    /// When an amount is beyond 2⁶⁴.
    pub fn by_tenant(&self) -> Result<Vec<Vec<Demand>>, crate::cost::CostError> {
        let mut all = vec![vec![Demand::default(); self.hours as usize]; self.tenants.len()];
        for stay in &self.stays {
            for hour in stay.from..stay.to.min(self.hours) {
                let sum = &mut all[stay.tenant as usize][hour as usize];
                *sum = sum.plus(stay.at(hour))?;
            }
        }
        Ok(all)
    }

    /// Bytes of memory by (server, hour, tenant); stays without a server are left out.
    #[must_use]
    pub fn memory(&self) -> BTreeMap<(u32, u32, u32), u64> {
        let mut all = BTreeMap::new();
        for stay in &self.stays {
            let Some(server) = stay.server else { continue };
            for hour in stay.from..stay.to.min(self.hours) {
                let sum: &mut u64 = all.entry((server, hour, stay.tenant)).or_default();
                *sum = sum.saturating_add(stay.at(hour).get(Dimension::Memory));
            }
        }
        all
    }

    /// The share of the sum of all stays' peaks that belongs to the largest tenth of stays.
    #[must_use]
    pub fn tenth(&self, dimension: Dimension) -> f64 {
        let mut sizes: Vec<u64> = self.stays.iter().map(|one| one.wants.get(dimension)).collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        let sum = |sizes: &[u64]| sizes.iter().map(|size| *size as f64).sum::<f64>();
        let all = sum(&sizes);
        if all > 0.0 { sum(&sizes[..sizes.len().div_ceil(10)]) / all } else { 0.0 }
    }
}

/// The hour in which the demand for some dimension needs the most servers.
#[must_use]
pub fn busiest(hourly: &[[u128; 6]], server: &Server) -> u32 {
    let share = |sums: &[u128; 6]| -> f64 {
        let of = |dimension: Dimension| {
            let each = server.get(dimension)?;
            Some(sums[dimension as usize] as f64 / each as f64)
        };
        Dimension::ALL.into_iter().filter_map(of).fold(0.0, f64::max)
    };
    let mut best = (0.0, 0);
    for (hour, sums) in (0..).zip(hourly) {
        let share = share(sums);
        if share > best.0 {
            best = (share, hour);
        }
    }
    best.1
}

/// How many servers are tried before a new one is opened.
const LOOKS: usize = 256;

/// Whether a server with `used` taken has room for `wants`.
fn fits(server: &Server, used: Demand, wants: Demand) -> bool {
    Dimension::ALL.into_iter().all(|dimension| {
        let sum = used.get(dimension).checked_add(wants.get(dimension));
        server.get(dimension).is_none_or(|each| sum.is_some_and(|sum| sum <= each))
    })
}

/// `from` minus `other`, dimension by dimension, at least 0.
fn minus(from: Demand, other: Demand) -> Demand {
    Dimension::ALL.into_iter().fold(from, |left, dimension| {
        let rest = left.get(dimension).saturating_sub(other.get(dimension));
        left.with(dimension, rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_the_published_hours() {
        let wants = Demand::default().with(Dimension::Qps, 1_000).with(Dimension::Capacity, 5);
        let wants = wants.with(Dimension::Memory, 1_000);
        let stay = Stay { tenant: 0, server: None, from: 0, to: 48, wants, day: Some(0) };
        // The quietest hour has two thirds of the busiest one's requests.
        assert_eq!(stay.at(17), wants);
        assert_eq!(stay.at(8).get(Dimension::Qps), 655);
        assert_eq!(stay.at(32), stay.at(8));
        assert_eq!(stay.at(8).get(Dimension::Memory), 827);
        assert_eq!(stay.at(8).get(Dimension::Capacity), 5);
        assert_eq!(Stay { day: Some(9), ..stay }.at(17), stay.at(8));
        assert_eq!(stay.at(48), Demand::default());
        assert_eq!(Stay { day: None, ..stay }.at(8), wants);
    }

    #[test]
    fn made_up_fleets_follow_from_the_seed_and_fit() {
        let server = place::fleet_server();
        let fleet = Fleet::made_up(300, 24, 1, &server);
        assert_eq!(fleet, Fleet::made_up(300, 24, 1, &server));
        assert_ne!(fleet.stays, Fleet::made_up(300, 24, 2, &server).stays);
        let mut used = vec![Demand::default(); fleet.servers.len()];
        for stay in &fleet.stays {
            let server = stay.server.expect("all have one") as usize;
            used[server] = used[server].plus(stay.wants).expect("small");
        }
        assert!(used.iter().all(|used| fits(&server, *used, Demand::default())));
        assert!((0.4..0.6).contains(&fleet.tenth(Dimension::Capacity)), "a heavy tail");
        let hours = fleet.hourly();
        let qps = |hour: usize| hours[hour][Dimension::Qps as usize];
        assert!(qps(17) > qps(8) && fleet.by_tenant().expect("small").len() == 300);
    }

    #[test]
    fn who_leaves_makes_room() {
        let wants = Demand::default().with(Dimension::Memory, 6);
        let stay = |from, to| Stay { tenant: 0, server: None, from, to, wants, day: None };
        let stays = vec![stay(0, 4), stay(2, 6), stay(4, 8)];
        let mut fleet =
            Fleet { tenants: vec!["t".to_owned()], stays, hours: 8, ..Fleet::default() };
        let server = Server::default().with(Dimension::Memory, 10);
        fleet.settle(&server);
        assert_eq!(fleet.servers.len(), 2);
        assert_eq!(busiest(&fleet.hourly(), &server), 2);
        let memory = fleet.memory();
        assert_eq!(memory.values().sum::<u64>(), 12 * 6);
        assert_eq!(memory.get(&(0, 0, 0)), Some(&6));
    }
}
