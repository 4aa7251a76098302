//! Lines, dots and steps over two axes, with intervals.

use crate::clear::{self, Room};
use crate::{
    Anchor, Axis, Drawing, GREY, Kind, PALETTE, Panel, Point, Svg, shortened, text_width, thin,
};

/// A chart over two axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// A title for those who cannot see the picture.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, drawn in this order.
    pub series: Vec<Series>,
    /// Values of `y` marked by horizontal lines, with their names.
    pub bounds: Vec<(f64, String)>,
    /// Values of `x` marked by vertical lines, with their names.
    pub marks: Vec<(f64, String)>,
}

/// A series of points.
#[derive(Debug, Clone)]
pub struct Series {
    /// Name in the key; an empty one is not in the key.
    pub name: String,
    /// In order of `x`.
    pub points: Vec<Point>,
    /// How they are drawn.
    pub look: Look,
}

/// How points are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Joined by lines, each with a dot.
    Line,
    /// Joined by lines without dots.
    Curve,
    /// A value holds until the next.
    Steps,
    /// Dots only.
    Dots,
    /// Hollow dots only: values of others, such as a paper.
    Hollow,
    /// Joined, with the interval as a pale band.
    Band,
}

const SIZE: (f64, f64) = (480.0, 320.0);
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const KEY_ROW: f64 = 18.0;
const DASHES: [&str; 4] = ["", "6 4", "2 3", "9 3 2 3"];
/// Columns of a thinned line.
const COLUMNS: usize = 400;
/// Lines of more points than this have no dots.
const DOTS_MAX: usize = 60;

impl Series {
    /// Points without intervals.
    pub fn new(name: impl Into<String>, look: Look, points: Vec<(f64, f64)>) -> Self {
        let points = points.into_iter().map(|(x, y)| Point { x, y, interval: None }).collect();
        Self { name: name.into(), points, look }
    }

    /// Whether points are drawn as dots.
    fn has_dots(&self) -> bool {
        match self.look {
            Look::Dots | Look::Hollow => true,
            Look::Line => self.points.len() <= DOTS_MAX,
            Look::Curve | Look::Steps | Look::Band => false,
        }
    }
}

impl Plot {
    /// Draws the plot.
    #[must_use]
    pub fn draw(&self) -> Drawing {
        let names: Vec<&str> = self.series.iter().map(|one| one.name.as_str()).collect();
        let rows = key_rows(&names);
        let top = 14.0 + rows.len() as f64 * KEY_ROW;
        let mut svg = Svg::new(SIZE.0, SIZE.1 + top - 14.0);
        let points = || self.series.iter().flat_map(|one| &one.points);
        let ends = points().flat_map(|one| {
            let (low, high) = one.interval.unwrap_or((one.y, one.y));
            [one.y, low, high]
        });
        let (x, x_ticks) = self.x.fit(points().map(|one| one.x), self.margin());
        let (y, y_ticks) = self.y.fit(ends.chain(self.bounds.iter().map(|bound| bound.0)), 0.03);
        let (width, height) = (SIZE.0 - LEFT - RIGHT, SIZE.1 - 14.0 - 48.0);
        let panel = Panel { left: LEFT, top, width, height, x, y };
        svg.axes(&panel, (&self.x.name, &x_ticks), (&self.y.name, &y_ticks));
        self.draw_marks(&mut svg, &panel);
        for (index, series) in self.series.iter().enumerate() {
            self.draw_series(&mut svg, &panel, (index, series));
        }
        svg.frame(&panel);
        for (row, entries) in rows.iter().enumerate() {
            let down = 16.0 + row as f64 * KEY_ROW;
            for (index, right) in entries {
                self.draw_key(&mut svg, (*right, down), *index);
            }
        }
        svg.finish_hinted(&self.title)
    }

    /// The share of the horizontal axis that stays free beside dots.
    fn margin(&self) -> f64 {
        let has_dots = self.series.iter().any(Series::has_dots);
        if has_dots && self.x.kind != Kind::Linear { 0.05 } else { 0.0 }
    }

