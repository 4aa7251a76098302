//! Draws curves of latency against load: average and 95th percentile, on a logarithmic axis; for
//! sweeps of `afar bench`, and for Fig. 6 of Guz et al. in `afar reproduce`.

use chart::{Anchor, GREY, Panel, Scale, Svg, Tick, decades};
use measure::Histogram;

/// A curve: latency of one way to a disk, by load.
#[derive(Debug)]
pub struct Curve<'a> {
    /// The name in the key.
    pub name: &'a str,
    /// The colour of the lines.
    pub colour: &'static str,
    /// The points, by ascending load.
    pub points: Vec<Point>,
}

/// Latencies under a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Position on the axis of loads.
    pub load: f64,
    /// Mean latency, in microseconds.
    pub mean_us: f64,
    /// 95th percentile of latency, in microseconds.
    pub p95_us: f64,
}

/// Title, axes and notes around the curves.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The title, for screen readers.
    pub title: &'a str,
    /// The label of the axis of loads.
    pub loads: &'a str,
    /// The label of the axis of latencies.
    pub latencies: &'a str,
    /// The end of the axis of loads, which begins at 0, and its ticks.
    pub axis: (f64, Vec<Tick>),
    /// The least range of the axis of latencies, in microseconds.
    pub shown_us: (f64, f64),
    /// A latency to mark with a horizontal line, in microseconds.
    pub bound_us: Option<f64>,
    /// A load to mark with a vertical line, and its name.
    pub mark: Option<(f64, &'a str)>,
    /// A line below the key.
    pub note: &'a str,
}

const SIZE: (f64, f64) = (640.0, 420.0);
const LEFT: f64 = 76.0;
const DASHED: &str = "stroke-width=\"2\" stroke-dasharray=\"6 4\"";
const SOLID: &str = "stroke-width=\"2\"";
const DOTTED: &str = "stroke-width=\"1\" stroke-dasharray=\"2 3\"";

impl Point {
    /// The point of a load and its distribution of latency.
    #[must_use]
    pub fn of(load: f64, latency: &Histogram) -> Self {
        let mean_us = latency.mean().as_ns_f64() / 1e3;
        Self { load, mean_us, p95_us: latency.quantile(0.95).as_ns_f64() / 1e3 }
    }
}

/// Draws curves as SVG.
#[must_use]
pub fn draw(frame: &Frame<'_>, curves: &[Curve<'_>]) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    let latencies = curves.iter().flat_map(|curve| &curve.points);
    let latencies = latencies.flat_map(|point| [point.mean_us, point.p95_us]);
    let (low, high) = latencies
        .fold(frame.shown_us, |(low, high): (f64, f64), us| (low.min(us), high.max(us * 1.1)));
    let (end, ticks) = &frame.axis;
    let panel = Panel {
        left: LEFT,
        top: 52.0,
        width: SIZE.0 - LEFT - 32.0,
        height: 300.0,
        x: Scale::Linear(0.0, *end),
        y: Scale::Logarithmic(low, high),
    };
    svg.axes(&panel, (frame.loads, ticks), (frame.latencies, &decades(low, high)));
    if let Some(us) = frame.bound_us {
        svg.line(panel.at(0.0, us), panel.at(*end, us), GREY, DOTTED);
    }
    if let Some((load, name)) = frame.mark {
        let (x, y) = panel.at(load, high);
        svg.line((x, y), panel.at(load, low), GREY, DOTTED);
        svg.tinted((x - 6.0, y + 16.0), name, Anchor::End, GREY);
    }
    type Figure = fn(&Point) -> f64;
    let figures: [(Figure, &str); 2] = [(|one| one.mean_us, SOLID), (|one| one.p95_us, DASHED)];
    for (figure, style) in figures {
        for Curve { colour, points, .. } in curves {
            let at = |point: &Point| panel.at(point.load, figure(point));
            let line: Vec<(f64, f64)> = points.iter().map(at).collect();
            svg.path(&line, colour, style);
            line.iter().for_each(|&at| svg.dot(at, colour, style == DASHED));
        }
    }
    svg.frame(&panel);
    let names: Vec<(&str, &str)> = curves.iter().map(|curve| (curve.name, curve.colour)).collect();
    svg.key((LEFT, 20.0), &names);
    svg.tinted((LEFT, 40.0), frame.note, Anchor::Start, GREY);
    svg.finish(frame.title)
}

#[cfg(test)]
mod tests {
    use measure::Duration;

    use super::*;

    #[test]
    fn a_curve_is_two_lines() {
        let latency = |us: u64| {
            let mut histogram = Histogram::new();
            histogram.record(Duration::from_us(us));
            histogram
        };
        let points = vec![Point::of(1.0, &latency(50)), Point::of(2.0, &latency(5_000))];
        let frame = Frame {
            title: "t",
            loads: "l",
            latencies: "µs",
            axis: chart::axis(2.0, |load| format!("{load}")),
            shown_us: (80.0, 200.0),
            bound_us: Some(100.0),
            mark: Some((2.0, "most")),
            note: "n",
        };
        let drawn = draw(&frame, &[Curve { name: "disk", colour: chart::BLUE, points }]);
        assert_eq!(drawn.matches("<polyline").count(), 2);
        assert_eq!(drawn.matches("<circle").count(), 4);
        // The highest lies a tenth below the upper edge of the axis, the lowest on the lower one.
        assert!(drawn.contains(",352.0") && !drawn.contains("NaN"), "{drawn}");
    }
}
