//! Charts side by side with a title and a caption: our lines and a paper's.

use chart::{Anchor, GREY, Panel, Scale, Svg, Tick, key_width, text_width, wrap};

/// Width and height of a chart,
const CHART: (f64, f64) = (350.0, 250.0);
/// and the width of one that has a row to itself.
const ALONE: f64 = 640.0;
const LEFT: f64 = 78.0;
/// Width between charts, in addition to the marks of the next one's axis.
const GAP: f64 = 24.0;
const RIGHT: f64 = 18.0;
/// Height above a chart for its title,
const ABOVE: f64 = 26.0;
/// and below it for its axis.
const BELOW: f64 = 60.0;
const LINE: f64 = 17.0;
const OURS: &str = "stroke-width=\"1.8\"";
const THEIRS: &str = "stroke-width=\"1.5\" stroke-dasharray=\"5 4\"";

/// One chart.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
}

#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) title: &'static str,
    pub(super) scale: Scale,
    pub(super) ticks: Vec<Tick>,
}

/// A named series of points.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) colour: &'static str,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Measured here: full dots with lines between them.
    Ours,
    /// Full dots only.
    Dots,
    /// What a paper prints: hollow dots with dashed lines between them.
    Theirs,
    /// A dashed line without dots: what a model says, or a bound.
    Bound,
}

impl Axis {
    /// An axis from 0 to a round value at or above `most`.
    pub(super) fn from_zero(title: &'static str, most: f64) -> Self {
        let (high, ticks) = chart::axis(most.max(1e-9), |value| format!("{value:.4}"));
        let short = |text: String| match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        };
        let ticks = ticks.into_iter().map(|(at, text)| (at, short(text))).collect();
        Self { title, scale: Scale::Linear(0.0, high), ticks }
    }

    /// A logarithmic axis between two values above 0.
    pub(super) fn decades(title: &'static str, low: f64, high: f64) -> Self {
        Self { title, scale: Scale::Logarithmic(low, high), ticks: chart::decades(low, high) }
    }

    /// A logarithmic axis with marks at `values`.
    pub(super) fn marks(title: &'static str, values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let ticks = values.iter().map(|value| (*value, format!("{value}"))).collect();
        Self { title, scale: Scale::Logarithmic(low / 1.15, high * 1.15), ticks }
    }

    /// An axis with names at 1, 2, 3 and so on.
    pub(super) fn names(title: &'static str, names: &[String]) -> Self {
        let ticks: Vec<Tick> = (1..).map(f64::from).zip(names.iter().cloned()).collect();
        let end = ticks.len() as f64 + 0.5;
        Self { title, scale: Scale::Linear(0.5, end), ticks }
    }

    /// `value`, or the end of the axis that it is beyond.
    fn clamp(&self, value: f64) -> f64 {
        let (Scale::Linear(low, high) | Scale::Logarithmic(low, high)) = self.scale;
        value.clamp(low, high)
    }
}

/// The picture with all charts, `columns` in a row. Points beyond an axis are drawn at its end.
pub(super) fn draw(title: &str, charts: &[Chart], columns: usize, caption: &[String]) -> String {
    let columns = columns.clamp(1, charts.len().max(1));
    let rows = charts.len().div_ceil(columns);
    let wide = if columns == 1 { ALONE } else { CHART.0 };
    let gap = GAP + marks_width(charts);
    let width = LEFT + wide * columns as f64 + gap * (columns - 1) as f64 + RIGHT;
    let keys = keys(charts, width);
    let lines: Vec<String> =
        caption.iter().flat_map(|text| wrap(text, width - 2.0 * RIGHT)).collect();
    let top = 34.0 + LINE * keys.len() as f64;
    let row_height = ABOVE + CHART.1 + BELOW;
    let below = top + row_height * rows as f64;
    let height = below + LINE * lines.len() as f64 + 14.0;
    let mut svg = Svg::new(width, height);
    svg.text((LEFT, 20.0), title, Anchor::Start);
    for (number, line) in keys.iter().enumerate() {
        let names: Vec<(&str, &str)> =
            line.iter().map(|(name, colour)| (name.as_str(), *colour)).collect();
        svg.key((LEFT, 40.0 + LINE * number as f64), &names);
    }
    for (number, chart) in charts.iter().enumerate() {
        let (column, row) = (number % columns, number / columns);
        let panel = Panel {
            left: LEFT + (wide + gap) * column as f64,
            top: top + row_height * row as f64 + ABOVE,
            width: wide,
            height: CHART.1,
            x: chart.x.scale,
            y: chart.y.scale,
        };
        one(&mut svg, chart, &panel, column == 0);
    }
    for (number, line) in lines.iter().enumerate() {
        let down = below + LINE * number as f64 + 6.0;
        svg.tinted((LEFT - 60.0, down), line, Anchor::Start, GREY);
    }
    svg.finish(title)
}

