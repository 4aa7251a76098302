//! A bill as bars, each divided into its parts.

use planner::cost::{Fleet, Side};

use super::Answer;
use super::file::Experiment;
use crate::picture::{Bar, Bars, bars};

/// Which parts of a server a machine has.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Direct,
    Flash,
    Compute,
}

/// The picture with bars for servers with flash, pools for each tenant, and pools for all.
pub(super) fn draw(experiment: &Experiment, answer: &Answer) -> String {
    let bill = &answer.bill;
    let pools = |fleets: &[Fleet]| {
        let both = |fleet: &Fleet| {
            let flash = parts(experiment, Kind::Flash, &fleet.flash);
            sum([flash, parts(experiment, Kind::Compute, &fleet.compute)])
        };
        sum(fleets.iter().map(both))
    };
    let direct = sum(bill.direct.iter().map(|side| parts(experiment, Kind::Direct, side)));
    let mut all = vec![("servers with flash", direct, bill.direct_cost())];
    if bill.apart.len() > 1 {
        all.push(("pools for each tenant", pools(&bill.apart), bill.apart_cost()));
    }
    let pooled = pools(std::slice::from_ref(&bill.pooled));
    all.push(("disaggregated", pooled, bill.pooled_cost()));
    let cheapest = all.iter().map(|(_, _, cost)| *cost).min();
    let bar = |(name, parts, cost): (&str, [f64; 4], _)| Bar {
        name: name.to_owned(),
        parts: parts.to_vec(),
        label: format!("{}{cost}", experiment.currency),
        is_chosen: Some(cost) == cheapest,
    };
    bars(&Bars {
        title: "What flash in servers and disaggregated flash cost",
        unit: if experiment.currency.is_empty() { "cost" } else { &experiment.currency },
        parts: vec!["flash", "servers", "tax of flash servers", "power and space"],
        bars: all.into_iter().map(bar).collect(),
        note: "▸ is cheapest",
    })
}

/// The costs of a side: flash, servers, tax, and the rest, for power and space.
fn parts(experiment: &Experiment, kind: Kind, side: &Side) -> [f64; 4] {
    let model = &experiment.model;
    let (flash, compute, tax) = match kind {
        Kind::Direct => (1.0, 1.0, 0.0),
        Kind::Flash => (1.0, 0.0, 1.0),
        Kind::Compute => (0.0, 1.0, 0.0),
    };
    let count = side.machines.as_f64();
    let of = |share: f64, part: &planner::cost::Part| share * count * part.price.units_f64();
    let bought = [of(flash, &model.flash), of(compute, &model.compute), of(tax, &model.tax)];
    let rest = side.cost.units_f64() - bought.iter().sum::<f64>();
    let [flash, compute, tax] = bought;
    [flash, compute, tax, rest.max(0.0)]
}

/// The sums part by part.
fn sum(all: impl IntoIterator<Item = [f64; 4]>) -> [f64; 4] {
    let plus = |sum: [f64; 4], one: [f64; 4]| std::array::from_fn(|at| sum[at] + one[at]);
    all.into_iter().fold([0.0; 4], plus)
}
