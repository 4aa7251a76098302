//! What ports did over time: every interval as a table; for JSON and pictures the ports of switches
//! and of hosts whose queues held most. A host's queue, which is its memory, may be a hundred times
//! as deep as a switch's, so neither is to displace the other.

use std::fmt::Write as _;

use netsim::{Fabric, Flow, Node, PortInterval, PortSeries};
use records::Column;
use results::sim::{Port, Ports};

use super::link_name::link_name;

/// Ports of switches and of hosts that are shown, and the most columns of each.
const SHOWN: [usize; 2] = [16, 8];
const COLUMNS_MAX: usize = 240;

/// The ports of a network whose queues held most while `flows` started.
pub(super) fn of(fabric: &Fabric, series: &PortSeries, flows: &[Flow]) -> Ports {
    let count = shown_count(series, flows);
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
    let links = fabric.topology.links();
    let is_host = |port: usize| matches!(links[port].from, Node::Host(_));
    let row = |&(_, port): &(u64, usize)| {
        let cells = || (0..columns).map(|at| column(port, at));
        Port {
            link: port,
            name: link_name(fabric, port),
            at_host: is_host(port),
            deepest_bytes: cells().map(|cell| cell.deepest_bytes).collect(),
            sent_bytes: cells().map(|cell| cell.sent_bytes).collect(),
            dropped_packets: cells().map(|cell| cell.dropped_packets).collect(),
        }
    };
    let shown = [false, true].into_iter().zip(SHOWN).flat_map(|(at_host, most)| {
        order.iter().filter(move |(_, port)| is_host(*port) == at_host).take(most)
    });
    let every_ps = series.every.as_ps();
    let end_ps = (count < series.interval_count())
        .then(|| every_ps.saturating_mul(series.interval_count() as u64));
    Ports {
        from_ps: series.from.as_ps(),
        every_ps: every_ps.saturating_mul(width as u64),
        columns,
        port_count: series.port_count(),
        queued_count: order.len(),
        ports: shown.map(row).collect(),
        end_ps,
        dropped_packets: all(|cell| cell.dropped_packets),
        trimmed_packets: all(|cell| cell.trimmed_packets),
    }
}

/// Intervals that are shown: those until a quarter after the last flow started, for then the
/// network only empties; all, if most bytes were sent later.
fn shown_count(series: &PortSeries, flows: &[Flow]) -> usize {
    let all = series.interval_count();
    let last = flows.iter().map(|flow| flow.start).max().unwrap_or(series.from);
    let until_ps = last.saturating_since(series.from).as_ps().saturating_mul(5) / 4;
    let count = usize::try_from(until_ps.div_ceil(series.every.as_ps())).unwrap_or(all).min(all);
    let sent = |count: usize| -> u64 {
        let ports = 0..series.port_count();
        let at = |interval| ports.clone().map(move |port| series.at(interval, port).sent_bytes);
        (0..count).flat_map(at).sum()
    };
    if sent(count).saturating_mul(2) >= sent(all) { count } else { all }
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

/// Every interval of every port that is not all zero, as a row of the table, in order of time.
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

/// The table as columns, with links by name.
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

#[cfg(test)]
mod tests {
    use super::super::setting::Settings;
    use super::super::setup::Setup;
    use super::*;
    use measure::Duration;
    use netsim::{Observe, simulate_observed};

    fn ports(settings: &[(&'static str, &str)]) -> Ports {
        let with = |all: Settings, &(name, value): &(&'static str, &str)| all.with(name, value);
        let setup = Setup::new(&settings.iter().fold(Settings::default(), with)).expect("it is");
        let Setup { fabric, protocol, flows, .. } = &setup;
        let observe = Observe { every: Some(Duration::from_us(1)), ..Observe::default() };
        let ran = simulate_observed(fabric, *protocol, flows, observe, &mut |_| true);
        let series = ran.expect("it ends").ports.expect("ports were looked at");
        of(fabric, &series, flows)
    }

    const LOADED: [(&str, &str); 3] = [("transport", "dctcp"), ("load", "80%"), ("flows", "2000")];

    /// With DCTCP a window of every flow waits at its host: far more than at any switch.
    #[test]
    fn queues_of_hosts_do_not_displace_those_of_switches() {
        let ports = ports(&LOADED);
        let (switches, hosts): (Vec<&Port>, Vec<&Port>) =
            ports.ports.iter().partition(|port| !port.at_host);
        assert_eq!([switches.len(), hosts.len()], SHOWN);
        assert!(ports.ports.is_sorted_by_key(|port| port.at_host), "switches come first");
        assert!(switches.iter().all(|port| port.name.starts_with("switch ")));
        assert!(hosts.iter().all(|port| port.name.starts_with("host ")));
        let most = |ports: &[&Port]| ports[0].deepest_bytes.iter().max().copied();
        assert!(most(&hosts) > most(&switches) && most(&switches) > Some(0));
    }

    #[test]
    fn a_network_that_only_empties_is_not_shown() {
        let loaded = ports(&LOADED);
        let shown_ps = loaded.every_ps * loaded.columns as u64;
        let end_ps = loaded.end_ps.expect("the last flows take long");
        assert!(shown_ps < end_ps, "{shown_ps} of {end_ps}");
        // All of an incast is after its flows have started.
        let incast = [("traffic", "incast"), ("topology", "single-switch"), ("size", "60KB")];
        let whole = ports(&incast);
        assert_eq!(whole.end_ps, None);
    }
}
