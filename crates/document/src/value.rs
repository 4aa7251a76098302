//! Values of flags and files with a syntax of their own.

use std::str::FromStr;

use measure::{BitsPerSec, Duration, ParseError};

/// A rate, or `none` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bandwidth(pub Option<BitsPerSec>);

/// Why a text is no seed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\": a seed is a whole number up to 2^64-1; write e.g. 7")]
pub struct SeedError(String);

/// Parses a time; `0` needs no unit.
///
/// # Errors
/// If `text` is no time.
pub fn delay(text: &str) -> Result<Duration, ParseError> {
    match text.trim() {
        "0" => Ok(Duration::ZERO),
        _ => text.parse(),
    }
}

/// Parses a seed.
///
/// # Errors
/// If `text` is no whole number, or too large.
pub fn seed(text: &str) -> Result<u64, SeedError> {
    let number = text.parse();
    number.map_err(|_| SeedError(text.to_owned()))
}

/// Parses a rate in requests per second: 5000, 5k, 1.5M. `None` unless it is above 0 and finite.
#[must_use]
pub fn per_second(text: &str) -> Option<f64> {
    let (number, unit) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |number| (number, 1e6)),
    };
    let rate = number.parse::<f64>().ok()? * unit;
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

impl FromStr for Bandwidth {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text == "none" {
            return Ok(Self(None));
        }
        text.parse().map(|rate| Self(Some(rate)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!(per_second("5000"), Some(5000.0));
        assert_eq!(per_second("5k"), Some(5000.0));
        assert_eq!(per_second("1.5M"), Some(1_500_000.0));
        for wrong in ["", "0", "-1", "nan", "inf", "5x", "k"] {
            assert_eq!(per_second(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn bandwidth_none_is_no_limit() {
        assert_eq!("none".parse(), Ok(Bandwidth(None)));
        assert_eq!("8bps".parse(), Ok(Bandwidth(Some(BitsPerSec::new(8)))));
    }
}
