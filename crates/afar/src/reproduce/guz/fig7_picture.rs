//! The picture of Fig. 7 and 8: a distribution for each load, and bars of what is added.

use chart::{Anchor, BLUE, GREEN, GREY, ORANGE, Panel, Scale, Svg, Tick, axis, decades};
use measure::Histogram;

use super::fig7::Curve;
use super::paper;
use super::stages::Stages;

const SIZE: (f64, f64) = (900.0, 500.0);
const LEFT: f64 = 70.0;
const PANEL: (f64, f64) = (236.0, 220.0);
const GAP: f64 = 38.0;
/// Of the shares, so that the tail does not make the axis.
const LAST: f64 = 0.995;
const STEPS: u32 = 100;
const NETWORK: &str = "#E69F00";

pub(super) fn draw(curves: &[Curve], stages: &Stages) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    svg.key((LEFT, 20.0), &[("local", BLUE), ("NVMe/TCP", ORANGE)]);
    let mut left = LEFT;
    for curve in curves {
        distribution(&mut svg, left, curve);
        left += PANEL.0 + GAP;
    }
    added(&mut svg, stages);
    svg.finish("Distributions of read latency under three loads, and the parts of an unloaded read")
}

fn distribution(svg: &mut Svg, left: f64, curve: &Curve) {
    let us = |latency: &Histogram, q: f64| latency.quantile(q).as_ns_f64() / 1e3;
    let both = [&curve.local, &curve.remote];
    let low = both.map(|latency| us(latency, 0.0)).into_iter().fold(80.0, f64::min).max(1.0);
    let high = both.map(|latency| us(latency, LAST)).into_iter().fold(low * 2.5, f64::max);
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
    for (latency, colour) in both.into_iter().zip([BLUE, ORANGE]) {
        let shares = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS) * LAST);
        let line: Vec<(f64, f64)> =
            shares.map(|q| panel.at(us(latency, q).clamp(low, high), q)).collect();
        svg.path(&line, colour, "stroke-width=\"2\"");
    }
    svg.frame(&panel);
    svg.text((left + PANEL.0 / 2.0, 44.0), &curve.name, Anchor::Middle);
}

// What the paper's network adds and what ours does, in parts, above one another.
fn added(svg: &mut Svg, stages: &Stages) {
    let ours = stages.added();
    let parts = [ours.host_us, ours.target_us, ours.wire_us];
    let theirs = [
        paper::ADDED_HOST_US,
        paper::ADDED_TARGET_US,
        paper::ADDED_NETWORK_US + paper::ADDED_ELSEWHERE_US,
    ];
    let most = parts.iter().map(|us| us.max(0.0)).sum::<f64>().max(paper::ADDED_US);
    let (high, ticks) = axis(most, |us| format!("{us}"));
    let panel = Panel {
        left: LEFT + 60.0,
        top: 356.0,
        width: SIZE.0 - LEFT - 90.0,
        height: 90.0,
        x: Scale::Linear(0.0, high),
        y: Scale::Linear(0.0, 2.0),
    };
    let names = [(1.5, "paper".to_owned()), (0.5, "here".to_owned())];
    svg.axes(&panel, ("added to an unloaded read by remote access, µs", &ticks), ("", &names));
    for (parts, bottom) in [(theirs, 1.2), (parts, 0.2)] {
        let mut from = 0.0;
        for (us, colour) in parts.into_iter().zip([GREEN, NETWORK, GREY]) {
            let to = from + us.max(0.0);
            svg.bar(panel.at(from, bottom), panel.at(to, bottom + 0.6), colour);
            from = to;
        }
    }
    svg.frame(&panel);
    let names = [("host", GREEN), ("target", NETWORK), ("network, kernels, elsewhere", GREY)];
    svg.key((LEFT + 60.0, 344.0), &names);
}
