//! The picture of Table 5's figure: both ladders, and the times of single pages.

use chart::{BLUE, GREEN, GREY, ORANGE, PURPLE};
use ladder::{Cell, Direction, Rung, Runs, TimeOf, Way, cell, fetch, rate};

use super::published;
use crate::plot::{Axis, Chart, Kind, Series, draw};

const PAPER: &str = "the paper's device over RDMA";
/// Quantiles of the picture, and those that the paper has.
const QUANTILES: [(&str, TimeOf); 4] = [
    ("median", |seen| seen.p50_ns),
    ("90th", |seen| seen.p90_ns),
    ("99.5th", |seen| seen.p995_ns),
    ("longest", |seen| seen.max_ns),
];

/// Draws the figure.
pub(super) fn picture(title: &str, runs: &Runs, caption: &[String]) -> String {
    let charts = [
        ladder(runs, Direction::In, "pages come in, GB/s"),
        ladder(runs, Direction::Out, "pages go out, GB/s"),
        times(runs),
    ];
    draw(title, &charts, 1, caption)
}

const fn colour(way: Way) -> &'static str {
    match way {
        Way::Memory => GREEN,
        Way::Nvme => BLUE,
        Way::Swap => GREY,
    }
}

// The chart of the ladder in one direction.
fn ladder(runs: &Runs, direction: Direction, title: &str) -> Chart {
    let names = Rung::ALL.map(|rung| rung.told().to_owned());
    let mut series = Vec::new();
    for way in Way::ALL {
        let place = |(at, rung)| {
            let estimate = runs.estimate(cell(way, rung, direction), rate)?;
            Some((at, estimate.median))
        };
        let points: Vec<(f64, f64)> =
            [1.0, 2.0, 3.0].into_iter().zip(Rung::ALL).filter_map(place).collect();
        if !points.is_empty() {
            let (name, colour) = (way.told().to_owned(), colour(way));
            series.push(Series { name, colour, points, kind: Kind::Ours });
        }
    }
    let theirs = [1.0, 2.0, 3.0].into_iter().zip(published::LADDER).collect();
    series.push(paper(theirs));
    let y = Axis::decades("", 0.01, 10.0);
    Chart { title: title.to_owned(), x: Axis::names("", &names), y, series }
}

fn paper(points: Vec<(f64, f64)>) -> Series {
    Series { name: PAPER.to_owned(), colour: ORANGE, points, kind: Kind::Theirs }
}

// The chart of the times of single pages.
fn times(runs: &Runs) -> Chart {
    let mut series = Vec::new();
    let ways = Way::ALL.map(|way| (way.told(), colour(way), fetch(way), Kind::Ours));
    let echo = ("a bare TCP echo of 4 KiB", PURPLE, Cell::Echo, Kind::Ours);
    for (name, colour, cell, kind) in ways.into_iter().chain([echo]) {
        let place = |(at, (_, of)): (f64, (&str, TimeOf))| {
            let estimate = runs.estimate(cell, |seen| of(seen) as f64 / 1e3)?;
            Some((at, estimate.median))
        };
        let points: Vec<(f64, f64)> =
            [1.0, 2.0, 3.0, 4.0].into_iter().zip(QUANTILES).filter_map(place).collect();
        if !points.is_empty() {
            series.push(Series { name: name.to_owned(), colour, points, kind });
        }
    }
    let [_, _, median, p995, most] = published::RDMA_NS.map(|ns| ns / 1e3);
    series.push(paper(vec![(1.0, median), (3.0, p995), (4.0, most)]));
    Chart {
        title: "one page at a time, µs".to_owned(),
        x: Axis::names("quantile", &QUANTILES.map(|(name, _)| name.to_owned())),
        y: Axis::decades("", 0.5, 10_000.0),
        series,
    }
}

#[cfg(test)]
mod tests {
    use experiment::noise::Noise;
    use ladder::{Moved, Seen, Turn};

    use super::*;

    #[test]
    fn ways_that_were_not_measured_are_not_drawn() {
        let mut runs = Runs::default();
        for cell in [fetch(Way::Memory), Cell::Echo] {
            let moved = Moved { elapsed_ns: 1, wanted_bytes: 1, ..Moved::default() };
            let seen = Seen { p50_ns: 4_000, moved: Some(moved), ..Seen::default() };
            runs.add(cell, 0, Turn { seen, noise: Noise::default(), disturbed: None });
        }
        let drawn = picture("title", &runs, &[]);
        // Three points of the paper in each chart; one of our ladder, and four of two times each.
        assert_eq!(drawn.matches("<circle").count(), 3 * 3 + 1 + 2 * 4, "{drawn}");
        assert!(drawn.contains("device over RDMA") && !drawn.contains("zram"), "{drawn}");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }
}
