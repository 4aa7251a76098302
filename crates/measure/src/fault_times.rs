//! Times of fetches, and their parts.

use crate::{Duration, FaultLatency, Histogram};

/// Histograms of how long fetches took, and of the parts of that time.
pub struct FaultTimes {
    total: Histogram,
    wait: Histogram,
    overhead: Histogram,
    requested: Histogram,
}

impl Default for FaultTimes {
    fn default() -> Self {
        let [total, wait, overhead, requested] = [(); 4].map(|()| Histogram::new());
        Self { total, wait, overhead, requested }
    }
}

impl FaultTimes {
    /// Records a fetch, in nanoseconds; `total_ns` is `None` if its end was not seen.
    pub fn record(&mut self, total_ns: Option<u64>, wait_ns: u32, requested_ns: u32) {
        let requested_ns = u64::from(requested_ns);
        self.wait.record(Duration::from_ns(u64::from(wait_ns)));
        self.requested.record(Duration::from_ns(requested_ns));
        if let Some(total_ns) = total_ns {
            self.total.record(Duration::from_ns(total_ns));
            self.overhead.record(Duration::from_ns(total_ns.saturating_sub(requested_ns)));
        }
    }

    /// How much longer than requested all fetches together took, in nanoseconds.
    #[must_use]
    pub fn late_ns(&self) -> u64 {
        self.overhead.mean().as_ns().saturating_mul(self.overhead.count())
    }

    /// The 99th percentile of the total times so far, in nanoseconds.
    #[must_use]
    pub fn p99_ns(&self) -> u64 {
        self.total.quantile(0.99).as_ns()
    }

    /// Summaries of all parts, where a page occupies the link for `page`.
    #[must_use]
    pub fn summary(&self, page: Duration) -> FaultLatency {
        let mut transfer = Histogram::new();
        if self.total.count() > 0 {
            transfer.record_n(page, self.total.count());
        }
        FaultLatency {
            total: self.total.summary(),
            wait: self.wait.summary(),
            transfer: transfer.summary(),
            overhead: self.overhead.summary(),
            requested: self.requested.summary(),
            achieved: self.total.summary(),
            total_bins: self.total.bins(),
        }
    }
}
