use super::hash::ByPage;

/// A histogram of stack distances.
#[derive(Debug, Default)]
pub struct Distances {
    counts: ByPage<f64>,
    first_touches: f64,
}

/// The share of accesses that miss, by the number of frames.
///
/// Never rises with frames, as LRU's does not.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    // Ascending by frames: with this many frames and more, up to the next point, this many accesses
    // hit.
    hits: Vec<(u64, f64)>,
    accesses: f64,
    first_touches: f64,
}

impl Distances {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts an access that stands for `weight` accesses; a `distance` of `None` is a first
    /// access.
    pub fn add(&mut self, distance: Option<u64>, weight: f64) {
        match distance {
            Some(distance) => *self.counts.entry(distance).or_default() += weight,
            None => self.first_touches += weight,
        }
    }

    /// The curve of all counted accesses.
    #[must_use]
    pub fn curve(&self) -> Curve {
        let mut hits: Vec<_> =
            self.counts.iter().map(|(&frames, &count)| (frames, count)).collect();
        hits.sort_unstable_by_key(|&(frames, _)| frames);
        let mut sum = 0.0;
        for (_, count) in &mut hits {
            sum += *count;
            *count = sum;
        }
        Curve { hits, accesses: sum + self.first_touches, first_touches: self.first_touches }
    }
}

impl Curve {
    /// The share of accesses that miss with `frames` frames, first touches included; 1 if nothing
    /// was accessed.
    #[must_use]
    pub fn miss_ratio(&self, frames: u64) -> f64 {
        if self.accesses <= 0.0 {
            return 1.0;
        }
        // A correction may have taken more hits than there were.
        (1.0 - self.hits(frames) / self.accesses).clamp(0.0, 1.0)
    }

    /// The share of accesses that find their page in far memory with `frames` frames: misses
    /// without first touches.
    #[must_use]
    pub fn fetch_ratio(&self, frames: u64) -> f64 {
        if self.accesses <= 0.0 {
            return 0.0;
        }
        (self.miss_ratio(frames) - self.first_touches / self.accesses).clamp(0.0, 1.0)
    }

    /// How many accesses the curve stands for.
    #[must_use]
    pub fn accesses(&self) -> f64 {
        self.accesses
    }

    /// How many pages the curve stands for: each is touched first once.
    #[must_use]
    pub fn pages(&self) -> f64 {
        self.first_touches
    }

    /// The least number of frames with which only first touches miss.
    #[must_use]
    pub fn frames_max(&self) -> u64 {
        self.hits.last().map_or(0, |&(frames, _)| frames)
    }

    // How many accesses hit with `frames` frames.
    fn hits(&self, frames: u64) -> f64 {
        let after = self.hits.partition_point(|&(least, _)| least <= frames);
        after.checked_sub(1).map_or(0.0, |last| self.hits[last].1)
    }
}
