//! A bill as JSON.

use planner::cost::{Comparison, Fleet, Knob, Sensitivity, Side, Wedge};
use serde_json::{Value, json};

use super::file::Experiment;
use super::{Answer, key};
use results::json_text;

/// Everything that the table says.
pub(super) fn bill(experiment: &Experiment, answer: &Answer) -> String {
    let Answer { bill, usage, sensitivity, wedge: edges } = answer;
    let usage = usage.iter().map(|one| {
        json!({"dimension": one.dimension.name(), "direct": one.direct, "pooled": one.pooled})
    });
    json_text(&json!({
        "schema": "afar.plan.cost/1",
        "version": env!("CARGO_PKG_VERSION"),
        "currency": experiment.currency,
        "tenants": tenants(experiment, bill),
        "direct_cost": bill.direct_cost().units_f64(),
        "apart_cost": bill.apart_cost().units_f64(),
        "pooled": fleet(&bill.pooled),
        "pooled_cost": bill.pooled_cost().units_f64(),
        "saving": bill.saving(),
        "disaggregate": bill.saving() > 0.0,
        "usage": usage.collect::<Vec<_>>(),
        "sensitivity": sensitivity.iter().map(change).collect::<Vec<_>>(),
        "wedge": wedge(edges),
    }))
}

fn tenants(experiment: &Experiment, bill: &Comparison) -> Vec<Value> {
    let sides = bill.direct.iter().zip(&bill.apart);
    let named = experiment.tenants.iter().zip(sides);
    named
        .map(|(tenant, (direct, apart))| {
            json!({"name": tenant.name, "direct": side(direct), "apart": fleet(apart)})
        })
        .collect()
}

fn fleet(fleet: &Fleet) -> Value {
    json!({"flash": side(&fleet.flash), "compute": side(&fleet.compute)})
}

fn side(side: &Side) -> Value {
    json!({
        "machines": side.machines.as_f64(),
        "binding": side.binding.name(),
        "period": side.period + 1,
        "price": side.price.units_f64(),
        "cost": side.cost.units_f64(),
    })
}

fn change(one: &Sensitivity) -> Value {
    // Money is in millionths, the drop in billionths.
    let unit = match one.knob {
        Knob::FlashPrice | Knob::ComputePrice | Knob::TaxPrice => 1e6,
        Knob::Drop => 1e9,
        Knob::Demand(_) | Knob::Server(_) => 1.0,
    };
    json!({
        "key": key(one.knob),
        "value": one.value as f64 / unit,
        "saving_tenth_less": one.tenth_less,
        "saving_tenth_more": one.tenth_more,
        "verdict_changes_below": one.below.map(|flip| flip.at as f64 / unit),
        "verdict_changes_above": one.above.map(|flip| flip.at as f64 / unit),
    })
}

/// Null where there is no such growth.
pub(super) fn wedge(wedge: &Wedge) -> Value {
    json!({
        "storage_per_compute_low": (wedge.low > 0.0).then_some(wedge.low),
        "storage_per_compute_high": wedge.high.is_finite().then_some(wedge.high),
    })
}
