//! A point of a curve: what arrived, what was done, and how long that took.

use diskload::Tally;
use measure::Histogram;
use serde_json::{Value, json};

use crate::bench::run::Phase;

/// See the module's description.
pub(super) struct Point {
    /// Of what a closed loop reaches.
    pub(super) share: Option<f64>,
    pub(super) offered: f64,
    /// Of reads and writes together.
    pub(super) latency: Histogram,
    pub(super) phase: Phase,
}

/// What a latency is then above that of the first point.
const EXPLOSION: f64 = 10.0;
/// Latencies that have names of their own.
pub(super) const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// Why a load is no point.
pub(super) fn failure(tally: &Tally) -> Option<String> {
    let first = tally.first_failure.as_deref();
    match (tally.failure_count(), tally.count()) {
        (0, 0) => Some(first.unwrap_or("no request was answered").to_owned()),
        (0, _) => None,
        (count, _) => Some(format!("{count} requests failed: {}", first.unwrap_or("unknown"))),
    }
}

impl Point {
    pub(super) fn of(share: Option<f64>, offered: f64, phase: Phase) -> Self {
        let mut latency = Histogram::new();
        let operations = phase.outcomes[0].tally.operations();
        operations.into_iter().for_each(|of| latency.merge(&of.latency));
        Self { share, offered, latency, phase }
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.phase.outcomes[0].tally
    }

    /// Whether it takes many times as long as with little load.
    pub(super) fn has_exploded(&self, first: &Self) -> bool {
        let mean = |point: &Self| point.latency.mean().as_ns_f64();
        mean(self) > mean(first) * EXPLOSION
    }

    /// As a record has it.
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
