//! A policy's miss ratios by small models of its memory (Waldspurger et al., USENIX ATC'17).
//!
//! A sample of the pages at rate R is run through memories of R times the frames: what holds for
//! all pages holds for the sample, for any policy, also where no formula is known and where more
//! frames miss more often. The correction is that of [`Shards`](super::Shards).

use super::hash::ByPage;
use super::sample::Sample;
use crate::frames::Frames;
use crate::page::PageIndex;
use crate::policy::PolicyKind;

/// Settings of the sample and the models.
#[derive(Debug, Clone, PartialEq)]
pub struct MiniConfig {
    /// The share of pages: above 0, at most 1.
    pub rate: f64,
    /// The policy of every memory.
    pub policy: PolicyKind,
    /// The numbers of frames to model, each at least one.
    pub frames: Vec<u64>,
    /// Seed of the sample and of the policy.
    pub seed: u64,
}

/// Memories of several sizes, seen through a sample of the stream.
#[derive(Debug)]
pub struct Mini {
    config: MiniConfig,
    sample: Sample,
    // Sampled pages are numbered as they come, which keeps the tables of policies short.
    numbers: ByPage<u32>,
    memories: Vec<Frames>,
    accesses: u64,
}

impl Mini {
    /// Models without accesses.
    ///
    /// # Panics
    /// If the rate is not above 0 and at most 1.
    #[must_use]
    pub fn new(config: MiniConfig) -> Self {
        let sample = Sample::new(config.rate, config.seed);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded")]
        let scaled = |&frames: &u64| (frames as f64 * sample.rate()).round() as usize;
        let memories = config.frames.iter().map(scaled);
        let memories = memories.map(|n| Frames::new(config.policy, n.max(1), config.seed));
        Self {
            sample,
            numbers: ByPage::default(),
            memories: memories.collect(),
            accesses: 0,
            config,
        }
    }

    /// Accesses `page`.
    ///
    /// # Panics
    /// If the sample has more pages than an arena can have: half a tebibyte.
    pub fn access(&mut self, page: u64) {
        self.accesses += 1;
        if self.sample.hash(page).is_none() {
            return;
        }
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let number = PageIndex::new(*self.numbers.entry(page).or_insert(next));
        for memory in &mut self.memories {
            memory.access(number);
        }
    }

    /// The configured numbers of frames, each with the share of accesses that miss, first touches
    /// included.
    pub fn miss_ratios(&self) -> impl Iterator<Item = (u64, f64)> {
        // How many accesses a sample of this rate is expected to have.
        let expected = self.accesses as f64 * self.sample.rate();
        let ratio = move |memory: &Frames| {
            if expected > 0.0 { (memory.fault_count() as f64 / expected).min(1.0) } else { 1.0 }
        };
        self.config.frames.iter().copied().zip(self.memories.iter().map(ratio))
    }
}
