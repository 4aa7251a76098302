//! What ports did over time: every interval as a table, the busiest ports for JSON and pictures.

use std::fmt::Write as _;

use netsim::{Fabric, PortInterval, PortSeries};
use records::Column;
use results::sim::{Port, Ports};

use super::link_name::link_name;

/// Ports that are shown, and the most columns of each.
const SHOWN: usize = 24;
const COLUMNS_MAX: usize = 240;

/// The ports of a network whose queues held most.
pub(super) fn of(fabric: &Fabric, series: &PortSeries) -> Ports {
    let count = series.interval_count();
    let width = count.div_ceil(COLUMNS_MAX).max(1);
    let columns = count.div_ceil(width);
    let column = |port: usize, column: usize| {
        let within = column * width..((column + 1) * width).min(count);
        within.map(|at| series.at(at, port)).fold(PortInterval::default(), PortInterval::then)
    };
    let sum = |port: usize| -> u64 {
        (0..count).map(|at| u64::from(series.at(at, port).deepest_bytes)).sum()
    };
    let mut order: Vec<(u64, usize)> = (0..series.port_count())
        .map(|port| (sum(port), port))
        .filter(|(sum, _)| *sum > 0)
        .collect();
    order.sort_by_key(|&(sum, port)| (std::cmp::Reverse(sum), port));
    let all = |of: fn(PortInterval) -> u32| -> Vec<u64> {
        let sum = |at| (0..series.port_count()).map(|port| u64::from(of(column(port, at)))).sum();
        (0..columns).map(sum).collect()
    };
    let row = |&(_, port): &(u64, usize)| {
        let cells = || (0..columns).map(|at| column(port, at));
        Port {
            link: port,
            name: link_name(fabric, port),
            deepest_bytes: cells().map(|cell| cell.deepest_bytes).collect(),
            sent_bytes: cells().map(|cell| cell.sent_bytes).collect(),
            dropped_packets: cells().map(|cell| cell.dropped_packets).collect(),
        }
    };
    Ports {
        from_ps: series.from.as_ps(),
        every_ps: series.every.as_ps().saturating_mul(width as u64),
        columns,
        port_count: series.port_count(),
        queued_count: order.len(),
        ports: order.iter().take(SHOWN).map(row).collect(),
        dropped_packets: all(|cell| cell.dropped_packets),
        trimmed_packets: all(|cell| cell.trimmed_packets),
    }
}

/// Names of the columns of the table.
const COLUMNS: [&str; 8] = [
    "from_ps",
    "every_ps",
    "link",
    "queued_bytes",
    "deepest_bytes",
    "sent_bytes",
    "dropped_packets",
    "trimmed_packets",
];

/// Every interval of every port in which something was, in the order of time.
fn cells(series: &PortSeries) -> impl Iterator<Item = [u64; 8]> {
    let ports = series.port_count();
    (0..series.interval_count() * ports).filter_map(move |place| {
        let (interval, port) = (place / ports, place % ports);
        let cell = series.at(interval, port);
        if cell == PortInterval::default() {
            return None;
        }
        let from = series.from + series.every.saturating_mul(interval as u64);
        Some([
            from.as_ps(),
            series.every.as_ps(),
            port as u64,
            cell.queued_bytes.into(),
            cell.deepest_bytes.into(),
            cell.sent_bytes,
            cell.dropped_packets.into(),
            cell.trimmed_packets.into(),
        ])
    })
}

/// The table as CSV, with links by name.
pub(super) fn csv(fabric: &Fabric, series: &PortSeries) -> String {
    let mut text = format!("{},name\n", COLUMNS.join(","));
    for cell in cells(series) {
        let name =
            usize::try_from(cell[2]).map_or_else(|_| String::new(), |port| link_name(fabric, port));
        let numbers = cell.map(|number| number.to_string()).join(",");
        let _infallible = writeln!(text, "{numbers},{name}");
    }
    text
}

/// The same as columns.
pub(super) fn columns(fabric: &Fabric, series: &PortSeries) -> Vec<(&'static str, Column)> {
    let mut numbers: [Vec<u64>; 8] = Default::default();
    let mut names = Vec::new();
    for cell in cells(series) {
        names.push(
            usize::try_from(cell[2]).map_or_else(|_| String::new(), |port| link_name(fabric, port)),
        );
        for (column, number) in numbers.iter_mut().zip(cell) {
            column.push(number);
        }
    }
    let numbers = COLUMNS.into_iter().zip(numbers.map(Column::Numbers));
    numbers.chain([("name", Column::Text(names))]).collect()
}
