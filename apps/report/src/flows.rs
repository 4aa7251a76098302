//! Every flow of a simulation: how long each took, and by how much longer than alone.

use std::fs::File;

use chart::{Axis, Kind, Look, Plot, Point, Series, in_bytes};
use records::RecordError;

use super::run::{distribution, distributions};
use super::section::{Chart, Picture, Section, Table};
use super::words::{exact, time_ns};
use console::layout::count;

/// The most rows of the table of flows.
const ROWS_MAX: usize = 200_000;
/// The number of groups of flows of like size, each with as many flows.
const GROUPS: usize = 20;

/// The columns of a flow that are read.
#[derive(Debug, Clone, Copy)]
struct Flow {
    bytes: f64,
    completion_ps: u64,
    slowdown: f64,
}

/// The section of flows that `afar sim` has written as Parquet.
pub(super) fn section(file: File) -> Result<Section, RecordError> {
    let text = records::read_table(file)?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &'static str| {
        let place = names.iter().position(|one| *one == name);
        place.ok_or(RecordError::NoColumn(name))
    };
    let places = [place("bytes")?, place("completion_ps")?, place("slowdown")?];
    let mut flows = Vec::new();
    let mut table = Table {
        columns: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Table::default()
    };
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let [bytes, completion, slowdown] =
            places.map(|place| cells.get(place).copied().unwrap_or(""));
        let flow = (bytes.parse(), completion.parse(), slowdown.parse());
        if let (Ok(bytes), Ok(completion_ps), Ok(slowdown)) = flow {
            flows.push(Flow { bytes, completion_ps, slowdown });
        }
        if table.rows.len() < ROWS_MAX {
            table.rows.push(cells.into_iter().map(str::to_owned).collect());
        }
    }
    table.cut_from = (flows.len() > ROWS_MAX).then_some(flows.len() as u64);
    let mut section = Section {
        title: "Every flow of a simulation".to_owned(),
        kind: "flows",
        answer: vec![answer(&flows)],
        ..Section::default()
    };
    if !flows.is_empty() {
        section.pictures.push(completion(&flows));
        section.pictures.push(by_size(&mut flows, table));
    }
    Ok(section)
}

/// A sentence with the number of flows and their completion times.
fn answer(flows: &[Flow]) -> String {
    if flows.is_empty() {
        return "The record has no flows.".to_owned();
    }
    let mut times: Vec<u64> = flows.iter().map(|flow| flow.completion_ps).collect();
    times.sort_unstable();
    let at = |share: f64| time_ns(quantile(&times, share) as f64 / 1e3);
    format!(
        "{} flows; half were complete within {}, 99 of 100 within {}.",
        count(flows.len() as u64),
        at(0.5),
        at(0.99)
    )
}

/// A quantile of a sorted list that is not empty.
fn quantile<T: Copy>(sorted: &[T], share: f64) -> T {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let index = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len()) - 1;
    sorted[index]
}

/// The picture of the distribution of completion times.
fn completion(flows: &[Flow]) -> Picture {
    let mut times: Vec<u64> = flows.iter().map(|flow| flow.completion_ps / 1000).collect();
    times.sort_unstable();
    let shared = times.chunk_by(|one, other| one == other);
    let bins: Vec<(u64, u64)> = shared.map(|same| (same[0], same.len() as u64)).collect();
    let title = "Flow completion time";
    let caption = "The share of flows that took no longer, to the nanosecond.";
    let mut picture = distributions(title, caption, vec![distribution("flows", &bins)]);
    picture.name = "fct-cdf".to_owned();
    picture
}

/// The picture of slowdown by flow size, with `table` behind it.
fn by_size(flows: &mut [Flow], table: Table) -> Picture {
    flows.sort_by(|one, other| one.bytes.total_cmp(&other.bytes));
    let groups = flows.chunks(flows.len().div_ceil(GROUPS));
    let series = |name: &str, share: f64| {
        let points = groups.clone().map(|group| {
            let mut slowdowns: Vec<f64> = group.iter().map(|flow| flow.slowdown).collect();
            slowdowns.sort_by(f64::total_cmp);
            let middle = group[group.len() / 2].bytes;
            Point { x: middle, y: quantile(&slowdowns, share), interval: None }
        });
        Series { name: name.to_owned(), points: points.collect(), look: Look::Line }
    };
    let chart = Plot {
        title: "Slowdown by flow size".to_owned(),
        x: Axis::new("flow size", Kind::Logarithmic).labelled(in_bytes),
        y: Axis::new("slowdown", Kind::Either).showing(&[1.0]),
        series: vec![series("p50", 0.5), series("p99", 0.99), series("longest", 1.0)],
        bounds: Vec::new(),
        marks: Vec::new(),
    };
    Picture {
        name: "slowdown-by-size".to_owned(),
        title: "Slowdown by flow size, every flow".to_owned(),
        caption: format!(
            "Completion time by that of the flow alone in the network; groups of about {} flows \
             of like size, at the size in their middle.{}",
            exact(flows.len().div_ceil(GROUPS) as f64),
            if table.cut_from.is_none() { " The table has every flow." } else { "" }
        ),
        chart: Chart::Plot(chart),
        table,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_every_flow_and_the_slowest_shows() {
        let mut flows: Vec<Flow> = (1..=1_000_u64)
            .map(|at| Flow { bytes: at as f64, completion_ps: at * 1_000, slowdown: 1.0 })
            .collect();
        flows[500].slowdown = 30.0;
        assert!(answer(&flows).starts_with("1,000 flows; half were complete within 500 ns, 99"));
        let picture = by_size(&mut flows, Table::default());
        let Chart::Plot(plot) = picture.chart else { panic!("it is a plot") };
        assert_eq!(plot.series[2].points.len(), GROUPS);
        assert!(plot.series[2].points.iter().any(|one| one.y == 30.0));
        assert!(plot.series[0].points.iter().all(|one| one.y == 1.0));
    }
}
