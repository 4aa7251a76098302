//! Elements of charts as SVG text: colours, scales, panels, lines and texts.

use std::fmt::Write;

use crate::text::key_width;

/// A colour of a set that people with any kind of colour vision can distinguish (Okabe and Ito
/// 2008).
pub const BLUE: &str = "#0072B2";
/// See [`BLUE`].
pub const ORANGE: &str = "#D55E00";
/// See [`BLUE`].
pub const GREEN: &str = "#009E73";
/// See [`BLUE`].
pub const PURPLE: &str = "#CC79A7";
/// See [`BLUE`].
pub const SKY: &str = "#56B4E9";
/// The colours of lines and bars, seven of that set.
pub const PALETTE: [&str; 7] = [BLUE, ORANGE, GREEN, PURPLE, SKY, "#E69F00", "#000000"];
pub(crate) const INK: &str = "#222222";
/// Colour of explanations, in contrast to data.
pub const GREY: &str = "#666666";
/// Colour of the background.
pub const WHITE: &str = "#ffffff";
pub(crate) const GRID: &str = "#e4e4e4";

/// Maps values to shares of an axis.
#[derive(Debug, Clone, Copy)]
pub enum Scale {
    /// Between two values that differ.
    Linear(f64, f64),
    /// Between two values above 0 that differ.
    Logarithmic(f64, f64),
}

/// A rectangle with two axes.
#[derive(Debug, Clone, Copy)]
pub struct Panel {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
    /// Horizontal scale.
    pub x: Scale,
    /// Vertical scale.
    pub y: Scale,
}

/// A tick: its value and label.
pub type Tick = (f64, String);

/// The end and the ticks of a linear axis from 0 that ends on a tick at or above `most`, which is
/// above 0.
pub fn axis(most: f64, label: impl Fn(f64) -> String) -> (f64, Vec<Tick>) {
    let decade = 10_f64.powf(most.log10().floor());
    let steps = [0.1, 0.2, 0.5, 1.0, 2.0].map(|step| step * decade);
    let step = steps.into_iter().find(|step| most / step <= 6.0).unwrap_or(2.0 * decade);
    let count = (most / step).ceil();
    let values = std::iter::successors(Some(0.0_f64), |value| Some(value + 1.0));
    let values = values.take_while(|value| *value <= count);
    (count * step, values.map(|value| (value * step, label(value * step))).collect())
}

/// Ticks of a logarithmic axis between two values above 0: 1, 2 and 5 of every decade, or only 1 if
/// there are many.
#[must_use]
pub fn decades(low: f64, high: f64) -> Vec<Tick> {
    let steps: &[f64] = if high / low > 50.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let exponents =
        (-3..12).flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
    let within = exponents.filter(|value| (low..=high).contains(value));
    within.map(|value| (value, format!("{value}"))).collect()
}

/// A logarithmic axis of slowdowns from 1, which has a tick, to `most`, which is above 1.
#[must_use]
pub fn slowdowns(most: f64) -> (Scale, Vec<Tick>) {
    let values: &[f64] = match most {
        ..3.0 => &[1.0, 1.2, 1.5, 2.0, 2.5],
        ..30.0 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0],
        ..100.0 => &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0],
        _ => return (Scale::Logarithmic(1.0, most), decades(1.0, most)),
    };
    let within = values.iter().filter(|value| **value <= most);
    (Scale::Logarithmic(1.0, most), within.map(|value| (*value, format!("{value}"))).collect())
}

/// A drawing under construction.
#[derive(Debug)]
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
    hints: Vec<Hint>,
}

/// A finished drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// The whole file.
    pub svg: String,
    /// The hints of its marks, in the order in which a user steps through them.
    pub hints: Vec<Hint>,
}

/// The explanation of a rectangle or a point of a drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Hint {
    /// Left, top, width and height; a point has no extent.
    pub place: [f64; 4],
    /// The explanation.
    pub text: String,
}

