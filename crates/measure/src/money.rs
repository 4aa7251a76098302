use std::fmt;
use std::str::FromStr;

use crate::error::{ParseError, Quantity};
use crate::number::Measured;

const MICROS: u64 = 1_000_000;

/// An amount of money in whole millionths of a currency that the caller names; never negative.
///
/// Read from `2400`, `0.35` or `2.4k` (k, M and G are powers of 1000); shown as `2,400` or
/// `0.35`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Money(u64);

/// A count, of requests per second most often.
///
/// Read from `5000`, `50k`, `1.5M`: prefixes are powers of 1000, and part counts are rounded to the
/// nearest whole one. Shown in the largest prefix that leaves a whole part: `50k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Count(u64);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount of `micros` millionths.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// `units` whole units, at most `u64::MAX` millionths.
    #[must_use]
    pub const fn from_units(units: u64) -> Self {
        Self(units.saturating_mul(MICROS))
    }

    /// The amount in millionths.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The amount in units; exact below 2⁵³ millionths.
    #[must_use]
    pub const fn units_f64(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }

    /// The sum, or `None` beyond `u64::MAX` millionths.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The amount `count` times, or `None` beyond `u64::MAX` millionths.
    #[must_use]
    pub const fn checked_mul(self, count: u64) -> Option<Self> {
        match self.0.checked_mul(count) {
            Some(product) => Some(Self(product)),
            None => None,
        }
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Two decimals are enough for amounts of one unit or more.
        let digits = if self.0 >= MICROS { 2 } else { 6 };
        let unit = MICROS / 10_u64.pow(digits);
        let rounded = (u128::from(self.0) + u128::from(unit / 2)) / u128::from(unit);
        let per_whole = 10_u128.pow(digits);
        let (whole, rest) = (rounded / per_whole, rounded % per_whole);
        let mut text = grouped(whole);
        if rest > 0 {
            let decimals = format!("{rest:0width$}", width = digits as usize);
            text += ".";
            text += if digits == 2 { &decimals } else { decimals.trim_end_matches('0') };
        }
        f.pad(&text)
    }
}

impl FromStr for Money {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let measured = Measured::parse(text, Quantity::Money)?;
        let unit = thousands(measured.unit).and_then(|unit| unit.checked_mul(MICROS));
        measured.scaled(unit.ok_or_else(|| measured.unknown_unit())?).map(Self)
    }
}

impl Count {
    /// A count of `count`.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The count.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, prefix) = match self.0 {
            0..10_000 => return f.pad(&self.0.to_string()),
            10_000..1_000_000 => (1_000, "k"),
            1_000_000..1_000_000_000 => (1_000_000, "M"),
            _ => (1_000_000_000, "G"),
        };
        let hundredths = (u128::from(self.0) * 100 + unit / 2) / unit;
        let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        f.pad(&format!("{}{prefix}", text.trim_end_matches('0').trim_end_matches('.')))
    }
}

impl FromStr for Count {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let measured = Measured::parse(text, Quantity::Count)?;
        let unit = thousands(measured.unit).ok_or_else(|| measured.unknown_unit())?;
        measured.scaled(unit).map(Self)
    }
}

/// The factor of a decimal prefix; `None` for any other unit.
fn thousands(unit: &str) -> Option<u64> {
    match unit {
        "" => Some(1),
        "k" | "K" => Some(1_000),
        "M" | "m" => Some(1_000_000),
        "G" | "g" => Some(1_000_000_000),
        _ => None,
    }
}

/// Digits in groups of three: `960,000`.
fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn money_is_read_and_shown() {
        let cases = [
            ("2400", 2_400_000_000, "2,400"),
            ("0.35", 350_000, "0.35"),
            ("0.000001", 1, "0.000001"),
            ("2.4k", 2_400_000_000, "2,400"),
            ("1.2M", 1_200_000_000_000, "1,200,000"),
            ("812500.5", 812_500_500_000, "812,500.50"),
            ("0", 0, "0"),
        ];
        for (text, micros, shown) in cases {
            assert_eq!(text.parse(), Ok(Money::from_micros(micros)), "{text}");
            assert_eq!(Money::from_micros(micros).to_string(), shown);
        }
        assert_eq!(Money::from_micros(999_999).to_string(), "0.999999");
        assert_eq!(Money::from_micros(1_999_999).to_string(), "2");
    }

    #[test]
    fn counts_are_read_and_shown() {
        for (text, count, shown) in
            [("250k", 250_000, "250k"), ("10M", 10_000_000, "10M"), ("4711", 4711, "4711")]
        {
            assert_eq!(text.parse(), Ok(Count::new(count)));
            assert_eq!(Count::new(count).to_string(), shown);
        }
        assert_eq!(Count::new(12_340).to_string(), "12.34k");
    }

    #[test]
    fn error_texts() {
        let money = |text: &str| text.parse::<Money>().unwrap_err().to_string();
        assert_eq!(money("-1"), "\"-1\": a price cannot be negative; write e.g. 2400");
        assert_eq!(money("nan"), "\"nan\": not a price; write a number, e.g. 2400");
        assert_eq!(
            money("20000G"),
            "\"20000G\": a price can be at most 18446744073709; write e.g. 2400"
        );
        let count = "5 parsecs".parse::<Count>().unwrap_err().to_string();
        assert_eq!(
            count,
            "\"5 parsecs\": unknown unit \"parsecs\" for a count; use k, M or G (powers of 1000), \
             e.g. 50k"
        );
    }

    #[test]
    fn sums_stop_at_the_end() {
        let most = Money::from_micros(u64::MAX);
        assert_eq!(most.checked_add(Money::from_micros(1)), None);
        assert_eq!(most.checked_mul(2), None);
        assert_eq!(Money::from_units(u64::MAX), most);
    }

    proptest! {
        #[test]
        fn parse_never_panics(text in "\\PC{0,40}") {
            let _ = (text.parse::<Money>(), text.parse::<Count>());
        }
    }
}
