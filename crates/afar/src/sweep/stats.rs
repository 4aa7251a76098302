//! What repeated runs say, and how surely.

use workload::Draw;

const RESAMPLES: usize = 2000;
/// Beyond so many median absolute deviations (scaled to be standard deviations of a normal
/// distribution) a value is an outlier (Iglewicz and Hoaglin, 1993).
const OUTLIER: f64 = 3.5;

/// A median and where it may lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    /// Of the 95 % interval (percentile bootstrap).
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Values that it is made of.
    pub(crate) count: usize,
}

impl Estimate {
    /// Of `values`; nothing if there are none.
    pub(crate) fn of(values: &[f64], seed: u64) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mut draw = Draw::new(seed);
        let mut medians: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let mut sample: Vec<f64> =
                    values.iter().map(|_| values[pick(&mut draw, values.len())]).collect();
                median(&mut sample)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let tail = RESAMPLES / 40;
        Some(Self {
            median: median(&mut values.to_vec()),
            low: medians[tail],
            high: medians[RESAMPLES - 1 - tail],
            count: values.len(),
        })
    }
}

fn pick(draw: &mut Draw, count: usize) -> usize {
    usize::try_from(draw.below(count as u64)).unwrap_or(0)
}

/// The middle, or the mean of the two in the middle.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}

/// Which values stand out. They are named, not dropped.
pub(crate) fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < 5 {
        return Vec::new();
    }
    let middle = median(&mut values.to_vec());
    let mut distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let deviation = median(&mut distances) * 1.4826;
    let is_far = |value: &f64| (value - middle).abs() > OUTLIER * deviation && deviation > 0.0;
    values.iter().enumerate().filter(|(_, value)| is_far(value)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn interval_holds_the_median_and_shrinks_with_repetition() {
        let spread = |count: usize| {
            let mut draw = Draw::new(7);
            let values: Vec<f64> = (0..count).map(|_| draw.unit()).collect();
            Estimate::of(&values, 1).expect("there are values")
        };
        let (few, many) = (spread(5), spread(500));
        assert!(few.low <= few.median && few.median <= few.high);
        assert!(many.high - many.low < (few.high - few.low) / 3.0);
        assert!(many.low < 0.5 && 0.5 < many.high);
        assert_eq!(Estimate::of(&[], 1), None);
        let one = Estimate::of(&[2.0], 1).expect("there is a value");
        assert_eq!((one.low, one.median, one.high), (2.0, 2.0, 2.0));
    }

    // The interval of a median from 20 values of a known distribution holds the true median about
    // as often as it says.
    #[test]
    fn coverage_is_about_what_it_says() {
        let mut draw = Draw::new(99);
        let held = (0..200)
            .filter(|&trial| {
                let values: Vec<f64> = (0..20).map(|_| draw.unit()).collect();
                let estimate = Estimate::of(&values, trial).expect("there are values");
                (estimate.low..=estimate.high).contains(&0.5)
            })
            .count();
        assert!((180..=200).contains(&held), "{held} of 200");
    }

    #[test]
    fn outliers_are_found_and_ordinary_values_are_not() {
        assert_eq!(outliers(&[1.0, 1.01, 0.99, 1.02, 2.0, 1.0]), [4]);
        assert_eq!(outliers(&[1.0, 1.01, 0.99, 1.02]), Vec::<usize>::new());
        assert_eq!(outliers(&[1.0; 9]), Vec::<usize>::new());
    }
}
