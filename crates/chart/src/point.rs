//! A value of a plot.

/// A value, and where it may lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// From left to right.
    pub x: f64,
    /// From the bottom to the top.
    pub y: f64,
    /// An interval around `y`.
    pub interval: Option<(f64, f64)>,
}
