//! `afar plan fleet`: demand of many tenants by hour, from traces of clusters or made up, as files
//! that the other plans read.

mod alibaba;
mod azure;
mod google;
mod trace;

use std::process::ExitCode;

use console::{
    Failure,
    layout::{NONE, row, table},
};
use document::DocumentError;
use planner::cost::{Demand, Dimension, Server};
use planner::fleet::Fleet;
use planner::place::fleet_server;
use records::Column;
use results::plan::fleet as record;

use super::amounts::parse_amount;
use super::grid::{self, Grid};
use super::picture::{self, Cells};
use super::{PlanError, Written, when, write};
use crate::flags::FleetFlags;
use document::Source;
use document::csv::list;

/// The most rows of a table that is written.
const ROWS_MAX: usize = 50_000_000;

/// Runs `afar plan fleet`.
///
/// # Errors
/// If a trace cannot be read, or a result cannot be written.
pub(super) fn fleet(flags: &FleetFlags) -> Result<ExitCode, Failure> {
    let server = match (&flags.server, flags.synthetic) {
        (Some(text), _) => parse_server(text)?,
        (None, Some(_)) => fleet_server(),
        (None, None) => machine(),
    };
    let (fleet, short) = read(flags, &server)?;
    let hourly = fleet.hourly();
    let busiest = planner::fleet::busiest(&hourly, &server);
    let files = vec![
        when(&flags.json, || results::write(&recorded(&fleet, &server, (&hourly, busiest), short))),
        (&flags.tenants, grid::bytes(&flags.tenants, || Ok(tenants(&fleet, busiest)))?),
        (&flags.series, grid::bytes(&flags.series, || series(&fleet))?),
        (&flags.memory, grid::bytes(&flags.memory, || memory(&fleet))?),
        when(&flags.svg, || picture(&hourly)),
    ];
    write(Written { table: text(&fleet, &server, &hourly, busiest, short), files })
}

/// Reads a trace, or makes tenants up; returns also how many stays were too short.
fn read(flags: &FleetFlags, server: &Server) -> Result<(Fleet, u64), PlanError> {
    if let Some(path) = &flags.azure {
        return azure::read(path, flags.machine, server);
    }
    if let Some(path) = &flags.alibaba {
        return alibaba::read(path, server);
    }
    if !flags.google.is_empty() {
        return Ok(google::read(&flags.google, server)?);
    }
    let count = flags.synthetic.ok_or(PlanError::Nobody)? as usize;
    Ok((Fleet::made_up(count, flags.hours, flags.seed, server), 0))
}

/// The default machine of traces, which only have shares of one. Its processors are a million
/// queries per second, so that shares of them become millionths.
fn machine() -> Server {
    Server::default()
        .with(Dimension::Capacity, 4_000_000_000_000)
        .with(Dimension::Qps, 1_000_000)
        .with(Dimension::Memory, 256 << 30)
        .with(Dimension::Network, 25_000_000_000)
}

/// The machine of `--server`.
fn parse_server(text: &str) -> Result<Server, DocumentError> {
    let source = Source { name: format!("--server {text}"), text: text.to_owned() };
    let mut server = Server::default();
    for (at, pair) in list(text) {
        let wrong = |message: String| source.wrong(&(at..at), message);
        let known = pair.split_once('=').and_then(|(key, value)| {
            let dimension = Dimension::ALL.into_iter().find(|one| one.name() == key.trim())?;
            Some((dimension, value.trim()))
        });
        let Some((dimension, value)) = known else {
            let names = Dimension::ALL.map(Dimension::name).join(", ");
            return Err(wrong(format!("\"{pair}\": write KEY=VALUE with {names}")));
        };
        let amount = parse_amount(dimension, value).map_err(wrong)?;
        if amount == 0 {
            return Err(wrong(format!("a machine has no {dimension}; give it more than zero")));
        }
        server = server.with(dimension, amount);
    }
    Ok(server)
}

/// The table of all stays in an hour, with what each wants at its peak.
fn tenants(fleet: &Fleet, hour: u32) -> Grid {
    let there = || fleet.stays.iter().filter(|stay| (stay.from..stay.to).contains(&hour));
    let name = |(index, stay): (usize, &planner::fleet::Stay)| {
        let tenant = &fleet.tenants[stay.tenant as usize];
        // A tenant of a trace has many stays.
        if fleet.stays.len() == fleet.tenants.len() {
            tenant.clone()
        } else {
            format!("{tenant}-{index}")
        }
    };
    let names = there().enumerate().map(name).collect();
    let wants: Vec<Demand> = there().map(|stay| stay.wants).collect();
    let mut grid = vec![("name", Column::Text(names))];
    grid.extend(grid::demands(&wants));
    grid
}

/// The error of a table with too many rows.
fn too_many() -> DocumentError {
    let message = format!("the table would have more than {ROWS_MAX} rows; use fewer tenants");
    DocumentError::At { place: "afar plan fleet".to_owned(), message }
}

