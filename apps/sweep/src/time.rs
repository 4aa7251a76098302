//! How long runs took, and how long those that are left may take.

use std::time::Duration;

use super::row::Row;

/// The mean time of a run, in seconds; nothing before the first has ended.
pub(crate) fn mean_s(rows: &[Row]) -> Option<f64> {
    // Those before the one that was kept took as long.
    let of = |row: &Row| row.elapsed_ns as f64 / 1e9 * f64::from(row.repeated_count + 1);
    let sum: f64 = rows.iter().map(of).sum();
    (!rows.is_empty()).then(|| sum / rows.len() as f64)
}

/// A time as people say it: `1 min 05 s`.
pub(crate) fn clock(seconds: f64) -> String {
    let whole = Duration::from_secs_f64(seconds.clamp(0.0, 1e9)).as_secs();
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_is_as_fine_as_it_needs_to_be() {
        assert_eq!([5.0, 65.0, 3700.0].map(clock), ["5 s", "1 min 05 s", "1 h 01 min"]);
    }
}
