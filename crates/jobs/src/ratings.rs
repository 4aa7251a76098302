//! Ratings of items by users, generated from planted factors.

use workload::{Draw, Zipf};

use crate::normal::dot;

/// Standard deviation of the noise on every planted rating, whose own is 1.
pub const NOISE: f64 = 0.1;

/// Ratings drawn per user, before duplicates are dropped; MovieLens 20M has 144.
const RATINGS_PER_USER: u64 = 100;
/// Users per item; MovieLens 20M has 5.
const USERS_PER_ITEM: u64 = 5;
/// Skew of items' popularity: unequal, yet the least popular is rated often enough to be
/// determined.
const POPULARITY: f64 = 0.5;
/// Bytes of a rating with its item.
const RATING_BYTES: u64 = 8;
/// √3: numbers between ±√3 σ, each as likely as any other, have standard deviation σ.
const SQRT_3: f64 = 1.732_050_807_568_877_2;

/// The size of a set of ratings, and the structure planted in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatingsShape {
    /// Users.
    pub user_count: u32,
    /// Items.
    pub item_count: u32,
    /// Ratings drawn per user; an item that is drawn twice counts once.
    pub ratings_per_user: u32,
    /// Length of the planted factors.
    pub rank: u32,
    /// Standard deviation of the noise.
    pub noise: f64,
}

/// Ratings, user by user.
#[derive(Debug, Clone)]
pub struct Ratings {
    shape: RatingsShape,
    /// Index of each user's first rating, and the number of ratings.
    starts: Vec<u64>,
    ratings: Vec<(u32, f32)>,
}

impl RatingsShape {
    /// The shape whose ratings, factors and normal equations take about `size_bytes` bytes.
    #[must_use]
    pub fn of_size(size_bytes: u64, rank: u32) -> Self {
        let rank = u64::from(rank);
        let factor = rank * 8;
        // Bytes per item, and a fifth of them per user: the factor, the symmetric matrix and the
        // right-hand side.
        let item = factor + (rank * (rank + 1) / 2 + rank) * 8;
        let user = RATINGS_PER_USER * RATING_BYTES + 8 + factor + item / USERS_PER_ITEM;
        let user_count = (size_bytes / user).max(USERS_PER_ITEM * 2);
        Self {
            user_count: u32::try_from(user_count).unwrap_or(u32::MAX),
            item_count: u32::try_from(user_count / USERS_PER_ITEM).unwrap_or(u32::MAX),
            ratings_per_user: u32::try_from(RATINGS_PER_USER).unwrap_or(u32::MAX),
            rank: u32::try_from(rank).unwrap_or(u32::MAX),
            noise: NOISE,
        }
    }
}

impl Ratings {
    /// Generates ratings: products of planted factors, plus noise.
    #[must_use]
    pub fn generate(shape: RatingsShape, seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let rank = shape.rank as usize;
        // The product of two such factors has standard deviation 1.
        let deviation = 1.0 / f64::from(shape.rank).sqrt().sqrt();
        let items = shape.item_count as usize;
        let planted: Vec<f64> = (0..items * rank).map(|_| spread(&mut draw, deviation)).collect();
        let names = permutation(shape.item_count, &mut draw);
        let popularity = Zipf::new(u64::from(shape.item_count), POPULARITY);
        let most = shape.user_count as usize * shape.ratings_per_user as usize;
        let mut starts = Vec::with_capacity(shape.user_count as usize + 1);
        let mut ratings = Vec::with_capacity(most);
        let mut rated = Vec::with_capacity(shape.ratings_per_user as usize);
        let mut user = vec![0.0; rank];
        starts.push(0);
        for _ in 0..shape.user_count {
            user.iter_mut().for_each(|entry| *entry = spread(&mut draw, deviation));
            rated.clear();
            for _ in 0..shape.ratings_per_user {
                let rank = usize::try_from(popularity.next(&mut draw)).unwrap_or(0);
                rated.push(names[rank]);
            }
            rated.sort_unstable();
            rated.dedup();
            for &item in &rated {
                let factor = &planted[item as usize * rank..][..rank];
                let rating = dot(&user, factor) + spread(&mut draw, shape.noise);
                #[expect(clippy::cast_possible_truncation, reason = "rounded to what is stored")]
                ratings.push((item, rating as f32));
            }
            starts.push(ratings.len() as u64);
        }
        Self { shape, starts, ratings }
    }

    /// The numbers of users and items, and the planted structure.
    #[must_use]
    pub const fn shape(&self) -> &RatingsShape {
        &self.shape
    }

    /// How many ratings there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ratings.len() as u64
    }

    /// The ratings of each user, as pairs of item and rating.
    pub(crate) fn by_user(&self) -> impl Iterator<Item = &[(u32, f32)]> {
        let index = |at: u64| usize::try_from(at).expect("it was the length of a vector");
        self.starts.windows(2).map(move |ends| &self.ratings[index(ends[0])..index(ends[1])])
    }
}

/// A uniform draw of mean 0 and standard deviation `deviation`.
fn spread(draw: &mut Draw, deviation: f64) -> f64 {
    (draw.unit() * 2.0 - 1.0) * SQRT_3 * deviation
}

/// A random permutation of the numbers below `count`, so that popular items are not neighbours
/// (Fisher and Yates).
fn permutation(count: u32, draw: &mut Draw) -> Vec<u32> {
    let mut names: Vec<u32> = (0..count).collect();
    for last in (1..names.len()).rev() {
        let chosen = draw.below(last as u64 + 1);
        names.swap(last, usize::try_from(chosen).unwrap_or(last));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratings_have_the_moments_they_should() {
        let shape = RatingsShape::of_size(4 << 20, 8);
        let ratings = Ratings::generate(shape, 1);
        let values = || ratings.ratings.iter().map(|&(_, rating)| f64::from(rating));
        let count = ratings.count() as f64;
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| value * value).sum::<f64>() / count;
        assert!(mean.abs() < 0.05, "{mean}");
        // 1 and that of the noise; the factors of some 1000 items are a sample.
        assert!((variance - 1.01).abs() < 0.1, "{variance}");
        assert_eq!(ratings.ratings, Ratings::generate(shape, 1).ratings);
        assert_ne!(ratings.ratings, Ratings::generate(shape, 2).ratings);
    }

    #[test]
    fn nobody_rates_an_item_twice_and_every_item_is_rated_often() {
        let shape = RatingsShape::of_size(16 << 20, 8);
        let ratings = Ratings::generate(shape, 1);
        let mut counts = vec![0_u32; shape.item_count as usize];
        for user in ratings.by_user() {
            assert!(user.windows(2).all(|pair| pair[0].0 < pair[1].0));
            user.iter().for_each(|&(item, _)| counts[item as usize] += 1);
        }
        assert!(counts.iter().all(|&count| count > 100));
        assert_eq!(ratings.by_user().count(), shape.user_count as usize);
        assert!(ratings.count() > u64::from(shape.user_count) * 90);
    }
}
