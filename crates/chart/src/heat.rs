//! Heat maps: values over two axes of names as shaded cells, with the edge between cells within a
//! bound and the others.

use crate::{Anchor, Drawing, GREY, Panel, Scale, Svg, WHITE, shortened, text_width};

/// A heat map.
#[derive(Debug, Clone, Default)]
pub struct Heat {
    /// A title for those who cannot see the picture.
    pub title: String,
    /// Names of the axes of columns and rows.
    pub axes: (String, String),
    /// From left to right.
    pub columns: Vec<String>,
    /// From the top down, each with as many cells as there are columns.
    pub rows: Vec<(String, Vec<Option<Cell>>)>,
    /// Name of the edge; `None` if it is not drawn.
    pub edge: Option<String>,
    /// Meaning of shades, each with its depth.
    pub key: Vec<(f64, String)>,
    /// Meaning of a hatched cell, if there can be one.
    pub hatched: Option<String>,
    /// Short names above the columns; the middle of the first column is at 0.5, its end at 1.
    pub marks: Vec<(f64, String)>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Depth of the shade, from -1 to 1.
    pub depth: f64,
    /// The value as text.
    pub text: String,
    /// Whether it is within the bound.
    pub is_within: bool,
    /// Whether that is unknown: then the cell is hatched.
    pub is_doubtful: bool,
}

const WIDTH: f64 = 480.0;
const TOP: f64 = 58.0;
/// Height of the line of marks above the columns.
const MARKS: f64 = 18.0;
/// Marks that are closer than this share one text.
const MARKS_APART: f64 = 14.0;
/// Distance of the lines of a hatched cell.
const HATCH: f64 = 8.0;
/// The most letters of a row's name.
const NAME: usize = 20;
/// With more columns or rows than this, cells have no text.
const TEXT_MAX: usize = 12;
/// The least height of a named row, and the most rows that are all named.
const ROW_MIN: f64 = 15.0;
const ROWS_NAMED: f64 = 40.0;
/// The longest text on a cell, in letters.
const LETTERS_MAX: usize = 6;
/// Two neighbouring cells, where there are such.
type Sides<'c> = (Option<&'c Cell>, Option<&'c Cell>);

impl Heat {
    /// Draws the map.
    #[must_use]
    pub fn draw(&self) -> Drawing {
        let (columns, rows) = (self.columns.len().max(1), self.rows.len().max(1));
        let widths = self.rows.iter().map(|(name, _)| text_width(&shortened(name, NAME)));
        let left = 44.0 + widths.fold(0.0, f64::max);
        let height = height(rows);
        let top = TOP + if self.marks.is_empty() { 0.0 } else { MARKS };
        let mut svg = Svg::new(WIDTH, top + height + 48.0);
        let panel = Panel {
            left,
            top,
            width: WIDTH - left - 14.0,
            height,
            x: Scale::Linear(0.0, columns as f64),
            y: Scale::Linear(rows as f64, 0.0),
        };
        for (row, (name, cells)) in self.rows.iter().enumerate() {
            for (column, cell) in cells.iter().enumerate() {
                self.draw_cell(&mut svg, &panel, (row, column), cell.as_ref());
            }
            let (x, y) = panel.at(0.0, row as f64 + 0.5);
            if row.is_multiple_of(every(rows, rows_named(height))) {
                svg.text((x - 6.0, y + 4.0), &shortened(name, NAME), Anchor::End);
            }
        }
        for (column, name) in self.columns.iter().enumerate() {
            if column.is_multiple_of(every(columns, self.columns_named(panel.width))) {
                let (x, y) = panel.at(column as f64 + 0.5, rows as f64);
                svg.text((x, y + 17.0), &shortened(name, 12), Anchor::Middle);
            }
        }
        let mut right = 16.0;
        if let Some(edge) = &self.edge {
            self.draw_edge(&mut svg, &panel);
            svg.line((right, 40.0), (right + 20.0, 40.0), "#000000", "stroke-width=\"3\"");
            svg.tinted((right + 26.0, 44.0), edge, Anchor::Start, GREY);
            right += 46.0 + text_width(edge);
        }
        if let Some(hatched) = &self.hatched {
            hatch(&mut svg, (right, 33.0), (right + 14.0, 47.0));
            svg.tinted((right + 20.0, 44.0), hatched, Anchor::Start, GREY);
        }
        self.draw_marks(&mut svg, &panel);
        svg.frame(&panel);
        svg.axes(&panel, (&self.axes.0, &[]), (&self.axes.1, &[]));
        let mut right = 16.0;
        for (depth, name) in &self.key {
            svg.bar((right - 1.0, 9.0), (right + 15.0, 25.0), GREY);
            svg.bar((right, 10.0), (right + 14.0, 24.0), WHITE);
            svg.cell((right, 10.0), (right + 14.0, 24.0), *depth);
            svg.text((right + 20.0, 22.0), name, Anchor::Start);
            right += 40.0 + text_width(name);
        }
        svg.finish_hinted(&self.title)
    }

