use measure::Money;

use super::model::{COMPUTE, FLASH};
use super::{CostError, Demand, Dimension, Machines, Model, Tenant};

/// Machines of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// How many machines.
    pub machines: Machines,
    /// The dimension that needs this many machines.
    pub binding: Dimension,
    /// The period in which it does, from 0.
    pub period: usize,
    /// Price of one machine.
    pub price: Money,
    /// Cost of all machines.
    pub cost: Money,
}

/// Servers for flash and servers for queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fleet {
    /// Servers for flash, at f + δ each.
    pub flash: Side,
    /// Servers for queries, at c each.
    pub compute: Side,
}

/// The ways to serve the same tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Eq. 1 for each tenant, at its peak.
    pub direct: Vec<Side>,
    /// Eq. 2 for each tenant, at its peaks.
    pub apart: Vec<Fleet>,
    /// Eq. 2 for all of them, at their peaks together.
    pub pooled: Fleet,
}

impl Fleet {
    /// The cost of both kinds of servers.
    #[must_use]
    pub fn cost(&self) -> Money {
        // `saturating_add` stops at the largest sum; `compare` rejects a cost that reaches it.
        Money::from_micros(self.flash.cost.micros().saturating_add(self.compute.cost.micros()))
    }
}

impl Comparison {
    /// The cost of all servers if each has flash of its own.
    #[must_use]
    pub fn direct_cost(&self) -> Money {
        total(self.direct.iter().map(|side| side.cost))
    }

    /// The cost if each tenant has pools of its own.
    #[must_use]
    pub fn apart_cost(&self) -> Money {
        total(self.apart.iter().map(Fleet::cost))
    }

    /// The cost if all tenants share the pools.
    #[must_use]
    pub fn pooled_cost(&self) -> Money {
        self.pooled.cost()
    }

    /// The share of the direct cost that pools save; below 0 if they cost more.
    #[must_use]
    pub fn saving(&self) -> f64 {
        1.0 - self.pooled_cost().units_f64() / self.direct_cost().units_f64()
    }
}

/// The sum of `amounts`; at most the largest amount of money.
fn total(amounts: impl Iterator<Item = Money>) -> Money {
    Money::from_micros(amounts.fold(0, |sum, one| sum.saturating_add(one.micros())))
}

/// Sizes and prices every way to serve `tenants`: direct, apart and pooled.
///
/// # Errors
/// When a server lacks a dimension that has demand, nobody has demand, everything is free, or a
/// number is too large.
pub fn compare(model: &Model, tenants: &[Tenant]) -> Result<Comparison, CostError> {
    let mut direct = Vec::new();
    let mut apart = Vec::new();
    for tenant in tenants {
        direct.push(peak(model, &tenant.series, Kind::Direct)?);
        apart.push(fleet(model, &tenant.series)?);
    }
    let together = together(tenants)?;
    if together.iter().all(|demand| *demand == Demand::default()) {
        return Err(CostError::NoDemand);
    }
    let pooled = fleet(model, &together)?;
    let all = Comparison { direct, apart, pooled };
    // A sum that reached the largest amount is wrong, and a saving on nothing means nothing.
    let most = Money::from_micros(u64::MAX);
    let costs = [all.direct_cost(), all.apart_cost(), all.pooled_cost()];
    if costs.contains(&most) {
        return Err(CostError::Money);
    }
    if costs[0] == Money::ZERO {
        return Err(CostError::Free);
    }
    Ok(all)
}

/// The demand of all tenants together, by period.
pub(super) fn together(tenants: &[Tenant]) -> Result<Vec<Demand>, CostError> {
    let periods = tenants.iter().map(|tenant| tenant.series.len()).max().unwrap_or(0);
    let mut sums = vec![Demand::default(); periods];
    for tenant in tenants {
        for (period, sum) in sums.iter_mut().enumerate() {
            let Some(last) = tenant.series.last() else { continue };
            *sum = sum.plus(*tenant.series.get(period).unwrap_or(last))?;
        }
    }
    Ok(sums)
}

