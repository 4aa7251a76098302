use super::hash::mixed;

/// Which pages are sampled, with all of their accesses: those whose hash is below a threshold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    threshold: u64,
    salt: u64,
}

/// Hashes are below this number: the precision of a double.
const HASHES: u64 = 1 << 53;

impl Sample {
    /// A sample of the share `rate` of all pages, which depends on `seed`.
    ///
    /// # Panics
    /// If the share is not above 0 and at most 1.
    pub(super) fn new(rate: f64, seed: u64) -> Self {
        assert!(rate > 0.0 && rate <= 1.0, "a share above 0, at most all");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 2⁵³")]
        let threshold = (rate * HASHES as f64) as u64;
        Self { threshold: threshold.max(1), salt: mixed(seed) }
    }

    /// The hash of a page; `None` if the page is not sampled.
    pub(super) fn hash(&self, page: u64) -> Option<u64> {
        let hash = mixed(page ^ self.salt) % HASHES;
        (hash < self.threshold).then_some(hash)
    }

    /// The share of pages that is sampled.
    pub(super) fn rate(&self) -> f64 {
        self.threshold as f64 / HASHES as f64
    }

    /// Stops sampling pages with hashes of `highest` and above.
    pub(super) fn lower(&mut self, highest: u64) {
        self.threshold = highest;
    }

    /// Halves the sample: all that stay were sampled before.
    pub(super) fn halve(&mut self) {
        self.threshold = (self.threshold / 2).max(1);
    }
}
