//! Completion times and slowdowns as cumulative distributions, by size of flows.

use std::fmt::Write as _;

use records::FlowRow;
use results::sim::{SharePoint, Shares};
use results::{BinFigures, Figures};

/// The quantiles of a distribution in 1/10,000: every percent, and finer in the tail.
fn ten_thousandths() -> impl Iterator<Item = usize> {
    (0..=99).map(|percent| percent * 100).chain([9950, 9990, 9999, 10_000])
}

/// The distributions of every bin of sizes that has flows.
pub(crate) fn of(figures: &Figures, rows: &[FlowRow]) -> Vec<Shares> {
    figures.bins.iter().map(|bin| of_bin(bin, rows)).collect()
}

/// The distributions of completion time and slowdown in one bin.
fn of_bin(bin: &BinFigures, rows: &[FlowRow]) -> Shares {
    let (over_bytes, to_bytes) = (bin.over_bytes, bin.to_bytes);
    let within = || rows.iter().filter(|row| (over_bytes + 1..=to_bytes).contains(&row.flow.bytes));
    let mut times: Vec<u64> = within().map(|row| row.completion_ps).collect();
    let mut slowdowns: Vec<f64> = within().map(|row| row.slowdown).collect();
    times.sort_unstable();
    slowdowns.sort_by(f64::total_cmp);
    let point = |rank: usize| {
        let place = (times.len() * rank).div_ceil(10_000).max(1) - 1;
        let (completion_ps, slowdown) = (*times.get(place)?, *slowdowns.get(place)?);
        Some(SharePoint { share: rank as f64 / 1e4, completion_ps, slowdown })
    };
    let points = ten_thousandths().filter_map(point).collect();
    Shares { over_bytes, to_bytes, count: times.len(), points }
}

/// The CSV: a line for each quantile of each bin; the last bin has no upper end.
pub(super) fn csv(all: &[Shares]) -> String {
    let mut text = "over_bytes,to_bytes,count,share,completion_ps,slowdown\n".to_owned();
    for Shares { over_bytes, to_bytes, count, points } in all {
        let to = if *to_bytes == u64::MAX { String::new() } else { to_bytes.to_string() };
        for SharePoint { share, completion_ps, slowdown } in points {
            let _infallible =
                writeln!(text, "{over_bytes},{to},{count},{share},{completion_ps},{slowdown}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use records::FlowStart;

    use super::*;
    use results::Spread;

    #[test]
    fn quantiles_are_nearest_ranks_of_each_column() {
        let row = |number: u64| FlowRow {
            flow: FlowStart {
                start_ps: 0,
                src: 0,
                dst: 1,
                bytes: 1 + number % 2 * 9000,
                exchange: None,
            },
            completion_ps: 1000 - number,
            ideal_ps: 1,
            slowdown: number as f64,
            sent_packets: 1,
            dropped_packets: 0,
        };
        let rows: Vec<FlowRow> = (0..400).map(row).collect();
        let slowdown = Spread { count: 200, mean: 0.0, p50: 0.0, p99: 0.0, p999: 0.0 };
        let bin = of_bin(&BinFigures { over_bytes: 4096, to_bytes: 10_240, slowdown }, &rows);
        // The odd numbers: 1, 3, … 399.
        let at = |share: f64| {
            let point = bin.points.iter().find(|point| point.share == share).expect("a quantile");
            (point.completion_ps, point.slowdown)
        };
        assert_eq!(bin.count, 200);
        assert_eq!([at(0.0), at(0.5), at(0.99)], [(601, 1.0), (799, 199.0), (995, 395.0)]);
        assert_eq!(at(1.0), (999, 399.0));
        assert_eq!(csv(&[bin]).lines().nth(1), Some("4096,10240,200,0,601,1"));
    }
}