/// The demands that decide the cost: for servers with flash each tenant's peak of each dimension,
/// for pools the demand of all tenants together in the periods that matter.
#[derive(Debug, Clone)]
pub(super) struct Peaks {
    pub(super) tenants: Vec<Demand>,
    pub(super) together: Vec<Demand>,
}

impl Peaks {
    /// The peaks of `tenants`. Leaves out periods whose demand exceeds that of another period in no
    /// dimension.
    pub(super) fn of(tenants: &[Tenant]) -> Result<Self, CostError> {
        let most = |tenant: &Tenant| {
            let of = |dimension| tenant.series.iter().map(|one| one.get(dimension)).max();
            let most = |all: Demand, dimension| all.with(dimension, of(dimension).unwrap_or(0));
            Dimension::ALL.into_iter().fold(Demand::default(), most)
        };
        let is_within = |one: &Demand, other: &Demand| {
            Dimension::ALL.into_iter().all(|dimension| one.get(dimension) <= other.get(dimension))
        };
        let mut front: Vec<Demand> = Vec::new();
        for demand in together(tenants)? {
            if !front.iter().any(|other| is_within(&demand, other)) {
                front.retain(|other| !is_within(other, &demand));
                front.push(demand);
            }
        }
        Ok(Self { tenants: tenants.iter().map(most).collect(), together: front })
    }

