//! Chooses the next rate to try by the results of earlier tries.
//!
//! ```text
//! double until one fails ─► halve the distance ─► try both ends again ─► found
//! ```
//!
//! A rate is tried until [`DECIDES`] tries agree. At the end, the lower and upper rate of the last
//! interval need [`CONFIRMS`] tries that agree; if more tries overturn one, the search goes on from
//! there. So one disturbed try decides nothing.

/// Tries of a rate that must agree.
const DECIDES: u32 = 2;
/// Tries of both final rates that must agree.
const CONFIRMS: u32 = 3;
/// Largest ratio of the final rates.
const PRECISION: f64 = 1.05;
/// After so many tries the search fails.
const TRIES_MAX: usize = 80;

/// A search, with the tries so far.
#[derive(Debug)]
pub(super) struct Search {
    least: f64,
    most: f64,
    /// Rates that were tried, ascending.
    tried: Vec<Tried>,
    count: usize,
}

#[derive(Debug, Clone, Copy)]
struct Tried {
    rate: f64,
    held: u32,
    failed: u32,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    Try(f64),
    Found(Found),
    Refused(Refusal),
}

/// The highest rate that held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    pub(super) rate: f64,
    /// Every try at rates up to the first held; no try from the second on did.
    pub(super) interval: [f64; 2],
}

/// Why no rate was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Even the least rate fails.
    Least,
    /// Even the most holds.
    Most,
    /// Tries of the same rates came out too differently.
    Unsettled,
}

impl Tried {
    /// Whether the rate holds; `None` if undecided.
    const fn holds(&self) -> Option<bool> {
        if self.held >= DECIDES && self.held > self.failed {
            Some(true)
        } else if self.failed >= DECIDES && self.failed > self.held {
            Some(false)
        } else {
            None
        }
    }

    // Whether `CONFIRMS` tries agree.
    fn is_confirmed(&self) -> bool {
        self.held.max(self.failed) >= CONFIRMS
    }
}

impl Search {
    /// A search from rate `least` to `most`, which is not lower.
    pub(super) const fn new(least: f64, most: f64) -> Self {
        Self { least, most, tried: Vec::new(), count: 0 }
    }

    /// Records the result of a try.
    pub(super) fn tell(&mut self, rate: f64, holds: bool) {
        self.count += 1;
        let at = self.tried.partition_point(|one| one.rate < rate);
        if self.tried.get(at).is_none_or(|one| one.rate > rate) {
            self.tried.insert(at, Tried { rate, held: 0, failed: 0 });
        }
        let one = &mut self.tried[at];
        if holds {
            one.held += 1;
        } else {
            one.failed += 1;
        }
    }

    /// The next step.
    pub(super) fn next(&self) -> Next {
        if self.count >= TRIES_MAX {
            return Next::Refused(Refusal::Unsettled);
        }
        if let Some(open) = self.tried.iter().find(|one| one.holds().is_none()) {
            return Next::Try(open.rate);
        }
        let again_or = |one: Tried, then: Next| {
            if one.is_confirmed() { then } else { Next::Try(one.rate) }
        };
        match self.ends() {
            (None, None) => Next::Try(self.least),
            (Some(low), None) if low.rate >= self.most => {
                again_or(low, Next::Refused(Refusal::Most))
            }
            (Some(low), None) => Next::Try((low.rate * 2.0).min(self.most)),
            (None, Some(high)) if high.rate <= self.least => {
                again_or(high, Next::Refused(Refusal::Least))
            }
            (None, Some(_)) => Next::Try(self.least),
            (Some(low), Some(high)) if high.rate > low.rate * PRECISION => {
                Next::Try((low.rate * high.rate).sqrt())
            }
            (Some(low), Some(high)) => again_or(low, again_or(high, self.found(low, high))),
        }
    }

    /// An estimate of the tries that are left.
    pub(super) fn left(&self) -> usize {
        let (low, high) = match self.ends() {
            (Some(low), Some(high)) => (low.rate, high.rate),
            (Some(low), None) => (low.rate, (low.rate * 4.0).min(self.most)),
            (None, _) => (self.least, (self.least * 4.0).min(self.most)),
        };
        let mut ratio = (high / low).max(1.0);
        let mut halves = 0;
        while ratio > PRECISION {
            ratio = ratio.sqrt();
            halves += 1;
        }
        halves * DECIDES as usize + 2 * (CONFIRMS - DECIDES) as usize
    }

    // The highest rate that holds below the lowest that fails, and the latter.
    fn ends(&self) -> (Option<Tried>, Option<Tried>) {
        let with = |wanted| move |one: &&Tried| one.holds() == Some(wanted);
        let high = self.tried.iter().find(with(false)).copied();
        let is_below = |one: &&Tried| high.is_none_or(|high| one.rate < high.rate);
        let low = self.tried.iter().rev().filter(is_below).find(with(true));
        (low.copied(), high)
    }

    // The result, when the search has ended between `low` and `high`.
    fn found(&self, low: Tried, high: Tried) -> Next {
        let below = self.tried.iter().take_while(|one| one.rate <= low.rate && one.failed == 0);
        let above =
            self.tried.iter().rev().take_while(|one| one.rate >= high.rate && one.held == 0);
        let least = below.last().map_or(self.least, |one| one.rate);
        let most = above.last().map_or(self.most, |one| one.rate);
        Next::Found(Found { rate: low.rate, interval: [least, most] })
    }
}

