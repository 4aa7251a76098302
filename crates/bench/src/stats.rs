//! Medians, quantiles, ratios and linear regression.

use serde_json::{Value, json};

/// Median, minimum and maximum over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// The quantile `q` of `sorted`, by nearest rank; zero if it is empty.
pub(crate) fn quantile<T: Copy + Default>(sorted: &[T], q: Quantile) -> T {
    let rank = (sorted.len() * q.numerator).div_ceil(q.denominator).max(1);
    sorted.get(rank - 1).or_else(|| sorted.last()).copied().unwrap_or_default()
}

/// A share of samples, as a fraction so that ranks are exact.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantile {
    numerator: usize,
    denominator: usize,
}

impl Quantile {
    pub(crate) const P5: Self = Self::percent(5);
    pub(crate) const P50: Self = Self::percent(50);
    pub(crate) const P90: Self = Self::percent(90);
    pub(crate) const P95: Self = Self::percent(95);
    pub(crate) const P99: Self = Self::percent(99);

    const fn percent(numerator: usize) -> Self {
        Self { numerator, denominator: 100 }
    }
}

impl Spread {
    /// The spread of one value per round; all zero if there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let half = values.len() / 2;
        let median = match values.len() {
            0 => 0.0,
            odd if odd % 2 == 1 => values[half],
            _ => f64::midpoint(values[half - 1], values[half]),
        };
        Self {
            median,
            min: values.first().copied().unwrap_or(0.0),
            max: values.last().copied().unwrap_or(0.0),
        }
    }

    /// Ratio of the medians of `ours` and `base`, with the extremes of the ratio over rounds.
    pub(crate) fn ratio(ours: &[f64], base: &[f64]) -> Self {
        let rounds = Self::of(ours.iter().zip(base).map(|(ours, base)| ours / base));
        Self {
            median: Self::of(ours.iter().copied()).median / Self::of(base.iter().copied()).median,
            ..rounds
        }
    }

    /// The text `median (min to max)`.
    pub(crate) fn show(&self, decimals: usize) -> String {
        format!("{:.decimals$} ({:.decimals$} to {:.decimals$})", self.median, self.min, self.max)
    }

    /// The spread for the record.
    pub(crate) fn json(&self) -> Value {
        json!({"median": self.median, "min": self.min, "max": self.max})
    }
}

/// A straight line through points, by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    pub(crate) slope: f64,
    pub(crate) intercept: f64,
    /// Share of the variance that the line explains.
    pub(crate) r2: f64,
}

impl Line {
    /// Fits a line to at least two points with different abscissae.
    pub(crate) fn fit(points: &[(f64, f64)]) -> Self {
        let mean = |value: fn(&(f64, f64)) -> f64| mean(points.iter().map(value));
        let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
        let sum = |product: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|(x, y)| product(x - mean_x, y - mean_y)).sum()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        let slope = xy / xx;
        Self {
            slope,
            intercept: mean_y - slope * mean_x,
            r2: if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) },
        }
    }
}

/// The mean of `values`; zero if there are none.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    if count == 0.0 { 0.0 } else { sum / count }
}

/// An integer as a float, exact up to 2^53; times and counts are far below that.
#[expect(clippy::cast_precision_loss, reason = "see above")]
pub(crate) const fn float(integer: u64) -> f64 {
    integer as f64
}

/// As [`float`], for a signed integer.
#[expect(clippy::cast_precision_loss, reason = "see `float`")]
pub(crate) const fn signed(integer: i64) -> f64 {
    integer as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_odd_even_and_nothing() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(spread(&[3.0, 1.0, 2.0]).median, 2.0);
        let even = spread(&[4.0, 1.0, 2.0, 3.0]);
        assert_eq!((even.median, even.min, even.max), (2.5, 1.0, 4.0));
        assert_eq!(spread(&[]).median, 0.0);
    }

    #[test]
    fn ratio_is_of_medians_and_its_extremes_of_rounds() {
        let ratio = Spread::ratio(&[2.0, 6.0, 4.0], &[1.0, 2.0, 4.0]);
        assert_eq!((ratio.median, ratio.min, ratio.max), (2.0, 1.0, 3.0));
    }

    #[test]
    fn quantile_is_the_nearest_rank() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(quantile(&hundred, Quantile::P50), 50);
        assert_eq!(quantile(&hundred, Quantile::P95), 95);
        assert_eq!(quantile(&hundred, Quantile::P99), 99);
        assert_eq!(quantile(&[7_u64], Quantile::P99), 7);
        assert_eq!(quantile(&[1_u64, 2, 3], Quantile::P50), 2);
        assert_eq!(quantile::<u64>(&[], Quantile::P50), 0);
    }

    #[test]
    fn line_through_points_on_a_line_is_that_line() {
        let line = Line::fit(&[(0.0, 1.0), (1.0, 3.0), (4.0, 9.0)]);
        assert!((line.slope - 2.0).abs() < 1e-12);
        assert!((line.intercept - 1.0).abs() < 1e-12);
        assert!((line.r2 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn line_through_a_cloud_explains_its_share() {
        // By hand: sums of squares and products about the means (1.5, 2) are 5, 2 and 2.
        let line = Line::fit(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 2.0)]);
        assert!((line.slope - 0.4).abs() < 1e-12);
        assert!((line.intercept - 1.4).abs() < 1e-12);
        assert!((line.r2 - 0.4).abs() < 1e-12);
    }
}
