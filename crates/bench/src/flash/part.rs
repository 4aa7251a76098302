//! The results of a part of the benchmark.

use serde_json::{Value, json};

use crate::report::Verdict;
use crate::stats::Spread;

use super::serve::Run;

/// The tables, figures and verdicts of a part.
pub(super) struct Part {
    pub(super) text: String,
    pub(super) results: Value,
    pub(super) verdicts: Vec<Verdict>,
}

/// The figures of all runs of one load on one target.
pub(super) struct Column {
    pub(super) iops: Spread,
    pub(super) target_us: Spread,
    pub(super) per_second: Spread,
    pub(super) host_us: Spread,
}

impl Column {
    /// The figures of `runs`.
    pub(super) fn of(runs: &[Run]) -> Self {
        let of = |field: fn(&Run) -> f64| Spread::of(runs.iter().map(field));
        Self {
            iops: of(|run| run.iops),
            target_us: of(|run| run.target_us),
            per_second: of(|run| 1e6 / run.target_us.max(1e-9)),
            host_us: of(|run| run.host_us),
        }
    }

    /// The figures for the record.
    pub(super) fn json(&self) -> Value {
        json!({
            "iops": self.iops.json(),
            "target_us_per_io": self.target_us.json(),
            "io_per_target_second": self.per_second.json(),
            "host_us_per_io": self.host_us.json(),
        })
    }
}
