//! Random numbers and keys that are the same in every run.

/// SplitMix64 (Steele, Lea, Flood 2014): one addition and three mixing steps per number.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub(crate) const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A random number below `bound`, which is not 0. Its bias is below `bound` in 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let scaled = (u128::from(self.next()) * u128::from(bound)) >> 64;
        u64::try_from(scaled).unwrap_or(0)
    }
}

/// Draws keys with Zipf popularity; the popular ones are scattered over the key space.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    // The cumulative weight of the ranks, scaled to 2^63.
    cumulated: Vec<u64>,
    key_of_rank: Vec<u64>,
}

impl Zipf {
    /// The distribution of `keys` keys with popularity rank^-`exponent`.
    pub(crate) fn new(keys: u64, exponent: f64, seed: u64) -> Self {
        let weights: Vec<f64> =
            (1..=keys).map(|rank| crate::stats::float(rank).powf(-exponent)).collect();
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let cumulated = weights.iter().map(|weight| {
            sum += weight;
            scaled(sum / total)
        });
        let cumulated = cumulated.collect();
        let mut key_of_rank: Vec<u64> = (0..keys).collect();
        // The shuffle of Fisher and Yates.
        let mut random = SplitMix64::new(seed);
        for last in (1..key_of_rank.len()).rev() {
            let bound = last as u64 + 1;
            let other = usize::try_from(random.below(bound)).unwrap_or(last);
            key_of_rank.swap(last, other);
        }
        Self { cumulated, key_of_rank }
    }

    /// Draws a key.
    pub(crate) fn draw(&self, random: &mut SplitMix64) -> u64 {
        let point = random.next() >> 1;
        let rank = self.cumulated.partition_point(|&weight| weight <= point);
        let rank = rank.min(self.key_of_rank.len().saturating_sub(1));
        self.key_of_rank.get(rank).copied().unwrap_or(0)
    }
}

/// The three mixing steps of SplitMix64.
const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `share` times 2^63.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share between 0 and 1; the cast saturates"
)]
const fn scaled(share: f64) -> u64 {
    (share * 9_223_372_036_854_775_808.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_published_sequence() {
        // From the reference implementation's author, seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        let expected =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, expected);
    }

    #[test]
    fn below_covers_its_range_and_nothing_else() {
        let mut random = SplitMix64::new(7);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[usize::try_from(random.below(5)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
    }

    #[test]
    fn zipf_follows_its_weights() {
        // Exponent 1 over 3 keys: weights 6/11, 3/11, 2/11.
        let zipf = Zipf::new(3, 1.0, 1);
        let mut random = SplitMix64::new(2);
        let mut counts = [0_u32; 3];
        for _ in 0..11_000 {
            counts[usize::try_from(zipf.draw(&mut random)).unwrap()] += 1;
        }
        counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
        for (count, expected) in counts.into_iter().zip([6_000, 3_000, 2_000]) {
            assert!(count.abs_diff(expected) < 200, "{counts:?}");
        }
    }
}
