//! How much memory servers need locally, and how large a memory pool beside them must be.
//!
//! ```text
//! slowdown by local share ─► Curve ─► least share that keeps a program under its bound
//! demand of a server's programs, by period ─► Load (total, least local) ─► Sizing
//! ```
//!
//! Servers are all alike: without a pool each has the largest demand of any server at any time.
//! With a pool a server has less, but never less than its programs must have local; the demand
//! beyond that is in the pool, which must be enough for all of its servers at the same time.
//! Total memory is a convex function of a server's, so bisection finds the best size.

use measure::{Bytes, Money};

/// Measured slowdowns by the share of memory that was local.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// (share, slowdown), ascending by share; the last share is 1.
    points: Vec<(f64, f64)>,
}

/// The memory that a server's programs need at one time, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// In total, local or not.
    pub all: u64,
    /// The part that must be local for every program to stay within its bound; at most `all`.
    pub least: u64,
}

/// The sizes in which memory can be bought, and prices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The memory of a server is a multiple of this.
    pub local_step: Bytes,
    /// The memory of a pool is a multiple of this.
    pub pool_step: Bytes,
    /// Most servers of one pool; `None` for all. Server i is in pool i mod the number of pools.
    pub servers_max: Option<u32>,
    /// Price of a gibibyte in a server.
    pub local: Money,
    /// Price of a gibibyte in a pool.
    pub pool: Money,
    /// Price of a server's connection to a pool.
    pub port: Money,
}

/// Memory to buy, with or without pools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purchase {
    /// Memory of each server.
    pub local: Bytes,
    /// Memory of each pool; empty without pools.
    pub pools: Vec<Bytes>,
    /// Total memory.
    pub bytes: Bytes,
    /// Total cost, with ports.
    pub cost: Money,
}

/// The result of [`size`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizing {
    /// The purchase without pools.
    pub without: Purchase,
    /// The cheapest purchase with pools; `None` if servers cannot have less than without.
    pub with: Option<Purchase>,
    /// The server and the period that need the most local memory.
    pub most: (usize, usize),
    /// The total demand of all servers in the worst period, in bytes.
    pub peak: u128,
    /// The sum of the total demand over all periods, in bytes.
    pub sum: u128,
    /// Whether a pool pays.
    pub verdict: Verdict,
}

/// Whether a pool pays, and if not, why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A pool costs less.
    Disaggregate,
    /// Programs need so much local memory that servers cannot have less.
    Local,
    /// Servers peak at the same time, so a pool saves no memory.
    Peaks,
    /// A pool saves memory, but pool and ports cost more than that.
    Price,
}

/// Why memory cannot be sized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// A curve has no points, a point twice, or one out of range.
    #[error("a curve has shares from 0 to 1, each once, and slowdowns above 0; give at least one")]
    Curve,
    /// No server needs memory.
    #[error("nobody wants memory; give a program some")]
    Nothing,
    /// Servers have different numbers of periods.
    #[error("servers have different numbers of periods; give all of them the same")]
    Periods,
    /// Total memory exceeds 64 bits.
    #[error("the memory of all servers goes beyond 18446744073709551615 bytes; give less")]
    Bytes,
    /// The cost exceeds the largest amount of [`Money`].
    #[error("the cost goes beyond 18446744073709 units of money; use a larger unit")]
    Money,
}

const MILLION: u64 = 1_000_000;
const GIB: u128 = 1 << 30;

impl Curve {
    /// A curve through pairs of the share of memory that is local and the slowdown with that. Adds
    /// a slowdown of 1 for a share of 1 if none was measured.
    ///
    /// # Errors
    /// When there is no point, a share twice, or a number out of range.
    pub fn new(mut points: Vec<(f64, f64)>) -> Result<Self, PoolError> {
        let is_point = |&(share, slowdown): &(f64, f64)| {
            (0.0..=1.0).contains(&share) && slowdown.is_finite() && slowdown > 0.0
        };
        if points.is_empty() || !points.iter().all(is_point) {
            return Err(PoolError::Curve);
        }
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        if points.windows(2).any(|pair| pair[0].0.total_cmp(&pair[1].0).is_eq()) {
            return Err(PoolError::Curve);
        }
        if points.last().is_some_and(|last| last.0 < 1.0) {
            points.push((1.0, 1.0));
        }
        Ok(Self { points })
    }

