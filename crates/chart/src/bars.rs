//! Horizontal bars, one below the other, each of parts that add up or with an interval.

use crate::{
    Anchor, Axis, Drawing, GREY, Kind, PALETTE, Panel, Scale, Svg, key_width, shortened, text_width,
};

/// A chart of bars.
#[derive(Debug, Clone)]
pub struct Bars {
    /// A title for those who cannot see the picture.
    pub title: String,
    /// Unit of the axis.
    pub unit: String,
    /// Formats a value.
    pub label: fn(f64) -> String,
    /// Names of the parts, which every bar has in this order; empty if there is only one.
    pub parts: Vec<String>,
    /// From the top down.
    pub bars: Vec<Bar>,
    /// Values marked by vertical lines, with their names.
    pub marks: Vec<(f64, String)>,
    /// Where bars begin.
    pub scale: BarsScale,
}

/// Where bars begin, and the scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarsScale {
    /// At 0.
    Zero,
    /// At 1, on a logarithmic scale: for bars of one part only.
    Ratio,
}

/// One bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Its name, on the left.
    pub name: String,
    /// Lengths of its parts.
    pub parts: Vec<f64>,
    /// Interval of its end.
    pub interval: Option<(f64, f64)>,
    /// Text at its end.
    pub text: String,
}

const WIDTH: f64 = 480.0;
const BAR: f64 = 26.0;
/// The most letters of a name.
const NAME: usize = 24;
const KEY_ROW: f64 = 18.0;

impl Bars {
    /// Draws the chart.
    #[must_use]
    pub fn draw(&self) -> Drawing {
        let keys = self.key_rows();
        let has_marks = !self.marks.is_empty();
        let top = 12.0 + keys.len() as f64 * KEY_ROW + if has_marks { 16.0 } else { 0.0 };
        let rows = self.bars.len().max(1) as f64;
        let height = rows * BAR;
        let mut svg = Svg::new(WIDTH, top + height + 46.0);
        // At least a third of the width is left for bars, however wide the letters are.
        let widest = |text: fn(&Bar) -> &String, most: usize| {
            let widths = self.bars.iter().map(|bar| text_width(&shortened(text(bar), most)));
            widths.fold(0.0, f64::max).min(most as f64 * 7.5)
        };
        let left = 14.0 + widest(|bar| &bar.name, NAME);
        let room = 12.0 + widest(|bar| &bar.text, 18);
        let (x, ticks) = self.axis(WIDTH - left - room);
        let width = WIDTH - left - room;
        let panel = Panel { left, top, width, height, x, y: Scale::Linear(rows, 0.0) };
        svg.axes(&panel, (&self.unit, &ticks), ("", &[]));
        for (row, bar) in self.bars.iter().enumerate() {
            self.draw_bar(&mut svg, &panel, (row as f64, bar));
        }
        for (value, name) in &self.marks {
            let (from, to) = (panel.at(*value, 0.0), panel.at(*value, rows));
            svg.line(from, to, GREY, "stroke-width=\"1.4\" stroke-dasharray=\"2 3\"");
            svg.tinted((from.0, from.1 - 5.0), name, Anchor::Middle, GREY);
        }
        for (row, entries) in keys.iter().enumerate() {
            for (index, right) in entries {
                let key = [(self.parts[*index].as_str(), PALETTE[index % PALETTE.len()])];
                svg.key((*right, 20.0 + row as f64 * KEY_ROW), &key);
            }
        }
        svg.finish_hinted(&self.title)
    }

