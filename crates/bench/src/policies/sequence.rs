//! Seeded sequences of page accesses, generated on demand: stored in memory they would use local
//! memory.

use std::f64::consts::E;

use crate::flags::Pattern;
use crate::random::SplitMix64;
use crate::stats::float;

/// The accesses of one program, as page numbers below `pages`.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    pattern: Pattern,
    /// At least 8.
    pages: u64,
    count: u64,
    done: u64,
    // Accesses of the loop so far.
    looped: u64,
    scattered: Scattered,
    random: SplitMix64,
}

impl Sequence {
    /// `count` accesses to `pages` pages; the same for the same seed.
    pub(crate) fn new(pattern: Pattern, pages: u64, count: u64, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let scattered = Scattered::new(pages, &mut random);
        Self { pattern, pages, count, done: 0, looped: 0, scattered, random }
    }

    /// Draws a page with Zipf popularity.
    fn zipf(&mut self) -> u64 {
        let rank = zipf_rank(self.pages, &mut self.random);
        self.scattered.page(rank - 1)
    }

    /// Draws a page in the window, which moves through all pages once.
    fn window(&mut self) -> u64 {
        let first = self.done * self.pages / self.count;
        (first + self.random.below(self.pages / 4)) % self.pages
    }

    /// The next page of the loop, or, in half of the cases, any page.
    fn looping(&mut self) -> u64 {
        if self.random.below(2) == 0 {
            return self.random.below(self.pages);
        }
        self.looped += 1;
        (self.looped - 1) % (self.pages * 3 / 10)
    }
}

impl Iterator for Sequence {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.done == self.count {
            return None;
        }
        let pages = self.pages;
        let page = match self.pattern {
            Pattern::Skewed if self.random.below(10) < 8 => self.random.below(pages / 5),
            Pattern::Skewed | Pattern::Uniform => self.random.below(pages),
            Pattern::Zipf => self.zipf(),
            Pattern::Sequential => self.done % pages,
            Pattern::Window => self.window(),
            Pattern::Loop => self.looping(),
        };
        self.done += 1;
        Some(page)
    }
}

/// Draws a rank from 1 to `ranks` with a probability proportional to its inverse, exactly and
/// without a table, by rejection-inversion (Hörmann and Derflinger 1996).
fn zipf_rank(ranks: u64, random: &mut SplitMix64) -> u64 {
    // Limits of the integral of 1/x; a rank has the part from half below to half above it.
    let least = 1.5_f64.ln() - 1.0;
    let most = (float(ranks) + 0.5).ln();
    // A point that is nearer to its rank than this is accepted without a logarithm.
    let sure = 2.0 - E.powf(2.5_f64.ln() - 0.5);
    loop {
        let share = float(random.next() >> 11) / float(1 << 53);
        let point = most + share * (least - most);
        let x = point.exp();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let rank = (x.round() as u64).clamp(1, ranks);
        let whole = float(rank);
        if whole - x <= sure || point >= (whole + 0.5).ln() - 1.0 / whole {
            return rank;
        }
    }
}

/// A permutation of the pages that needs no table.
#[derive(Debug, Clone)]
struct Scattered {
    pages: u64,
    // The smallest power of two that is at least `pages`, minus one.
    mask: u64,
    factors: [u64; 3],
}

impl Scattered {
    fn new(pages: u64, random: &mut SplitMix64) -> Self {
        let factors = [(); 3].map(|()| random.next() | 1);
        Self { pages, mask: pages.next_power_of_two() - 1, factors }
    }

    /// The page of a rank, both from 0.
    fn page(&self, rank: u64) -> u64 {
        let half = self.mask.count_ones().div_ceil(2);
        let mut page = rank;
        loop {
            // Each step is invertible, and so is repeating it until the result is a page.
            for factor in self.factors {
                page = page.wrapping_mul(factor).wrapping_add(factor >> 32) & self.mask;
                page ^= page >> half;
            }
            if page < self.pages {
                return page;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    fn counts(pattern: Pattern, pages: u64, count: u64) -> Vec<u64> {
        let mut counts = vec![0; usize::try_from(pages).unwrap()];
        Sequence::new(pattern, pages, count, 1)
            .for_each(|page| counts[usize::try_from(page).unwrap()] += 1);
        counts
    }

    #[test]
    fn a_sequence_follows_from_its_seed_and_has_its_length() {
        for &pattern in Pattern::value_variants() {
            let pages = |seed| Sequence::new(pattern, 1000, 500, seed).collect::<Vec<_>>();
            assert_eq!(pages(1), pages(1));
            assert_eq!(pages(1).len(), 500);
            assert_eq!(pages(1) == pages(2), pattern == Pattern::Sequential, "{pattern:?}");
            assert!(pages(3).iter().all(|&page| page < 1000));
        }
    }

    #[test]
    fn scattering_is_a_permutation_of_any_number_of_pages() {
        for pages in [8, 1000, 1024, 4097] {
            let scattered = Scattered::new(pages, &mut SplitMix64::new(5));
            let mut all: Vec<u64> = (0..pages).map(|rank| scattered.page(rank)).collect();
            let in_order: Vec<u64> = (0..pages).collect();
            assert_ne!(all, in_order);
            all.sort_unstable();
            assert_eq!(all, in_order);
        }
    }

    #[test]
    fn zipf_ranks_have_their_probabilities() {
        let (ranks, draws) = (100, 1_000_000);
        let mut random = SplitMix64::new(9);
        let mut counts = [0_u32; 101];
        for _ in 0..draws {
            counts[usize::try_from(zipf_rank(ranks, &mut random)).unwrap()] += 1;
        }
        assert_eq!(counts[0], 0);
        let harmonic: f64 = (1..=ranks).map(|rank| 1.0 / float(rank)).sum();
        for rank in [1, 2, 3, 10, 50, 100] {
            let expected = 1.0 / float(rank) / harmonic;
            let count = f64::from(counts[usize::try_from(rank).unwrap()]);
            let error = count / f64::from(draws) / expected - 1.0;
            // The rarest is drawn 1,900 times.
            assert!(error.abs() < 0.08, "rank {rank}: {error}");
        }
    }

    #[test]
    fn skewed_has_four_fifths_in_a_fifth() {
        let counts = counts(Pattern::Skewed, 1000, 100_000);
        let first: u64 = counts[..200].iter().sum();
        // 80 % and a fifth of the rest.
        assert!(first.abs_diff(84_000) < 600, "{first}");
    }

    #[test]
    fn loop_and_window_reach_all_pages_and_stay_where_they_should() {
        assert!(counts(Pattern::Loop, 100, 10_000).iter().all(|&count| count > 0));
        assert!(counts(Pattern::Window, 100, 10_000).iter().all(|&count| count > 0));
        let looped: u64 = counts(Pattern::Loop, 100, 10_000)[..30].iter().sum();
        assert!(looped.abs_diff(6500) < 200, "{looped}");
        let early: Vec<u64> = Sequence::new(Pattern::Window, 100, 1000, 1).take(100).collect();
        assert!(early.iter().all(|&page| page < 35));
    }
}
