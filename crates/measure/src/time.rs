use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use crate::error::{ParseError, Quantity};
use crate::number::{Measured, one_decimal};

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

/// A span of time in whole picoseconds, up to 213 days.
///
/// Read from `5us`, `5µs` (either micro sign), `800ns`, `1.5ms`, `2s`, `819200ps`, rounded to the
/// nearest picosecond; a bare number is refused. Shown with one decimal in the largest unit that
/// leaves a whole part: `5.0 µs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

/// A point in time, in whole picoseconds since an epoch of the caller's choice.
///
/// 213 days from the epoch is the end of time, so the epoch is best the start of the run.
/// Instants of different epochs must not be mixed; nothing can check that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The longest span, about 213 days.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ps` picoseconds.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A span of `ns` nanoseconds, at most [`Duration::MAX`].
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(PS_PER_NS))
    }

    /// A span of `us` microseconds, at most [`Duration::MAX`].
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(PS_PER_US))
    }

    /// A span of `ms` milliseconds, at most [`Duration::MAX`].
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(PS_PER_MS))
    }

    /// The span in picoseconds, exact.
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// The span in nanoseconds, rounded to the nearest (half up).
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS + (self.0 % PS_PER_NS) / (PS_PER_NS / 2)
    }

    /// The span in nanoseconds with its fraction; exact below 2⁵³ ps (2.5 hours).
    #[must_use]
    pub const fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Whether the span is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, or `None` beyond [`Duration::MAX`].
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// The sum, at most [`Duration::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or `None` below zero.
    #[must_use]
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The span `count` times, or `None` beyond [`Duration::MAX`].
    #[must_use]
    pub const fn checked_mul(self, count: u64) -> Option<Self> {
        match self.0.checked_mul(count) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// The span `count` times, at most [`Duration::MAX`].
    #[must_use]
    pub const fn saturating_mul(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

/// Panics beyond [`Duration::MAX`].
impl Add for Duration {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        self.checked_add(other).expect("a sum of durations stays below 213 days")
    }
}

/// Panics below zero.
impl Sub for Duration {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self.checked_sub(other).expect("a duration is reduced by at most itself")
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(durations: I) -> Self {
        durations.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The unit changes at the value that would otherwise round up to "1000.0".
        let text = match self.0 {
            0 => "0 ns".to_owned(),
            ps if ps < PS_PER_NS => format!("{ps} ps"),
            ps if ps < PS_PER_US - PS_PER_NS / 20 => format!("{} ns", one_decimal(ps, PS_PER_NS)),
            ps if ps < PS_PER_MS - PS_PER_US / 20 => format!("{} µs", one_decimal(ps, PS_PER_US)),
            ps if ps < PS_PER_S - PS_PER_MS / 20 => format!("{} ms", one_decimal(ps, PS_PER_MS)),
            ps => format!("{} s", one_decimal(ps, PS_PER_S)),
        };
        f.pad(&text)
    }
}

impl FromStr for Duration {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let measured = Measured::parse(text, Quantity::Time)?;
        let unit = match measured.unit {
            "" => return Err(measured.missing_unit()),
            "ps" => 1,
            "ns" | "nsec" => PS_PER_NS,
            // U+00B5 micro sign, U+03BC Greek mu: keyboards differ.
            "us" | "usec" | "\u{b5}s" | "\u{3bc}s" => PS_PER_US,
            "ms" | "msec" => PS_PER_MS,
            "s" | "sec" => PS_PER_S,
            _ => return Err(measured.unknown_unit()),
        };
        measured.scaled(unit).map(Self)
    }
}

impl Instant {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// The end of time, about 213 days after the epoch.
    pub const MAX: Self = Self(u64::MAX);

    /// The point `ps` picoseconds after the epoch.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// The point `ns` nanoseconds after the epoch, at most [`Instant::MAX`].
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(PS_PER_NS))
    }

    /// Picoseconds since the epoch, exact.
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Nanoseconds since the epoch, rounded to the nearest (half up).
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        Duration(self.0).as_ns()
    }

    /// The time since `earlier`; zero if `earlier` is in fact later, as happens between the
    /// clocks of two processors.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// This point moved by `duration`, at most [`Instant::MAX`].
    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }

    /// This point moved by `duration`, or `None` beyond [`Instant::MAX`].
    #[must_use]
    pub const fn checked_add(self, duration: Duration) -> Option<Self> {
        match self.0.checked_add(duration.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }
}

/// Panics beyond [`Instant::MAX`].
impl Add<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration).expect("an instant stays within 213 days of its epoch")
    }
}

