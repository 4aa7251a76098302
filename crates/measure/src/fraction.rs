use std::fmt;
use std::str::FromStr;

use crate::error::{ParseError, Quantity};
use crate::number::{Measured, thousandths};
use crate::quantity::{Bytes, PAGE_BYTES, Pages};

const PPM_MAX: u32 = 1_000_000;

/// A share of a whole: more than nothing, at most all of it, in parts per million.
///
/// Read from `25%` or `0.25`; shown as `25%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fraction {
    ppm: u32,
}

/// How much of a program's memory is local: a share of it, or a size.
///
/// Read from `25%`, `0.25` or `512MiB`. A size below one page is refused, which catches a
/// percentage written without its sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LocalSize {
    /// A share of the program's memory.
    Fraction(Fraction),
    /// A fixed size.
    Bytes(Bytes),
}

/// What a share of local memory is a share of.
///
/// Read from `live`, `peak` or `512MiB`; less than a page is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShareOf {
    /// The memory in use at each moment: a program that starts has little of it local.
    Live,
    /// The most that the program used at a time with all of its memory local: a fixed amount.
    Peak,
    /// A fixed size, whatever the program uses.
    Bytes(Bytes),
}

impl Fraction {
    /// The whole.
    pub const ONE: Self = Self { ppm: PPM_MAX };

    /// `ppm` millionths; `None` for zero and for more than a million.
    #[must_use]
    pub const fn from_ppm(ppm: u32) -> Option<Self> {
        if ppm == 0 || ppm > PPM_MAX {
            return None;
        }
        Some(Self { ppm })
    }

    /// `percent` hundredths; `None` for zero and for more than a hundred.
    #[must_use]
    pub const fn from_percent(percent: u32) -> Option<Self> {
        match percent.checked_mul(PPM_MAX / 100) {
            Some(ppm) => Self::from_ppm(ppm),
            None => None,
        }
    }

    /// The share in millionths, 1 to 1 000 000.
    #[must_use]
    pub const fn ppm(self) -> u32 {
        self.ppm
    }

    /// This share of `whole`, rounded down to a byte.
    #[must_use]
    pub fn of(self, whole: Bytes) -> Bytes {
        Bytes::new(self.share(whole.get()))
    }

    /// This share of `whole`, rounded down to a page, but at least one page.
    #[must_use]
    pub fn of_pages(self, whole: Pages) -> Pages {
        Pages::new(self.share(whole.get()).max(1))
    }

    /// This share of `whole`, rounded down.
    fn share(self, whole: u64) -> u64 {
        let share = u128::from(whole) * u128::from(self.ppm) / u128::from(PPM_MAX);
        u64::try_from(share).expect("a share of at most all is at most the whole")
    }

    /// Reads a percentage or a number between 0 and 1.
    fn from_measured(measured: &Measured<'_>) -> Result<Self, ParseError> {
        let unit = match measured.unit {
            "%" => PPM_MAX / 100,
            "" => PPM_MAX,
            _ => return Err(measured.unknown_unit()),
        };
        let ppm = u32::try_from(measured.scaled(u64::from(unit))?).unwrap_or(u32::MAX);
        match ppm {
            0 => Err(measured.zero()),
            ppm => Self::from_ppm(ppm).ok_or_else(|| measured.too_large()),
        }
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whole and thousandth percents cover 10 ppm; the last digit needs its own place.
        let text = if self.ppm.is_multiple_of(10) {
            format!("{}%", thousandths(u128::from(self.ppm / 10)))
        } else {
            format!("{}.{:04}%", self.ppm / 10_000, self.ppm % 10_000)
        };
        f.pad(&text)
    }
}

impl FromStr for Fraction {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::from_measured(&Measured::parse(text, Quantity::Fraction)?)
    }
}

