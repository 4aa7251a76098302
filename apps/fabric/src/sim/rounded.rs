//! Numbers as they are printed.

/// Rounds to six decimals, so that a printed number is read back as the same.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
