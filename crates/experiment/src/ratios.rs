//! Ratios of pairs of runs, of which one may have been disturbed.

use results::Outlier;

use crate::stats;

/// With fewer undisturbed pairs than this, disturbed ones count as well.
const UNDISTURBED_MIN: usize = 5;

/// Ratios of runs' figures to those of the runs measured beside them, by block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ratios {
    quiet: Vec<(u32, f64)>,
    /// Block, ratio, and what disturbed one of the two runs.
    disturbed: Vec<(u32, f64, String)>,
}

impl Ratios {
    /// Adds the ratio of a pair; `disturbed` says what disturbed one of its runs, `None` if nothing
    /// did.
    pub fn add(&mut self, block: u32, ratio: f64, disturbed: Option<String>) {
        match disturbed {
            Some(why) => self.disturbed.push((block, ratio, why)),
            None => self.quiet.push((block, ratio)),
        }
    }

    /// All ratios, by block.
    pub fn all(&self) -> impl Iterator<Item = f64> {
        let quiet = self.quiet.iter().copied();
        let disturbed = self.disturbed.iter().map(|&(block, ratio, _)| (block, ratio));
        let mut all: Vec<(u32, f64)> = quiet.chain(disturbed).collect();
        all.sort_by_key(|&(block, _)| block);
        all.into_iter().map(|(_, ratio)| ratio)
    }

    /// The ratios that count, and whether disturbed ones are among them: not if five others are.
    #[must_use]
    pub fn counting(&self) -> (Vec<f64>, bool) {
        let mut values: Vec<f64> = self.quiet.iter().map(|(_, ratio)| *ratio).collect();
        let is_disturbed = !self.disturbed.is_empty() && values.len() < UNDISTURBED_MIN;
        if is_disturbed {
            values.extend(self.disturbed.iter().map(|(_, ratio, _)| *ratio));
        }
        (values, is_disturbed)
    }

    /// The undisturbed ratios that are far from the others.
    #[must_use]
    pub fn outliers(&self) -> Vec<Outlier> {
        let values: Vec<f64> = self.quiet.iter().map(|(_, ratio)| *ratio).collect();
        let of = |index: usize| {
            let (block, slowdown) = self.quiet[index];
            Outlier { block, slowdown }
        };
        stats::outliers(&values).into_iter().map(of).collect()
    }

    /// How many pairs have a disturbed run.
    #[must_use]
    pub fn disturbed_count(&self) -> u64 {
        self.disturbed.len() as u64
    }

    /// What disturbed the first disturbed pair; `None` if there is none.
    #[must_use]
    pub fn first_disturbance(&self) -> Option<&str> {
        self.disturbed.first().map(|(_, _, why)| why.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_pairs_count_only_where_there_are_too_few_others() {
        let mut ratios = Ratios::default();
        ratios.add(0, 8.0, Some("a load".to_owned()));
        (1..5).for_each(|block| ratios.add(block, 2.0, None));
        assert_eq!(ratios.counting(), (vec![2.0, 2.0, 2.0, 2.0, 8.0], true));
        ratios.add(5, 2.0, None);
        assert_eq!(ratios.counting(), (vec![2.0; 5], false));
        assert_eq!((ratios.disturbed_count(), ratios.first_disturbance()), (1, Some("a load")));
        assert_eq!(Ratios::default().counting(), (Vec::new(), false));
    }
}