/// Draws one chart.
fn one(svg: &mut Svg, chart: &Chart, panel: &Panel, is_first: bool) {
    // Only the first column has room for titles of vertical axes.
    let side = if is_first { chart.y.title } else { "" };
    svg.axes(panel, (chart.x.title, &chart.x.ticks), (side, &chart.y.ticks));
    svg.text((panel.left, panel.top - 8.0), &chart.title, Anchor::Start);
    for series in &chart.series {
        let place = |&(x, y): &(f64, f64)| panel.at(chart.x.clamp(x), chart.y.clamp(y));
        let places: Vec<(f64, f64)> = series.points.iter().map(place).collect();
        let style = if series.kind == Kind::Ours { OURS } else { THEIRS };
        if series.kind != Kind::Dots {
            svg.path(&places, series.colour, style);
        }
        if series.kind != Kind::Bound {
            for place in places {
                svg.dot(place, series.colour, series.kind == Kind::Theirs);
            }
        }
    }
    svg.frame(panel);
}

// The rows of the key: every name of a series once.
fn keys(charts: &[Chart], width: f64) -> Vec<Vec<(String, &'static str)>> {
    let mut names: Vec<(String, &'static str)> = Vec::new();
    for series in charts.iter().flat_map(|chart| &chart.series) {
        let known = names.iter().any(|(name, _)| *name == series.name);
        if !series.name.is_empty() && !known {
            names.push((series.name.clone(), series.colour));
        }
    }
    let mut rows: Vec<Vec<(String, &'static str)>> = Vec::new();
    let mut right = f64::INFINITY;
    for (name, colour) in names {
        let wide = key_width(&name);
        if right + wide > width - RIGHT {
            rows.push(Vec::new());
            right = LEFT;
        }
        right += wide;
        if let Some(row) = rows.last_mut() {
            row.push((name, colour));
        }
    }
    rows
}

// The width of the longest mark of a vertical axis.
fn marks_width(charts: &[Chart]) -> f64 {
    let marks = charts.iter().flat_map(|chart| &chart.y.ticks);
    marks.map(|(_, text)| text_width(text)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)], kind: Kind) -> Chart {
        Chart {
            title: "a chart".to_owned(),
            x: Axis::from_zero("x", 10.0),
            y: Axis::decades("y", 1.0, 100.0),
            series: vec![Series {
                name: "a series".to_owned(),
                colour: chart::BLUE,
                points: points.to_vec(),
                kind,
            }],
        }
    }

    #[test]
    fn every_point_is_there_and_what_is_beyond_is_at_the_end() {
        let charts = [
            chart(&[(1.0, 2.0), (2.0, 1e6)], Kind::Ours),
            chart(&[(1.0, 0.0)], Kind::Theirs),
            chart(&[(0.0, 5.0), (10.0, 5.0)], Kind::Bound),
        ];
        let drawn = draw("all", &charts, 2, &["word ".repeat(200)]);
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert_eq!(drawn.matches("<polyline").count(), 3);
        assert_eq!(drawn.matches(">a series<").count(), 1, "names are told once");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        assert!(drawn.matches(">word").count() > 5, "{drawn}");
    }

    #[test]
    fn ticks_are_short() {
        let ticks: Vec<String> =
            Axis::from_zero("", 0.8).ticks.into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks, ["0", "0.2", "0.4", "0.6", "0.8"]);
    }
}