    /// The smallest share, in millionths, from which on the slowdown is at most 1 + `bound`.
    /// Slowdowns between two points are interpolated linearly, which is pessimistic for a convex
    /// curve. Never below the smallest measured share.
    #[must_use]
    pub fn least_ppm(&self, bound: f64) -> u64 {
        let most = 1.0 + bound;
        let bad = self.points.iter().rposition(|(_, slowdown)| *slowdown > most);
        let share = match bad {
            None => self.points[0].0,
            Some(bad) => match self.points.get(bad + 1) {
                None => 1.0,
                Some((share, slowdown)) => {
                    let (low, high) = self.points[bad];
                    low + (share - low) * (high - most) / (high - slowdown)
                }
            },
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1e6")]
        let ppm = (share * 1e6 - 1e-6).ceil() as u64;
        ppm.min(MILLION)
    }
}

impl Load {
    /// This load plus `bytes`, of which `least_ppm` millionths must be local; `None` on overflow.
    #[must_use]
    pub fn plus(self, bytes: u64, least_ppm: u64) -> Option<Self> {
        let part = u128::from(bytes) * u128::from(least_ppm.min(MILLION));
        let least = u64::try_from(part.div_ceil(u128::from(MILLION))).ok()?;
        Some(Self { all: self.all.checked_add(bytes)?, least: self.least.checked_add(least)? })
    }
}

/// The memory that servers and pools need for `loads`, by server and then by period.
///
/// # Errors
/// When no server needs memory, servers differ in periods, or a number is too large.
pub fn size(loads: &[Vec<Load>], terms: &Terms) -> Result<Sizing, PoolError> {
    let periods = loads.first().map_or(0, Vec::len);
    if loads.iter().any(|server| server.len() != periods) {
        return Err(PoolError::Periods);
    }
    let of = |figure: fn(&Load) -> u64| loads.iter().flatten().map(figure).max().unwrap_or(0);
    let (fullest, most) = (of(|load| load.all), of(|load| load.least));
    if fullest == 0 {
        return Err(PoolError::Nothing);
    }
    let at = |period: usize| loads.iter().map(|server| u128::from(server[period].all)).sum();
    let together: Vec<u128> = (0..periods).map(at).collect();
    let search = Search { loads, terms, step: terms.local_step.get().max(1) };
    let (least, full) = (most.div_ceil(search.step), fullest.div_ceil(search.step));
    let without = search.buy(full, false)?;
    let with = (least < full).then(|| search.best(least, full - 1)).transpose()?;
    let verdict = match &with {
        None => Verdict::Local,
        Some(with) if with.cost < without.cost => Verdict::Disaggregate,
        // Total memory is least if servers have the least that they can.
        Some(_) if search.buy(least, true)?.bytes >= without.bytes => Verdict::Peaks,
        Some(_) => Verdict::Price,
    };
    let position = |server: &Vec<Load>| server.iter().position(|load| load.least == most);
    let found = loads.iter().enumerate().find_map(|(at, server)| Some((at, position(server)?)));
    Ok(Sizing {
        without,
        with,
        most: found.unwrap_or((0, 0)),
        peak: together.iter().copied().max().unwrap_or(0),
        sum: together.iter().sum(),
        verdict,
    })
}

/// The purchase with pools if every server has `local`, rounded up to a step, for a picture.
///
/// # Errors
/// As [`size`].
pub fn purchase(loads: &[Vec<Load>], terms: &Terms, local: Bytes) -> Result<Purchase, PoolError> {
    let search = Search { loads, terms, step: terms.local_step.get().max(1) };
    search.buy(local.get().div_ceil(search.step), true)
}

/// The loads, the prices and the step in which a server's memory varies.
struct Search<'a> {
    loads: &'a [Vec<Load>],
    terms: &'a Terms,
    step: u64,
}

