//! Figure 7 as a picture: a panel for each network, one axis for all of them.

use chart::{Anchor, GREY, PALETTE, Panel, Scale, Svg, Tick, slowdowns, text_width, wrap};

use super::fig7_case::{Bar, Extent, PUBLISHED_COUNT, Place, TRANSPORTS};
use super::workloads::WORKLOADS;

const WIDTH: f64 = 980.0;
const LEFT: f64 = 70.0;
const HEIGHT: f64 = 190.0;
/// Height below a panel, for the loads and the names of programs.
const BELOW: f64 = 112.0;
/// Bars of a program, one or two for each transport,
const SLOTS: f64 = (TRANSPORTS.len() + PUBLISHED_COUNT) as f64;
/// and the gap between programs, in bars.
const GAP: f64 = 1.5;
/// Height of a line of text.
const LINE: f64 = 17.0;

/// Draws the figure with its caption.
pub(super) fn draw(title: &str, extent: &Extent, bars: &[Bar], caption: &str) -> String {
    let places = Place::all(extent);
    let lines = wrap(caption, WIDTH - LEFT - 24.0);
    let panels = places.len() as f64 * (HEIGHT + BELOW + 30.0);
    let mut svg = Svg::new(WIDTH, 100.0 + panels + lines.len() as f64 * LINE + 20.0);
    svg.text((LEFT, 24.0), title, Anchor::Start);
    let key: Vec<(&str, &str)> = TRANSPORTS.into_iter().zip(PALETTE).collect();
    svg.key((LEFT, 48.0), &key);
    let note = "hollow: as published in 2016; full: now; thin lines: intervals over seeds; below: \
                load of hosts' links";
    svg.tinted((LEFT, 70.0), note, Anchor::Start, GREY);
    let shown = bars.iter().filter(|bar| bar.case.place.is_batched);
    let most = shown.map(top).fold(1.5, f64::max);
    let axis = slowdowns(most * 1.05);
    for (index, place) in places.into_iter().enumerate() {
        let top = 110.0 + index as f64 * (HEIGHT + BELOW + 30.0);
        panel(&mut svg, (extent, place), bars, (top, &axis));
    }
    for (index, line) in lines.iter().enumerate() {
        let down = 110.0 + panels + index as f64 * LINE;
        svg.tinted((LEFT, down), line, Anchor::Start, GREY);
    }
    svg.finish(title)
}

/// The upper end of a bar or of its interval.
fn top(bar: &Bar) -> f64 {
    bar.slowdown.ends().map_or(bar.slowdown.median, |(_, high)| high)
}

/// Draws the panel of one network.
fn panel(
    svg: &mut Svg,
    (extent, place): (&Extent, Place),
    bars: &[Bar],
    (top, (y, ticks)): (f64, &(Scale, Vec<Tick>)),
) {
    let group = SLOTS + GAP;
    let x = Scale::Linear(0.0, group * WORKLOADS.len() as f64);
    let panel = Panel { left: LEFT, top, width: WIDTH - LEFT - 24.0, height: HEIGHT, x, y: *y };
    svg.text((LEFT, top - 8.0), &place.name(extent), Anchor::Start);
    svg.axes(&panel, ("", &[]), ("slowdown", ticks));
    for bar in bars.iter().filter(|bar| bar.case.place == place) {
        let from = bar.case.workload as f64 * group + GAP / 2.0 + slot(bar);
        let colour = PALETTE[bar.case.transport];
        let at = |right: f64, value: f64| panel.at(from + right, value.max(1.0));
        let (one, other) = (at(0.1, 1.0), at(0.9, bar.slowdown.median));
        if bar.case.is_published {
            let corners = [one, (one.0, other.1), other, (other.0, one.1), one];
            svg.path(&corners, colour, "stroke-width=\"1.5\"");
        } else {
            svg.bar(one, other, colour);
        }
        if let Some((low, high)) = bar.slowdown.ends() {
            svg.line(at(0.5, low), at(0.5, high), GREY, "stroke-width=\"1.5\"");
        }
        let load = format!("{:.1} %", bar.load * 100.0);
        let (middle, bottom) = at(0.5, 1.0);
        svg.turned((middle + 4.5, bottom + 6.0 + text_width(&load)), &load, GREY);
    }
    for (workload, (name, _)) in WORKLOADS.iter().enumerate() {
        let middle = panel.at((workload as f64 + 0.5) * group, 1.0);
        svg.text((middle.0, middle.1 + BELOW - 34.0), name, Anchor::Middle);
    }
    svg.frame(&panel);
}

/// The position of a bar among those of its program.
fn slot(bar: &Bar) -> f64 {
    let before = bar.case.transport + bar.case.transport.min(PUBLISHED_COUNT);
    let is_second = bar.case.transport < PUBLISHED_COUNT && !bar.case.is_published;
    (before + usize::from(is_second)) as f64
}

#[cfg(test)]
mod tests {
    use super::super::fig7_case::tests::{EXTENT, bars};
    use super::*;

    #[test]
    fn every_bar_has_its_load_and_its_interval_and_all_have_one_axis() {
        let bars = bars(|case| 1.1 + case.transport as f64);
        let drawn = draw("Title", &EXTENT, &bars, "One. Two.");
        let bars: Vec<Bar> = bars.into_iter().filter(|bar| bar.case.place.is_batched).collect();
        assert_eq!(drawn.matches(">10.0 %</text>").count(), bars.len());
        let is_hollow = |bar: &&Bar| bar.case.is_published;
        let hollow = bars.iter().filter(is_hollow).count();
        assert_eq!(drawn.matches("<polyline").count(), hollow);
        assert_eq!(drawn.matches("stroke-width=\"1.5\"/>").count(), hollow + bars.len());
        // Both panels have a tick at 1.
        assert_eq!(drawn.matches(">1</text>").count(), 2);
        assert!(drawn.contains(">Title</text>") && drawn.contains(">One. Two.</text>"));
        assert!(!drawn.contains("NaN"));
        let mut slots: Vec<f64> = bars
            .iter()
            .filter(|bar| bar.case.workload == 0 && bar.case.place == bars[0].case.place)
            .map(slot)
            .collect();
        slots.sort_by(f64::total_cmp);
        assert_eq!(slots, (0..12).map(f64::from).collect::<Vec<_>>());
    }
}
