//! Draws Fig. 7: a distribution for each load, with a line for each way.

use chart::{Anchor, Panel, Scale, Svg, Tick, decades};
use measure::Histogram;

use super::super::way::{PerWay, Way};

/// A load, and the latency of all repetitions together.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    pub(super) name: String,
    /// Share of the highest throughput of local access; one read at a time if `None`.
    pub(super) load: Option<f64>,
    pub(super) latency: PerWay<Histogram>,
}

const SIZE: (f64, f64) = (900.0, 340.0);
const LEFT: f64 = 70.0;
const PANEL: (f64, f64) = (236.0, 220.0);
const GAP: f64 = 38.0;
/// The last quantile that is drawn, so that the tail does not stretch the axis.
const LAST: f64 = 0.995;
const STEPS: u32 = 100;

/// Draws the picture as SVG.
pub(super) fn draw(curves: &[Curve]) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    svg.key((LEFT, 20.0), &Way::key(&Way::ALL));
    let mut left = LEFT;
    for curve in curves {
        distribution(&mut svg, left, curve);
        left += PANEL.0 + GAP;
    }
    svg.finish("Distributions of read latency under three loads, over three ways")
}

// Draws the panel of one load, at `left`.
fn distribution(svg: &mut Svg, left: f64, curve: &Curve) {
    let us = |latency: &Histogram, q: f64| latency.quantile(q).as_ns_f64() / 1e3;
    let low = curve.latency.map(|latency| us(latency, 0.0)).least().clamp(1.0, 80.0);
    let high = curve.latency.map(|latency| us(latency, LAST)).most().max(low * 2.5);
    let panel = Panel {
        left,
        top: 52.0,
        width: PANEL.0,
        height: PANEL.1,
        x: Scale::Logarithmic(low, high),
        y: Scale::Linear(0.0, 1.0),
    };
    let is_first = left == LEFT;
    let shares: Vec<Tick> = [0.0, 0.25, 0.5, 0.75, 1.0]
        .map(|at| (at, if is_first { format!("{at}") } else { String::new() }))
        .into();
    let title = if is_first { "share of reads" } else { "" };
    svg.axes(&panel, ("latency, µs", &decades(low, high)), (title, &shares));
    for way in Way::ALL {
        let latency = &curve.latency[way];
        let shares = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS) * LAST);
        let line: Vec<(f64, f64)> =
            shares.map(|q| panel.at(us(latency, q).clamp(low, high), q)).collect();
        svg.path(&line, way.colour(), "stroke-width=\"2\"");
    }
    svg.frame(&panel);
    svg.text((left + PANEL.0 / 2.0, 44.0), &curve.name, Anchor::Middle);
}
