//! What ports did over time, and how long flows of each size took, where a record has it.

use chart::{Axis, Cell, Heat, Kind, Look, Plot, Series, in_bytes, short};
use measure::Bytes;
use results::sim::{Port, Ports, SharePoint, Shares};

use crate::section::{Chart, Picture, Table};
use crate::words::{exact, time_ns};

/// The most columns of a heat map.
const COLUMNS_MAX: usize = 80;

// Where a column begins, in microseconds.
fn us(ports: &Ports, column: usize) -> f64 {
    column as f64 * ports.every_ps as f64 / 1e6
}

/// Heat maps of queues by port: of switches, and of hosts, whose queues are far deeper.
pub(super) fn queues(ports: &Ports) -> Vec<Picture> {
    [false, true].into_iter().filter_map(|at_host| queues_of(ports, at_host)).collect()
}

/// The heat map of queues at switches, or at hosts; `None` if no port of that kind had one.
fn queues_of(ports: &Ports, at_host: bool) -> Option<Picture> {
    let shown: Vec<&Port> = ports.ports.iter().filter(|port| port.at_host == at_host).collect();
    let most = shown.iter().flat_map(|port| &port.deepest_bytes).copied().max()?.max(1);
    let shared = ports.columns.div_ceil(COLUMNS_MAX).max(1);
    let mut table = Table::new(["port", "from_us", "deepest_bytes"]);
    for port in &shown {
        for (column, bytes) in
            port.deepest_bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0)
        {
            table.push([port.name.clone(), exact(us(ports, column)), bytes.to_string()]);
        }
    }
    let row = |port: &Port| {
        let cells = port.deepest_bytes.chunks(shared).map(|piece| {
            let bytes = piece.iter().copied().max().unwrap_or(0);
            let depth = bytes as f64 / most as f64;
            let text = in_bytes(bytes as f64);
            (bytes > 0).then_some(Cell { depth, text, is_within: false, is_doubtful: false })
        });
        (port.name.clone(), cells.collect())
    };
    let rows: Vec<_> = shown.iter().map(|port| row(port)).collect();
    let width = rows.iter().map(|row: &(String, Vec<_>)| row.1.len()).max()?;
    let (name, of) = if at_host { ("queues-hosts", "hosts") } else { ("queues", "switches") };
    let title = format!("Queues of {of} over time by port");
    Some(Picture {
        name: name.to_owned(),
        title: title.clone(),
        caption: format!(
            "The most that waited in each {}, at the {} ports of {of} whose queues held most; of \
             {} ports of the network {} ever had something wait.",
            time_ns(ports.every_ps as f64 * shared as f64 / 1e3),
            rows.len(),
            ports.port_count,
            ports.queued_count
        ),
        chart: Chart::Heat(Heat {
            title,
            axes: ("time, µs".to_owned(), String::new()),
            columns: (0..width).map(|column| short(us(ports, column * shared))).collect(),
            rows,
            edge: None,
            key: vec![(0.05, "little".to_owned()), (1.0, Bytes::new(most.into()).to_string())],
            ..Heat::default()
        }),
        table,
    })
}

/// The picture of packets dropped over time; `None` if none was.
pub(super) fn drops(ports: &Ports) -> Option<Picture> {
    let mut table = Table::new(["from_us", "dropped_packets"]);
    for (column, number) in ports.dropped_packets.iter().enumerate() {
        table.push([exact(us(ports, column)), number.to_string()]);
    }
    let points = ports.dropped_packets.iter().enumerate();
    let points = points.map(|(column, number)| (us(ports, column), *number as f64)).collect();
    let title = "Packets dropped over time".to_owned();
    ports.dropped_packets.iter().any(|number| *number > 0).then(|| Picture {
        name: "drops".to_owned(),
        title: title.clone(),
        caption: format!("At all ports, in each {}.", time_ns(ports.every_ps as f64 / 1e3)),
        chart: Chart::Plot(Plot {
            title,
            x: Axis::new("time, µs", Kind::Linear),
            y: Axis::new("packets dropped", Kind::Linear).showing(&[0.0]),
            series: vec![Series::new("", Look::Steps, points)],
            bounds: Vec::new(),
            marks: Vec::new(),
        }),
        table,
    })
}

/// The picture of completion times by flow size; `None` if the record has none.
pub(super) fn completion(shares: &[Shares]) -> Option<Picture> {
    let mut table = Table::new(["flow size", "share", "completion_us"]);
    let mut series = Vec::new();
    for one in shares.iter().filter(|one| !one.points.is_empty()) {
        let name = match one.to_bytes {
            u64::MAX => format!("> {}", in_bytes(one.over_bytes as f64)),
            bytes => format!("≤ {}", in_bytes(bytes as f64)),
        };
        let us = |point: &SharePoint| point.completion_ps as f64 / 1e6;
        for point in &one.points {
            table.push([name.clone(), exact(point.share), exact(us(point))]);
        }
        let points = one.points.iter().map(|point| (us(point), point.share)).collect();
        series.push(Series::new(name, Look::Curve, points));
    }
    let title = "Flow completion time by size".to_owned();
    (!series.is_empty()).then(|| Picture {
        name: "fct-by-size".to_owned(),
        title: title.clone(),
        caption: "The share of flows that took no longer.".to_owned(),
        chart: Chart::Plot(Plot {
            title,
            x: Axis::new("completion time, µs", Kind::Logarithmic),
            y: Axis::new("share", Kind::Linear).showing(&[0.0, 1.0]),
            series,
            bounds: vec![(0.5, "p50".to_owned()), (0.99, "p99".to_owned())],
            marks: Vec::new(),
        }),
        table,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_queue_shows_however_many_pieces_of_time_there_are() {
        let mut deepest = vec![0; 1_000];
        deepest[777] = 36_000;
        let port = Port {
            link: 1,
            name: "host 1 to switch 0".to_owned(),
            at_host: true,
            deepest_bytes: deepest,
            sent_bytes: vec![0; 1_000],
            dropped_packets: vec![0; 1_000],
        };
        let ports = Ports {
            from_ps: 0,
            every_ps: 1_000_000,
            columns: 1_000,
            port_count: 9,
            queued_count: 1,
            ports: vec![port],
            end_ps: None,
            dropped_packets: vec![0; 1_000],
            trimmed_packets: vec![0; 1_000],
        };
        let [picture] = &queues(&ports)[..] else { panic!("only a host's port had a queue") };
        assert_eq!(picture.title, "Queues of hosts over time by port");
        assert_eq!(picture.table.rows, [["host 1 to switch 0", "777", "36000"]]);
        let Chart::Heat(heat) = &picture.chart else { panic!("it is a heat map") };
        let full = heat.rows[0].1.iter().flatten().filter(|cell| cell.depth == 1.0).count();
        assert_eq!((full, heat.rows[0].1.len()), (1, 77));
        assert!(drops(&ports).is_none());
    }

    #[test]
    fn sizes_have_a_line_each() {
        let point = |share, completion_ps| SharePoint { share, completion_ps, slowdown: 1.0 };
        let points = vec![point(0.5, 1_000_000), point(1.0, 3_000_000)];
        let shares = [
            Shares { over_bytes: 0, to_bytes: 4096, count: 2, points },
            Shares { over_bytes: 4096, to_bytes: u64::MAX, count: 0, points: Vec::new() },
        ];
        let picture = completion(&shares).expect("one has flows");
        assert_eq!(picture.table.rows, [["≤ 4 KiB", "0.5", "1"], ["≤ 4 KiB", "1", "3"]]);
    }
}
