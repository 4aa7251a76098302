//! Spatially hashed sampling (Waldspurger et al., FAST'15).
//!
//! Between two accesses to a sampled page a share R of the other pages is sampled, so the count of
//! those divided by R estimates the stack distance. The sampled pages may have more or fewer
//! accesses than their share; the correction ("SHARDS-adj", §4.1 there) counts the difference as
//! accesses at the shortest distance, for it is the most popular pages that are missing or too
//! many.

use std::collections::BTreeSet;

use super::sample::Sample;
use super::{Curve, Distances, Recency};

/// Settings of the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShardsConfig {
    /// The share of pages to begin with: above 0, at most 1.
    pub rate: f64,
    /// The most pages to keep track of; the share falls when there are more. `None` for any
    /// number.
    pub pages_max: Option<usize>,
    /// Whether the number of accesses that were sampled is corrected.
    pub adjust: bool,
    /// Another seed samples other pages.
    pub seed: u64,
}

/// The stack distances of a sample of a stream of pages.
#[derive(Debug)]
pub struct Shards {
    config: ShardsConfig,
    sample: Sample,
    recency: Recency,
    // Sampled pages by their hash, kept only if their number is bounded.
    by_hash: BTreeSet<(u64, u64)>,
    distances: Distances,
    accesses: u64,
    // Accesses that the sampled ones stand for.
    weights: f64,
}

impl Shards {
    /// A sample without accesses.
    ///
    /// # Panics
    /// If the rate is not above 0 and at most 1, or no page may be kept.
    #[must_use]
    pub fn new(config: ShardsConfig) -> Self {
        assert!(config.pages_max != Some(0), "a sample has a page at least");
        Self {
            config,
            sample: Sample::new(config.rate, config.seed),
            recency: Recency::new(),
            by_hash: BTreeSet::new(),
            distances: Distances::new(),
            accesses: 0,
            weights: 0.0,
        }
    }

    /// Accesses `page`.
    pub fn access(&mut self, page: u64) {
        self.accesses += 1;
        let Some(hash) = self.sample.hash(page) else {
            return;
        };
        let scale = 1.0 / self.sample.rate();
        let distance = self.recency.access(page);
        // The page itself is certain to be there; the others are a sample.
        let scaled = distance.map(|distance| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded")]
            let others = ((distance - 1) as f64 * scale).round() as u64;
            others + 1
        });
        self.distances.add(scaled, scale);
        self.weights += scale;
        if let Some(most) = self.config.pages_max
            && distance.is_none()
        {
            self.by_hash.insert((hash, page));
            self.shrink(most);
        }
    }

    /// The share of pages that is sampled now.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.sample.rate()
    }

    /// How many pages are tracked.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.recency.len()
    }

    /// The curve of the whole stream, by the sample. All misses if nothing was sampled.
    #[must_use]
    pub fn curve(mut self) -> Curve {
        if self.config.adjust && self.weights > 0.0 {
            self.distances.add(Some(1), self.accesses as f64 - self.weights);
        }
        self.distances.curve()
    }

    /// Lowers the share until at most `most` pages are sampled. Earlier counts keep their weight.
    fn shrink(&mut self, most: usize) {
        while self.recency.len() > most
            && let Some(&(highest, _)) = self.by_hash.last()
        {
            self.sample.lower(highest);
            // Two pages may have the same hash; neither is sampled any more.
            for (_, page) in self.by_hash.split_off(&(highest, 0)) {
                self.recency.remove(page);
            }
        }
    }
}
