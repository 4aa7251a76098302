//! A point of a plot.

/// A point, and the interval of its value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// An interval around `y`.
    pub interval: Option<(f64, f64)>,
}