    /// The share of the direct cost that pools save, as [`Comparison::saving`].
    pub(super) fn saving(&self, model: &Model) -> Result<f64, CostError> {
        let mut direct = Money::ZERO;
        for demand in &self.tenants {
            let side = peak(model, std::slice::from_ref(demand), Kind::Direct)?;
            direct = direct.checked_add(side.cost).ok_or(CostError::Money)?;
        }
        let Fleet { flash, compute } = fleet(model, &self.together)?;
        let pooled = flash.cost.checked_add(compute.cost).ok_or(CostError::Money)?;
        if direct == Money::ZERO {
            return Err(CostError::Free);
        }
        Ok(1.0 - pooled.units_f64() / direct.units_f64())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Direct,
    Flash,
    Compute,
}

/// Servers for flash and for queries that are enough for every period of `series`.
fn fleet(model: &Model, series: &[Demand]) -> Result<Fleet, CostError> {
    let flash = peak(model, series, Kind::Flash)?;
    Ok(Fleet { flash, compute: peak(model, series, Kind::Compute)? })
}

/// Machines of `kind` that are enough for every period of `series`.
fn peak(model: &Model, series: &[Demand], kind: Kind) -> Result<Side, CostError> {
    let mut most = (Machines::ZERO, FLASH[0], 0);
    for (period, demand) in series.iter().enumerate() {
        let (count, binding) = needed(model, demand, kind)?;
        if period == 0 || count > most.0 {
            most = (count, binding, period);
        }
    }
    let price = match kind {
        Kind::Direct => model.price([&model.flash, &model.compute]),
        Kind::Flash => model.price([&model.flash, &model.tax]),
        Kind::Compute => model.price([&model.compute, &super::Part::default()]),
    }?;
    let machines = model.bought(most.0)?;
    let cost = machines.times(price).ok_or(CostError::Money)?;
    Ok(Side { machines, binding: most.1, period: most.2, price, cost })
}

/// How many machines of `kind` a demand needs, not yet rounded, and the dimension that binds.
fn needed(model: &Model, demand: &Demand, kind: Kind) -> Result<(Machines, Dimension), CostError> {
    match kind {
        Kind::Direct => {
            let flash = model.machines(demand, &FLASH, false)?;
            let compute = model.machines(demand, &COMPUTE, false)?;
            // If both need the same number, the processors bind: more flash would not help.
            Ok(if flash.0 > compute.0 { flash } else { compute })
        }
        Kind::Flash => {
            let [capacity, iops] = FLASH;
            model.machines(demand, &[capacity, iops, Dimension::Traffic], true)
        }
        Kind::Compute => {
            let mut demand = *demand;
            if model.server.get(Dimension::Network).is_some() {
                let traffic = demand.get(Dimension::Traffic);
                let more = Demand::default().with(Dimension::Network, traffic);
                demand = demand.plus(more)?;
            }
            model.machines(&demand, &COMPUTE, true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Facility, example, grow};
    use super::*;

    fn units(units: u64) -> Money {
        Money::from_units(units)
    }

    /// Klimovic et al. §4.3, the example calculation; the paper prints the saving as 14 %.
    #[test]
    fn the_papers_example() {
        let (model, tenants) = example();
        let all = compare(&model, &tenants).expect("it can be counted");
        assert_eq!(all.direct_cost(), units(960_000));
        assert_eq!(all.pooled_cost(), units(812_500));
        assert_eq!(all.apart_cost(), all.pooled_cost(), "one tenant has nobody to share with");
        assert_eq!(format!("{:.2}", all.saving() * 100.0), "15.36");
        assert_eq!(all.direct[0].binding, Dimension::Qps);
        assert_eq!(all.direct[0].machines.to_string(), "200");
        assert_eq!(all.pooled.flash.machines.to_string(), "83.33");
        assert_eq!(all.pooled.flash.binding, Dimension::Capacity);
        assert_eq!(all.pooled.compute.machines.to_string(), "250");
    }

    /// Guz et al. 2017, Fig. 10: NVMe-oF within 2 % of local, iSCSI 40 % below.
    #[test]
    fn other_drops_other_savings() {
        for (drop_ppb, saving) in
            [(20_000_000, "26.844"), (400_000_000, "-5.469"), (200_000_000, "15.365")]
        {
            let (mut model, tenants) = example();
            model.drop_ppb = drop_ppb;
            let all = compare(&model, &tenants).expect("it can be counted");
            assert_eq!(format!("{:.3}", all.saving() * 100.0), saving, "{drop_ppb}");
        }
    }

    #[test]
    fn whole_machines_and_spares() {
        let (mut model, tenants) = example();
        model.whole = true;
        let all = compare(&model, &tenants).expect("it can be counted");
        assert_eq!(all.pooled.flash.machines.to_string(), "84");
        assert_eq!(all.pooled_cost(), units(84 * 2550 + 250 * 2400));
        model.spares = 1;
        let all = compare(&model, &tenants).expect("it can be counted");
        assert_eq!(all.direct_cost(), units(201 * 4800));
        assert_eq!(all.pooled_cost(), units(85 * 2550 + 251 * 2400));
    }

    // Demand as multiples of what 100 servers have.
    fn hundreds(storage: u64, compute: u64) -> Demand {
        let (model, _) = example();
        let of = |dimension| model.server.get(dimension).expect("it is said") * 100;
        let capacity = of(Dimension::Capacity) * storage;
        let qps = of(Dimension::Qps) * compute;
        Demand::default().with(Dimension::Capacity, capacity).with(Dimension::Qps, qps)
    }

    #[test]
    fn pools_need_the_peak_of_the_sum() {
        let (model, _) = example();
        let tenant = |name: &str, series| Tenant { name: name.to_owned(), series };
        let tenants = [
            tenant("day", vec![hundreds(2, 1), hundreds(1, 2)]),
            tenant("night", vec![hundreds(1, 2), hundreds(2, 1)]),
        ];
        let all = compare(&model, &tenants).expect("it can be counted");
        assert_eq!(all.direct_cost(), units(1_920_000));
        assert_eq!(all.apart_cost(), units(2_220_000));
        assert_eq!(all.pooled_cost(), units(1_665_000));
    }

    #[test]
    fn a_series_that_ends_goes_on_as_it_was() {
        let (model, _) = example();
        let growing = grow(hundreds(1, 1), &[(Dimension::Qps, 2_000_000)], 3).expect("small");
        let tenants = [
            Tenant { name: "a".to_owned(), series: growing },
            Tenant { name: "b".to_owned(), series: vec![hundreds(1, 1)] },
        ];
        let all = compare(&model, &tenants).expect("it can be counted");
        assert_eq!((all.direct[0].machines.to_string(), all.direct[0].period), ("400".into(), 2));
        assert_eq!(all.pooled.compute.machines.to_string(), "625");
    }

    #[test]
    fn peaks_are_enough_for_the_saving() {
        let mut draw = workload::Draw::new(5);
        for round in 0..100 {
            let (mut model, _) = example();
            (model.whole, model.spares) = (round % 2 == 0, round % 3);
            for dimension in Dimension::ALL {
                model.server = model.server.with(dimension, 1 + draw.below(50));
            }
            let tenants: Vec<Tenant> = (0..=draw.below(4))
                .map(|_| {
                    let mut one =
                        |demand: Demand, dimension| demand.with(dimension, 1 + draw.below(1_000));
                    let mut demand =
                        || Dimension::ALL.into_iter().fold(Demand::default(), &mut one);
                    let series = vec![demand(), demand(), demand(), demand()];
                    Tenant { name: String::new(), series }
                })
                .collect();
            let all = compare(&model, &tenants).expect("it can be counted");
            let peaks = Peaks::of(&tenants).expect("it can be counted");
            assert_eq!(peaks.saving(&model), Ok(all.saving()), "{round}");
        }
    }

    #[test]
    fn power_and_space_are_part_of_the_price() {
        let (mut model, tenants) = example();
        model.compute.power_watts = 200;
        model.compute.space_milliunits = 500;
        model.facility = Facility { per_watt: units(3), per_unit: units(100) };
        let all = compare(&model, &tenants).expect("it can be counted");
        assert_eq!(all.pooled.compute.price, units(2400 + 600 + 50));
        assert_eq!(all.pooled.flash.price, units(2550));
    }

    #[test]
    fn remote_flash_takes_some_of_the_network() {
        let (mut model, mut tenants) = example();
        model.server =
            model.server.with(Dimension::Network, 10_000).with(Dimension::Traffic, 10_000);
        tenants[0].series[0] = tenants[0].series[0]
            .with(Dimension::Network, 1_500_000)
            .with(Dimension::Traffic, 1_200_000);
        let all = compare(&model, &tenants).expect("it can be counted");
        assert_eq!(
            (all.direct[0].binding, all.direct[0].machines.to_string().as_str()),
            (Dimension::Qps, "200")
        );
        let Fleet { flash, compute } = all.pooled;
        assert_eq!(
            (flash.binding, flash.machines.to_string().as_str()),
            (Dimension::Traffic, "120")
        );
        assert_eq!(
            (compute.binding, compute.machines.to_string().as_str()),
            (Dimension::Network, "270")
        );
    }

    #[test]
    fn what_cannot_be_counted_is_an_error() {
        let (model, mut tenants) = example();
        let with = |dimension, amount| {
            let (model, mut tenants) = example();
            tenants[0].series[0] = tenants[0].series[0].with(dimension, amount);
            compare(&model, &tenants)
        };
        assert_eq!(with(Dimension::Qps, u64::MAX), Err(CostError::Money));
        assert_eq!(with(Dimension::Memory, 1), Err(CostError::Unsaid(Dimension::Memory)));
        let twice = [tenants.remove(0), example().1.remove(0)].map(|mut tenant| {
            tenant.series[0] = tenant.series[0].with(Dimension::Capacity, u64::MAX - 1);
            tenant
        });
        assert_eq!(compare(&model, &twice), Err(CostError::Amount(Dimension::Capacity)));
        assert_eq!(compare(&model, &[]), Err(CostError::NoDemand));
        let mut none = model.clone();
        none.server = none.server.with(Dimension::Qps, 0);
        assert_eq!(compare(&none, &example().1), Err(CostError::Nothing(Dimension::Qps)));
    }
}
