use std::fmt;
use std::str::FromStr;

use crate::error::{ParseError, Quantity};
use crate::number::{Measured, one_decimal};

/// Bytes in a page: the unit of fetch and eviction.
pub const PAGE_BYTES: u64 = 4096;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// A size in bytes.
///
/// Read from text as fio reads it: `4k`, `4K`, `4Ki` and `4KiB` are 4096, `4kB` is 1000, a bare
/// number is bytes. Part bytes are rounded to the nearest whole one. Shown in binary units with
/// one decimal: `512.0 MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

/// A count of pages of [`PAGE_BYTES`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pages(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// One page.
    pub const PAGE: Self = Self(PAGE_BYTES);

    /// A size of `bytes` bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `count` × 1024 bytes, at most `u64::MAX`.
    #[must_use]
    pub const fn from_kib(count: u64) -> Self {
        Self(count.saturating_mul(KIB))
    }

    /// `count` × 1024² bytes, at most `u64::MAX`.
    #[must_use]
    pub const fn from_mib(count: u64) -> Self {
        Self(count.saturating_mul(MIB))
    }

    /// `count` × 1024³ bytes, at most `u64::MAX`.
    #[must_use]
    pub const fn from_gib(count: u64) -> Self {
        Self(count.saturating_mul(GIB))
    }

    /// The size in bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, or `None` beyond `u64::MAX` bytes.
    #[must_use]
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The sum, at most `u64::MAX` bytes.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Pages {
    /// No pages.
    pub const ZERO: Self = Self(0);

    /// `count` pages.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The pages that hold `bytes`: a part page counts as one.
    #[must_use]
    pub const fn from_bytes_ceil(bytes: Bytes) -> Self {
        Self(bytes.0.div_ceil(PAGE_BYTES))
    }

    /// The whole pages within `bytes`: a part page does not count.
    #[must_use]
    pub const fn from_bytes_floor(bytes: Bytes) -> Self {
        Self(bytes.0 / PAGE_BYTES)
    }

    /// The number of pages.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Their size, at most `u64::MAX` bytes.
    #[must_use]
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0.saturating_mul(PAGE_BYTES))
    }

    /// The sum, at most `u64::MAX` pages.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The unit changes at the value that would otherwise round up to "1024.0".
        let text = match self.0 {
            0..KIB => format!("{} B", self.0),
            bytes if bytes < MIB - KIB / 20 => format!("{} KiB", one_decimal(bytes, KIB)),
            bytes if bytes < GIB - MIB / 20 => format!("{} MiB", one_decimal(bytes, MIB)),
            bytes if bytes < TIB - GIB / 20 => format!("{} GiB", one_decimal(bytes, GIB)),
            bytes => format!("{} TiB", one_decimal(bytes, TIB)),
        };
        f.pad(&text)
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let measured = Measured::parse(text, Quantity::Size)?;
        Self::from_measured(&measured)
    }
}

impl Bytes {
    /// Applies the unit of a size.
    pub(crate) fn from_measured(measured: &Measured<'_>) -> Result<Self, ParseError> {
        let unit = measured.unit.to_ascii_lowercase();
        let multiplier = match unit.as_str() {
            "" | "b" => 1,
            "k" | "ki" | "kib" => KIB,
            "m" | "mi" | "mib" => MIB,
            "g" | "gi" | "gib" => GIB,
            "t" | "ti" | "tib" => TIB,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(measured.unknown_unit()),
        };
        measured.scaled(multiplier).map(Self)
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.0 == 1 { "page" } else { "pages" };
        f.pad(&format!("{} {noun}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parse_known_values() {
        let cases = [
            ("4k", 4096),
            ("4K", 4096),
            ("4Ki", 4096),
            ("4KiB", 4096),
            ("4kB", 4000),
            ("4 KB", 4000),
            ("512MiB", 512 << 20),
            ("512m", 512 << 20),
            ("512.0 MiB", 512 << 20),
            ("2GiB", 2 << 30),
            ("2G", 2 << 30),
            ("2GB", 2_000_000_000),
            ("1.5T", 3 << 39),
            ("4096", 4096),
            ("4096B", 4096),
            ("0", 0),
            ("0.3k", 307),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(Bytes::new(bytes)), "{text}");
        }
    }

    #[test]
    fn parse_error_texts() {
        let cases = [
            (
                "4 pages",
                "\"4 pages\": unknown unit \"pages\" for a size; use B, k, M, G or T \
                 (powers of 1024, as KiB) or kB, MB, GB (powers of 1000), e.g. 4KiB",
            ),
            ("-4k", "\"-4k\": a size cannot be negative; write e.g. 4KiB"),
            ("big", "\"big\": not a size; write a number with an optional unit, e.g. 4KiB"),
            ("16777216T", "\"16777216T\": a size can be at most 16 EiB; write e.g. 4KiB"),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<Bytes>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn display_binary_units() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (4096, "4.0 KiB"),
            (MIB - KIB / 20 - 1, "1023.9 KiB"),
            (MIB - KIB / 20, "1.0 MiB"),
            (512 << 20, "512.0 MiB"),
            (3 << 29, "1.5 GiB"),
            (u64::MAX, "16777216.0 TiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(Bytes::new(bytes).to_string(), text);
        }
    }

    #[test]
    fn pages_round_as_named() {
        for (bytes, ceil, floor) in [(0, 0, 0), (1, 1, 0), (4096, 1, 1), (4097, 2, 1)] {
            assert_eq!(Pages::from_bytes_ceil(Bytes::new(bytes)), Pages::new(ceil));
            assert_eq!(Pages::from_bytes_floor(Bytes::new(bytes)), Pages::new(floor));
        }
        assert_eq!(Pages::new(3).bytes(), Bytes::from_kib(12));
        assert_eq!(Pages::new(u64::MAX).bytes(), Bytes::new(u64::MAX));
        assert_eq!(Pages::from_bytes_ceil(Bytes::new(u64::MAX)), Pages::new(1 << 52));
        assert_eq!(Pages::new(1).to_string(), "1 page");
        assert_eq!(Pages::new(2).to_string(), "2 pages");
    }

    #[test]
    fn arithmetic_saturates_or_says_none() {
        let max = Bytes::new(u64::MAX);
        assert_eq!(max.saturating_add(Bytes::new(1)), max);
        assert_eq!(max.checked_add(Bytes::new(1)), None);
        assert_eq!(Bytes::ZERO.saturating_sub(Bytes::new(1)), Bytes::ZERO);
        assert_eq!(Bytes::from_gib(u64::MAX), max);
        assert_eq!(Bytes::from_gib(2), Bytes::from_mib(2048));
    }

    proptest! {
        #[test]
        fn parse_never_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Bytes>();
        }

        #[test]
        fn parse_bare_number_is_bytes(bytes: u64) {
            prop_assert_eq!(bytes.to_string().parse(), Ok(Bytes::new(bytes)));
        }

        #[test]
        fn parse_reads_display_within_its_digits(bytes in 0..1_u64 << 60) {
            let shown = Bytes::new(bytes).to_string().parse::<Bytes>().unwrap();
            prop_assert!(shown.get().abs_diff(bytes) <= bytes / 20);
        }
    }
}