/// The alignment of a text at its point.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// The text begins there.
    Start,
    /// The text is centred there.
    Middle,
    /// The text ends there.
    End,
}

impl Scale {
    /// The place of `value`, as a share of the axis.
    pub(crate) fn share(self, value: f64) -> f64 {
        match self {
            Self::Linear(low, high) => (value - low) / (high - low),
            Self::Logarithmic(low, high) => (value / low).ln() / (high / low).ln(),
        }
    }

    /// The lowest and the highest value.
    pub(crate) const fn ends(self) -> (f64, f64) {
        match self {
            Self::Linear(low, high) | Self::Logarithmic(low, high) => (low, high),
        }
    }
}

impl Panel {
    /// The point of a value of each axis.
    #[must_use]
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let right = self.left + self.x.share(x) * self.width;
        let down = self.top + (1.0 - self.y.share(y)) * self.height;
        (right, down)
    }

    /// The lower edge.
    const fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

impl Svg {
    /// An empty drawing on white.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Self {
        Self { body: String::new(), width, height, hints: Vec::new() }
    }

    /// Grid, ticks and titles of a panel; a title may be empty.
    pub fn axes(&mut self, panel: &Panel, x: (&str, &[Tick]), y: (&str, &[Tick])) {
        let (x_low, x_high) = panel.x.ends();
        let (y_low, y_high) = panel.y.ends();
        for (value, label) in y.1 {
            let (from, to) = (panel.at(x_low, *value), panel.at(x_high, *value));
            self.line(from, to, GRID, "stroke-width=\"1\"");
            self.text((from.0 - 7.0, from.1 + 4.0), label, Anchor::End);
        }
        for (value, label) in x.1 {
            let (from, to) = (panel.at(*value, y_low), panel.at(*value, y_high));
            self.line(from, to, GRID, "stroke-width=\"1\"");
            self.text((from.0, from.1 + 18.0), label, Anchor::Middle);
        }
        if !x.0.is_empty() {
            let middle = panel.left + panel.width / 2.0;
            self.text((middle, panel.bottom() + 38.0), x.0, Anchor::Middle);
        }
        let (right, down) = (16.0, panel.top + panel.height / 2.0);
        let turned = format!("transform=\"rotate(-90 {right:.1} {down:.1})\"");
        self.label((right, down), y.0, Anchor::Middle, &turned);
    }

    /// The frame, drawn last so that nothing covers it.
    pub fn frame(&mut self, panel: &Panel) {
        let corner = (panel.left, panel.top);
        let style = format!("fill=\"none\" stroke=\"{GREY}\"");
        self.rectangle(corner, (panel.width, panel.height), &style);
    }

    /// A line; `style` is further attributes.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, style: &str) {
        let ends = [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)];
        self.shape("line", &ends, &format!("stroke=\"{colour}\" {style}"));
    }

    /// Lines from point to point; `style` is further attributes.
    pub fn path(&mut self, points: &[(f64, f64)], colour: &str, style: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let style =
            format!("points=\"{}\" fill=\"none\" stroke=\"{colour}\" {style}", points.join(" "));
        self.shape("polyline", &[], &style);
    }

    /// A filled rectangle between two corners.
    pub fn bar(&mut self, one: (f64, f64), other: (f64, f64), colour: &str) {
        self.area(one, other, &format!("fill=\"{colour}\""));
    }

    /// A pale rectangle between two corners.
    pub fn band(&mut self, one: (f64, f64), other: (f64, f64), colour: &str) {
        self.area(one, other, &format!("fill=\"{colour}\" fill-opacity=\"0.12\""));
    }

    /// A cell of a map: blue above 0 and orange below, the deeper the larger; 1 is the deepest. The
    /// shade is translucent, so that small values are pale on any page.
    pub fn cell(&mut self, one: (f64, f64), other: (f64, f64), value: f64) {
        let colour = if value >= 0.0 { BLUE } else { ORANGE };
        // A small value still differs from a missing cell.
        let opacity = value.abs().min(1.0).mul_add(0.7, 0.05);
        self.area(one, other, &format!("fill=\"{colour}\" fill-opacity=\"{opacity:.3}\""));
    }

    /// A pale polygon with these corners.
    pub fn shade(&mut self, corners: &[(f64, f64)], colour: &str) {
        let corners: Vec<String> = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let corners = corners.join(" ");
        self.shape(
            "polygon",
            &[],
            &format!("points=\"{corners}\" fill=\"{colour}\" fill-opacity=\"0.2\""),
        );
    }

    /// A dot, filled or hollow.
    pub fn dot(&mut self, at: (f64, f64), colour: &str, hollow: bool) {
        let fill = if hollow { WHITE } else { colour };
        let style = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.6\"");
        self.shape("circle", &[("cx", at.0), ("cy", at.1), ("r", 4.0)], &style);
    }

    /// A text in the usual colour.
    pub fn text(&mut self, at: (f64, f64), text: &str, anchor: Anchor) {
        self.tinted(at, text, anchor, INK);
    }

    /// A text in a colour.
    pub fn tinted(&mut self, at: (f64, f64), text: &str, anchor: Anchor, colour: &str) {
        self.label(at, text, anchor, &format!("fill=\"{colour}\""));
    }

    /// A text that reads upwards from a point.
    pub fn turned(&mut self, at: (f64, f64), text: &str, colour: &str) {
        let (x, y) = at;
        let style = format!("fill=\"{colour}\" transform=\"rotate(-90 {x:.1} {y:.1})\"");
        self.label(at, text, Anchor::Start, &style);
    }

    /// A key: names with their colours, from left to right.
    pub fn key(&mut self, at: (f64, f64), names: &[(&str, &str)]) {
        let mut right = at.0;
        for (name, colour) in names {
            self.bar((right, at.1 - 9.0), (right + 10.0, at.1 + 1.0), colour);
            self.text((right + 15.0, at.1), name, Anchor::Start);
            right += key_width(name);
        }
    }

    /// Adds the hint of a point.
    pub fn hint(&mut self, at: (f64, f64), text: String) {
        self.hints.push(Hint { place: [at.0, at.1, 0.0, 0.0], text });
    }

    /// Adds the hint of a rectangle between two corners.
    pub fn hint_area(&mut self, one: (f64, f64), other: (f64, f64), text: String) {
        let (width, height) = ((one.0 - other.0).abs(), (one.1 - other.1).abs());
        let place = [one.0.min(other.0), one.1.min(other.1), width, height];
        self.hints.push(Hint { place, text });
    }

    /// Adds a text; `style` is further attributes.
    fn label(&mut self, (x, y): (f64, f64), text: &str, anchor: Anchor, style: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        // One element per line, even if a name has line ends.
        let text = escape(text).replace('\n', " ");
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" {style}>{text}</text>"#
        );
    }

    /// Adds a rectangle between two corners; `style` is further attributes.
    fn area(&mut self, one: (f64, f64), other: (f64, f64), style: &str) {
        let corner = (one.0.min(other.0), one.1.min(other.1));
        let size = ((one.0 - other.0).abs(), (one.1 - other.1).abs());
        self.rectangle(corner, size, style);
    }

    /// Adds a rectangle by corner and size; `style` is further attributes.
    fn rectangle(&mut self, corner: (f64, f64), size: (f64, f64), style: &str) {
        let place = [("x", corner.0), ("y", corner.1), ("width", size.0), ("height", size.1)];
        self.shape("rect", &place, style);
    }

    /// Adds an element `name` with numeric attributes; `style` is further attributes.
    fn shape(&mut self, name: &str, place: &[(&str, f64)], style: &str) {
        let place: String =
            place.iter().map(|(key, value)| format!("{key}=\"{value:.1}\" ")).collect();
        let _ = writeln!(self.body, "<{name} {place}{style}/>");
    }

    /// The finished drawing with its hints; `title` is for those who cannot see it.
    #[must_use]
    pub fn finish_hinted(mut self, title: &str) -> Drawing {
        let hints = std::mem::take(&mut self.hints);
        Drawing { svg: self.finish(title), hints }
    }

    /// The finished SVG file; `title` is for those who cannot see it.
    #[must_use]
    pub fn finish(self, title: &str) -> String {
        let (width, height) = (self.width, self.height);
        let title = escape(title).replace('\n', " ");
        let body = self.body;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" fill=\"{INK}\" \
             font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"13\">\n\
             <title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }
}

