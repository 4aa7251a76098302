//! Collaborative filtering by alternating least squares.
//!
//! Gao Table 2 has it as GraphLab's over Netflix's ratings. The method is that of Zhou et al.,
//! "Large-scale parallel collaborative filtering for the Netflix prize" (AAIM 2008), with a plain
//! ridge in place of one weighted by the number of ratings; Hu et al. (ICDM 2008) is the variant
//! for implicit feedback, which this is not.

use workload::Draw;

use crate::checksum::chain;
use crate::normal::{add, dot, packed_len, solve};
use crate::ratings::Ratings;

/// Weight of the factors' squares against those of the errors, for noise of a tenth.
const RIDGE: f64 = 0.02;
/// How far the error may exceed the noise when the factors have been found.
const MARGIN: f64 = 1.2;
/// Iterations after which the factors must have been found; the examples here need half as many.
const SETTLED: usize = 10;

/// Factors of users and items, and how well their products fit the ratings.
#[derive(Debug)]
pub struct Model {
    rank: usize,
    users: Vec<f64>,
    items: Vec<f64>,
    rmse: Vec<f64>,
}

/// A model that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The error has grown.
    #[error("the error rose from {before} to {after} in iteration {iteration}")]
    Rose {
        /// From 1.
        iteration: usize,
        /// Root mean square error before it.
        before: f64,
        /// After it.
        after: f64,
    },
    /// The planted factors were not found.
    #[error("the error is {found} in the end, but the noise is {noise}")]
    Far {
        /// Root mean square error.
        found: f64,
        /// Standard deviation of the planted noise.
        noise: f64,
    },
}

/// The job: fits factors of length `rank` to the ratings, `iterations` times users, then items. The
/// initial factors of items follow from `seed`.
#[must_use]
pub fn factorise(ratings: &Ratings, rank: u32, iterations: u32, seed: u64) -> Model {
    fit(ratings, rank, iterations, RIDGE, seed)
}

/// As `factorise`, with a given ridge.
fn fit(ratings: &Ratings, rank: u32, iterations: u32, ridge: f64, seed: u64) -> Model {
    let shape = ratings.shape();
    let rank = rank as usize;
    // A seed other than that of the planted factors.
    let mut draw = Draw::new(!seed);
    let mut model = Model {
        rank,
        users: vec![0.0; shape.user_count as usize * rank],
        items: (0..shape.item_count as usize * rank).map(|_| draw.unit() - 0.5).collect(),
        rmse: Vec::with_capacity(iterations as usize),
    };
    let mut systems = vec![0.0; shape.item_count as usize * packed_len(rank)];
    for _ in 0..iterations {
        model.fit_users(ratings, ridge);
        model.fit_items(ratings, ridge, &mut systems);
        model.rmse.push(model.error(ratings));
    }
    model
}

impl Model {
    /// Root mean square error over the ratings after each iteration.
    #[must_use]
    pub fn rmse(&self) -> &[f64] {
        &self.rmse
    }

