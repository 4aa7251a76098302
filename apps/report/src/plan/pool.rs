//! Memory in servers or in a pool.

use chart::{Bar, Bars, BarsScale, in_bytes};
use results::plan::pool::{Bought, PoolSizing};
use serde_json::Value;

use crate::context::Context;
use crate::section::{Chart, Figure, Picture, Section, Table};
use crate::words::{exact, list, percent};

/// The section of a record `afar.plan.pool`.
pub(crate) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let record: PoolSizing = results::read_body(value)?;
    let mut answer = vec![verdict(&record)];
    let programs = record
        .programs
        .iter()
        .map(|one| format!("{} at least {} local", one.name, percent(one.local_min)));
    let programs = list(&programs.collect::<Vec<_>>());
    if !programs.is_empty() {
        answer.push(format!("To stay under their bounds, programs need: {programs}."));
    }
    let sides: Vec<(&str, &Bought)> =
        [("no pool", Some(&record.without)), ("a pool", record.with.as_ref())]
            .into_iter()
            .filter_map(|(name, side)| Some((name, side?)))
            .collect();
    let mut figures = Vec::new();
    for (name, side) in &sides {
        figures.push(Figure::new(format!("memory, {name}"), "bytes", side.bytes as f64));
        figures.push(Figure::new(format!("cost, {name}"), "", side.cost));
    }
    let mut section = Section {
        title: "Memory in servers or in a pool".to_owned(),
        kind: "plan pool",
        answer,
        figures,
        ..Section::default()
    };
    section.facts = record
        .programs
        .iter()
        .map(|one| (one.name.clone(), format!("at most {} slower", percent(one.bound))))
        .collect();
    section.pictures = vec![memory(&record, &sides), unused(&sides)];
    Ok(section)
}

/// The first sentence: whether a pool pays.
fn verdict(record: &PoolSizing) -> String {
    let cost = |side: &Bought| format!("{} {}", exact(side.cost.round()), record.currency);
    match (&record.with, record.disaggregate) {
        (Some(with), true) => format!(
            "A pool pays: {} per server and {} in the pool cost {} where memory in servers alone \
             costs {}.",
            in_bytes(with.server_bytes as f64),
            in_bytes(pooled(with)),
            cost(with),
            cost(&record.without)
        ),
        (with, _) => {
            let with = with
                .as_ref()
                .map_or_else(String::new, |with| format!(", and with a pool {}", cost(with)));
            format!(
                "Do not disaggregate: {}. Memory in servers alone costs {}{with}.",
                record.reason,
                cost(&record.without)
            )
        }
    }
}

/// The memory in pools, bytes.
fn pooled(side: &Bought) -> f64 {
    side.pool_bytes.iter().map(|bytes| *bytes as f64).sum()
}

/// The memory to be bought without and with a pool, as bars.
fn memory(record: &PoolSizing, sides: &[(&str, &Bought)]) -> Picture {
    let mut table = Table::new([
        "",
        "server_bytes",
        "servers",
        "pool_bytes",
        "bytes",
        "cost",
        "unused_at_peak",
        "unused_mean",
    ]);
    let mut bars = Vec::new();
    for (name, side) in sides {
        let pool = pooled(side);
        table.push([
            (*name).to_owned(),
            side.server_bytes.to_string(),
            record.server_count.to_string(),
            exact(pool),
            side.bytes.to_string(),
            exact(side.cost),
            exact(side.unused_at_peak),
            exact(side.unused_mean),
        ]);
        bars.push(Bar {
            name: (*name).to_owned(),
            parts: vec![side.server_bytes as f64 * record.server_count as f64, pool],
            interval: None,
            text: in_bytes(side.bytes as f64),
        });
    }
    let title = "Memory to be bought".to_owned();
    Picture {
        name: "memory".to_owned(),
        title: title.clone(),
        caption: format!("For {} servers.", record.server_count),
        chart: Chart::Bars(Bars {
            title,
            unit: "memory".to_owned(),
            label: in_bytes,
            parts: vec!["in servers".to_owned(), "in the pool".to_owned()],
            bars,
            marks: Vec::new(),
            scale: BarsScale::Zero,
        }),
        table,
    }
}

/// The share of memory that lies idle without and with a pool, as bars.
fn unused(sides: &[(&str, &Bought)]) -> Picture {
    let mut table = Table::new(["", "unused_at_peak", "unused_mean"]);
    let mut bars = Vec::new();
    for (name, side) in sides {
        table.push([(*name).to_owned(), exact(side.unused_at_peak), exact(side.unused_mean)]);
        for (when, share) in [("at the peak", side.unused_at_peak), ("mean", side.unused_mean)] {
            let name = format!("{name}, {when}");
            bars.push(Bar {
                name,
                parts: vec![share * 100.0],
                interval: None,
                text: percent(share),
            });
        }
    }
    let title = "Memory that lies idle".to_owned();
    Picture {
        name: "unused".to_owned(),
        title: title.clone(),
        caption: "Stranded memory before (no pool) and after (a pool).".to_owned(),
        chart: Chart::Bars(Bars {
            title,
            unit: "% of what is bought".to_owned(),
            label: chart::short,
            parts: Vec::new(),
            bars,
            marks: Vec::new(),
            scale: BarsScale::Zero,
        }),
        table,
    }
}
