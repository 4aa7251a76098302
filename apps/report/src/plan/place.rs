//! Who is on which server, and how full each is.

use chart::{Cell, Heat, in_bytes};
use results::plan::place::{Placement, Server, Tenant};
use serde_json::Value;

use crate::context::Context;
use crate::section::{Chart, Figure, Picture, Section, Table};
use crate::words::{bits_per_s, exact, percent};

/// Servers that are drawn one by one; beyond, neighbours share a column.
const COLUMNS_MAX: usize = 60;

/// The section of a record `afar.plan.place`.
pub(crate) fn section(value: Value, _: &Context) -> Result<Section, serde_json::Error> {
    let record: Placement = results::read_body(value)?;
    let (servers, least) = (record.server_count, record.server_count_min);
    let best = match record.is_best {
        true => "no placement needs fewer".to_owned(),
        false => format!("no placement can need fewer than {least}"),
    };
    let mut answer =
        vec![format!("{} tenants fit on {servers} servers; {best}.", record.tenants.len())];
    if let Some(migration) = &record.migration {
        let (bytes, rate) = (migration.bytes as f64, migration.rate_bps as f64);
        let seconds = bytes * 8.0 / rate.max(1.0);
        answer.push(format!(
            "To get there from {} servers, {} tenants' data move, {} in all: {} s at {}.",
            migration.server_count_before,
            migration.moves.len(),
            in_bytes(bytes),
            exact(seconds.round()),
            bits_per_s(rate)
        ));
    }
    let dimensions: Vec<&String> = record.server_limits.keys().collect();
    for name in &dimensions {
        let share = fill(&record.servers, record.server_limits[*name], name);
        answer.push(format!("On average {name} is {} full.", percent(share)));
    }
    let mut pictures = Vec::new();
    let before = record.migration.as_ref().map_or(&[][..], |migration| &migration.servers_before);
    pictures.extend(map("map-before", "How full each server is, before", (&record, before)));
    pictures.extend(map("map", "How full each server is", (&record, &record.servers)));
    pictures.extend(tenants(&record));
    Ok(Section {
        title: "Tenants on servers".to_owned(),
        kind: "plan place",
        answer,
        figures: vec![Figure::new("servers", "", servers as f64)],
        pictures,
        ..Section::default()
    })
}

/// How full servers are in one dimension, as a mean share of `limit`.
fn fill(servers: &[Server], limit: f64, name: &str) -> f64 {
    let used: f64 = servers.iter().filter_map(|server| server.used.get(name)).sum();
    used / (limit * servers.len().max(1) as f64)
}

/// The picture of how full each server is; `None` without servers or dimensions.
fn map(name: &str, title: &str, (record, servers): (&Placement, &[Server])) -> Option<Picture> {
    let dimensions: Vec<&String> = record.server_limits.keys().collect();
    let mut table = Table::new(["server", "rack", "tenants"]);
    table.columns.extend(dimensions.iter().map(|one| (*one).clone()));
    table.columns.extend(dimensions.iter().map(|one| format!("{one} %")));
    let used = |server: &Server, name: &str| server.used.get(name).copied().unwrap_or(0.0);
    for server in servers {
        let mut row =
            [server.server, server.rack, server.tenant_count].map(|one| one.to_string()).to_vec();
        row.extend(dimensions.iter().map(|one| exact(used(server, one))));
        row.extend(
            dimensions
                .iter()
                .map(|one| exact(used(server, one) / record.server_limits[*one] * 100.0)),
        );
        table.rows.push(row);
    }
    let shared = servers.len().div_ceil(COLUMNS_MAX).max(1);
    let groups: Vec<&[Server]> = servers.chunks(shared).collect();
    let row = |dimension: &&String| {
        let cells = groups.iter().map(|group| {
            let share = fill(group, record.server_limits[*dimension], dimension);
            Some(Cell {
                depth: share.min(1.0),
                text: format!("{:.0} %", share * 100.0),
                is_within: true,
                is_doubtful: false,
            })
        });
        ((*dimension).clone(), cells.collect())
    };
    let caption = match shared {
        1 => "Deeper is fuller.".to_owned(),
        shared => format!("Deeper is fuller; {shared} servers share a column, at their mean."),
    };
    (!servers.is_empty() && !dimensions.is_empty()).then(|| Picture {
        name: name.to_owned(),
        title: title.to_owned(),
        caption,
        chart: Chart::Heat(Heat {
            title: title.to_owned(),
            axes: ("server".to_owned(), String::new()),
            columns: groups.iter().map(|group| group[0].server.to_string()).collect(),
            rows: dimensions.iter().map(row).collect(),
            edge: None,
            key: vec![
                (0.0, "empty".to_owned()),
                (0.5, "half".to_owned()),
                (1.0, "full".to_owned()),
            ],
            ..Heat::default()
        }),
        table,
    })
}

/// The picture of which tenant is on which server; `None` if there are too many to draw.
fn tenants(record: &Placement) -> Option<Picture> {
    let servers: Vec<u64> = record.servers.iter().map(|server| server.server).collect();
    let mut table = Table::new(["tenant", "replica", "server"]);
    for tenant in &record.tenants {
        for (replica, server) in tenant.servers.iter().enumerate() {
            table.push([tenant.name.clone(), replica.to_string(), server.to_string()]);
        }
    }
    let row = |tenant: &Tenant| {
        let cells = servers.iter().map(|server| {
            let is_there = tenant.servers.contains(server);
            let text = if is_there { "here" } else { "not here" };
            is_there.then(|| Cell {
                depth: 1.0,
                text: text.to_owned(),
                is_within: true,
                is_doubtful: false,
            })
        });
        (tenant.name.clone(), cells.collect())
    };
    let is_small = record.tenants.len() <= 40 && servers.len() <= COLUMNS_MAX;
    (is_small && !servers.is_empty()).then(|| Picture {
        name: "tenants".to_owned(),
        title: "Where each tenant is".to_owned(),
        caption: "A mark for each replica.".to_owned(),
        chart: Chart::Heat(Heat {
            title: "Where each tenant is".to_owned(),
            axes: ("server".to_owned(), "tenant".to_owned()),
            columns: servers.iter().map(u64::to_string).collect(),
            rows: record.tenants.iter().map(row).collect(),
            edge: None,
            key: vec![(1.0, "a replica".to_owned())],
            ..Heat::default()
        }),
        table,
    })
}
