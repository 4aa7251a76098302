use crate::draw::Draw;
use crate::record::fnv64;
use crate::zipf::Zipf;

// YCSB's ScrambledZipfianGenerator draws from this many ranks, whatever the number of records.
const SCRAMBLED_RANKS: u64 = 10_000_000_000;

/// How often each record is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PopularityKind {
    /// All records equally often.
    Uniform,
    /// A few much more often than the rest, scattered over the records: YCSB's scrambled zipfian.
    #[default]
    Zipfian,
    /// The newest most often: YCSB's skewed latest.
    Latest,
}

impl PopularityKind {
    /// The name it has in YCSB's property files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipfian => "zipfian",
            Self::Latest => "latest",
        }
    }
}

/// Draws record numbers.
#[derive(Debug, Clone)]
pub enum Popularity {
    /// See [`PopularityKind::Uniform`].
    Uniform,
    /// See [`PopularityKind::Zipfian`].
    Zipfian(Zipf),
    /// See [`PopularityKind::Latest`].
    Latest(Zipf),
}

impl Popularity {
    /// Skew of YCSB's distributions.
    pub const THETA: f64 = 0.99;

    /// Popularity of `kind` with skew `theta`, for at least `records` records.
    ///
    /// # Panics
    /// As [`Zipf::new`], if `kind` is skewed.
    #[must_use]
    pub fn new(kind: PopularityKind, theta: f64, records: u64) -> Self {
        match kind {
            PopularityKind::Uniform => Self::Uniform,
            PopularityKind::Zipfian => Self::Zipfian(Zipf::new(SCRAMBLED_RANKS, theta)),
            PopularityKind::Latest => Self::Latest(Zipf::new(records, theta)),
        }
    }

    /// Draws the number of one of `records` records; the newest has the highest number.
    pub fn next(&mut self, draw: &mut Draw, records: u64) -> u64 {
        match self {
            Self::Uniform => draw.below(records),
            Self::Zipfian(zipf) => fnv64(zipf.next(draw)) % records.max(1),
            Self::Latest(zipf) => {
                zipf.grow(records);
                records.saturating_sub(1).saturating_sub(zipf.next(draw))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(kind: PopularityKind, records: u64) -> Vec<u32> {
        let mut popularity = Popularity::new(kind, Popularity::THETA, records);
        let mut draw = Draw::new(1);
        let mut counts = vec![0; usize::try_from(records).expect("few")];
        for _ in 0..100_000 {
            let record = popularity.next(&mut draw, records);
            counts[usize::try_from(record).expect("few")] += 1;
        }
        counts
    }

    #[test]
    fn uniform_is_level() {
        assert!(
            counts(PopularityKind::Uniform, 100).iter().all(|&count| count.abs_diff(1000) < 200)
        );
    }

    #[test]
    fn zipfian_has_one_record_at_a_twenty_sixth_and_scatters_it() {
        let counts = counts(PopularityKind::Zipfian, 10_000);
        let (hottest, count) = counts.iter().enumerate().max_by_key(|pair| pair.1).expect("some");
        // 1/26.469, and what else falls on the same record.
        assert!((3_600..4_300).contains(count), "{count}");
        assert_ne!(hottest, 0);
    }

    #[test]
    fn latest_prefers_the_newest_also_when_there_are_more() {
        let counts = counts(PopularityKind::Latest, 1000);
        assert!(counts[999] > counts[998] && counts[998] > counts[500] * 10);
        let mut popularity = Popularity::new(PopularityKind::Latest, 0.99, 10);
        let mut draw = Draw::new(2);
        assert!((0..1000).any(|_| popularity.next(&mut draw, 5000) == 4999));
    }
}
