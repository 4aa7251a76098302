//! Points of a distribution, as exact fractions.

/// Quantiles are taken to nine decimals and mean the lower end of what rounds to them, so that 0.07
/// of 100 samples is the seventh, not the eighth as its nearest binary fraction would have it.
const QUANTILE_STEPS: u32 = 1_000_000_000;

/// A point of a distribution, `part / whole`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    part: u128,
    whole: u128,
}

impl Share {
    /// The point at quantile `q`, to nine decimals and clamped to 0..=1; a NaN reads as 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the product is clamped to 0..=1e9 before the cast"
    )]
    pub(crate) fn of_quantile(q: f64) -> Self {
        let steps = (q.clamp(0.0, 1.0) * f64::from(QUANTILE_STEPS)).round() as u32;
        let whole = 2 * u128::from(QUANTILE_STEPS);
        let part = match steps {
            QUANTILE_STEPS => whole,
            steps => (2 * u128::from(steps)).saturating_sub(1),
        };
        Self { part, whole }
    }

    /// The middle of part `index`, from 0, of `parts` equal parts.
    pub(crate) fn middle(index: u64, parts: u128) -> Self {
        Self { part: 2 * u128::from(index) + 1, whole: 2 * parts }
    }

    /// The rank, from 1 to `count`, of the first of `count` sorted samples that at least this share
    /// of them does not exceed.
    pub(crate) fn rank(self, count: u64) -> u64 {
        let rank = (self.part * u128::from(count)).div_ceil(self.whole);
        u64::try_from(rank)
            .expect("a share of at most all is at most the count")
            .clamp(1, count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_of_whole_samples_is_not_rounded_up() {
        for count in [1_u32, 7, 10, 100, 1000] {
            for rank in 1..=count {
                let share = Share::of_quantile(f64::from(rank) / f64::from(count));
                assert_eq!(share.rank(count.into()), u64::from(rank), "{rank} of {count}");
            }
        }
    }

    #[test]
    fn rank_of_all_and_of_none_are_the_ends() {
        assert_eq!(Share::of_quantile(1.0).rank(u64::MAX), u64::MAX);
        assert_eq!(Share::of_quantile(0.0).rank(u64::MAX), 1);
    }
}