impl Search<'_> {
    /// The cheapest purchase with pools if a server has from `least` to `most` steps; of equally
    /// cheap ones that with the most local memory.
    fn best(&self, least: u64, most: u64) -> Result<Purchase, PoolError> {
        let (mut low, mut high) = (least, most);
        while low < high {
            let middle = low + (high - low) / 2;
            // The cost is convex: it does not fall again once it has risen.
            if self.exact(middle + 1) > self.exact(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.buy(low, true)
    }

    /// The cost if a server has `steps`, in money times bytes per gibibyte, before pools are
    /// rounded and without ports.
    fn exact(&self, steps: u64) -> u128 {
        let local = u128::from(steps) * u128::from(self.step);
        let pools: u128 = self.pools(local).into_iter().sum();
        let price = |money: Money| u128::from(money.micros());
        let servers = (self.loads.len() as u128).saturating_mul(local);
        let cost = servers.saturating_mul(price(self.terms.local));
        cost.saturating_add(pools.saturating_mul(price(self.terms.pool)))
    }

    /// The bytes that each pool needs: the peak of its servers' demand beyond `local` each.
    fn pools(&self, local: u128) -> Vec<u128> {
        let servers = self.loads.len();
        let each = self.terms.servers_max.map_or(servers, |most| most.max(1) as usize);
        let count = servers.div_ceil(each).max(1);
        let periods = self.loads.first().map_or(0, Vec::len);
        let mut wanted = vec![0_u128; periods];
        let of = |pool: usize| {
            wanted.fill(0);
            for server in self.loads.iter().skip(pool).step_by(count) {
                for (sum, load) in wanted.iter_mut().zip(server) {
                    *sum += u128::from(load.all).saturating_sub(local);
                }
            }
            wanted.iter().copied().max().unwrap_or(0)
        };
        (0..count).map(of).collect()
    }

    /// The purchase if a server has `steps`, with pools or without.
    fn buy(&self, steps: u64, is_pooled: bool) -> Result<Purchase, PoolError> {
        let local = u128::from(steps) * u128::from(self.step);
        let step = u128::from(self.terms.pool_step.get().max(1));
        let pools = if is_pooled { self.pools(local) } else { Vec::new() };
        let pools: Vec<u128> = pools.into_iter().map(|bytes| bytes.div_ceil(step) * step).collect();
        let count = self.loads.len() as u128;
        let price = |bytes: u128, each: Money| -> Option<u128> {
            Some(bytes.checked_mul(u128::from(each.micros()))?.div_ceil(GIB))
        };
        let pooled: u128 = pools.iter().sum();
        let port = if is_pooled { u128::from(self.terms.port.micros()) } else { 0 };
        let parts = [price(count * local, self.terms.local), price(pooled, self.terms.pool)];
        let cost = parts.into_iter().try_fold(count * port, |sum, part| sum.checked_add(part?));
        let cost = cost.and_then(|micros| u64::try_from(micros).ok()).ok_or(PoolError::Money)?;
        let bytes =
            |bytes: u128| u64::try_from(bytes).map(Bytes::new).map_err(|_| PoolError::Bytes);
        Ok(Purchase {
            local: bytes(local)?,
            bytes: bytes(count * local + pooled)?,
            pools: pools.into_iter().map(bytes).collect::<Result<_, _>>()?,
            cost: Money::from_micros(cost),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terms(local: u64, pool: u64, port: u64) -> Terms {
        // By the byte, so that sums can be seen.
        let [local, pool] = [local, pool].map(|units| Money::from_units(units << 30));
        let (one, port) = (Bytes::new(1), Money::from_units(port));
        Terms { local_step: one, pool_step: one, servers_max: None, local, pool, port }
    }

    fn loads(servers: &[&[(u64, u64)]]) -> Vec<Vec<Load>> {
        let load = |&(all, least): &(u64, u64)| Load { all, least };
        servers.iter().map(|server| server.iter().map(load).collect()).collect()
    }

    #[test]
    fn the_least_share_is_where_the_curve_passes_the_bound() {
        let curve = Curve::new(vec![(0.5, 1.05), (0.25, 1.15), (0.1, 2.0)]).expect("it is one");
        assert_eq!(curve.least_ppm(0.05), 500_000);
        assert_eq!(curve.least_ppm(0.10), 375_000);
        assert_eq!(curve.least_ppm(1.00), 100_000);
        // Below what was measured nothing is promised, and between 1 and 1.05 there is a line.
        assert_eq!(curve.least_ppm(9.00), 100_000);
        assert_eq!(curve.least_ppm(0.01), 900_000);
        assert_eq!(curve.least_ppm(0.0), 1_000_000);
        // A dip among bad points does not count.
        let noisy = Curve::new(vec![(0.2, 1.01), (0.4, 1.2), (0.6, 1.02)]).expect("it is one");
        assert!(noisy.least_ppm(0.05) > 400_000);
        // All local was measured to be slower by itself.
        let slow = Curve::new(vec![(0.5, 1.3), (1.0, 1.2)]).expect("it is one");
        assert_eq!(slow.least_ppm(0.1), 1_000_000);
        for points in [vec![], vec![(0.5, 0.0)], vec![(1.5, 1.0)], vec![(0.5, 1.0), (0.5, 2.0)]] {
            assert_eq!(Curve::new(points), Err(PoolError::Curve));
        }
        assert_eq!(Curve::new(vec![(f64::NAN, 1.0)]), Err(PoolError::Curve));
    }

    // By hand: two servers that want 100 and 40 by turns and must have four tenths local. Without a
    // pool 200; with one 40 each, and 60 that they take by turns.
    #[test]
    fn opposite_peaks_share_a_pool() {
        let loads = loads(&[&[(100, 40), (40, 16)], &[(40, 16), (100, 40)]]);
        let found = size(&loads, &terms(1, 1, 0)).expect("it can be");
        let with = found.with.expect("it is smaller");
        assert_eq!((found.without.local.get(), found.without.bytes.get()), (100, 200));
        assert_eq!(
            (with.local.get(), with.pools, with.bytes.get()),
            (40, vec![Bytes::new(60)], 140)
        );
        assert_eq!((found.peak, found.sum, found.verdict), (140, 280, Verdict::Disaggregate));
        assert_eq!(found.most, (0, 0));
    }

    #[test]
    fn every_refusal_has_its_reason() {
        let opposite = loads(&[&[(100, 40), (40, 16)], &[(40, 16), (100, 40)]]);
        let of = |loads: &[Vec<Load>], terms| size(loads, &terms).expect("it can be").verdict;
        let together = loads(&[&[(100, 40), (40, 16)], &[(100, 40), (40, 16)]]);
        assert_eq!(of(&together, terms(1, 1, 0)), Verdict::Peaks);
        let all = loads(&[&[(100, 100), (40, 16)], &[(40, 16), (100, 40)]]);
        assert_eq!(of(&all, terms(1, 1, 0)), Verdict::Local);
        // Sixty bytes are saved, and there are two ports.
        assert_eq!(of(&opposite, terms(1, 1, 29)), Verdict::Disaggregate);
        assert_eq!(of(&opposite, terms(1, 1, 31)), Verdict::Price);
        assert_eq!(of(&opposite, terms(10, 30, 0)), Verdict::Price);
    }

    #[test]
    fn what_is_bought_comes_in_steps() {
        let loads = loads(&[&[(100, 40), (40, 16)], &[(40, 16), (100, 40)]]);
        let steps =
            Terms { local_step: Bytes::new(32), pool_step: Bytes::new(50), ..terms(1, 1, 0) };
        let found = size(&loads, &steps).expect("it can be");
        let with = found.with.expect("it is smaller");
        assert_eq!((found.without.local.get(), with.local.get()), (128, 64));
        assert_eq!(with.pools, [Bytes::new(50)]);
        let apart = Terms { servers_max: Some(1), ..terms(1, 1, 0) };
        let found = size(&loads, &apart).expect("it can be");
        assert_eq!(found.with.map(|with| with.pools.len()), Some(2));
        assert_eq!(found.verdict, Verdict::Peaks, "a pool of one server has nobody to share with");
    }

    #[test]
    fn what_goes_too_far_is_an_error() {
        let most = loads(&[&[(u64::MAX, 1)], &[(u64::MAX, 1)]]);
        assert_eq!(size(&most, &terms(0, 0, 0)), Err(PoolError::Bytes));
        assert_eq!(size(&most, &terms(1, 1, 0)), Err(PoolError::Money));
        assert_eq!(size(&[], &terms(1, 1, 0)), Err(PoolError::Nothing));
        assert_eq!(size(&loads(&[&[(1, 1)], &[]]), &terms(1, 1, 0)), Err(PoolError::Periods));
        assert_eq!(Load::default().plus(u64::MAX, 1).and_then(|load| load.plus(1, 0)), None);
    }

    fn any_loads() -> impl Strategy<Value = Vec<Vec<Load>>> {
        let load =
            (0..60_u64, 0..60_u64).prop_map(|(all, least)| Load { all, least: least.min(all) });
        (1..5_usize, 1..5_usize).prop_flat_map(move |(servers, periods)| {
            prop::collection::vec(prop::collection::vec(load.clone(), periods), servers)
        })
    }

    proptest! {
        /// Every size that a server can have is tried, and every pool checked by hand.
        #[test]
        fn nothing_is_cheaper(loads in any_loads(), prices in (1..5_u64, 1..5_u64),
                              group in 1..4_u32) {
            let terms = Terms { servers_max: Some(group), ..terms(prices.0, prices.1, 0) };
            let fullest = loads.iter().flatten().map(|load| load.all).max().unwrap_or(0);
            let least = loads.iter().flatten().map(|load| load.least).max().unwrap_or(0);
            prop_assume!(fullest > 0);
            let found = size(&loads, &terms).expect("it can be");
            prop_assert_eq!(found.with.is_some(), least < fullest);
            if let Some(with) = found.with {
                prop_assert!(with.local.get() >= least && with.local.get() < fullest);
                let count = loads.len().div_ceil(group as usize);
                let at_once = |at: usize, local: u64, period: usize| -> u64 {
                    let inside = loads.iter().skip(at).step_by(count);
                    inside.map(|one| one[period].all.saturating_sub(local)).sum()
                };
                let pool = |at: usize, local: u64| {
                    let all = (0..loads[0].len()).map(|period| at_once(at, local, period));
                    all.max().expect("a period")
                };
                let cost = |local: u64| {
                    let pools: u64 = (0..count).map(|at| pool(at, local)).sum();
                    loads.len() as u64 * local * prices.0 + pools * prices.1
                };
                let cheapest = (least..fullest).map(cost).min().expect("some");
                prop_assert_eq!(with.cost, Money::from_units(cheapest));
            }
        }
    }
}
