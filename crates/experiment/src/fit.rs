//! Straight lines through points.

/// A straight line, `y = intercept + slope · x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// The y at x = 0.
    pub intercept: f64,
    /// The rise of y per unit of x.
    pub slope: f64,
}

impl Line {
    /// The least-squares line through points (x, y); level if all have the same x, `None` without a
    /// point.
    #[must_use]
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        if points.is_empty() {
            return None;
        }
        let (x, y) = centre(points);
        let spread = sum(points, |point| (point.0 - x).powi(2));
        let product = sum(points, |point| (point.0 - x) * (point.1 - y));
        let slope = if spread > 0.0 { product / spread } else { 0.0 };
        Some(Self { intercept: y - slope * x, slope })
    }

    /// The y at `x`.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// The share of the variance of y that lines explain, each of its own points (R²): 1 less the
/// remaining variance over the total. `None` where y does not vary.
#[must_use]
pub fn explained(groups: &[(Line, Vec<(f64, f64)>)]) -> Option<f64> {
    let all: Vec<(f64, f64)> = groups.iter().flat_map(|(_, points)| points.clone()).collect();
    if all.is_empty() {
        return None;
    }
    let (_, y) = centre(&all);
    let there = sum(&all, |point| (point.1 - y).powi(2));
    let left: f64 = groups
        .iter()
        .map(|(line, points)| sum(points, |point| (point.1 - line.at(point.0)).powi(2)))
        .sum();
    (there > 0.0).then(|| 1.0 - left / there)
}

/// Pearson's correlation of x and y, from -1 to 1; `None` with fewer than three points or where one
/// does not vary.
#[must_use]
pub fn correlation(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let (x, y) = centre(points);
    let product = sum(points, |point| (point.0 - x) * (point.1 - y));
    let spreads =
        sum(points, |point| (point.0 - x).powi(2)) * sum(points, |point| (point.1 - y).powi(2));
    (spreads > 0.0).then(|| product / spreads.sqrt())
}

/// The sum of `of` over all points.
fn sum(points: &[(f64, f64)], of: impl Fn(&(f64, f64)) -> f64) -> f64 {
    points.iter().map(of).sum()
}

/// The means of x and y.
fn centre(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    (sum(points, |point| point.0) / count, sum(points, |point| point.1) / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_exactly() {
        let points: Vec<(f64, f64)> = [1.0, 2.0, 5.0].map(|x| (x, 20.0 + 3.0 * x)).to_vec();
        let line = Line::fit(&points).expect("there are points");
        assert!((line.slope - 3.0).abs() < 1e-12 && (line.intercept - 20.0).abs() < 1e-12);
        let explained = explained(&[(line, points)]).expect("they vary");
        assert!((explained - 1.0).abs() < 1e-12);
        assert_eq!(Line::fit(&[(1.0, 4.0), (1.0, 6.0)]).expect("two").at(9.0), 5.0);
        assert_eq!(Line::fit(&[]), None);
    }

    #[test]
    fn what_is_left_is_not_explained() {
        // 0, 0, 6 over 0, 1, 2: the line -1 + 3x leaves 1, 4 and 1 of 24.
        let points = vec![(0.0, 0.0), (1.0, 0.0), (2.0, 6.0)];
        let line = Line::fit(&points).expect("three");
        assert!((explained(&[(line, points.clone())]).expect("they vary") - 0.75).abs() < 1e-12);
        assert!((correlation(&points).expect("they vary").powi(2) - 0.75).abs() < 1e-12);
        assert_eq!(explained(&[(line, vec![(1.0, 2.0); 3])]), None);
        assert_eq!(correlation(&points[..2]), None);
    }
}