    /// Draws a cell, with its text if there is room, and its hint.
    fn draw_cell(&self, svg: &mut Svg, panel: &Panel, at: (usize, usize), cell: Option<&Cell>) {
        let (row, column) = (at.0 as f64, at.1 as f64);
        let corners = (panel.at(column, row), panel.at(column + 1.0, row + 1.0));
        let Some(cell) = cell else { return };
        svg.cell(corners.0, corners.1, cell.depth);
        if cell.is_doubtful {
            hatch(svg, corners.0, corners.1);
        }
        let is_roomy = self.columns.len() <= TEXT_MAX && self.rows.len() <= TEXT_MAX;
        if is_roomy && cell.text.chars().count() <= LETTERS_MAX {
            let (x, y) = panel.at(column + 0.5, row + 0.5);
            svg.text((x, y + 4.0), &cell.text, Anchor::Middle);
        }
        let ((x, y), (name, column)) = (&self.axes, (&self.rows[at.0].0, &self.columns[at.1]));
        svg.hint_area(corners.0, corners.1, format!("{y} {name}, {x} {column}: {}", cell.text));
    }

    // Draws a tick for each mark; marks close to each other share one text.
    fn draw_marks(&self, svg: &mut Svg, panel: &Panel) {
        let mut texts: Vec<(f64, String)> = Vec::new();
        for (column, name) in &self.marks {
            let (x, y) = panel.at(*column, 0.0);
            svg.line((x, y - 5.0), (x, y + 5.0), "#000000", "");
            match texts.last_mut().filter(|last| x - last.0 < MARKS_APART) {
                Some((_, text)) => *text += &format!(",{name}"),
                None => texts.push((x, name.clone())),
            }
        }
        for (x, text) in texts {
            svg.text((x, panel.top - 8.0), &text, Anchor::Middle);
        }
    }

    // Draws each piece of grid line between a cell within the bound and one beyond.
    fn draw_edge(&self, svg: &mut Svg, panel: &Panel) {
        let cell = |row: usize, column: usize| self.rows.get(row)?.1.get(column)?.as_ref();
        let differs = |(one, other): Sides<'_>| {
            one.zip(other).is_some_and(|(one, other)| one.is_within != other.is_within)
        };
        let mut piece = |from: (usize, usize), to: (usize, usize)| {
            let at = |(row, column): (usize, usize)| panel.at(column as f64, row as f64);
            let style = "stroke-width=\"3\" stroke-linecap=\"round\"";
            svg.line(at(from), at(to), "#000000", style);
        };
        for row in 0..self.rows.len() {
            for column in 0..self.columns.len() {
                if differs((cell(row, column), cell(row, column + 1))) {
                    piece((row, column + 1), (row + 1, column + 1));
                }
                if differs((cell(row, column), cell(row + 1, column))) {
                    piece((row + 1, column), (row + 1, column + 1));
                }
            }
        }
    }

    // How many columns have room for their names.
    fn columns_named(&self, width: f64) -> usize {
        let widths = self.columns.iter().map(|name| text_width(&shortened(name, 12)));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few")]
        let most = (width / (widths.fold(0.0, f64::max) + 8.0)) as usize;
        most.max(1)
    }
}