/// The table of what each tenant wants by hour.
fn series(fleet: &Fleet) -> Result<Grid, DocumentError> {
    let hours = fleet.hours as usize;
    if fleet.tenants.len().saturating_mul(hours) > ROWS_MAX {
        return Err(too_many());
    }
    let place = "afar plan fleet".to_owned();
    let all = fleet.by_tenant();
    let all = all.map_err(|error| DocumentError::At { place, message: error.to_string() })?;
    let names = fleet.tenants.iter().flat_map(|name| std::iter::repeat_n(name.clone(), hours));
    let periods = fleet.tenants.iter().flat_map(|_| 0..u64::from(fleet.hours));
    let mut grid = vec![
        ("tenant", Column::Text(names.collect())),
        ("period", Column::Numbers(periods.collect())),
    ];
    grid.extend(grid::demands(&all.concat()));
    Ok(grid)
}

/// The table of what each tenant wants of each server's memory by hour.
fn memory(fleet: &Fleet) -> Result<Grid, DocumentError> {
    let rows: u64 = fleet.stays.iter().map(|stay| u64::from(stay.to - stay.from)).sum();
    if rows > ROWS_MAX as u64 {
        return Err(too_many());
    }
    let (mut servers, mut periods) = (Vec::new(), Vec::new());
    let (mut programs, mut bytes) = (Vec::new(), Vec::new());
    for ((server, hour, tenant), memory) in fleet.memory() {
        servers.push(fleet.servers[server as usize].clone());
        periods.push(u64::from(hour));
        programs.push(fleet.tenants[tenant as usize].clone());
        bytes.push(memory);
    }
    Ok(vec![
        ("server", Column::Text(servers)),
        ("period", Column::Numbers(periods)),
        ("program", Column::Text(programs)),
        ("memory", Column::Numbers(bytes)),
    ])
}

/// The largest and the mean demand of all tenants in an hour.
fn most_and_mean(hourly: &[[u128; 6]], dimension: Dimension) -> (f64, f64) {
    let sums = hourly.iter().map(|sums| sums[dimension as usize] as f64);
    let most = sums.clone().fold(0.0, f64::max);
    (most, sums.sum::<f64>() / hourly.len().max(1) as f64)
}

/// The readable summary of the fleet.
fn text(fleet: &Fleet, server: &Server, hourly: &[[u128; 6]], busiest: u32, short: u64) -> String {
    let there = fleet.stays.iter().filter(|stay| (stay.from..stay.to).contains(&busiest)).count();
    let mut text = format!(
        "{} tenants on {} machines, {} hours; in the busiest, hour {busiest}, there are {there} \
         of {} stays.\n",
        fleet.tenants.len(),
        fleet.servers.len(),
        fleet.hours,
        fleet.stays.len()
    );
    if short > 0 {
        text += &format!("{short} more were so short that no full hour has seen them.\n");
    }
    let mut rows = vec![row(["", "at the most", "mean", "as machines", "the largest tenth has"])];
    for dimension in Dimension::ALL {
        let (most, mean) = most_and_mean(hourly, dimension);
        let Some(each) = server.get(dimension).filter(|_| most > 0.0) else { continue };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "stops")]
        let amount = |value: f64| value as u64;
        let short = |value| super::amounts::short_amount(dimension, amount(value));
        rows.push(vec![
            dimension.name().to_owned(),
            short(most),
            short(mean),
            format!("{:.1}", most / each as f64),
            format!("{:.0} %", fleet.tenth(dimension) * 100.0),
        ]);
    }
    text += "\n";
    text += &table(&rows);
    let limits = Dimension::ALL.into_iter().filter_map(|dimension| {
        let each = server.get(dimension)?;
        Some(format!("{dimension} = \"{}\"", dimension.amount(each)))
    });
    let limits: Vec<String> = limits.collect();
    let limits = if limits.is_empty() { NONE.to_owned() } else { limits.join(", ") };
    text += &format!("\nA machine has, for [server] of afar plan place: {limits}.\n");
    text
}

/// The picture of what all tenants want by hour.
fn picture(hourly: &[[u128; 6]]) -> String {
    let rows = Dimension::ALL.into_iter().filter_map(|dimension| {
        let (most, _) = most_and_mean(hourly, dimension);
        let share = |sums: &[u128; 6]| sums[dimension as usize] as f64 / most;
        (most > 0.0).then(|| (dimension.name().to_owned(), hourly.iter().map(share).collect()))
    });
    picture::cells(&Cells {
        title: "What a fleet wants by hour",
        columns: "hours",
        rows: rows.collect(),
        note: "what all want together, as a share of the busiest hour",
    })
}

/// The record of the fleet.
fn recorded(
    fleet: &Fleet,
    server: &Server,
    (hourly, busiest): (&[[u128; 6]], u32),
    short: u64,
) -> record::FleetDemand {
    let dimensions = Dimension::ALL.into_iter().map(|dimension| {
        let (max, mean) = most_and_mean(hourly, dimension);
        record::Dimension {
            dimension: dimension.name().to_owned(),
            machine: server.get(dimension),
            max,
            mean,
            largest_tenth: fleet.tenth(dimension),
            hours: hourly.iter().map(|sums| sums[dimension as usize] as f64).collect(),
        }
    });
    record::FleetDemand {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tenant_count: fleet.tenants.len() as u64,
        machine_count: fleet.servers.len() as u64,
        stay_count: fleet.stays.len() as u64,
        short_stay_count: short,
        hour_count: u64::from(fleet.hours),
        busiest_hour: u64::from(busiest),
        dimensions: dimensions.collect(),
    }
}
