use serde::{Deserialize, Serialize};

use crate::share::Share;
use crate::time::Duration;

/// Longer latencies count in the last bin.
const NS_MAX: u64 = 1_000_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies from 0 and 1 ns to 1000 s, in bins of three significant digits.
///
/// Count, mean, minimum and maximum are exact to the nanosecond; quantiles are within 0.1 %.
/// Times are rounded to nanoseconds as they are recorded. Zero has a bin of its own, because
/// "did not wait" differs from "waited 1 ns".
#[derive(Debug, Clone)]
pub struct Histogram {
    bins: hdrhistogram::Histogram<u64>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

/// The figures of a [`Histogram`] that a record holds, in nanoseconds; all zero when empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencySummary {
    /// Number of recorded latencies; 0 makes the other figures meaningless.
    pub count: u64,
    /// Shortest latency, in nanoseconds.
    pub min_ns: u64,
    /// Mean latency in nanoseconds, rounded.
    pub mean_ns: u64,
    /// Median latency, in nanoseconds.
    pub p50_ns: u64,
    /// 90th percentile of the latency, in nanoseconds.
    pub p90_ns: u64,
    /// 95th percentile of the latency, in nanoseconds.
    pub p95_ns: u64,
    /// 99th percentile of the latency, in nanoseconds.
    pub p99_ns: u64,
    /// 99.9th percentile of the latency, in nanoseconds.
    pub p999_ns: u64,
    /// Longest latency, in nanoseconds.
    pub max_ns: u64,
}