    /// A checksum of the bits of all factors.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        chain(self.users.iter().chain(&self.items).map(|entry| entry.to_bits()))
    }

    /// Checks that the error fell with each iteration and, after enough of them, ended near the
    /// planted noise.
    ///
    /// # Errors
    /// If the error rose or stayed above the noise.
    pub fn verify(&self, ratings: &Ratings) -> Result<(), ModelError> {
        let count = ratings.count().max(1) as f64;
        let squares = ratings.by_user().flatten().map(|&(_, rating)| f64::from(rating).powi(2));
        // The error of predicting 0 throughout.
        let mut before = (squares.sum::<f64>() / count).sqrt();
        for (index, &after) in self.rmse.iter().enumerate() {
            // The ridge is part of what is minimised; near the end the error alone may rise a bit.
            if after > before * 1.001 {
                return Err(ModelError::Rose { iteration: index + 1, before, after });
            }
            before = after;
        }
        let (found, noise) = (before, ratings.shape().noise);
        let fits = self.rank >= ratings.shape().rank as usize;
        if fits && self.rmse.len() >= SETTLED && found > noise * MARGIN {
            return Err(ModelError::Far { found, noise });
        }
        Ok(())
    }

    /// Fits each user's factor to its ratings, by least squares with the items' factors fixed.
    fn fit_users(&mut self, ratings: &Ratings, ridge: f64) {
        let Self { rank, users, items, .. } = self;
        let mut system = vec![0.0; packed_len(*rank)];
        for (user, rated) in users.chunks_exact_mut(*rank).zip(ratings.by_user()) {
            system.fill(0.0);
            for &(item, rating) in rated {
                add(&mut system, factor(items, *rank, item), f64::from(rating));
            }
            solve(&mut system, ridge, user);
        }
    }

    /// Fits each item's factor likewise. All items' equations are summed up in one pass over the
    /// users' ratings, so that ratings need not be stored by item as well.
    fn fit_items(&mut self, ratings: &Ratings, ridge: f64, systems: &mut [f64]) {
        let Self { rank, users, items, .. } = self;
        let length = packed_len(*rank);
        systems.fill(0.0);
        for (user, rated) in users.chunks_exact(*rank).zip(ratings.by_user()) {
            for &(item, rating) in rated {
                let system = &mut systems[item as usize * length..][..length];
                add(system, user, f64::from(rating));
            }
        }
        let systems = systems.chunks_exact_mut(length);
        items.chunks_exact_mut(*rank).zip(systems).for_each(|(item, system)| {
            solve(system, ridge, item);
        });
    }

    /// The root mean square error over the ratings.
    fn error(&self, ratings: &Ratings) -> f64 {
        let mut squares = 0.0;
        for (user, rated) in self.users.chunks_exact(self.rank).zip(ratings.by_user()) {
            for &(item, rating) in rated {
                let difference =
                    f64::from(rating) - dot(user, factor(&self.items, self.rank, item));
                squares += difference * difference;
            }
        }
        (squares / ratings.count().max(1) as f64).sqrt()
    }
}

/// The factor of user or item `number`.
fn factor(factors: &[f64], rank: usize, number: u32) -> &[f64] {
    &factors[number as usize * rank..][..rank]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratings::{NOISE, RatingsShape};

    fn ratings(noise: f64, rank: u32) -> Ratings {
        let shape = RatingsShape { noise, ..RatingsShape::of_size(1 << 20, rank) };
        Ratings::generate(shape, 5)
    }

    #[test]
    fn planted_factors_without_noise_are_recovered() {
        for rank in [1, 2, 5] {
            let ratings = ratings(0.0, rank);
            let model = fit(&ratings, rank, 60, 1e-9, 1);
            let last = model.rmse().last().copied().unwrap();
            // What is left is the rounding of ratings to 32 bits.
            assert!(last < 1e-6, "rank {rank}: {:?}", model.rmse());
        }
    }

    #[test]
    fn too_short_factors_cannot_fit() {
        let model = fit(&ratings(0.0, 5), 3, 60, 1e-9, 1);
        assert!(model.rmse().last() > Some(&0.3), "{:?}", model.rmse());
    }

    #[test]
    fn the_error_falls_to_the_noise_and_no_further_than_freedom_allows() {
        let ratings = ratings(NOISE, 4);
        let model = factorise(&ratings, 4, 10, 1);
        model.verify(&ratings).expect("the error falls to the noise");
        let shape = ratings.shape();
        let freedom = f64::from((shape.user_count + shape.item_count) * shape.rank);
        // Least squares with so many parameters leave this much of the noise.
        let expected = NOISE * (1.0 - freedom / ratings.count() as f64).sqrt();
        let last = model.rmse().last().copied().unwrap();
        assert!((last / expected - 1.0).abs() < 0.05, "{last} and {expected}");
    }

    #[test]
    fn checksum_follows_from_the_seed() {
        let ratings = ratings(NOISE, 3);
        let checksum = |seed| factorise(&ratings, 3, 2, seed).checksum();
        assert_eq!(checksum(1), checksum(1));
        assert_ne!(checksum(1), checksum(2));
    }

    #[test]
    fn verify_finds_errors_that_rise_or_stay() {
        let ratings = ratings(NOISE, 3);
        let mut model = factorise(&ratings, 3, 10, 1);
        model.rmse = vec![0.2, 0.3];
        assert!(matches!(model.verify(&ratings), Err(ModelError::Rose { iteration: 2, .. })));
        model.rmse = vec![0.2; 10];
        assert!(matches!(model.verify(&ratings), Err(ModelError::Far { .. })));
        model.rmse = vec![0.2; 9];
        assert_eq!(model.verify(&ratings), Ok(()));
    }
}
