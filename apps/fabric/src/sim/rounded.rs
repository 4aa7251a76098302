//! Numbers as they are printed.

/// To six digits after the point: what is printed is then read back as the same number.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
