//! Estimates from repeated runs: medians, intervals, outliers.
//!
//! An interval of a median is made of order statistics: `[x(k), x(n+1-k)]` misses the true median
//! only if fewer than k runs lie on one side of it, whatever their distribution (David and
//! Nagaraja, Order Statistics, 3rd ed., 7.1). Four runs do not have one: their extremes hold the
//! median in 87.5 % of experiments. Where the next pair inwards falls just short, the ends lie
//! between two order statistics (Hettmansperger and Sheather, 1986).
//!
//! Every interval of afar's repeated runs comes from here. Order statistics, because ratios of runs
//! are seldom normal and often of two kinds.

use results::{Estimate, Interval};

use crate::looks::{COVERAGE_MIN, Looks};

/// The level that interpolated ends aim at.
const NOMINAL: f64 = 0.95;
/// The least level of an inner pair to interpolate towards.
const INNER_MIN: f64 = 0.90;
/// Beyond so many median absolute deviations (scaled to be standard deviations of a normal
/// distribution) a value is an outlier (Iglewicz and Hoaglin, 1993).
const OUTLIER: f64 = 3.5;

/// The median of `values` with its interval; `None` without a value.
#[must_use]
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    estimate_by(values, interval)
}

/// As `estimate`, for values that are looked at after each run; see [`Looks`].
#[must_use]
pub fn estimate_at(values: &[f64], looks: &Looks) -> Option<Estimate> {
    estimate_by(values, |sorted| looks.interval(sorted))
}

/// The median of `values` with what `interval` makes of the sorted ones.
fn estimate_by(values: &[f64], interval: impl Fn(&[f64]) -> Option<Interval>) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    let median = median(&mut sorted)?;
    Some(Estimate { median, interval: interval(&sorted), count: values.len() as u64 })
}

/// The middle value, or the mean of the two in the middle; `None` without a value. Sorts `values`.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[half]),
        _ => Some(f64::midpoint(values[half - 1], values[half])),
    }
}

/// The indices of outliers among `values`. They are reported, not dropped.
#[must_use]
pub fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < 5 {
        return Vec::new();
    }
    let Some(middle) = median(&mut values.to_vec()) else { return Vec::new() };
    let mut distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let deviation = median(&mut distances).unwrap_or(0.0) * 1.4826;
    let is_far = |value: &f64| (value - middle).abs() > OUTLIER * deviation && deviation > 0.0;
    values.iter().enumerate().filter(|(_, value)| is_far(value)).map(|(index, _)| index).collect()
}

// The narrowest symmetric pair of `sorted` values that holds the median often enough.
fn interval(sorted: &[f64]) -> Option<Interval> {
    let count = sorted.len();
    let level = |rank: usize| 1.0 - 2.0 * fewer_than(count, rank);
    let rank = (1..=count / 2).take_while(|&rank| level(rank) >= COVERAGE_MIN).last()?;
    let (low, high) = (sorted[rank - 1], sorted[count - rank]);
    let (outer, inner) = (level(rank), level(rank + 1));
    if outer <= NOMINAL || inner < INNER_MIN || rank + 1 > count / 2 {
        return Some(Interval { low, high, level: outer });
    }
    let share = (outer - NOMINAL) / (outer - inner);
    let (n, k) = (count as f64, rank as f64);
    let inwards = (n - k) * share / (k + (n - 2.0 * k) * share);
    let between = |outer: f64, inner: f64| outer + (inner - outer) * inwards;
    let (low, high) = (between(low, sorted[rank]), between(high, sorted[count - rank - 1]));
    Some(Interval { low, high, level: NOMINAL })
}

