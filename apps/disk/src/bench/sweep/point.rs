//! A point of a curve: offered load, achieved load and latency.

use diskload::Tally;
use measure::Histogram;
use serde_json::{Value, json};

use crate::bench::run::Phase;

/// A load at one rate, and its result.
pub(super) struct Point {
    /// Offered load as a share of the closed loop's rate; `None` if rates were given.
    pub(super) share: Option<f64>,
    pub(super) offered: f64,
    /// Latency of reads, writes and trims together.
    pub(super) latency: Histogram,
    pub(super) phase: Phase,
}

/// Latency has exploded above this multiple of the first point's.
const EXPLOSION: f64 = 10.0;
/// Quantiles of latency that are reported, with their names.
pub(super) const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// Why a load does not count as a point; `None` if it does.
pub(super) fn failure(tally: &Tally) -> Option<String> {
    let first = tally.first_failure.as_deref();
    match (tally.failure_count(), tally.count()) {
        (0, 0) => Some(first.unwrap_or("no request was answered").to_owned()),
        (0, _) => None,
        (count, _) => Some(format!("{count} requests failed: {}", first.unwrap_or("unknown"))),
    }
}

impl Point {
    /// The point that a load at rate `offered` has measured.
    pub(super) fn of(share: Option<f64>, offered: f64, phase: Phase) -> Self {
        let mut latency = Histogram::new();
        let operations = phase.outcomes[0].tally.operations();
        operations.into_iter().for_each(|of| latency.merge(&of.latency));
        Self { share, offered, latency, phase }
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.phase.outcomes[0].tally
    }

    /// Whether the mean latency is more than `EXPLOSION` times that of the first point.
    pub(super) fn has_exploded(&self, first: &Self) -> bool {
        let mean = |point: &Self| point.latency.mean().as_ns_f64();
        mean(self) > mean(first) * EXPLOSION
    }

    /// The point as JSON, for the record.
    pub(super) fn record(&self) -> Value {
        let tally = self.tally();
        let bytes: u64 = tally.operations().iter().map(|of| of.bytes).sum();
        let [own_ns, target_ns] = self.phase.processors.each_ns();
        let mut value = json!({
            "load_share": self.share,
            "offered_per_s": self.offered,
            "achieved_per_s": tally.per_second(),
            "bytes_per_s": bytes as f64 * 1e9 / tally.elapsed.as_ns_f64().max(1.0),
            "mean_ns": self.latency.mean().as_ns(),
        });
        for (name, quantile) in QUANTILES {
            value[format!("{name}_ns")] = self.latency.quantile(quantile).as_ns().into();
        }
        let rest = json!({
            "max_ns": self.latency.max().as_ns(),
            "request_count": tally.count(),
            "unmade_count": tally.unmade_count,
            "own_processor_ns_per_request": own_ns,
            "target_processor_ns_per_request": target_ns,
        });
        for (name, one) in rest.as_object().into_iter().flatten() {
            value[name] = one.clone();
        }
        value
    }
}