/// Panics if the right side is later; [`Instant::saturating_since`] does not.
impl Sub for Instant {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.0
            .checked_sub(earlier.0)
            .map(Duration)
            .expect("an instant is compared with an earlier one")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parse_known_values() {
        let cases = [
            ("5us", 5_000_000),
            ("5µs", 5_000_000),
            ("5μs", 5_000_000),
            ("5 usec", 5_000_000),
            (" 800ns ", 800_000),
            ("1.5ms", 1_500_000_000),
            ("2s", 2_000_000_000_000),
            ("819200ps", 819_200),
            ("0.8192us", 819_200),
            (".5us", 500_000),
            ("5.us", 5_000_000),
            ("0us", 0),
            ("0.0000001us", 0),
            ("0.0000005us", 1),
            ("18446744073709551615ps", u64::MAX),
            ("0000000000000000000000001ns", 1_000),
        ];
        for (text, ps) in cases {
            assert_eq!(text.parse(), Ok(Duration::from_ps(ps)), "{text}");
        }
    }

    #[test]
    fn parse_error_texts() {
        let cases = [
            (
                "5 parsecs",
                "\"5 parsecs\": unknown unit \"parsecs\" for a time; \
                 use ns, us, ms or s, e.g. 5us",
            ),
            ("5", "\"5\": a time needs a unit; use ns, us, ms or s, e.g. 5us"),
            ("-5us", "\"-5us\": a time cannot be negative; write e.g. 5us"),
            ("soon", "\"soon\": not a time; write a number and a unit, e.g. 5us"),
            ("", "\"\": not a time; write a number and a unit, e.g. 5us"),
            (".us", "\".us\": not a time; write a number and a unit, e.g. 5us"),
            ("1.2.3us", "\"1.2.3us\": not a time; write a number and a unit, e.g. 5us"),
            ("1,5us", "\"1,5us\": unknown unit \",5us\" for a time; use ns, us, ms or s, e.g. 5us"),
            ("214000000s", "\"214000000s\": a time can be at most 213 days; write e.g. 5us"),
            (
                "999999999999999999999999999999999999999999ns",
                "\"999999999999999999999999999999999999999999ns\": \
                 a time can be at most 213 days; write e.g. 5us",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<Duration>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn display_largest_unit_with_a_whole_part() {
        let cases = [
            (0, "0 ns"),
            (200, "200 ps"),
            (819_200, "819.2 ns"),
            (999_949, "999.9 ns"),
            (999_950, "1.0 µs"),
            (5_000_000, "5.0 µs"),
            (5_250_000, "5.3 µs"),
            (1_500_000_000, "1.5 ms"),
            (999_949_999_999, "999.9 ms"),
            (999_950_000_000, "1.0 s"),
            (u64::MAX, "18446744.1 s"),
        ];
        for (ps, text) in cases {
            assert_eq!(Duration::from_ps(ps).to_string(), text);
        }
        assert_eq!(format!("[{:>8}]", Duration::from_us(5)), "[  5.0 µs]");
    }

    #[test]
    fn as_ns_rounds_half_up() {
        for (ps, ns) in [(499, 0), (500, 1), (1_499, 1), (1_500, 2), (u64::MAX, 18446744073709552)]
        {
            assert_eq!(Duration::from_ps(ps).as_ns(), ns);
        }
        assert_eq!(Duration::from_ps(819_200).as_ns_f64(), 819.2);
    }

    #[test]
    fn arithmetic_saturates_or_says_none() {
        let (one, max) = (Duration::from_ps(1), Duration::MAX);
        assert_eq!(max.checked_add(one), None);
        assert_eq!(max.saturating_add(one), max);
        assert_eq!(max.checked_mul(2), None);
        assert_eq!(max.saturating_mul(2), max);
        assert_eq!(Duration::ZERO.checked_sub(one), None);
        assert_eq!(Duration::from_us(u64::MAX), max);
        assert_eq!(Instant::MAX.saturating_add(one), Instant::MAX);
        assert_eq!(Instant::MAX.checked_add(one), None);
        assert_eq!(Instant::ZERO.saturating_since(Instant::from_ps(1)), Duration::ZERO);
        assert_eq!(Instant::from_ns(3) - Instant::from_ns(1), Duration::from_ns(2));
        assert_eq!(Instant::from_ns(1) + Duration::from_ns(2), Instant::from_ns(3));
        assert_eq!([one, one, one].into_iter().sum::<Duration>(), Duration::from_ps(3));
    }

    #[test]
    #[should_panic(expected = "compared with an earlier one")]
    fn sub_later_from_earlier() {
        let _ = Instant::ZERO - Instant::from_ps(1);
    }

    proptest! {
        #[test]
        fn parse_never_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Duration>();
        }

        #[test]
        fn parse_picoseconds_are_exact(ps: u64) {
            prop_assert_eq!(format!("{ps}ps").parse(), Ok(Duration::from_ps(ps)));
            let us = format!("{}.{:06}us", ps / PS_PER_US, ps % PS_PER_US);
            prop_assert_eq!(us.parse(), Ok(Duration::from_ps(ps)));
        }

        #[test]
        fn parse_reads_display_within_its_digits(ps in 0..u64::MAX / 2) {
            let shown = Duration::from_ps(ps).to_string().parse::<Duration>().unwrap();
            // One decimal of at least "1.0" is within 5 %.
            prop_assert!(shown.as_ps().abs_diff(ps) <= ps / 20);
        }
    }
}