// The probability that fewer than `rank` of `count` fair coins show heads.
fn fewer_than(count: usize, rank: usize) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    for heads in 0..rank {
        sum += term;
        term *= (count - heads) as f64 / (heads + 1) as f64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use workload::Draw;

    use super::*;

    const TRIALS: usize = 2000;

    // Box and Muller.
    fn normal(draw: &mut Draw) -> f64 {
        let radius = (-2.0 * (1.0 - draw.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * draw.unit()).cos()
    }

    fn log_normal(draw: &mut Draw) -> f64 {
        normal(draw).exp()
    }

    // Two ways to run, three in five the faster one: the true median is the 5/6 quantile of it.
    fn bimodal(draw: &mut Draw) -> f64 {
        let is_fast = draw.unit() < 0.6;
        (if is_fast { 1.0 } else { 3.0 }) + 0.1 * normal(draw)
    }

    const BIMODAL_MEDIAN: f64 = 1.0 + 0.1 * 0.967_421_566;

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn intervals_hold_the_true_median_as_often_as_they_say() {
        type Of = fn(&mut Draw) -> f64;
        let distributions: [(&str, Of, f64); 3] = [
            ("normal", normal, 0.0),
            ("log-normal", log_normal, 1.0),
            ("bimodal", bimodal, BIMODAL_MEDIAN),
        ];
        for (name, draw_one, truth) in distributions {
            for count in (2..=16_usize).chain([20, 25, 40]) {
                let mut draw = Draw::new(11);
                let (mut given, mut held) = (0, 0);
                for _ in 0..TRIALS {
                    let values: Vec<f64> = (0..count).map(|_| draw_one(&mut draw)).collect();
                    let found = estimate(&values).expect("there are values");
                    let Some((low, high)) = found.ends() else { continue };
                    given += 1;
                    held += usize::from(low <= truth && truth <= high);
                }
                assert_eq!(given, if count < 5 { 0 } else { TRIALS }, "{name}, n = {count}");
                // Three standard deviations of the count itself below 93 %.
                let least = 0.93 * given as f64 - 3.0 * (0.93 * 0.07 * given as f64).sqrt();
                assert!(held as f64 >= least, "{name}, n = {count}: {held} of {given}");
            }
        }
    }

    // Beside the interval of Student for a mean, which assumes what is true here.
    #[test]
    fn intervals_of_normal_values_are_not_much_wider_than_students() {
        let quantiles = [
            (5, 2.776),
            (6, 2.571),
            (7, 2.447),
            (8, 2.365),
            (9, 2.306),
            (10, 2.262),
            (12, 2.201),
            (15, 2.145),
            (20, 2.093),
        ];
        for (count, student) in quantiles {
            let mut draw = Draw::new(3);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..TRIALS {
                let values: Vec<f64> = (0..count).map(|_| normal(&mut draw)).collect();
                let (low, high) = estimate(&values).and_then(|one| one.ends()).expect("enough");
                ours.push(high - low);
                let n = count as f64;
                let mean = values.iter().sum::<f64>() / n;
                let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                theirs.push(2.0 * student * (squares / (n - 1.0) / n).sqrt());
            }
            let ratio = median(&mut ours).expect("many") / median(&mut theirs).expect("many");
            assert!(ratio <= 1.6, "n = {count}: {ratio:.2}");
        }
    }

    // One of nine below: a single look would know.
    #[test]
    fn who_looks_again_and_again_knows_later() {
        let values = [0.9, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8];
        let low = |found: Option<Estimate>| found.and_then(|one| one.ends()).map(|ends| ends.0);
        assert_eq!(low(estimate(&values)), Some(1.1));
        let again = estimate_at(&values, &Looks::new(5, 15));
        assert_eq!(again.map(|one| one.median), Some(1.4));
        assert!(low(again).is_none_or(|low| low <= 0.9), "{again:?}");
    }

    #[test]
    fn outliers_are_found_and_ordinary_values_are_not() {
        assert_eq!(outliers(&[1.0, 1.01, 0.99, 1.02, 2.0, 1.0]), [4]);
        assert_eq!(outliers(&[1.0, 1.01, 0.99, 1.02]), Vec::<usize>::new());
        assert_eq!(outliers(&[1.0; 9]), Vec::<usize>::new());
    }
}