/// A text escaped for a document, between tags or in an attribute.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Characters that no document may contain.
            '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// A name, cut to at most `letters` letters.
#[must_use]
pub fn shortened(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    let kept: String = name.chars().take(letters.saturating_sub(1)).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_map_their_ends_to_the_corners() {
        let panel = Panel {
            left: 10.0,
            top: 20.0,
            width: 100.0,
            height: 50.0,
            x: Scale::Logarithmic(1.0, 100.0),
            y: Scale::Linear(-5.0, 5.0),
        };
        assert_eq!(panel.at(1.0, -5.0), (10.0, 70.0));
        assert_eq!(panel.at(100.0, 5.0), (110.0, 20.0));
        assert_eq!(panel.at(10.0, 0.0), (60.0, 45.0));
    }

    #[test]
    fn axes_end_on_ticks() {
        let (high, ticks) = axis(23_400.0, |value| format!("{value}"));
        assert_eq!((high, ticks.len()), (25_000.0, 6));
        assert_eq!(axis(1.0, |value| format!("{value}")).0, 1.0);
        let values: Vec<f64> = decades(80.0, 1_000.0).into_iter().map(|tick| tick.0).collect();
        assert_eq!(values, [100.0, 200.0, 500.0, 1_000.0]);
        assert_eq!(decades(80.0, 9_000.0).len(), 2);
    }

    #[test]
    fn slowdowns_begin_with_a_tick_at_1() {
        for most in [1.1, 2.9, 3.0, 29.0, 99.0, 100.0, 5e4] {
            let (scale, ticks) = slowdowns(most);
            assert!(matches!(scale, Scale::Logarithmic(low, high) if low == 1.0 && high == most));
            assert_eq!(ticks[0], (1.0, "1".to_owned()), "{most}");
            assert!(ticks.len() <= 8 && ticks.iter().all(|tick| tick.0 <= most), "{most}");
        }
    }

    #[test]
    fn text_cannot_break_out() {
        let mut svg = Svg::new(1.0, 1.0);
        svg.text((0.0, 0.0), "a<b>&c", Anchor::Start);
        assert!(svg.finish("t").contains(">a&lt;b&gt;&amp;c</text>"));
        assert_eq!(escape("\"'\u{1}\u{0}é\n"), "&quot;&#39;\u{fffd}\u{fffd}é\n");
    }

    #[test]
    fn names_are_cut_to_the_room_they_have() {
        assert_eq!(shortened("pfabric", 7), "pfabric");
        assert_eq!(shortened("fastpass", 7), "fastpa…");
    }

    #[test]
    fn cells_are_the_deeper_the_further_from_0() {
        let drawn = |value| {
            let mut svg = Svg::new(10.0, 10.0);
            svg.cell((0.0, 0.0), (5.0, 5.0), value);
            svg.finish("t")
        };
        for (value, style) in [
            (0.0, "fill=\"#0072B2\" fill-opacity=\"0.050\""),
            (1.0, "fill=\"#0072B2\" fill-opacity=\"0.750\""),
            (-2.0, "fill=\"#D55E00\" fill-opacity=\"0.750\""),
        ] {
            assert!(drawn(value).contains(style), "{value}");
        }
    }
}