// Draws slanted lines between two corners.
fn hatch(svg: &mut Svg, (left, top): (f64, f64), (right, bottom): (f64, f64)) {
    let (width, height) = (right - left, bottom - top);
    let mut from = HATCH - height;
    while from < width {
        let (near, far) = (from.max(0.0), (from + height).min(width));
        let at = |along: f64| (left + along, bottom - (along - from));
        svg.line(at(near), at(far), "#000000", "stroke-opacity=\"0.35\"");
        from += HATCH;
    }
}

// Height of the map, which lets each of a few dozen rows have its name.
fn height(rows: usize) -> f64 {
    let rows = rows as f64;
    (rows * 30.0).clamp(90.0, 240.0).max(rows.min(ROWS_NAMED) * ROW_MIN)
}

// How many rows have room for their names.
fn rows_named(height: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few")]
    let most = (height / ROW_MIN) as usize;
    most.max(1)
}

// The step at which `most` of `count` names are shown.
fn every(count: usize, most: usize) -> usize {
    count.div_ceil(most).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(rows: &[&[Option<f64>]]) -> Heat {
        let cell = |value: &Option<f64>| {
            value.map(|value| Cell {
                depth: value,
                text: value.to_string(),
                is_within: value < 0.5,
                is_doubtful: value > 0.85,
            })
        };
        Heat {
            title: "t".to_owned(),
            axes: ("rtt".to_owned(), "local".to_owned()),
            columns: (0..rows[0].len()).map(|at| format!("c{at}")).collect(),
            rows: rows.iter().map(|row| ("r".to_owned(), row.iter().map(cell).collect())).collect(),
            edge: Some("5 %".to_owned()),
            key: vec![(0.0, "1x".to_owned()), (1.0, "2x".to_owned())],
            hatched: None,
            marks: Vec::new(),
        }
    }

    #[test]
    fn the_edge_runs_between_cells_of_both_kinds_only() {
        let drawn =
            heat(&[&[Some(0.1), Some(0.2)], &[Some(0.3), Some(0.9)], &[None, Some(0.8)]]).draw();
        // Above and to the left of 0.9, and one in the key; none beside what is not known.
        assert_eq!(drawn.svg.matches("stroke-width=\"3\"").count(), 2 + 1);
        assert_eq!(drawn.hints.len(), 5);
        assert_eq!(drawn.hints[3].text, "local r, rtt c1: 0.9");
    }

    #[test]
    fn doubtful_cells_are_hatched() {
        let lines = |value| heat(&[&[Some(value)]]).draw().svg.matches("stroke-opacity").count();
        assert_eq!(lines(0.8), 0);
        assert!(lines(0.9) > 10);
    }

    #[test]
    fn marks_that_are_near_share_a_text() {
        let mut heat = heat(&[&[Some(0.1), Some(0.2)]]);
        heat.marks = [0.1, 0.5, 0.51].iter().zip(1..).map(|(&x, n)| (x, n.to_string())).collect();
        let svg = heat.draw().svg;
        assert!(svg.contains(">1</text>") && svg.contains(">2,3</text>"), "{svg}");
    }

    #[test]
    fn every_one_of_two_dozen_rows_has_its_name() {
        let cell: &[Option<f64>] = &[Some(0.1)];
        let names = |count: usize| heat(&vec![cell; count]).draw().svg.matches(">r</text>").count();
        assert_eq!([names(3), names(24), names(40)], [3, 24, 40]);
        assert!(names(200) <= 40);
    }

    #[test]
    fn many_cells_have_no_text() {
        let row: Vec<Option<f64>> = (0..200).map(|at| Some(f64::from(at) / 200.0)).collect();
        let drawn = heat(&[&row]).draw();
        assert!(drawn.svg.matches("<text").count() < 24);
    }
}