impl Histogram {
    /// An empty histogram (about 250 KiB).
    #[must_use]
    pub fn new() -> Self {
        let bins = hdrhistogram::Histogram::new_with_bounds(1, NS_MAX, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants that satisfy the library");
        Self { bins, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Counts one latency.
    pub fn record(&mut self, latency: Duration) {
        self.record_n(latency, 1);
    }

    /// Counts `count` equal latencies.
    pub fn record_n(&mut self, latency: Duration, count: u64) {
        if count == 0 {
            return;
        }
        let ns = latency.as_ns();
        self.bins.saturating_record_n(ns.min(NS_MAX), count);
        self.sum_ns += u128::from(ns) * u128::from(count);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Counts everything that `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        self.bins.add(&other.bins).expect("all histograms have the same bounds");
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The latency that a share `q` of those recorded does not exceed, within 0.1 %; 0 is the
    /// shortest and 1 the longest, exactly. Zero when empty.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Duration {
        if self.is_empty() || q <= 0.0 {
            return self.min();
        }
        // The middle of the rank's own share: the library's rounding of a share that is a whole
        // number of latencies may go either way.
        let rank = Share::of_quantile(q).rank(self.count());
        let middle = (rank as f64 - 0.5) / self.count() as f64;
        let ns = self.bins.value_at_quantile(middle);
        // The longest latency may lie beyond the last bin, or short of its end.
        Duration::from_ns(if rank == self.count() {
            self.max_ns
        } else {
            ns.clamp(self.min_ns, self.max_ns)
        })
    }

    /// The longest latency; zero when empty.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_ns(self.max_ns)
    }

    /// The shortest latency; zero when empty.
    #[must_use]
    pub fn min(&self) -> Duration {
        Duration::from_ns(self.min_or_zero())
    }

    /// The mean latency, rounded to the nanosecond; zero when empty.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let count = u128::from(self.count()).max(1);
        let mean = (self.sum_ns + count / 2) / count;
        Duration::from_ns(u64::try_from(mean).expect("a mean is at most the maximum"))
    }

    /// The standard deviation, from the middles of the bins: within 0.1 % of the mean; zero when
    /// empty.
    #[must_use]
    pub fn deviation(&self) -> Duration {
        let ns = self.bins.stdev().round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let ns = if self.is_empty() { 0 } else { ns as u64 };
        Duration::from_ns(ns)
    }

    /// How many latencies were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bins.len()
    }

    /// Whether no latency was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// The figures for a record.
    #[must_use]
    pub fn summary(&self) -> LatencySummary {
        LatencySummary {
            count: self.count(),
            min_ns: self.min().as_ns(),
            mean_ns: self.mean().as_ns(),
            p50_ns: self.quantile(0.5).as_ns(),
            p90_ns: self.quantile(0.9).as_ns(),
            p95_ns: self.quantile(0.95).as_ns(),
            p99_ns: self.quantile(0.99).as_ns(),
            p999_ns: self.quantile(0.999).as_ns(),
            max_ns: self.max().as_ns(),
        }
    }

    /// The bins that are not empty, ascending: the longest latency in nanoseconds that falls
    /// into the bin, and how many did. Running sums of the counts are points of the CDF.
    #[must_use]
    pub fn bins(&self) -> Vec<(u64, u64)> {
        self.bins
            .iter_recorded()
            .map(|bin| (bin.value_iterated_to(), bin.count_at_value()))
            .collect()
    }

    /// The shortest latency in nanoseconds; 0 when empty.
    fn min_or_zero(&self) -> u64 {
        if self.is_empty() { 0 } else { self.min_ns }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ns(ns: u64) -> Duration {
        Duration::from_ns(ns)
    }

    fn of(latencies: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &latency in latencies {
            histogram.record(ns(latency));
        }
        histogram
    }

    #[test]
    fn empty_is_all_zero() {
        let empty = Histogram::new();
        assert!(empty.is_empty());
        assert_eq!(empty.summary(), LatencySummary::default());
        assert_eq!(empty.quantile(0.0), Duration::ZERO);
        assert_eq!(empty.quantile(1.0), Duration::ZERO);
        assert_eq!(empty.bins(), []);
    }

    /// Below 2048 ns bins are 1 ns wide, so every figure is exact.
    #[test]
    fn summary_one_to_a_thousand() {
        let all: Vec<u64> = (1..=1000).collect();
        assert_eq!(
            of(&all).summary(),
            LatencySummary {
                count: 1000,
                min_ns: 1,
                mean_ns: 501, // 500.5, half up
                p50_ns: 500,
                p90_ns: 900,
                p95_ns: 950,
                p99_ns: 990,
                p999_ns: 999,
                max_ns: 1000,
            }
        );
    }

    #[test]
    fn quantile_of_whole_latencies_is_not_rounded_up() {
        let hundred = of(&(1..=100).collect::<Vec<_>>());
        for rank in 1..=100_u32 {
            assert_eq!(hundred.quantile(f64::from(rank) / 100.0), ns(rank.into()));
        }
        assert_eq!(of(&[3, 3_000_001]).quantile(0.9), ns(3_000_001));
        assert_eq!(of(&[3, 9]).quantile(f64::NAN), ns(3));
        // One bin holds both; its upper end lies beyond them.
        assert_eq!(of(&[3_000_001, 3_000_002]).quantile(0.5), ns(3_000_002));
    }

    #[test]
    fn record_zero_is_not_one() {
        let histogram = of(&[0, 0, 0, 1]);
        assert_eq!(histogram.bins(), [(0, 3), (1, 1)]);
        assert_eq!(histogram.quantile(0.75), Duration::ZERO);
        assert_eq!((histogram.min(), histogram.max()), (ns(0), ns(1)));
    }

    #[test]
    fn record_rounds_picoseconds() {
        let mut histogram = Histogram::new();
        histogram.record(Duration::from_ps(819_200));
        assert_eq!(histogram.bins(), [(819, 1)]);
    }

    #[test]
    fn record_beyond_the_range_keeps_the_maximum() {
        let mut histogram = of(&[5]);
        histogram.record(Duration::MAX);
        assert_eq!(histogram.count(), 2);
        assert_eq!(histogram.max().as_ns(), Duration::MAX.as_ns());
        assert_eq!(histogram.mean().as_ns(), (Duration::MAX.as_ns() + 5).div_ceil(2));
        assert!(histogram.bins()[1].0 >= NS_MAX);
        assert_eq!(histogram.quantile(1.0), histogram.max());
    }

    #[test]
    fn record_n_as_often_as_said() {
        let mut histogram = Histogram::new();
        histogram.record_n(ns(7), 0);
        assert!(histogram.is_empty());
        histogram.record_n(ns(7), 3);
        histogram.record_n(ns(9), 1);
        assert_eq!(histogram.bins(), [(7, 3), (9, 1)]);
        assert_eq!(histogram.mean(), ns(8)); // 7.5, half up
    }

    #[test]
    fn deviation_is_that_of_what_was_recorded() {
        assert_eq!(Histogram::new().deviation(), Duration::ZERO);
        assert_eq!(of(&[7, 7, 7]).deviation(), Duration::ZERO);
        assert_eq!(of(&[100, 200]).deviation(), ns(50));
        // A uniform distribution over 1 ms: its width over the root of twelve.
        let uniform: Vec<u64> = (0..1000).map(|step| step * 1000 + 500).collect();
        let deviation = of(&uniform).deviation().as_ns();
        assert!(deviation.abs_diff(288_675) <= 500, "{deviation}");
    }

    #[test]
    fn merge_equals_recording_together() {
        let mut merged = of(&[1, 50, 3_000_000]);
        merged.merge(&of(&[2, 70]));
        merged.merge(&Histogram::new());
        let together = of(&[1, 50, 3_000_000, 2, 70]);
        assert_eq!(merged.summary(), together.summary());
        assert_eq!(merged.bins(), together.bins());

        let mut empty = Histogram::new();
        empty.merge(&together);
        assert_eq!(empty.summary(), together.summary());
    }

    proptest! {
        /// Against the sorted samples themselves.
        #[test]
        fn quantile_within_a_thousandth(
            mut latencies in prop::collection::vec(0..NS_MAX, 1..80), permille in 0..=1000_u32,
        ) {
            let histogram = of(&latencies);
            latencies.sort_unstable();
            let rank = (permille as usize * latencies.len()).div_ceil(1000).max(1);
            let exact = latencies[rank - 1];
            let found = histogram.quantile(f64::from(permille) / 1000.0).as_ns();
            prop_assert!(found.abs_diff(exact) <= exact / 1000, "{found} for {exact}");
        }

        #[test]
        fn bins_hold_every_latency_once(latencies in prop::collection::vec(0..NS_MAX, 0..80)) {
            let bins = of(&latencies).bins();
            prop_assert!(bins.is_sorted_by(|a, b| a.0 < b.0));
            let mut seen = 0;
            for (up_to_ns, count) in bins {
                prop_assert!(count > 0);
                seen += count;
                let at_most = latencies.iter().filter(|&&latency| latency <= up_to_ns).count();
                prop_assert_eq!(seen, at_most as u64);
            }
            prop_assert_eq!(seen, latencies.len() as u64);
        }
    }
}
