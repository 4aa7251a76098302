//! A bill: servers with flash of their own against pools, and where growth makes pools pay.

use chart::{Bar, Bars, BarsScale, Cell, Heat, short};
use results::plan::cost::{Bill, Pools, Sensitivity, Side, Wedge};
use results::plan::cost_map::CostMap;
use serde_json::Value;

use crate::context::Context;
use crate::section::{Chart, Figure, Picture, Section, Table};
use crate::words::{exact, percent};

/// The section of a record `afar.plan.cost`.
pub(crate) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let bill: Bill = results::read_body(value)?;
    let currency = &bill.currency;
    let money = |cost: f64| format!("{} {currency}", exact(cost.round()));
    let mut answer = vec![match bill.disaggregate {
        true => format!(
            "Pools of flash and of servers pay: they cost {} where servers with flash of their own \
             cost {}, {} less.",
            money(bill.pooled_cost),
            money(bill.direct_cost),
            percent(bill.saving)
        ),
        false => format!(
            "Do not disaggregate: pools of flash and of servers cost {}, servers with flash of \
             their own {}.",
            money(bill.pooled_cost),
            money(bill.direct_cost)
        ),
    }];
    answer.push(format!(
        "{} decides how many pools of flash are needed, {} how many servers.",
        capital(&bill.pooled.flash.binding),
        bill.pooled.compute.binding
    ));
    answer.extend(wedge(&bill.wedge));
    answer.extend(bill.sensitivity.iter().filter_map(turn));
    let figures = vec![
        Figure::new("servers with flash of their own", "", bill.direct_cost),
        Figure::new("pools, each tenant apart", "", bill.apart_cost),
        Figure::new("pools together", "", bill.pooled_cost),
    ];
    Ok(Section {
        title: "Flash in servers or in a pool: the bill".to_owned(),
        kind: "plan cost",
        answer,
        pictures: vec![costs(&bill), usage(&bill), sensitivity(&bill)],
        figures,
        ..Section::default()
    })
}

/// A word with its first letter in upper case.
fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// A sentence on the growth from which pools pay; `None` unless both limits are known.
fn wedge(wedge: &Wedge) -> Option<String> {
    let say = |ratio: f64| short(if ratio < 1.0 { 1.0 / ratio } else { ratio });
    let low = wedge.storage_per_compute_low.filter(|low| *low > 0.0);
    let (low, high) = (low?, wedge.storage_per_compute_high?);
    Some(format!(
        "Where demand grows from here, pools pay once compute grows more than {}x faster than \
         storage, or storage more than {}x faster than compute.",
        say(low),
        say(high)
    ))
}

/// A sentence on the values of a key at which the verdict changes; `None` if none are known.
fn turn(one: &Sensitivity) -> Option<String> {
    let Sensitivity { key, value, .. } = one;
    let value = exact(*value);
    match (one.verdict_changes_below, one.verdict_changes_above) {
        (None, None) => None,
        (Some(below), None) => {
            Some(format!("The verdict turns if {key} is below {} (it is {value}).", exact(below)))
        }
        (None, Some(above)) => {
            Some(format!("The verdict turns if {key} is above {} (it is {value}).", exact(above)))
        }
        (Some(below), Some(above)) => Some(format!(
            "The verdict turns if {key} is below {} or above {} (it is {value}).",
            exact(below),
            exact(above)
        )),
    }
}

/// What each way to have flash costs, by its parts, as bars.
fn costs(bill: &Bill) -> Picture {
    let parts =
        ["servers with flash", "pool of flash", "servers without"].map(str::to_owned).to_vec();
    let apart = |of: fn(&Pools) -> f64| bill.tenants.iter().map(|one| of(&one.apart)).sum::<f64>();
    let all = [
        ("flash in servers", vec![bill.direct_cost, 0.0, 0.0]),
        (
            "pools, tenants apart",
            vec![0.0, apart(|one| one.flash.cost), apart(|one| one.compute.cost)],
        ),
        ("pools together", vec![0.0, bill.pooled.flash.cost, bill.pooled.compute.cost]),
    ];
    let bars = all.into_iter().map(|(name, parts)| {
        let text = short(parts.iter().sum());
        Bar { name: name.to_owned(), parts, interval: None, text }
    });
    let mut table = Table::new(["tenant", "part", "machines", "binding", "cost"]);
    let mut row = |tenant: &str, part: &str, side: &Side| {
        table.push([
            tenant.to_owned(),
            part.to_owned(),
            exact(side.machines),
            side.binding.clone(),
            exact(side.cost),
        ]);
    };
    for tenant in &bill.tenants {
        row(&tenant.name, "servers with flash", &tenant.direct);
        row(&tenant.name, "pool of flash, apart", &tenant.apart.flash);
        row(&tenant.name, "servers without, apart", &tenant.apart.compute);
    }
    row("all", "pool of flash", &bill.pooled.flash);
    row("all", "servers without", &bill.pooled.compute);
    let title = "What is to be bought".to_owned();
    Picture {
        name: "costs".to_owned(),
        title: title.clone(),
        caption: "Servers without flash include what they need to reach it.".to_owned(),
        chart: Chart::Bars(Bars {
            title,
            unit: bill.currency.clone(),
            label: short,
            parts,
            bars: bars.collect(),
            marks: Vec::new(),
            scale: BarsScale::Zero,
        }),
        table,
    }
}

