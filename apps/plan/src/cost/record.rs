//! A bill as a record.

use planner::cost::{Comparison, Fleet, Knob, Sensitivity, Side, Wedge};
use results::plan::cost as record;

use super::file::Experiment;
use super::{Answer, key};

/// The record of a bill.
pub(super) fn bill(experiment: &Experiment, answer: &Answer) -> record::Bill {
    let Answer { bill, usage, sensitivity, wedge: edges } = answer;
    let usage = usage.iter().map(|one| record::Usage {
        dimension: one.dimension.name().to_owned(),
        direct: one.direct,
        pooled: one.pooled,
    });
    record::Bill {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        currency: experiment.currency.clone(),
        tenants: tenants(experiment, bill),
        direct_cost: bill.direct_cost().units_f64(),
        apart_cost: bill.apart_cost().units_f64(),
        pooled: pools(&bill.pooled),
        pooled_cost: bill.pooled_cost().units_f64(),
        saving: bill.saving(),
        disaggregate: bill.saving() > 0.0,
        usage: usage.collect(),
        sensitivity: sensitivity.iter().map(change).collect(),
        wedge: wedge(edges),
    }
}

/// Each tenant with its costs, with flash in servers and with pools of its own.
fn tenants(experiment: &Experiment, bill: &Comparison) -> Vec<record::Tenant> {
    let sides = bill.direct.iter().zip(&bill.apart);
    let named = experiment.tenants.iter().zip(sides);
    named
        .map(|(tenant, (direct, apart))| record::Tenant {
            name: tenant.name.clone(),
            direct: side(direct),
            apart: pools(apart),
        })
        .collect()
}

/// Pools of flash and of servers as the record has them.
fn pools(fleet: &Fleet) -> record::Pools {
    record::Pools { flash: side(&fleet.flash), compute: side(&fleet.compute) }
}

/// A side of the bill as the record has it; periods count from 1.
fn side(side: &Side) -> record::Side {
    record::Side {
        machines: side.machines.as_f64(),
        binding: side.binding.name().to_owned(),
        period: side.period as u64 + 1,
        price: side.price.units_f64(),
        cost: side.cost.units_f64(),
    }
}

/// A sensitivity as the record has it, in the units of the file.
fn change(one: &Sensitivity) -> record::Sensitivity {
    // Money is in millionths, the drop in billionths.
    let unit = match one.knob {
        Knob::FlashPrice | Knob::ComputePrice | Knob::TaxPrice => 1e6,
        Knob::Drop => 1e9,
        Knob::Demand(_) | Knob::Server(_) => 1.0,
    };
    record::Sensitivity {
        key: key(one.knob),
        value: one.value as f64 / unit,
        saving_tenth_less: one.tenth_less,
        saving_tenth_more: one.tenth_more,
        verdict_changes_below: one.below.map(|flip| flip.at as f64 / unit),
        verdict_changes_above: one.above.map(|flip| flip.at as f64 / unit),
    }
}

/// The growth from which pools pay; `None` where no such growth exists.
pub(super) fn wedge(wedge: &Wedge) -> record::Wedge {
    record::Wedge {
        storage_per_compute_low: (wedge.low > 0.0).then_some(wedge.low),
        storage_per_compute_high: wedge.high.is_finite().then_some(wedge.high),
    }
}
