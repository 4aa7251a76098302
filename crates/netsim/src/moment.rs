//! A time, and the floating-point sum that the simulator of 2016 had for it.

use measure::{Duration, Instant};

/// A time, and the same time as `Order::Heap` sums it up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    pub(crate) sum: f64,
}

impl Moment {
    /// The moment `count` times `duration` later.
    pub(crate) fn after(self, duration: Duration, count: u64) -> Self {
        let sum = self.sum + count as f64 * seconds(duration);
        Self { at: self.at + duration.saturating_mul(count), sum }
    }
}

impl Moment {
    /// The moment `part`/`parts` of `duration` later.
    pub(crate) fn after_part(self, duration: Duration, part: u32, parts: usize) -> Self {
        let sum = self.sum + f64::from(part) * seconds(duration) / parts as f64;
        let ps = duration.as_ps() * u64::from(part) / parts as u64;
        Self { at: self.at + Duration::from_ps(ps), sum }
    }

    /// Whether `self` is earlier than `other`, by the floating-point sums.
    pub(crate) fn is_before(self, other: Self) -> bool {
        self.sum < other.sum
    }
}

/// A duration in seconds, as the nearest floating-point number.
pub(crate) fn seconds(duration: Duration) -> f64 {
    duration.as_ps() as f64 / 1e12
}