    /// Scale and ticks of an axis of this width.
    fn axis(&self, width: f64) -> (Scale, Vec<crate::Tick>) {
        let ends = self.bars.iter().flat_map(|bar| {
            let end = bar.parts.iter().sum();
            let (low, high) = bar.interval.unwrap_or((end, end));
            [end, low, high]
        });
        let (kind, shown) = match self.scale {
            BarsScale::Zero => (Kind::Linear, [0.0, 0.0]),
            BarsScale::Ratio => (Kind::Logarithmic, [0.8, 1.25]),
        };
        let axis = Axis::new(self.unit.clone(), kind).showing(&shown).labelled(self.label);
        let (scale, mut ticks) = axis.fit(ends.chain(self.marks.iter().map(|mark| mark.0)), 0.0);
        let widest = ticks.iter().map(|tick| text_width(&tick.1)).fold(0.0, f64::max);
        // Removes every other tick as long as labels would touch.
        while ticks.len() > 2 && ticks.len() as f64 * (widest + 8.0) > width {
            let mut at = 0;
            ticks.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        (scale, ticks)
    }

    /// Draws the bar of `row`, with its interval, text and hints.
    fn draw_bar(&self, svg: &mut Svg, panel: &Panel, (row, bar): (f64, &Bar)) {
        let (low, high) = panel.x.ends();
        let held = |value: f64| if value.is_finite() { value.clamp(low, high) } else { low };
        let mut from = if self.scale == BarsScale::Ratio { 1.0 } else { 0.0 };
        let mut sum = 0.0;
        for (index, part) in bar.parts.iter().enumerate() {
            sum += part;
            let corners = (panel.at(held(from), row + 0.18), panel.at(held(sum), row + 0.82));
            if part.is_finite() && *part != 0.0 {
                svg.bar(corners.0, corners.1, PALETTE[index % PALETTE.len()]);
            }
            let part_name = self.parts.get(index).map_or("", String::as_str);
            let colon = if part_name.is_empty() { "" } else { ", " };
            let value = (self.label)(*part);
            let text = format!("{}{colon}{part_name}: {value} {}", bar.name, self.unit);
            svg.hint_area(corners.0, corners.1, text);
            from = sum;
        }
        let (mut x, y) = panel.at(held(sum), row + 0.5);
        if let Some((from, to)) = bar.interval {
            let (from, to) = (panel.at(held(from), row + 0.5), panel.at(held(to), row + 0.5));
            svg.line(from, to, "#000000", "stroke-width=\"1.6\"");
            for end in [from, to] {
                svg.line((end.0, end.1 - 4.0), (end.0, end.1 + 4.0), "#000000", "");
            }
            x = x.max(to.0);
        }
        if self.scale == BarsScale::Ratio {
            x = x.max(panel.at(1.0, row).0);
        }
        svg.text((x + 6.0, y + 4.0), &bar.text, Anchor::Start);
        svg.text((panel.left - 6.0, y + 4.0), &shortened(&bar.name, NAME), Anchor::End);
    }

    /// The rows of the key: for each entry the index of its part and where it begins.
    fn key_rows(&self) -> Vec<Vec<(usize, f64)>> {
        let mut rows: Vec<Vec<(usize, f64)>> = Vec::new();
        let mut right = f64::INFINITY;
        for (index, name) in self.parts.iter().enumerate() {
            let width = key_width(name);
            if right + width > WIDTH {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(bars: Vec<Bar>, scale: BarsScale) -> Drawing {
        let parts = vec!["flash".to_owned(), "compute".to_owned()];
        let marks = vec![(1.0, "same".to_owned())];
        let (title, unit) = ("t".to_owned(), "$".to_owned());
        Bars { title, unit, label: crate::short, parts, bars, marks, scale }.draw()
    }

    fn bar(parts: &[f64], interval: Option<(f64, f64)>) -> Bar {
        Bar { name: "a<b".to_owned(), parts: parts.to_vec(), interval, text: "x".to_owned() }
    }

    #[test]
    fn parts_stand_side_by_side() {
        let drawn = bars(vec![bar(&[1.0, 2.0], None), bar(&[3.0, 0.0], None)], BarsScale::Zero);
        // The background, the frame is not drawn, two in the key, parts that are something.
        assert_eq!(drawn.svg.matches("<rect").count(), 1 + 2 + 3);
        let [one, other] = [&drawn.hints[0].place, &drawn.hints[1].place];
        assert!(
            (one[0] + one[2] - other[0]).abs() < 1e-9 && (other[2] - 2.0 * one[2]).abs() < 1e-9
        );
        assert_eq!(drawn.hints[1].text, "a<b, compute: 2 $");
    }

    #[test]
    fn ratios_begin_at_one() {
        let drawn = bars(vec![bar(&[0.5], Some((0.4, 0.6))), bar(&[2.0], None)], BarsScale::Ratio);
        let [less, more] = [&drawn.hints[0].place, &drawn.hints[1].place];
        assert!((less[0] + less[2] - more[0]).abs() < 1e-9, "{less:?} {more:?}");
        assert!(!drawn.svg.contains("NaN"), "{}", drawn.svg);
    }
}
