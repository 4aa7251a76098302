//! A bill as readable text.

use console::layout::{NONE, row, table};
use measure::Money;
use planner::cost::{Comparison, Dimension, Flip, Knob, Sensitivity, Side, Wedge};

use super::file::Experiment;
use super::{Answer, key};
use crate::amounts::short_amount;

/// The readable bill: costs, verdict, use, and what changes the verdict.
pub(super) fn bill(experiment: &Experiment, answer: &Answer) -> String {
    let bill = &answer.bill;
    let mut text = table(&rows(experiment, bill));
    text += "\n";
    text += &verdict(experiment, bill);
    text += &used(answer);
    text += "\n";
    text += &table(&changes(experiment, &answer.sensitivity));
    text += "\n";
    text += &wedge(&answer.wedge);
    if experiment.is_papers {
        text += PAPERS;
    }
    text
}

/// The most tenants that are shown one by one.
const SHOWN: usize = 20;

const PAPERS: &str = "
This is the example of Klimovic et al. 2016, §4.3; the paper rounds its saving to 14 %, its own
equations give 15.36 %. Begin a file of your own with afar plan cost --print.
";

/// A row for the servers of each tenant, for each pool, and for totals.
fn rows(experiment: &Experiment, bill: &Comparison) -> Vec<Vec<String>> {
    let money = |amount: Money| format!("{}{amount}", experiment.currency);
    let mut rows = vec![row(["", "machines", "for", "in period", "each", "cost"])];
    let side = |name: String, side: &Side| {
        let machines = side.machines.to_string();
        let (binding, period) = (side.binding.to_string(), (side.period + 1).to_string());
        vec![name, machines, binding, period, money(side.price), money(side.cost)]
    };
    let total = |name: &str, amount| {
        let mut cells = row([name, "", "", "", ""]);
        cells.push(money(amount));
        cells
    };
    let is_one = bill.direct.len() == 1;
    for (direct, tenant) in bill.direct.iter().zip(&experiment.tenants).take(SHOWN) {
        let of = if is_one { String::new() } else { format!(" of {}", tenant.name) };
        rows.push(side(format!("servers with flash{of}"), direct));
    }
    if bill.direct.len() > SHOWN {
        rows.push(row(["and so on for others", "", "", "", "", ""]));
    }
    if !is_one {
        rows.push(total("servers with flash", bill.direct_cost()));
    }
    rows.push(side("pool of flash".to_owned(), &bill.pooled.flash));
    rows.push(side("pool of servers".to_owned(), &bill.pooled.compute));
    rows.push(total("disaggregated", bill.pooled_cost()));
    if !is_one {
        rows.push(total("the same, with pools for each tenant", bill.apart_cost()));
    }
    if experiment.tenants.iter().all(|tenant| tenant.series.len() == 1) {
        rows.iter_mut().for_each(|row| drop(row.remove(3)));
    }
    rows
}

/// Whether to disaggregate, in a sentence.
fn verdict(experiment: &Experiment, bill: &Comparison) -> String {
    let saving = bill.saving() * 100.0;
    let direct = bill.direct_cost();
    let apart = bill.direct_cost().micros().abs_diff(bill.pooled_cost().micros());
    let amount = format!("{}{}", experiment.currency, Money::from_micros(apart));
    if saving > 0.0 {
        return format!(
            "Disaggregate: it saves {amount} of {}{direct}, {saving:.2} %.\n",
            experiment.currency
        );
    }
    let name = |side: &Side| side.binding;
    let why = match bill.direct.iter().find(|side| name(side) == Dimension::Qps) {
        _ if saving == 0.0 => {
            "both cost the same, and disaggregation is more to operate".to_owned()
        }
        Some(_) => "too little flash lies idle to pay for the network's part".to_owned(),
        None => "too little compute lies idle to pay for the network's part".to_owned(),
    };
    format!("Do not disaggregate: it costs {amount} more, {:.2} %; {why}.\n", -saving)
}

/// How much of what is bought is used, in sentences.
fn used(answer: &Answer) -> String {
    let mut text = String::new();
    for one in &answer.usage {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        text += &format!(
            "Of the {} bought, {} is used at the peak with flash in servers, {} with pools.\n",
            one.dimension,
            percent(one.direct),
            percent(one.pooled)
        );
    }
    text
}

/// A row for each value, with the savings beside it and where the verdict changes.
fn changes(experiment: &Experiment, all: &[Sensitivity]) -> Vec<Vec<String>> {
    let mut rows = vec![row([
        "what changes the verdict",
        "now",
        "saving at -10 %",
        "at +10 %",
        "verdict changes at",
    ])];
    for one in all {
        let saving = |saving: Option<f64>| {
            saving.map_or_else(|| NONE.to_owned(), |saving| format!("{:.1} %", saving * 100.0))
        };
        let shown = |value| value_text(experiment, one.knob, value);
        let flips = [("below", one.below), ("above", one.above)];
        let flips = flips.into_iter().filter_map(|(side, flip): (_, Option<Flip>)| {
            flip.map(|flip| format!("{side} {}", shown(flip.at)))
        });
        let flips: Vec<String> = flips.collect();
        rows.push(vec![
            key(one.knob),
            shown(one.value),
            saving(one.tenth_less),
            saving(one.tenth_more),
            if flips.is_empty() { NONE.to_owned() } else { flips.join(", ") },
        ]);
    }
    rows
}

/// A value of a knob with its unit.
fn value_text(experiment: &Experiment, knob: Knob, value: u64) -> String {
    match knob {
        Knob::FlashPrice | Knob::ComputePrice | Knob::TaxPrice => {
            format!("{}{}", experiment.currency, Money::from_micros(value))
        }
        Knob::Drop => percent(value),
        Knob::Demand(dimension) | Knob::Server(dimension) => short_amount(dimension, value),
    }
}

/// Billionths in percent.
fn percent(ppb: u64) -> String {
    let text = format!("{:.3}", ppb as f64 / 1e7);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A sentence on the growth from which pools pay, from a deployment in balance.
pub(super) fn wedge(wedge: &Wedge) -> String {
    const FROM: &str = "From servers whose flash and processors are both fully used, \
                        disaggregation pays once\n";
    let storage = wedge.high;
    let compute = 1.0 / wedge.low;
    let storage_pays = format!("storage has grown {storage:.2}x as much as compute");
    let compute_pays = format!("compute has grown {compute:.2}x as much as storage");
    match (storage.is_finite(), compute.is_finite()) {
        (true, true) => format!("{FROM}{storage_pays}, or {compute:.2}x the other way round.\n"),
        (true, false) => {
            format!("{FROM}{storage_pays}; faster growth of compute never makes it pay.\n")
        }
        (false, true) => {
            format!("{FROM}{compute_pays}; faster growth of storage never makes it pay.\n")
        }
        (false, false) => "However storage and compute grow, disaggregation never pays: a flash \
            server costs as\nmuch as another, and remote flash takes too much of its users.\n"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wedges_are_sentences() {
        let text = |low, high| wedge(&Wedge { low, high });
        assert!(
            text(0.70588, 4.0 / 3.0)
                .contains("1.33x as much as compute, or 1.42x the other way round")
        );
        assert!(text(0.0, 2.0).contains("compute never makes it pay"));
        assert!(text(0.5, f64::INFINITY).contains("compute has grown 2.00x as much as storage;"));
        assert!(text(0.0, f64::INFINITY).contains("never pays"));
    }

    #[test]
    fn drops_have_their_digits() {
        assert_eq!(percent(357_859_532), "35.786 %");
        assert_eq!(percent(200_000_000), "20 %");
    }
}
