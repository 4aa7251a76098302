//! Two panels over local memory: fetches by policy, slowdown by network.

use chart::{Anchor, GREY, PALETTE, Panel, Scale, Svg, Tick, axis};
use results::prediction::Facts;

use super::model::Prediction;
use super::told::miss_ratio;

const SIZE: (f64, f64) = (900.0, 430.0);
const LEFTS: [f64; 2] = [76.0, 520.0];
const WIDTH: f64 = 350.0;
const SOLID: &str = "stroke-width=\"2\"";

/// Draws the panels as SVG.
pub(super) fn draw(facts: &Facts, prediction: &Prediction) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    let misses = prediction.policies.iter().enumerate().map(|(at, policy)| {
        let line = prediction.sizes.iter().map(|size| miss_ratio(&size.replayed[at]) * 100.0);
        (policy.to_string(), line.collect())
    });
    let misses: Vec<(String, Vec<f64>)> = misses.collect();
    panel(&mut svg, prediction, LEFTS[0], ("fetches, % of touches seen", 0.0), &misses);
    let networks = prediction.sizes.first().map_or(0, |size| size.points.len());
    let slowdowns = (0..networks).map(|at| {
        let of = |size: &super::model::Size| size.points[at].slowdown.value;
        let point = &prediction.sizes[0].points[at];
        let rate = point.bandwidth.map_or_else(String::new, |rate| format!(" {rate}"));
        (format!("{}{rate}", point.rtt), prediction.sizes.iter().map(of).collect())
    });
    let slowdowns: Vec<(String, Vec<f64>)> = slowdowns.collect();
    let title = format!("slowdown with {}", prediction.policy);
    panel(&mut svg, prediction, LEFTS[1], (&title, 1.0), &slowdowns);
    let name = facts.program.first().map_or("", String::as_str);
    svg.finish(&format!("Predicted for {name}"))
}

/// Draws a panel of lines over the sizes; the y axis begins at `from`.
fn panel(
    svg: &mut Svg,
    prediction: &Prediction,
    left: f64,
    (title, from): (&str, f64),
    lines: &[(String, Vec<f64>)],
) {
    let most =
        lines.iter().flat_map(|(_, line)| line).fold(0.01_f64, |most, &y| most.max(y - from));
    let (end, ticks) = axis(most, |y| short(y + from));
    let sizes = prediction.sizes.len();
    let panel = Panel {
        left,
        top: 62.0,
        width: WIDTH,
        height: 300.0,
        x: Scale::Linear(0.0, (sizes.max(2) - 1) as f64),
        y: Scale::Linear(0.0, end),
    };
    // At most as many names as fit side by side.
    let every = sizes.div_ceil(10).max(1);
    let named = prediction.sizes.iter().enumerate().step_by(every);
    let names: Vec<Tick> = named.map(|(at, size)| (at as f64, size.local.to_string())).collect();
    let of = match prediction.of {
        of if prediction.has_share() => format!("local memory, of {}", of.told(None)),
        _ => "local memory".to_owned(),
    };
    svg.axes(&panel, (&of, &names), (title, &ticks));
    let colours = PALETTE.iter().copied().cycle();
    for ((_, line), colour) in lines.iter().zip(colours.clone()) {
        let at = |(x, y): (usize, &f64)| panel.at(x as f64, y - from);
        let points: Vec<(f64, f64)> = line.iter().enumerate().map(at).collect();
        svg.path(&points, colour, SOLID);
        points.iter().for_each(|&at| svg.dot(at, colour, false));
    }
    svg.frame(&panel);
    // Two rows of names, so that none leaves the picture.
    for (row, some) in lines.chunks(4).enumerate().take(2) {
        let colours = colours.clone().skip(row * 4);
        let key: Vec<(&str, &str)> =
            some.iter().zip(colours).map(|((name, _), colour)| (name.as_str(), colour)).collect();
        svg.key((left, 20.0 + row as f64 * 18.0), &key);
    }
    if lines.len() > 8 {
        svg.tinted((left, 58.0), "further networks without a name", Anchor::Start, GREY);
    }
}

// A number without trailing zeros.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
