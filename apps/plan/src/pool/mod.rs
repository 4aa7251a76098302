//! `afar plan pool`: how much memory servers need of their own, and how much a pool.

mod added;
mod curve;
mod demand;
mod file;
mod predicted;

use std::process::ExitCode;

use console::{
    Failure,
    layout::{NONE, row, table},
    terminal,
};
use measure::{Bytes, Money};
use planner::pool::{PoolError, Purchase, Sizing, Verdict, purchase, size};
use results::plan::pool as record;

use self::added::Predicted;
use self::file::{EXAMPLE, Experiment};
use super::picture::{Bar, Bars, bars};
use super::{PlanError, Written, when, write};
use crate::flags::PoolFlags;
use document::Source;

/// Steps between the sizes of a server in a picture.
const DRAWN: u64 = 10;
const GIB: f64 = (1_u64 << 30) as f64;

/// Runs `afar plan pool`.
///
/// # Errors
/// If the file or a setting is invalid, or a result cannot be written.
pub(super) fn pool(flags: &PoolFlags) -> Result<ExitCode, Failure> {
    if flags.print {
        let text = match &flags.experiment {
            Some(path) => Source::read(path)?.text,
            None => EXAMPLE.to_owned(),
        };
        terminal::answer(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (files, held) = (&flags.predict[..], &flags.network[..]);
    let predicted = Predicted { files, held, bound: flags.bound, servers: flags.servers };
    let experiment = Experiment::read(flags.experiment.as_deref(), &flags.set, &predicted)?;
    // These errors concern the whole file.
    let refused = |source| PlanError::Pool { place: format!("{}:1:1", experiment.name), source };
    let sizing = size(&experiment.servers.loads, &experiment.terms).map_err(refused)?;
    let sizes = sizes(&experiment, &sizing).map_err(refused)?;
    write(Written {
        table: text(&experiment, &sizing),
        files: vec![
            when(&flags.json, || results::write(&recorded(&experiment, &sizing))),
            when(&flags.csv, || csv(&sizes)),
            when(&flags.svg, || picture(&sizing, &sizes)),
        ],
    })
}

/// What is bought for servers from the least memory to the most; nothing where no pool can be.
fn sizes(experiment: &Experiment, sizing: &Sizing) -> Result<Vec<Purchase>, PoolError> {
    let (loads, terms) = (&experiment.servers.loads, &experiment.terms);
    let Some(with) = &sizing.with else { return Ok(Vec::new()) };
    let (server, period) = sizing.most;
    let step = terms.local_step.get();
    let least = loads[server][period].least.div_ceil(step);
    let full = sizing.without.local.get() / step;
    let stride = ((full - least) / DRAWN).max(1);
    let mut counts: Vec<u64> = (0..=DRAWN).map(|at| least + at * stride).collect();
    counts.push(with.local.get() / step);
    counts.retain(|count| *count < full);
    counts.sort_unstable();
    counts.dedup();
    counts.into_iter().map(|count| purchase(loads, terms, Bytes::new(count * step))).collect()
}

/// The unused share of bought memory: at the peak, and in the mean of all periods.
fn unused(experiment: &Experiment, sizing: &Sizing, bought: &Purchase) -> (f64, f64) {
    let periods = experiment.servers.loads.first().map_or(1, Vec::len);
    let bytes = bought.bytes.get() as f64;
    let mean = sizing.sum as f64 / periods as f64;
    (1.0 - sizing.peak as f64 / bytes, 1.0 - mean / bytes)
}

/// An amount with its currency.
fn money(experiment: &Experiment, amount: Money) -> String {
    format!("{}{amount}", experiment.currency)
}

/// The readable answer: programs, what is bought, and the verdict.
fn text(experiment: &Experiment, sizing: &Sizing) -> String {
    let mut rows = vec![row(["program", "bound", "local at least"])];
    for program in &experiment.programs {
        rows.push(vec![
            program.name.clone(),
            format!("{:.1} %", program.bound * 100.0),
            format!("{:.1} %", program.least_ppm as f64 / 1e4),
        ]);
    }
    let mut text = table(&rows) + "\n";
    let mut rows = vec![row([
        "",
        "each server",
        "pools",
        "in all",
        "cost",
        "unused at the peak",
        "on average",
    ])];
    let line = |name: &str, bought: &Purchase| {
        let (peak, mean) = unused(experiment, sizing, bought);
        let cost = if experiment.has_prices { money(experiment, bought.cost) } else { NONE.into() };
        let shares = [peak, mean].map(|share| format!("{:.1} %", share * 100.0));
        let [local, all] = [bought.local, bought.bytes].map(|bytes| bytes.to_string());
        [vec![name.to_owned(), local, pools(&bought.pools), all, cost], shares.to_vec()].concat()
    };
    rows.push(line("without a pool", &sizing.without));
    if let Some(with) = &sizing.with {
        rows.push(line("with pools", with));
    }
    text += &table(&rows);
    text += "\n";
    text += &verdict(experiment, sizing);
    text
}

/// The number and the sizes of pools, as text.
fn pools(all: &[Bytes]) -> String {
    let (Some(most), Some(least)) = (all.iter().max(), all.iter().min()) else {
        return NONE.into();
    };
    match (all.len(), most == least) {
        (1, _) => most.to_string(),
        (count, true) => format!("{count} x {most}"),
        (count, false) => format!("{count} of {least} to {most}"),
    }
}

/// Whether to disaggregate, in a sentence.
fn verdict(experiment: &Experiment, sizing: &Sizing) -> String {
    let without = &sizing.without;
    let (server, period) = sizing.most;
    let name = &experiment.servers.names[server];
    let Some(with) = &sizing.with else {
        let least = Bytes::new(experiment.servers.loads[server][period].least);
        return format!(
            "Do not disaggregate: in period {period} server {name} must have {least} local for its \
             programs to stay\nunder their bounds, so that servers can have no less than {}.\n",
            without.local
        );
    };
    let saved = without.bytes.saturating_sub(with.bytes);
    let share = saved.get() as f64 / without.bytes.get() as f64 * 100.0;
    let apart = Money::from_micros(without.cost.micros().abs_diff(with.cost.micros()));
    let apart = money(experiment, apart);
    match sizing.verdict {
        Verdict::Disaggregate if experiment.has_prices => format!(
            "Disaggregate: it saves {apart} of {}, {:.1} %, and {saved} of memory, {share:.1} %.\n",
            money(experiment, without.cost),
            (1.0 - with.cost.units_f64() / without.cost.units_f64()) * 100.0,
        ),
        Verdict::Disaggregate => format!(
            "Disaggregate: it saves {saved} of {}, {share:.1} %, if memory in a pool costs as \
             much as in a server.\n",
            without.bytes
        ),
        Verdict::Peaks | Verdict::Local => format!(
            "Do not disaggregate: servers want most at the same time, {:.1} % of the sum of what \
             each could have,\nso that a pool saves no memory.\n",
            sizing.peak as f64 / without.bytes.get() as f64 * 100.0
        ),
        Verdict::Price => format!(
            "Do not disaggregate: it would save {saved} of memory, {share:.1} %, but the pool and \
             its ports make it\n{apart} dearer.\n"
        ),
    }
}

/// A row for each size of a server.
fn csv(sizes: &[Purchase]) -> String {
    let mut text = "local_bytes,pool_bytes,bytes,cost\n".to_owned();
    for one in sizes {
        let pooled: u64 = one.pools.iter().map(|pool| pool.get()).sum();
        let (local, all) = (one.local.get(), one.bytes.get());
        text += &format!("{local},{pooled},{all},{}\n", one.cost.units_f64());
    }
    text
}

/// The picture of bought memory by the memory of a server.
fn picture(sizing: &Sizing, sizes: &[Purchase]) -> String {
    let bar = |name: String, bought: &Purchase, is_chosen| {
        let pooled = bought.pools.iter().map(|pool| pool.get() as f64 / GIB).sum::<f64>();
        let local = bought.bytes.get() as f64 / GIB - pooled;
        Bar { name, parts: vec![local, pooled], label: bought.bytes.to_string(), is_chosen }
    };
    let mut all = vec![bar("without a pool".to_owned(), &sizing.without, false)];
    let is_best = |one: &Purchase| Some(one) == sizing.with.as_ref();
    all.extend(sizes.iter().map(|one| bar(format!("{} a server", one.local), one, is_best(one))));
    bars(&Bars {
        title: "Memory of servers and pools by the memory of a server",
        unit: "GiB",
        parts: vec!["in servers", "in pools"],
        bars: all,
        note: "memory that is bought in all, by how much a server has; ▸ is cheapest",
    })
}

/// The record of the answer.
fn recorded(experiment: &Experiment, sizing: &Sizing) -> record::PoolSizing {
    let bought = |bought: &Purchase| {
        let (unused_at_peak, unused_mean) = unused(experiment, sizing, bought);
        record::Bought {
            server_bytes: bought.local.get(),
            pool_bytes: bought.pools.iter().map(|pool| pool.get()).collect(),
            bytes: bought.bytes.get(),
            cost: bought.cost.units_f64(),
            unused_at_peak,
            unused_mean,
        }
    };
    let programs = experiment.programs.iter().map(|program| record::Program {
        name: program.name.clone(),
        bound: program.bound,
        local_min: program.least_ppm as f64 / 1e6,
    });
    let (server, period) = sizing.most;
    let servers = &experiment.servers;
    let reason = match sizing.verdict {
        Verdict::Disaggregate => "cheaper",
        Verdict::Local => "programs need their memory local",
        Verdict::Peaks => "peaks at the same time",
        Verdict::Price => "pool and ports cost more than is saved",
    };
    record::PoolSizing {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        currency: experiment.currency.clone(),
        server_count: servers.names.len() as u64,
        period_count: servers.loads.first().map_or(0, Vec::len) as u64,
        programs: programs.collect(),
        local_min: record::LocalMin {
            server: servers.names[server].clone(),
            period: period as u64,
            bytes: servers.loads[server][period].least,
        },
        peak_bytes: sizing.peak as f64,
        without: bought(&sizing.without),
        with: sizing.with.as_ref().map(bought),
        disaggregate: sizing.verdict == Verdict::Disaggregate,
        reason: reason.to_owned(),
    }
}
