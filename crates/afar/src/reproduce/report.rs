//! What a figure comes to, and how its numbers are laid out.

use chart::Tick;
use serde_json::Value;

/// Everything that is said of a figure.
#[derive(Debug)]
pub(super) struct Report {
    /// What it is, with its citation.
    pub(super) title: String,
    pub(super) table: String,
    pub(super) verdicts: Vec<Verdict>,
    /// As SVG.
    pub(super) picture: String,
    pub(super) points: Value,
    /// The paper's numbers, as they were compared.
    pub(super) paper: Value,
}

/// Whether something of the paper is so here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) holds: bool,
    /// Our number, the paper's and the criterion.
    pub(super) claim: String,
}

impl Verdict {
    pub(super) const fn new(holds: bool, claim: String) -> Self {
        Self { holds, claim }
    }

    /// As a sentence.
    pub(super) fn text(&self) -> String {
        let judgement = if self.holds { "holds" } else { "does not hold here" };
        format!("{judgement}: {}", self.claim)
    }
}

/// Shown where there is no number.
pub(super) const NONE: &str = "–";

/// The middle one, or the mean of the middle two; 0 of none.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Columns as wide as they need to be, the first to the left and the others to the right.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line += &match index {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A row of a table.
pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// Requests per second, in thousands.
pub(super) fn kilo(rate: f64) -> String {
    format!("{:.1}k", rate / 1e3)
}

/// A linear axis from 0 that ends on a tick at or above `most`, which is above 0.
pub(super) fn axis(most: f64, label: impl Fn(f64) -> String) -> (f64, Vec<Tick>) {
    let decade = 10_f64.powf(most.log10().floor());
    let steps = [0.1, 0.2, 0.5, 1.0, 2.0].map(|step| step * decade);
    let step = steps.into_iter().find(|step| most / step <= 6.0).unwrap_or(2.0 * decade);
    let count = (most / step).ceil();
    let values = std::iter::successors(Some(0.0_f64), |value| Some(value + 1.0));
    let values = values.take_while(|value| *value <= count);
    (count * step, values.map(|value| (value * step, label(value * step))).collect())
}

/// Ticks of a logarithmic axis: 1, 2 and 5 of every decade between two values above 0, or only its
/// beginning if there are many.
pub(super) fn decades(low: f64, high: f64) -> Vec<Tick> {
    let steps: &[f64] = if high / low > 50.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let exponents =
        (-3..8).flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
    let within = exponents.filter(|value| (low..=high).contains(value));
    within.map(|value| (value, format!("{value}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_one_or_between_two() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0]), 2.5);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn tables_line_up() {
        let rows = [row(["mix", "IOPS"]), row(["100 %", "9"])];
        assert_eq!(table(&rows), "mix    IOPS\n100 %     9\n");
    }

    #[test]
    fn axes_end_on_ticks() {
        let (high, ticks) = axis(23_400.0, kilo);
        assert_eq!((high, ticks.len()), (25_000.0, 6));
        assert_eq!(axis(1.0, |value| format!("{value}")).0, 1.0);
        let values: Vec<f64> = decades(80.0, 1_000.0).into_iter().map(|tick| tick.0).collect();
        assert_eq!(values, [100.0, 200.0, 500.0, 1_000.0]);
        assert_eq!(decades(80.0, 9_000.0).len(), 2);
    }
}