impl LocalSize {
    /// The local memory of a program of `whole` bytes: at least one page, and a fixed size
    /// stays as it is even if the program is smaller.
    #[must_use]
    pub fn of(self, whole: Bytes) -> Bytes {
        match self {
            Self::Fraction(fraction) => fraction.of(whole).max(Bytes::PAGE),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl LocalSize {
    /// Whether it is a share below 100 %, and so depends on the whole.
    #[must_use]
    pub fn is_share(self) -> bool {
        matches!(self, Self::Fraction(share) if share != Fraction::ONE)
    }

    /// A text for people: the size, or the share with its whole. `peak` is the most that the
    /// program used, if it is known.
    #[must_use]
    pub fn told(self, of: ShareOf, peak: Option<Bytes>) -> String {
        match self {
            Self::Bytes(bytes) => bytes.to_string(),
            Self::Fraction(share) => {
                format!("{} of {}", share.to_string().replace('%', " %"), of.told(peak))
            }
        }
    }
}

impl ShareOf {
    /// A text for people; `peak` as in [`LocalSize::told`].
    #[must_use]
    pub fn told(self, peak: Option<Bytes>) -> String {
        match (self, peak) {
            (Self::Live, _) => "what is in use at each moment (live footprint)".to_owned(),
            (Self::Peak, Some(peak)) => format!("{peak} (the most it used)"),
            (Self::Peak, None) => "the most it used".to_owned(),
            (Self::Bytes(bytes), _) => bytes.to_string(),
        }
    }

    /// The kind of whole, as records have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Peak => "peak",
            Self::Bytes(_) => "fixed",
        }
    }

    /// The size in bytes; `None` if it changes all the time, or `peak` is needed and `None`.
    #[must_use]
    pub fn bytes(self, peak: Option<Bytes>) -> Option<Bytes> {
        match self {
            Self::Live => None,
            Self::Peak => peak,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

impl fmt::Display for ShareOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live => f.pad("live"),
            Self::Peak => f.pad("peak"),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for ShareOf {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "live" => return Ok(Self::Live),
            "peak" => return Ok(Self::Peak),
            _ => {}
        }
        let bytes = text.parse().map_err(|error| match error {
            ParseError::NotANumber { value, .. } => {
                ParseError::UnknownWord { value, quantity: Quantity::ShareOf }
            }
            other => other,
        })?;
        if bytes < Bytes::PAGE {
            return Err(ParseError::BelowOnePage {
                value: text.to_owned(),
                quantity: Quantity::ShareOf,
            });
        }
        Ok(Self::Bytes(bytes))
    }
}

impl fmt::Display for LocalSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fraction(fraction) => fraction.fmt(f),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for LocalSize {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let measured = Measured::parse(text, Quantity::LocalSize)?;
        let is_share = measured.unit == "%" || (measured.unit.is_empty() && measured.has_point());
        if is_share {
            let measured = Measured::parse(text, Quantity::Fraction)?;
            return Fraction::from_measured(&measured).map(Self::Fraction);
        }
        let bytes = Bytes::from_measured(&measured)?;
        match bytes.get() {
            0 => Err(measured.zero()),
            1..PAGE_BYTES => Err(ParseError::BelowOnePage {
                value: text.to_owned(),
                quantity: Quantity::LocalSize,
            }),
            _ => Ok(Self::Bytes(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parse_known_values() {
        let cases = [
            ("25%", 250_000),
            ("0.25", 250_000),
            ("12.5 %", 125_000),
            ("100%", 1_000_000),
            ("1", 1_000_000),
            ("0.0001%", 1),
            ("0.00005%", 1),
        ];
        for (text, ppm) in cases {
            assert_eq!(text.parse(), Ok(Fraction { ppm }), "{text}");
        }
    }

    #[test]
    fn a_share_is_told_with_what_it_is_a_share_of() {
        let quarter: LocalSize = "25%".parse().unwrap();
        let told = |of: &str, peak| quarter.told(of.parse().unwrap(), peak);
        let peak = Some(Bytes::from_mib(512));
        assert_eq!(told("peak", peak), "25 % of 512.0 MiB (the most it used)");
        assert_eq!(told("live", peak), "25 % of what is in use at each moment (live footprint)");
        assert_eq!(told("2GiB", peak), "25 % of 2.0 GiB");
        assert_eq!(told("peak", None), "25 % of the most it used");
        let of = |text: &str| text.parse::<ShareOf>().unwrap().bytes(peak);
        assert_eq!((of("live"), of("peak")), (None, peak));
        assert_eq!(of("8k"), Some(Bytes::new(8192)));
        let refused = |text: &str| text.parse::<ShareOf>().unwrap_err().to_string();
        assert_eq!(
            refused("most"),
            "\"most\": not the whole of a share; use live, peak or a size such as 512MiB"
        );
        assert!(refused("10").contains("less than one page"), "{}", refused("10"));
        let is_share = |text: &str| text.parse::<LocalSize>().unwrap().is_share();
        assert_eq!(["25%", "100%", "1MiB"].map(is_share), [true, false, false]);
    }

    #[test]
    fn parse_error_texts() {
        let cases = [
            ("0%", "\"0%\": a fraction must be more than zero; write e.g. 25%"),
            ("0.00004%", "\"0.00004%\": a fraction must be more than zero; write e.g. 25%"),
            ("130%", "\"130%\": a fraction can be at most 100%; write e.g. 25%"),
            ("25", "\"25\": a fraction can be at most 100%; write e.g. 25%"),
            ("99999999999%", "\"99999999999%\": a fraction can be at most 100%; write e.g. 25%"),
            ("25 cents", "\"25 cents\": unknown unit \"cents\" for a fraction; use %, e.g. 25%"),
            (
                "most",
                "\"most\": not a fraction; \
                 write a percentage or a number between 0 and 1, e.g. 25%",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<Fraction>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn of_rounds_down_but_keeps_a_page() {
        let quarter = Fraction::from_percent(25).unwrap();
        assert_eq!(quarter.of(Bytes::new(10)), Bytes::new(2));
        assert_eq!(quarter.of(Bytes::from_gib(2)), Bytes::from_mib(512));
        assert_eq!(quarter.of_pages(Pages::new(1000)), Pages::new(250));
        assert_eq!(quarter.of_pages(Pages::new(3)), Pages::new(1));
        assert_eq!(Fraction::ONE.of(Bytes::new(u64::MAX)), Bytes::new(u64::MAX));
        assert_eq!(Fraction::from_ppm(0), None);
        assert_eq!(Fraction::from_ppm(1_000_001), None);
        assert_eq!(Fraction::from_percent(101), None);
        assert_eq!(Fraction::from_percent(u32::MAX), None);
    }

    #[test]
    fn local_size_share_or_size() {
        let quarter = LocalSize::Fraction(Fraction { ppm: 250_000 });
        let cases = [
            ("25%", quarter),
            ("0.25", quarter),
            ("512MiB", LocalSize::Bytes(Bytes::from_mib(512))),
            ("1.5GiB", LocalSize::Bytes(Bytes::from_mib(1536))),
            ("4096", LocalSize::Bytes(Bytes::PAGE)),
        ];
        for (text, size) in cases {
            assert_eq!(text.parse(), Ok(size), "{text}");
        }
        assert_eq!(quarter.of(Bytes::from_gib(2)), Bytes::from_mib(512));
        assert_eq!(quarter.of(Bytes::new(100)), Bytes::PAGE);
        assert_eq!(LocalSize::Bytes(Bytes::from_mib(1)).of(Bytes::ZERO), Bytes::from_mib(1));
        assert_eq!(quarter.to_string(), "25%");
    }

    #[test]
    fn local_size_error_texts() {
        let cases = [
            ("0", "\"0\": a local memory must be more than zero; write e.g. 25% or 512MiB"),
            ("0%", "\"0%\": a fraction must be more than zero; write e.g. 25%"),
            ("130%", "\"130%\": a fraction can be at most 100%; write e.g. 25%"),
            (
                "25",
                "\"25\": a local memory of less than one page of 4096 bytes holds nothing; \
                 write e.g. 25% or 512MiB",
            ),
            (
                "half",
                "\"half\": not a local memory; write a percentage or a size, e.g. 25% or 512MiB",
            ),
            (
                "5us",
                "\"5us\": unknown unit \"us\" for a local memory; \
                 use % or a unit of size such as MiB, e.g. 25% or 512MiB",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<LocalSize>().unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn parse_never_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<LocalSize>();
        }

        #[test]
        fn parse_reads_display(ppm in 1..=PPM_MAX) {
            let fraction = Fraction { ppm };
            prop_assert_eq!(fraction.to_string().parse(), Ok(fraction));
        }

        #[test]
        fn of_is_monotone_and_within(ppm in 1..=PPM_MAX, bytes: u64) {
            let share = Fraction { ppm }.of(Bytes::new(bytes)).get();
            prop_assert!(share <= bytes);
            let more = Fraction { ppm: PPM_MAX.min(ppm + 1) }.of(Bytes::new(bytes)).get();
            prop_assert!(share <= more);
        }
    }
}
