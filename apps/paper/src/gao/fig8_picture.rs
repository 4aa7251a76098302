//! Figure 8 as a picture: a group of bars for each network, in it three for each program.

use chart::{Anchor, BLUE, GREEN, GREY, ORANGE, Panel, Scale, Svg, Tick, axis, wrap};

use super::fig8_case::{NETWORKS, Point, degradations};
use super::workloads::{LABELS, WORKLOADS};

const WIDTH: f64 = 960.0;
/// Height of a line of text.
const LINE: f64 = 17.0;

/// Draws the figure with its caption.
pub(super) fn draw(title: &str, points: &[Point], caption: &str) -> String {
    let lines: Vec<String> =
        caption.split('\n').flat_map(|part| wrap(part, WIDTH - 94.0)).collect();
    let mut svg = Svg::new(WIDTH, 470.0 + lines.len() as f64 * LINE);
    svg.text((70.0, 24.0), title, Anchor::Start);
    let key = [("idle network", GREEN), ("fed back once", BLUE), ("closed", ORANGE)];
    svg.key((70.0, 48.0), &key);
    let note = "dashed: the paper's averages with queueing; thin: half of what runs differ by";
    svg.tinted((70.0, 70.0), note, Anchor::Start, GREY);
    let most = points.iter().flat_map(|point| &point.fed).flatten().filter_map(degradations);
    let most = most.flatten().map(|of| of.median + of.noise).fold(0.15, f64::max);
    let (high, ticks) = axis(most * 100.0, |value| format!("{value} %"));
    let count = WORKLOADS.len() as f64;
    let x = Scale::Linear(0.0, (count + 1.0) * NETWORKS.len() as f64);
    let (left, width) = (70.0, 866.0);
    let panel = Panel { left, top: 88.0, width, height: 300.0, x, y: Scale::Linear(0.0, high) };
    let mut labels: Vec<Tick> = Vec::new();
    for network in 0..NETWORKS.len() {
        for (place, label) in LABELS.iter().enumerate() {
            let at = network as f64 * (count + 1.0) + place as f64 + 1.0;
            labels.push((at, (*label).to_owned()));
        }
    }
    svg.axes(&panel, ("", &labels), ("slower than without delay", &ticks));
    for (place, network) in NETWORKS.iter().enumerate() {
        let start = place as f64 * (count + 1.0) + 0.5;
        let middle = panel.at(start + count / 2.0, 0.0);
        let name = format!("{} {}", network.rate, network.scale);
        svg.text((middle.0, middle.1 + 42.0), &name, Anchor::Middle);
        let paper = [network.paper.0, network.paper.1].map(|share| share * 100.0);
        let (one, other) = (panel.at(start, paper[0]), panel.at(start + count, paper[1]));
        svg.band(one, other, GREY);
        for share in paper {
            let ends = (panel.at(start, share), panel.at(start + count, share));
            svg.line(ends.0, ends.1, GREY, "stroke-width=\"1.5\" stroke-dasharray=\"5 4\"");
        }
        for (program, point) in points.iter().enumerate() {
            let Some(shares) = point.fed[place].as_ref().and_then(degradations) else { continue };
            for (bar, (of, (_, colour))) in shares.into_iter().zip(key).enumerate() {
                let from = start + program as f64 + 0.1 + bar as f64 * 0.27;
                let at = |share: f64| (share * 100.0).clamp(0.0, high);
                svg.bar(panel.at(from, 0.0), panel.at(from + 0.24, at(of.median)), colour);
                let ends = [of.median - of.noise, of.median + of.noise]
                    .map(|share| panel.at(from + 0.12, at(share)));
                svg.line(ends[0], ends[1], GREY, "stroke-width=\"1\"");
            }
        }
    }
    svg.frame(&panel);
    for (index, line) in lines.iter().enumerate() {
        svg.tinted((70.0, 462.0 + index as f64 * LINE), line, Anchor::Start, GREY);
    }
    svg.finish(title)
}