#[cfg(test)]
mod tests {
    use workload::fnv64;

    use super::*;

    /// Asks until there is an answer.
    fn answer(limits: [f64; 2], mut holds: impl FnMut(f64) -> bool) -> (Next, usize) {
        let mut search = Search::new(limits[0], limits[1]);
        loop {
            match search.next() {
                Next::Try(rate) => {
                    assert!((limits[0]..=limits[1]).contains(&rate), "{rate} of {limits:?}");
                    search.tell(rate, holds(rate));
                }
                end => return (end, search.count),
            }
        }
    }

    /// From 0 to 1, by a seed and a number.
    fn draw(seed: u64, number: u64) -> f64 {
        (fnv64(fnv64(seed) ^ number) % 1_000_000) as f64 / 1e6
    }

    #[test]
    fn without_noise_the_capacity_is_between_the_ends() {
        for capacity in [101.0, 333.0, 7_777.0, 12_800.0, 999_999.0] {
            let (end, count) = answer([100.0, 1e6], |rate| rate <= capacity);
            let Next::Found(Found { rate, interval: [least, most] }) = end else {
                panic!("{capacity}: {end:?}")
            };
            assert!(rate <= capacity && capacity < rate * PRECISION, "{capacity}: {rate}");
            assert_eq!(least, rate, "every try held up to it");
            assert!(capacity < most && most <= rate * PRECISION, "{capacity}: {most}");
            assert!(count <= 50, "{count}");
        }
    }

    #[test]
    fn what_is_outside_of_the_limits_is_refused() {
        let refused = |limits, capacity| answer(limits, |rate| rate <= capacity);
        let (least, count) = refused([100.0, 1e6], 99.0);
        assert_eq!((least, count), (Next::Refused(Refusal::Least), 3));
        assert_eq!(refused([100.0, 1e3], 1e3).0, Next::Refused(Refusal::Most));
        let same = refused([100.0, 100.0], 500.0).0;
        assert_eq!(same, Next::Refused(Refusal::Most), "one rate says nothing of what is above");
    }

    // A queue: latency grows as 1 / (1 - load), each try is off by up to a quarter, and one in
    // twenty is disturbed so that its verdict is the opposite.
    fn queue(seed: u64, number: u64, rate: f64) -> bool {
        const CAPACITY: f64 = 20_000.0;
        let latency = 100.0 / (1.0 - (rate / CAPACITY).min(0.9999));
        let noisy = latency * (0.75 + 0.5 * draw(seed, number));
        let is_disturbed = draw(seed ^ 0x5eed, number) < 0.05;
        (noisy <= 1_000.0) != is_disturbed
    }

    #[test]
    fn noise_does_not_decide() {
        // 90 % of the capacity is where the latency is ten times that of an idle server.
        const TRUTH: f64 = 18_000.0;
        let (mut near, mut within) = (0, 0);
        const SEEDS: u64 = 400;
        for seed in 0..SEEDS {
            let mut number = 0;
            let (end, _) = answer([100.0, 1e6], |rate| {
                number += 1;
                queue(seed, number, rate)
            });
            let Next::Found(Found { rate, interval: [least, most] }) = end else { continue };
            near += u64::from((rate / TRUTH - 1.0).abs() < 0.1);
            within += u64::from(least <= TRUTH && TRUTH <= most);
            assert!(least <= rate && rate <= most, "{least} {rate} {most}");
        }
        assert!(near * 100 >= SEEDS * 98, "{near} of {SEEDS}");
        assert!(within * 100 >= SEEDS * 90, "{within} of {SEEDS}");
    }

    #[test]
    fn coins_have_no_capacity() {
        let mut number = 0;
        let (end, count) = answer([100.0, 1e9], |_| {
            number += 1;
            draw(3, number) < 0.5
        });
        // Whatever it says, it says it in the end.
        assert!(count <= TRIES_MAX, "{end:?}");
    }

    #[test]
    fn an_end_that_was_wrong_moves() {
        let mut search = Search::new(1000.0, 8000.0);
        for (rate, holds) in [(1000.0, true), (1000.0, true), (2000.0, false), (2000.0, false)] {
            assert_eq!(search.next(), Next::Try(rate));
            search.tell(rate, holds);
        }
        // From here on everything holds up to 6,000: the two were disturbed.
        let mut asked = Vec::new();
        let end = loop {
            match search.next() {
                Next::Try(rate) => {
                    asked.push(rate);
                    search.tell(rate, rate <= 6000.0);
                }
                end => break end,
            }
        };
        assert!(asked.iter().filter(|&&rate| rate == 2000.0).count() >= 3, "{asked:?}");
        let Next::Found(Found { rate, interval: [least, _] }) = end else { panic!("{end:?}") };
        assert!((5700.0..=6000.0).contains(&rate), "{rate}");
        assert!(least < 2000.0, "of what has failed before nothing is promised: {least}");
    }

    #[test]
    fn what_is_left_is_told_and_falls() {
        let mut search = Search::new(100.0, 1e6);
        let mut left = Vec::new();
        while let Next::Try(rate) = search.next() {
            search.tell(rate, rate <= 5_000.0);
            left.push(search.left());
        }
        assert!(left.last().is_some_and(|&last| last <= 3), "{left:?}");
        assert!(left.iter().all(|&count| (1..=20).contains(&count)), "{left:?}");
    }
}
