use crate::draw::Draw;

/// A Zipf distribution of ranks 0 to n−1: rank i has a probability proportional to (i+1)^−θ.
///
/// The method is that of Gray et al., "Quickly generating billion-record synthetic databases"
/// (SIGMOD 1994), as in YCSB: exact for the first two ranks, a continuous approximation for the
/// rest. The formula holds for skews above 1, too, which fio accepts and YCSB does not.
#[derive(Debug, Clone)]
pub struct Zipf {
    count: u64,
    theta: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// The distribution of ranks below `count` with skew `theta`.
    ///
    /// # Panics
    /// If `count` is 0, or `theta` is not above 0, is 1 or is no number.
    #[must_use]
    pub fn new(count: u64, theta: f64) -> Self {
        assert!(count > 0, "somebody must be asked for");
        assert!(theta > 0.0 && theta.is_finite(), "the method needs a skew above 0");
        assert!(theta != 1.0, "the method has no formula for a skew of 1");
        let mut zipf =
            Self { count, theta, zeta: zeta(count, theta), alpha: 1.0 / (1.0 - theta), eta: 0.0 };
        zipf.update();
        zipf
    }

    /// Computes `eta` from the other fields.
    fn update(&mut self) {
        let first_two = zeta(2, self.theta);
        let tail = (2.0 / self.count as f64).powf(1.0 - self.theta);
        self.eta = (1.0 - tail) / (1.0 - first_two / self.zeta);
    }

    /// Extends the distribution to ranks below `count`; no effect if it has as many.
    pub fn grow(&mut self, count: u64) {
        if count <= self.count {
            return;
        }
        for rank in self.count..count {
            self.zeta += ((rank + 1) as f64).powf(-self.theta);
        }
        self.count = count;
        self.update();
    }

    /// How many ranks there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The exact probability of `rank`; draws approximate it.
    #[must_use]
    pub fn probability(&self, rank: u64) -> f64 {
        ((rank + 1) as f64).powf(-self.theta) / self.zeta
    }

    /// Draws a rank.
    pub fn next(&self, draw: &mut Draw) -> u64 {
        let unit = draw.unit();
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(self.theta) {
            return 1.min(self.count - 1);
        }
        let rank = self.count as f64 * (self.eta * unit - self.eta + 1.0).powf(self.alpha);
        // Between 0 and the count, but for rounding.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let rank = rank.max(0.0) as u64;
        rank.min(self.count - 1)
    }
}

/// The generalised harmonic number: the sum of i^−θ for i from 1 to `count`.
///
/// The first ten thousand terms are added up; the rest is the Euler–Maclaurin formula to its third
/// derivative, whose error is below 10⁻¹⁵ there.
#[must_use]
pub fn zeta(count: u64, theta: f64) -> f64 {
    const EXACT: u64 = 10_000;
    let added = count.min(EXACT);
    // Small terms first, so that none is lost.
    let head: f64 = (1..=added).rev().map(|term| (term as f64).powf(-theta)).sum();
    if count <= EXACT {
        return head;
    }
    let (from, to) = (EXACT as f64, count as f64);
    let integral = (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta);
    let ends = (to.powf(-theta) - from.powf(-theta)) / 2.0;
    let slopes = -theta * (to.powf(-theta - 1.0) - from.powf(-theta - 1.0)) / 12.0;
    head + integral + ends + slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeta_is_the_sum_and_for_ten_billion_what_ycsb_has_written_down() {
        let sum = |count: u64| (1..=count).rev().map(|i| (i as f64).powf(-0.99)).sum::<f64>();
        for count in [1, 2, 10_000, 10_001, 1_000_000] {
            let error = (zeta(count, 0.99) - sum(count)).abs();
            assert!(error < 1e-11, "{count}: {error}");
        }
        // ScrambledZipfianGenerator.ZETAN, for 10¹⁰ items; itself a sum of rounded terms.
        assert!((zeta(10_000_000_000, 0.99) - 26.469_028_201_783_02).abs() < 1e-6);
    }

    #[test]
    fn draws_have_the_probabilities_they_should() {
        let zipf = Zipf::new(1000, 0.99);
        let mut draw = Draw::new(11);
        let mut counts = vec![0_u32; 1000];
        let draws = 1_000_000;
        for _ in 0..draws {
            counts[usize::try_from(zipf.next(&mut draw)).expect("a rank")] += 1;
        }
        let share = |from: usize, to: usize| {
            f64::from(counts[from..to].iter().sum::<u32>()) / f64::from(draws)
        };
        let expected = |from: u64, to: u64| (from..to).map(|r| zipf.probability(r)).sum::<f64>();
        assert!((share(0, 1) - expected(0, 1)).abs() < 0.001);
        assert!((share(1, 2) - expected(1, 2)).abs() < 0.001);
        // The rest is approximated: within a few per cent of each decade's share.
        assert!((share(10, 100) / expected(10, 100) - 1.0).abs() < 0.05);
        assert!((share(100, 1000) / expected(100, 1000) - 1.0).abs() < 0.05);
    }

    #[test]
    fn skews_above_1_have_their_probabilities_too() {
        for theta in [1.2, 2.5] {
            let zipf = Zipf::new(100_000, theta);
            let mut draw = Draw::new(12);
            let mut decades = [0_u32; 5];
            let draws = 1_000_000;
            for _ in 0..draws {
                let rank = zipf.next(&mut draw);
                assert!(rank < 100_000);
                decades[(rank + 1).ilog10().min(4) as usize] += 1;
            }
            let mut from = 1;
            for count in decades {
                let expected: f64 = (from..from * 10).map(|one| zipf.probability(one - 1)).sum();
                let share = f64::from(count) / f64::from(draws);
                // The approximation is coarsest right after the first two.
                let error = (share - expected).abs();
                assert!(error < 0.02 + expected * 0.05, "{theta}, {from}: {share} for {expected}");
                from *= 10;
            }
        }
    }

    #[test]
    fn one_rank_is_always_drawn_and_growing_equals_starting_larger() {
        let mut draw = Draw::new(5);
        assert!((0..100).all(|_| Zipf::new(1, 0.5).next(&mut draw) == 0));
        let mut grown = Zipf::new(10, 0.9);
        grown.grow(1000);
        let large = Zipf::new(1000, 0.9);
        assert!((grown.zeta - large.zeta).abs() < 1e-9);
        let (mut one, mut other) = (Draw::new(6), Draw::new(6));
        assert!((0..1000).all(|_| grown.next(&mut one) == large.next(&mut other)));
    }
}
