//! Looking at runs again and again until they decide, without fooling oneself.
//!
//! An experiment that looks after every run, and stops as soon as an interval excludes a value,
//! excludes the true one too often. Under the hypothesis that a value is the true median, each run
//! lies above it or below with probability 1/2: the count of runs above is a random walk. For each
//! look a boundary is chosen so that the walk crosses any of them with probability 1 - 93 % in all;
//! the walk is followed exactly. Early looks spend what they can, because most cells are clear at
//! the first.

use results::Interval;

/// The least share of experiments whose interval holds the true median, for an interval to be
/// given.
pub const COVERAGE_MIN: f64 = 0.93;

/// A plan of looks: after the `first` run and after each one more, until the `last`.
#[derive(Debug, Clone)]
pub struct Looks {
    first: usize,
    /// For each look, how many runs must lie on one side; `None` if no count is enough.
    boundaries: Vec<Option<usize>>,
}

impl Looks {
    /// The boundaries of looks after `first`, `first + 1`, … `last` runs.
    #[must_use]
    pub fn new(first: usize, last: usize) -> Self {
        let mut left = 1.0 - COVERAGE_MIN;
        // By number of runs above: the probability of a walk that has not crossed a boundary.
        let mut alive = vec![1.0];
        let mut boundaries = Vec::new();
        for count in 1..=last.max(first) {
            alive = step(&alive);
            if count < first {
                continue;
            }
            let boundary = boundary(&alive, left);
            if let Some(least) = boundary {
                for above in (0..=count).filter(|&above| above.max(count - above) >= least) {
                    left -= std::mem::take(&mut alive[above]);
                }
            }
            boundaries.push(boundary);
        }
        Self { first, boundaries }
    }

    /// The interval of `sorted` values: together, the intervals of all looks hold the true median
    /// in [`COVERAGE_MIN`] of experiments. `None` before the first and after the last look, or
    /// where no count decides.
    #[must_use]
    pub fn interval(&self, sorted: &[f64]) -> Option<Interval> {
        let look = sorted.len().checked_sub(self.first)?;
        let least = (*self.boundaries.get(look)?)?;
        let (low, high) = (sorted[sorted.len() - least], sorted[least - 1]);
        Some(Interval { low, high, level: COVERAGE_MIN })
    }
}

// The probabilities after one more run, which lies above or below.
fn step(alive: &[f64]) -> Vec<f64> {
    let mut next = vec![0.0; alive.len() + 1];
    for (above, probability) in alive.iter().enumerate() {
        next[above] += probability / 2.0;
        next[above + 1] += probability / 2.0;
    }
    next
}

// The least count on one side that is reached with a probability of at most `left`.
fn boundary(alive: &[f64], left: f64) -> Option<usize> {
    let count = alive.len() - 1;
    let reached = |least: usize| -> f64 {
        let is_reached = |above: &usize| (*above).max(count - above) >= least;
        (0..=count).filter(is_reached).map(|above| alive[above]).sum()
    };
    // More than half, so that low stays below high.
    let least = (count / 2 + 1..=count).find(|&least| reached(least) <= left)?;
    // A boundary that no walk reaches any more decides nothing, and an interval from it would be
    // narrower than the probability spent.
    (reached(least) > 0.0).then_some(least)
}

#[cfg(test)]
mod tests {
    use workload::Draw;

    use super::*;

    #[test]
    fn the_first_look_decides_where_all_runs_agree() {
        let looks = Looks::new(5, 15);
        let interval = looks.interval(&[1.0, 1.1, 1.2, 1.3, 1.4]).expect("five are enough");
        assert_eq!((interval.low, interval.high), (1.0, 1.4));
        assert_eq!(looks.interval(&[1.0; 4]), None, "nobody looks so early");
        assert_eq!(looks.interval(&[1.0; 16]), None, "nobody looks so late");
    }

    // Of experiments whose true median is the bound, only so many ever exclude it.
    #[test]
    fn looking_after_every_run_does_not_find_what_is_not_there() {
        for (first, last) in [(2, 6), (3, 9), (5, 15), (7, 21), (10, 30)] {
            let looks = Looks::new(first, last);
            let mut draw = Draw::new(17);
            let mut fooled = 0;
            for _ in 0..4000 {
                let mut values = Vec::new();
                for count in 1..=last {
                    values.push(draw.unit());
                    if count < first {
                        continue;
                    }
                    let mut sorted = values.clone();
                    sorted.sort_by(f64::total_cmp);
                    let interval = looks.interval(&sorted);
                    if interval.is_some_and(|one| one.low > 0.5 || one.high <= 0.5) {
                        fooled += 1;
                        break;
                    }
                }
            }
            assert!(fooled <= 4000 * 8 / 100, "{fooled} of 4000 with {first} to {last} runs");
        }
    }

    // Runs that lie above the bound nine times in ten decide.
    #[test]
    fn more_runs_decide_what_few_leave_open() {
        let looks = Looks::new(5, 15);
        let mut values: Vec<f64> = vec![0.9];
        values.extend((0..10).map(|run| 1.1 + f64::from(run) / 100.0));
        let decides = (5..=11).find(|&count| {
            looks.interval(&values[..count]).is_some_and(|interval| interval.low > 1.0)
        });
        assert_eq!(decides, Some(11), "{looks:?}");
    }
}
