use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// A seeded random-number generator: the same numbers for the same seed on every machine.
#[derive(Debug, Clone)]
pub struct Draw {
    generator: Pcg64,
}

impl Draw {
    /// A generator with the seed `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { generator: Pcg64::seed_from_u64(seed) }
    }

    /// A random number below `bound`, uniform to within 2⁻⁶⁴; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.generator.next_u64()) * u128::from(bound);
        // The high half of a product of two 64-bit numbers.
        u64::try_from(wide >> 64).unwrap_or(u64::MAX)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A uniform random number in [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_from_the_seed_and_fill_their_range() {
        let draws = |seed| {
            let mut draw = Draw::new(seed);
            (0..1000).map(|_| draw.below(7)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        assert!(
            (0..7).all(|number| draws(1).iter().filter(|&&drawn| drawn == number).count() > 90)
        );
        assert_eq!(Draw::new(3).below(0), 0);
        let mut draw = Draw::new(4);
        assert!((0..1000).map(|_| draw.unit()).all(|unit| (0.0..1.0).contains(&unit)));
    }
}
