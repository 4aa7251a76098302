//! Lines over time.

use chart::{Axis, Kind, Look, Plot, Series};
use console::layout::count;

use super::history::History;
use crate::section::{Chart, Picture, Table};
use crate::words::exact;

/// Lines of one picture.
const SERIES_MAX: usize = 7;
/// Points up to which a line has dots, so that the first can be seen.
const DOTS_MAX: usize = 30;

/// The texts of a picture of a history.
pub(super) struct Told {
    /// The stem of its files.
    pub(super) name: &'static str,
    pub(super) title: String,
    /// The name of the axis of values, with its unit.
    pub(super) y: &'static str,
    pub(super) caption: &'static str,
    /// The name of the axis of time, with its unit.
    pub(super) x: &'static str,
    /// Whether a value of 0 means that there is none, and is not drawn.
    pub(super) omits_zero: bool,
}

impl Told {
    /// The picture of `history`; `None` before there are two moments, or any value to draw.
    pub(super) fn of(self, history: &History) -> Option<Picture> {
        if !history.is_drawable() {
            return None;
        }
        let mut table = Table::new(["what", "time_s", "value"]);
        let mut series = Vec::new();
        for (name, mut points) in history.series(SERIES_MAX) {
            points.retain(|point| !self.omits_zero || point.1 > 0.0);
            for (at, value) in &points {
                table.push([name.clone(), exact(*at), exact(*value)]);
            }
            let look = if points.len() <= DOTS_MAX { Look::Line } else { Look::Curve };
            series.push(Series::new(name, look, points));
        }
        let is_empty = series.iter().all(|one| one.points.is_empty());
        (!is_empty).then(|| Picture {
            name: self.name.to_owned(),
            title: self.title.clone(),
            caption: self.caption.to_owned(),
            chart: Chart::Plot(Plot {
                title: self.title,
                x: Axis::new(self.x, Kind::Linear),
                y: Axis::new(self.y, Kind::Linear).showing(&[0.0]),
                series,
                bounds: Vec::new(),
                marks: Vec::new(),
            }),
            table,
        })
    }
}

/// A number that changes all the time, with no more digits than can be read; NaN is a dash.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1000 and above")]
pub(super) fn rounded(number: f64) -> String {
    match number {
        _ if number.is_nan() => "–".to_owned(),
        ..1000.0 => exact((number * 10.0).round() / 10.0),
        _ => count(number.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_read() {
        let numbers = [0.0, 0.04, 7.26, 999.0, 12_345.6, f64::NAN].map(rounded);
        assert_eq!(numbers, ["0", "0", "7.3", "999", "12,346", "–"]);
    }
}