    /// Draws the bounds and marks.
    fn draw_marks(&self, svg: &mut Svg, panel: &Panel) {
        let dotted = "stroke-width=\"1.4\" stroke-dasharray=\"2 3\"";
        let ((x_low, x_high), (y_low, y_high)) = (panel.x.ends(), panel.y.ends());
        let room = Room {
            left: panel.left,
            top: panel.top,
            right: panel.left + panel.width,
            bottom: panel.top + panel.height,
        };
        let lines = if self.bounds.is_empty() { Vec::new() } else { self.lines(panel) };
        for (y, name) in &self.bounds {
            let (from, to) = (panel.at(x_low, *y), panel.at(x_high, *y));
            svg.line(from, to, GREY, dotted);
            svg.tinted(clear::foot(&room, name, to.1, &lines), name, Anchor::Start, GREY);
        }
        for (x, name) in &self.marks {
            if (x_low..=x_high).contains(x) {
                let (from, to) = (panel.at(*x, y_low), panel.at(*x, y_high));
                svg.line(from, to, GREY, dotted);
                svg.tinted((to.0 + 4.0, to.1 + 14.0), name, Anchor::Start, GREY);
            }
        }
    }

    /// The lines of all series, as they will be drawn.
    fn lines(&self, panel: &Panel) -> Vec<Vec<(f64, f64)>> {
        let line = |series: &Series| {
            let points = shown(series, panel);
            let line = points.iter().map(|one| panel.at(one.x, one.y)).collect::<Vec<_>>();
            if series.look == Look::Steps { steps(&line) } else { line }
        };
        self.series.iter().map(line).collect()
    }

    /// Draws a series: band or whiskers, line, dots, hints.
    fn draw_series(&self, svg: &mut Svg, panel: &Panel, (index, series): (usize, &Series)) {
        let colour = colour(index);
        let y_low = panel.y.ends().0;
        let shown = shown(series, panel);
        let at = |one: &Point| panel.at(one.x, one.y);
        let whisker = |one: &Point| {
            let (low, high) = one.interval?;
            Some((panel.at(one.x, low.max(y_low)), panel.at(one.x, high.max(y_low))))
        };
        if series.look == Look::Band {
            let ends: Vec<_> = shown.iter().filter_map(whisker).collect();
            let low = ends.iter().map(|end| end.0);
            let around: Vec<_> = low.chain(ends.iter().rev().map(|end| end.1)).collect();
            svg.shade(&around, colour);
        } else {
            for (low, high) in shown.iter().filter_map(whisker) {
                svg.line(low, high, colour, "stroke-width=\"1.4\"");
                for end in [low, high] {
                    svg.line((end.0 - 3.0, end.1), (end.0 + 3.0, end.1), colour, "");
                }
            }
        }
        let dashes = dashes(index);
        let style = format!("stroke-width=\"2\" stroke-linejoin=\"round\"{dashes}");
        let line: Vec<(f64, f64)> = shown.iter().map(at).collect();
        match series.look {
            Look::Line | Look::Curve | Look::Band => svg.path(&line, colour, &style),
            Look::Steps => svg.path(&steps(&line), colour, &style),
            Look::Dots | Look::Hollow => {}
        }
        if series.has_dots() {
            line.iter().for_each(|at| svg.dot(*at, colour, series.look == Look::Hollow));
        }
        shown.iter().for_each(|one| svg.hint(at(one), self.tell(series, one)));
    }

    /// The hint of a point.
    fn tell(&self, series: &Series, one: &Point) -> String {
        let name =
            if series.name.is_empty() { String::new() } else { format!("{}: ", series.name) };
        let interval = one.interval.map_or_else(String::new, |(low, high)| {
            format!(" [{}, {}]", self.y.tell(low), self.y.tell(high))
        });
        let (x, y) = (self.x.tell(one.x), self.y.tell(one.y));
        format!("{name}{} {x}, {} {y}{interval}", self.x.name, self.y.name)
    }

    /// Draws an entry of the key.
    fn draw_key(&self, svg: &mut Svg, (right, down): (f64, f64), index: usize) {
        let (colour, series) = (colour(index), &self.series[index]);
        let style = format!("stroke-width=\"2\"{}", dashes(index));
        let middle = (right + 10.0, down - 4.0);
        if !matches!(series.look, Look::Dots | Look::Hollow) {
            svg.line((right, middle.1), (right + 20.0, middle.1), colour, &style);
        }
        if series.has_dots() {
            svg.dot(middle, colour, series.look == Look::Hollow);
        }
        svg.text((right + 26.0, down), &key_name(&series.name), Anchor::Start);
    }
}

