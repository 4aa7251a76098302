//! Times of runs.

use std::time::Duration;

use super::row::Row;

/// The mean time of a run, in seconds, with its repetitions; `None` without runs.
pub(crate) fn mean_s(rows: &[Row]) -> Option<f64> {
    // Repeated runs are assumed to take as long as the one that was kept.
    let of = |row: &Row| row.elapsed_ns as f64 / 1e9 * f64::from(row.repeated_count + 1);
    let sum: f64 = rows.iter().map(of).sum();
    (!rows.is_empty()).then(|| sum / rows.len() as f64)
}

/// A time in seconds as readable text.
pub(crate) fn clock(seconds: f64) -> String {
    console::clock(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)))
}