/// How much of what is bought is used, as bars.
fn usage(bill: &Bill) -> Picture {
    let mut table = Table::new(["dimension", "in servers", "in pools"]);
    let mut bars = Vec::new();
    for one in &bill.usage {
        table.push([one.dimension.clone(), exact(one.direct), exact(one.pooled)]);
        for (name, share) in [("in servers", one.direct), ("in pools", one.pooled)] {
            let name = format!("{}, {name}", one.dimension);
            let text = percent(share);
            bars.push(Bar { name, parts: vec![share * 100.0], interval: None, text });
        }
    }
    let title = "How much of what is bought is used".to_owned();
    Picture {
        name: "usage".to_owned(),
        title: title.clone(),
        caption: "At the peak of demand, before (flash in servers) and after (in pools)."
            .to_owned(),
        chart: Chart::Bars(Bars {
            title,
            unit: "% of what is bought".to_owned(),
            label: short,
            parts: Vec::new(),
            bars,
            marks: Vec::new(),
            scale: BarsScale::Zero,
        }),
        table,
    }
}

/// How much the saving depends on each key, as bars.
fn sensitivity(bill: &Bill) -> Picture {
    let mut table = Table::new([
        "key",
        "value",
        "saving with a tenth less",
        "saving with a tenth more",
        "verdict changes below",
        "verdict changes above",
    ]);
    let mut bars = Vec::new();
    let or_none = |value: Option<f64>| value.map_or_else(String::new, exact);
    for one in &bill.sensitivity {
        table.push([
            one.key.clone(),
            exact(one.value),
            or_none(one.saving_tenth_less),
            or_none(one.saving_tenth_more),
            or_none(one.verdict_changes_below),
            or_none(one.verdict_changes_above),
        ]);
        let ends =
            [one.saving_tenth_less, one.saving_tenth_more].map(|end| end.unwrap_or(bill.saving));
        let moved = (ends[0] - ends[1]).abs() * 100.0;
        bars.push((
            moved,
            Bar {
                name: one.key.clone(),
                parts: vec![moved],
                interval: None,
                text: format!("{} … {}", percent(ends[0]), percent(ends[1])),
            },
        ));
    }
    bars.sort_by(|one, other| other.0.total_cmp(&one.0));
    let title = "What the saving depends on".to_owned();
    Picture {
        name: "sensitivity".to_owned(),
        title: title.clone(),
        caption: "By how many points the saving moves when a value goes from a tenth less to a \
                  tenth more; beside each, the savings at both ends."
            .to_owned(),
        chart: Chart::Bars(Bars {
            title,
            unit: "points of saving".to_owned(),
            label: short,
            parts: Vec::new(),
            bars: bars.into_iter().take(12).map(|(_, bar)| bar).collect(),
            marks: Vec::new(),
            scale: BarsScale::Zero,
        }),
        table,
    }
}

/// The section of a record `afar.plan.cost.map`.
pub(crate) fn map(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let map: CostMap = results::read_body(value)?;
    let most = map.cells.iter().map(|cell| cell.storage_factor.max(cell.compute_factor));
    let most = most.max().unwrap_or(1).min(MAP_MAX);
    let deepest = map.cells.iter().map(|cell| cell.saving.abs()).fold(0.01, f64::max);
    let mut table = Table::new(["storage", "compute", "saving"]);
    for cell in &map.cells {
        table.push([
            cell.storage_factor.to_string(),
            cell.compute_factor.to_string(),
            exact(cell.saving),
        ]);
    }
    let cell = |storage: u32, compute: u32| {
        let found = map
            .cells
            .iter()
            .find(|one| one.storage_factor == storage && one.compute_factor == compute)?;
        let text = format!("{:.0} %", found.saving * 100.0);
        let depth = found.saving / deepest;
        Some(Cell { depth, text, is_within: found.saving > 0.0, is_doubtful: false })
    };
    let row = |compute: u32| {
        (format!("{compute}x"), (1..=most).map(|storage| cell(storage, compute)).collect())
    };
    let title = "Saving by pools where storage and compute grow".to_owned();
    let paying = map.cells.iter().filter(|cell| cell.saving > 0.0).count();
    let mut answer = vec![format!(
        "In {} of {} combinations of growth pools cost less than flash in servers.",
        paying,
        map.cells.len()
    )];
    answer.extend(wedge(&map.wedge));
    let best = map.cells.iter().max_by(|one, other| one.saving.total_cmp(&other.saving));
    answer.extend(best.map(|best| {
        let (storage, compute) = (best.storage_factor, best.compute_factor);
        let saving = percent(best.saving);
        format!("They save most, {saving}, where storage grows {storage}x and compute {compute}x.")
    }));
    Ok(Section {
        title: "Where growth makes pools pay".to_owned(),
        kind: "plan cost map",
        answer,
        pictures: vec![Picture {
            name: "map".to_owned(),
            title: title.clone(),
            caption: "Blue saves, orange costs; the thick line is where the verdict turns."
                .to_owned(),
            chart: Chart::Heat(Heat {
                title,
                axes: ("storage".to_owned(), "compute".to_owned()),
                columns: (1..=most).map(|factor| format!("{factor}x")).collect(),
                rows: (1..=most).rev().map(row).collect(),
                edge: Some("break-even".to_owned()),
                key: vec![
                    (-1.0, "costs more".to_owned()),
                    (0.0, "same".to_owned()),
                    (1.0, "saves".to_owned()),
                ],
                ..Heat::default()
            }),
            table,
        }],
        ..Section::default()
    })
}

/// The largest factor that is drawn; the table has all of them.
const MAP_MAX: u32 = 40;
