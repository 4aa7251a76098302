//! Pictures that several plans share: bars of parts, and cells shaded by what is in them.

use chart::{Anchor, GREY, PALETTE, Panel, Scale, Svg, WHITE, axis, text_width};

/// Bars one below the other, each of parts that add up.
pub(super) struct Bars<'a> {
    /// The title of the SVG, which screen readers read.
    pub(super) title: &'a str,
    pub(super) unit: &'a str,
    /// Names of the parts, which every bar has in this order.
    pub(super) parts: Vec<&'a str>,
    pub(super) bars: Vec<Bar>,
    pub(super) note: &'a str,
}

/// One bar.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) parts: Vec<f64>,
    /// The text at the bar's end.
    pub(super) label: String,
    /// Whether the bar is marked with ▸.
    pub(super) is_chosen: bool,
}

/// Values from 0 to 1 in rows and columns.
pub(super) struct Cells<'a> {
    pub(super) title: &'a str,
    pub(super) columns: &'a str,
    /// A name for each row, and its values.
    pub(super) rows: Vec<(String, Vec<f64>)>,
    pub(super) note: &'a str,
}

/// The width beside the names.
const WIDTH: f64 = 500.0;
const TOP: f64 = 64.0;
const BAR: f64 = 26.0;
/// How many names of parts are in one line of the key.
const KEY: usize = 4;
/// The most columns; if there are more, neighbours share one.
const COLUMNS_MAX: usize = 240;

/// Draws bars from left to right, one below the other.
pub(super) fn bars(picture: &Bars<'_>) -> String {
    let lines = picture.parts.len().div_ceil(KEY).max(1);
    let top = TOP + (lines - 1) as f64 * 18.0;
    let height = picture.bars.len() as f64 * BAR;
    let left = left(picture.bars.iter().map(|bar| &bar.name));
    let mut svg = Svg::new(left + WIDTH, top + height + 56.0);
    let most = picture.bars.iter().map(|bar| bar.parts.iter().sum::<f64>());
    let most = most.fold(f64::MIN_POSITIVE, f64::max);
    let (end, ticks) = axis(most * 1.001, short);
    let rows = picture.bars.len() as f64;
    let panel = Panel {
        left,
        top,
        width: WIDTH - 90.0,
        height,
        x: Scale::Linear(0.0, end),
        y: Scale::Linear(rows, 0.0),
    };
    svg.axes(&panel, (picture.unit, &ticks), ("", &[]));
    for (row, bar) in picture.bars.iter().enumerate() {
        let row = row as f64;
        let mut from = 0.0;
        for (part, colour) in bar.parts.iter().zip(PALETTE.iter().cycle()) {
            if *part > 0.0 {
                svg.bar(panel.at(from, row + 0.18), panel.at(from + part, row + 0.82), colour);
            }
            from += part;
        }
        let (x, y) = panel.at(from, row + 0.5);
        svg.text((x + 6.0, y + 4.0), &bar.label, Anchor::Start);
        let name = if bar.is_chosen { format!("▸ {}", bar.name) } else { bar.name.clone() };
        svg.text((left - 8.0, y + 4.0), &name, Anchor::End);
    }
    let named: Vec<(&str, &str)> =
        picture.parts.iter().copied().zip(PALETTE.iter().copied().cycle()).collect();
    for (line, names) in named.chunks(KEY).enumerate() {
        svg.key((16.0, 22.0 + line as f64 * 18.0), names);
    }
    svg.tinted((16.0, top - 18.0), picture.note, Anchor::Start, GREY);
    svg.finish(picture.title)
}

/// Draws cells, the fuller the darker.
pub(super) fn cells(picture: &Cells<'_>) -> String {
    let rows = picture.rows.len() as f64;
    let columns = picture.rows.iter().map(|(_, values)| values.len()).max().unwrap_or(0).max(1);
    let shared = columns.div_ceil(COLUMNS_MAX);
    let drawn = columns.div_ceil(shared) as f64;
    let height = rows * BAR;
    let left = left(picture.rows.iter().map(|(name, _)| name));
    let mut svg = Svg::new(left + WIDTH, TOP + height + 56.0);
    let panel = Panel {
        left,
        top: TOP,
        width: WIDTH - 24.0,
        height,
        x: Scale::Linear(0.0, drawn),
        y: Scale::Linear(rows, 0.0),
    };
    for (row, (name, values)) in picture.rows.iter().enumerate() {
        let row = row as f64;
        for (column, values) in values.chunks(shared).enumerate() {
            let column = column as f64;
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let corners = (panel.at(column, row), panel.at(column + 1.0, row + 1.0));
            svg.cell(corners.0, corners.1, mean);
        }
        let (x, y) = panel.at(0.0, row + 0.5);
        svg.text((x - 8.0, y + 4.0), name, Anchor::End);
    }
    svg.frame(&panel);
    let middle = panel.left + panel.width / 2.0;
    svg.text((middle, TOP + height + 22.0), picture.columns, Anchor::Middle);
    for (index, share) in [0.0, 0.25, 0.5, 0.75, 1.0].into_iter().enumerate() {
        let left = 16.0 + index as f64 * 62.0;
        svg.bar((left - 1.0, 11.0), (left + 15.0, 27.0), GREY);
        svg.bar((left, 12.0), (left + 14.0, 26.0), WHITE);
        svg.cell((left, 12.0), (left + 14.0, 26.0), share);
        svg.text((left + 18.0, 24.0), &format!("{:.0} %", share * 100.0), Anchor::Start);
    }
    svg.tinted((16.0, TOP - 18.0), picture.note, Anchor::Start, GREY);
    svg.finish(picture.title)
}

/// Room for names, with the mark of a bar that is chosen.
fn left<'a>(names: impl Iterator<Item = &'a String>) -> f64 {
    let most = names.map(|name| text_width(name)).fold(0.0, f64::max);
    (most + 32.0).max(120.0)
}

/// The label of a tick; thousands and more have letters.
fn short(value: f64) -> String {
    let (unit, letter) = match value.abs() {
        0.0..1e4 => (1.0, ""),
        0.0..1e6 => (1e3, "k"),
        0.0..1e9 => (1e6, "M"),
        _ => (1e9, "G"),
    };
    let text = format!("{:.2}", value / unit);
    format!("{}{letter}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_their_parts_and_cells_their_shades() {
        let bar = |parts: &[f64]| Bar {
            name: "a<b".to_owned(),
            parts: parts.to_vec(),
            label: "3".to_owned(),
            is_chosen: parts[0] > 1.0,
        };
        let drawn = bars(&Bars {
            title: "t",
            unit: "µs",
            parts: vec!["one", "two"],
            bars: vec![bar(&[1.0, 2.0]), bar(&[3.0, 0.0])],
            note: "n",
        });
        // The background, two in the key, and parts that are something.
        assert_eq!(drawn.matches("<rect").count(), 1 + 2 + 3);
        assert_eq!(drawn.matches("▸ a&lt;b").count(), 1);
        let drawn = cells(&Cells {
            title: "t",
            columns: "servers",
            rows: vec![("x".to_owned(), vec![0.5; 1_000])],
            note: "",
        });
        // Five neighbours share a cell; and a frame.
        assert_eq!(drawn.matches("<rect").count(), 1 + 200 + 1 + 15);
        assert!(!drawn.contains("NaN"), "{drawn}");
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([0.0, 2.5, 25_000.0, 1_200_000.0].map(short), ["0", "2.5", "25k", "1.2M"]);
        assert_eq!(short(12e9), "12G");
    }
}
