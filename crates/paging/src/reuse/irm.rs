//! Miss ratios by formula, if every access is to a page drawn anew: the independent reference
//! model.
//!
//! With `frames` frames a page stays for about the same time T whichever it is (Che et al. 2002;
//! Fagin 1977), counted in accesses. A page of popularity p is then local for a share h of the
//! time:
//!
//! | policy | h | because |
//! |---|---|---|
//! | LRU | 1 − e^(−pT) | it was accessed within the last T |
//! | FIFO, RANDOM | pT / (1 + pT) | it stays for T, then is away for 1/p |
//! | CLOCK | x / (1 + x), x = pT·(1 + e^(pT)) | it stays 2T, and T more if accessed in the last |
//!
//! T is where the shares add up to the frames, and a share h of a page's accesses hit.

use crate::policy::PolicyKind;

/// How popular pages are.
#[derive(Debug, Clone, PartialEq)]
pub struct Popularity {
    // Pages that are equally popular: how many, and the share of accesses each has.
    classes: Vec<(f64, f64)>,
    pages: f64,
}

impl Popularity {
    /// The popularity of pages from how often each is accessed, in any unit; pages without accesses
    /// do not count. Each stands for `scale` such pages: 1, or the pages for each that was sampled.
    #[must_use]
    pub fn new(accesses: impl IntoIterator<Item = f64>, scale: f64) -> Self {
        let mut counts: Vec<f64> = accesses.into_iter().filter(|&count| count > 0.0).collect();
        counts.sort_unstable_by(f64::total_cmp);
        let whole = counts.iter().sum::<f64>() * scale;
        let equal = counts.chunk_by(|one, other| one == other);
        let classes: Vec<_> = equal.map(|of| (of.len() as f64 * scale, of[0] / whole)).collect();
        Self { classes, pages: counts.len() as f64 * scale }
    }

    /// How many pages there are.
    #[must_use]
    pub fn pages(&self) -> f64 {
        self.pages
    }

    /// The share of accesses that miss with `frames` frames when every page was touched before;
    /// `None` for a policy without a formula.
    #[must_use]
    pub fn miss_ratio(&self, policy: PolicyKind, frames: u64) -> Option<f64> {
        // The share of the time that a page is not local, as a function of pT.
        let away = policy.away()?;
        let frames = frames as f64;
        if frames >= self.pages {
            return Some(0.0);
        }
        let local = |time: f64| -> f64 {
            self.classes.iter().map(|&(pages, share)| pages * (1.0 - away(share * time))).sum()
        };
        let (mut short, mut long) = (0.0, 1.0);
        while local(long) < frames && long < f64::MAX / 2.0 {
            (short, long) = (long, long * 2.0);
        }
        while long - short > long * 1e-12 {
            let middle = short + (long - short) / 2.0;
            if local(middle) < frames {
                short = middle;
            } else {
                long = middle;
            }
        }
        // With no frame at all no page stays, and every access misses.
        let time = if frames > 0.0 { long } else { 0.0 };
        let missed = |&(pages, share): &(f64, f64)| pages * share * away(share * time);
        Some(self.classes.iter().map(missed).sum())
    }
}
