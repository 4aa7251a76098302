//! Draws groups of bars, with a bar for each way.

use chart::{Anchor, GREY, Panel, Scale, Svg, Tick, axis};

use super::super::way::{PerWay, Way};

/// A picture of groups of bars.
pub(super) struct Bars<'a> {
    /// The title, for screen readers.
    pub(super) title: &'a str,
    /// Labels of the axes: of groups, and of heights.
    pub(super) axes: (&'a str, &'a str),
    pub(super) tick: fn(f64) -> String,
    pub(super) ways: &'a [Way],
    pub(super) groups: Vec<Group>,
    /// The paper's numbers, as dashed lines.
    pub(super) levels: Vec<Level>,
    pub(super) notes: [String; 2],
}

/// A group: a bar for each way.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) heights: PerWay<f64>,
    /// Texts above the bars; "" for none.
    pub(super) labels: PerWay<String>,
}

/// A dashed line across `count` groups, from number `first` on.
pub(super) struct Level {
    pub(super) height: f64,
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) colour: &'static str,
}

const SIZE: (f64, f64) = (720.0, 430.0);
/// The share of a group's width that bars fill.
const FILLED: f64 = 0.72;
const LINE: f64 = 15.0;
/// Height of the axis over that of the highest bar, so that labels have room.
const ROOM: f64 = 1.25;

/// Draws the picture as SVG.
pub(super) fn draw(bars: &Bars<'_>) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    let heights =
        bars.groups.iter().flat_map(|group| bars.ways.iter().map(|way| group.heights[*way]));
    let levels = bars.levels.iter().map(|level| level.height);
    let most = heights.chain(levels).fold(1e-9, f64::max);
    let (high, ticks) = axis(most * ROOM, bars.tick);
    let count = u32::try_from(bars.groups.len()).unwrap_or(1);
    let panel = Panel {
        left: 76.0,
        top: 70.0,
        width: SIZE.0 - 96.0,
        height: 300.0,
        x: Scale::Linear(0.0, f64::from(count)),
        y: Scale::Linear(0.0, high),
    };
    let names: Vec<Tick> = (0..)
        .zip(&bars.groups)
        .map(|(at, group)| (f64::from(at) + 0.5, group.name.clone()))
        .collect();
    svg.axes(&panel, (bars.axes.0, &names), (bars.axes.1, &ticks));
    for (index, group) in (0..).zip(&bars.groups) {
        group.draw(&mut svg, &panel, f64::from(index), bars.ways);
    }
    for level in &bars.levels {
        let (from, to) = (f64::from(level.first), f64::from(level.first + level.count));
        let ends = [panel.at(from, level.height), panel.at(to, level.height)];
        svg.line(ends[0], ends[1], level.colour, "stroke-width=\"2\" stroke-dasharray=\"5 3\"");
    }
    svg.frame(&panel);
    svg.key((76.0, 20.0), &Way::key(bars.ways));
    let [one, other] = &bars.notes;
    svg.tinted((76.0, 40.0), one, Anchor::Start, GREY);
    svg.tinted((76.0, 58.0), other, Anchor::Start, GREY);
    svg.finish(bars.title)
}

impl Group {
    // Draws the bars and labels of a group.
    fn draw(&self, svg: &mut Svg, panel: &Panel, left: f64, ways: &[Way]) {
        let width = FILLED / f64::from(u32::try_from(ways.len()).unwrap_or(1));
        let mut from = left + (1.0 - FILLED) / 2.0;
        let mut highest = 0.0_f64;
        for way in ways {
            let height = self.heights[*way];
            svg.bar(panel.at(from, 0.0), panel.at(from + width, height), way.colour());
            highest = highest.max(height);
            from += width;
        }
        let (x, mut y) = panel.at(left + 0.5, highest);
        for way in ways.iter().rev().filter(|way| !self.labels[**way].is_empty()) {
            svg.tinted((x, y - 6.0), &self.labels[*way], Anchor::Middle, way.colour());
            y -= LINE;
        }
    }
}
