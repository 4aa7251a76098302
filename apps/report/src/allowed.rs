//! The longest round trip at which a program is no slower than a bound allows.
//!
//! Time grows with the round trip by the fetches that wait for it (Buragohain et al. 2017, Fig. 4),
//! so that between two round trips that were tried a line says where it crosses a bound, and below
//! the shortest one a line through all of them.

use super::section::Table;
use super::words::{percent, time_ns};
use experiment::fit::Line;

/// Slowdowns by round trip under otherwise equal conditions.
#[derive(Debug, Clone)]
pub(super) struct Tried {
    pub(super) name: String,
    /// Nanoseconds and slowdown, from the shortest on.
    pub(super) points: Vec<(f64, f64)>,
}

/// Bounds that the table has beside that of `--bound`.
const BOUNDS: [f64; 5] = [1.05, 1.1, 1.25, 1.5, 2.0];
/// The note below the table.
pub(super) const NOTE: &str = "\
     The longest round trip, with the most bandwidth that was tried. Between two that were tried \
     by the line between them; * shorter than any that was tried, by the line through all of them. \
     None: by that line the fetches take too long even without a round trip.";

/// A row for each bound, a column for each condition; `None` if no condition has two round trips.
pub(super) fn table(conditions: &[Tried], bound: f64) -> Option<Table> {
    conditions.iter().find(|one| one.points.len() > 1)?;
    let mut bounds = vec![bound];
    bounds.extend(BOUNDS.into_iter().filter(|other| *other > bound));
    let mut table = Table::new(["longest round trip, if slower by at most"]);
    table.columns.extend(conditions.iter().map(|one| one.name.clone()));
    for bound in bounds {
        let mut row = vec![percent(bound - 1.0)];
        row.extend(conditions.iter().map(|one| longest(&one.points, bound)));
        table.rows.push(row);
    }
    Some(table)
}

/// The longest round trip within `bound`, as a cell of the table.
fn longest(points: &[(f64, f64)], bound: f64) -> String {
    match points.iter().position(|point| point.1 > bound) {
        None => points.last().map_or_else(
            || "not known".to_owned(),
            |&(tried_ns, _)| format!("{} or longer", time_ns(tried_ns)),
        ),
        Some(0) => shorter(points, bound),
        Some(bad) => crossing(&points[bad - 1..=bad], bound)
            .map_or_else(|| time_ns(points[bad - 1].0), time_ns),
    }
}

// The cell where even the shortest round trip that was tried is too long.
fn shorter(points: &[(f64, f64)], bound: f64) -> String {
    match crossing(points, bound) {
        Some(ns) if ns <= 0.0 => "none".to_owned(),
        Some(ns) if ns < points[0].0 => format!("{}*", time_ns(ns)),
        // A single point, or times that fall as the round trip grows.
        _ => "not known".to_owned(),
    }
}

// The x at which the line fitted to `points` reaches `y`; `None` unless the line rises.
fn crossing(points: &[(f64, f64)], y: f64) -> Option<f64> {
    let line = Line::fit(points).filter(|line| line.slope > 0.0)?;
    Some((y - line.intercept) / line.slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(points: &[(f64, f64)], bound: f64) -> Vec<String> {
        let tried = Tried { name: "25 % local".to_owned(), points: points.to_vec() };
        let table = table(&[tried], bound).expect("there are two round trips");
        assert_eq!(table.columns, ["longest round trip, if slower by at most", "25 % local"]);
        table.rows.into_iter().map(|row| row.join(": ")).collect()
    }

    #[test]
    fn lines_say_where_a_bound_is_crossed() {
        // 1.02 and a hundredth for each microsecond.
        let points = [(4e3, 1.06), (14e3, 1.16), (44e3, 1.46)];
        let wanted = [
            "1 %: none",
            "5 %: 3 µs*",
            "10 %: 8 µs",
            "25 %: 23 µs",
            "50 %: 44 µs or longer",
            "100 %: 44 µs or longer",
        ];
        assert_eq!(told(&points, 1.01), wanted);
        assert_eq!(told(&points, 3.0), ["200 %: 44 µs or longer"]);
    }

    #[test]
    fn what_contradicts_itself_says_nothing() {
        let rows = told(&[(4e3, 1.4), (8e3, 1.2)], 1.3);
        assert_eq!(rows[0], "30 %: not known");
        let single = Tried { name: String::new(), points: vec![(4e3, 1.0)] };
        assert_eq!(table(&[single], 1.05), None);
    }
}