/// The points of a series that its axes hold, thinned to what can be seen.
fn shown(series: &Series, panel: &Panel) -> Vec<Point> {
    let (x_low, x_high) = panel.x.ends();
    let is_shown = |one: &&Point| {
        let is_logarithmic = |scale| matches!(scale, crate::Scale::Logarithmic(..));
        let fits = |scale, value: f64| value.is_finite() && (!is_logarithmic(scale) || value > 0.0);
        fits(panel.x, one.x) && fits(panel.y, one.y)
    };
    let shown: Vec<Point> = series.points.iter().filter(is_shown).copied().collect();
    let place = |x: f64| panel.x.share(x.clamp(x_low, x_high));
    thin(&shown, place, COLUMNS)
}

/// The colour of series `index`.
fn colour(index: usize) -> &'static str {
    PALETTE[index % PALETTE.len()]
}

// The dashes of series `index`: lines differ without colour, too.
fn dashes(index: usize) -> String {
    match DASHES[index % DASHES.len()] {
        "" => String::new(),
        dashes => format!(" stroke-dasharray=\"{dashes}\""),
    }
}

/// A name, cut to fit the key.
fn key_name(name: &str) -> String {
    shortened(name, 40)
}

/// The rows of the key: for each entry the index of its name and where it begins.
fn key_rows(names: &[&str]) -> Vec<Vec<(usize, f64)>> {
    let mut rows: Vec<Vec<(usize, f64)>> = Vec::new();
    let mut right = f64::INFINITY;
    for (index, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        let width = 44.0 + text_width(&key_name(name));
        if right + width > SIZE.0 {
            rows.push(Vec::new());
            right = 12.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push((index, right));
        }
        right += width;
    }
    rows
}

/// The corners of a line of steps.
fn steps(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let between = line.windows(2).flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]);
    between.chain(line.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(series: Vec<Series>) -> Plot {
        let (x, y) = (Axis::new("load", Kind::Linear), Axis::new("µs", Kind::Either));
        let bounds = vec![(1.05, "5 %".to_owned())];
        Plot { title: "t".to_owned(), x, y, series, bounds, marks: vec![(1.0, "here".to_owned())] }
    }

    #[test]
    fn points_have_dots_intervals_and_hints() {
        let mut line = Series::new("a<b", Look::Line, vec![(0.0, 1.0), (1.0, 2.0)]);
        line.points[1].interval = Some((1.5, 2.5));
        let drawn = plot(vec![line]).draw();
        assert_eq!(drawn.svg.matches("<circle").count(), 2 + 1);
        assert_eq!(drawn.hints.len(), 2);
        assert_eq!(drawn.hints[1].text, "a<b: load 1, µs 2 [1.5, 2.5]");
        assert!(drawn.svg.contains("a&lt;b") && !drawn.svg.contains("a<b"));
        assert!(!drawn.svg.contains("NaN") && !drawn.svg.contains("inf"), "{}", drawn.svg);
    }

    #[test]
    fn a_hundred_thousand_points_are_drawn_as_what_can_be_seen_of_them() {
        let points: Vec<(f64, f64)> =
            (0..100_000).map(|at| (f64::from(at), f64::from(at % 977) + 1.0)).collect();
        let drawn = plot(vec![Series::new("", Look::Curve, points)]).draw();
        assert!(drawn.svg.len() < 60_000, "{}", drawn.svg.len());
        assert!(drawn.hints.len() <= 4 * COLUMNS);
    }

    #[test]
    fn nothing_and_what_no_axis_holds_are_drawn_as_nothing() {
        assert_eq!(plot(Vec::new()).draw().hints, []);
        let strange = vec![(f64::NAN, 1.0), (1.0, f64::INFINITY), (0.0, 3.0), (2.0, 90.0)];
        let drawn = plot(vec![Series::new("", Look::Dots, strange)]).draw();
        assert_eq!(drawn.hints.len(), 2);
        assert!(!drawn.svg.contains("NaN") && !drawn.svg.contains("inf"), "{}", drawn.svg);
    }

    #[test]
    fn a_step_holds_until_the_next() {
        assert_eq!(steps(&[(0.0, 1.0), (2.0, 3.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]);
        let long = "long ".repeat(12);
        assert_eq!(key_rows(&["", "a", &long, &long, "b"]).len(), 2);
    }
}
