//! Numbers with units, as fio reads them.
//!
//! fio's `k` is 1024 and its `KiB` 1000, unless `kb_base=1000` swaps both; its `Ki` is its `k`.
//! fio ignores what follows a number and is no unit; here that is an error.

use measure::Duration;

/// A number of bytes, or a share of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Bytes(u64),
    /// Percent of the disk or region.
    Percent(u8),
}

/// The meaning of `k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum KbBase {
    /// `k` is 1000, `KiB` 1024.
    Thousand,
    /// `k` is 1024, `KiB` 1000.
    #[default]
    Binary,
}

impl KbBase {
    /// Parses a number that may have a unit of bytes: `4k`, `1M`, `0x1000`.
    ///
    /// # Errors
    /// A sentence on what is wrong.
    pub(crate) fn number(self, text: &str) -> Result<u64, String> {
        let (number, unit) = split(text, "4k")?;
        let factor = self.factor(unit).ok_or_else(|| {
            format!("\"{text}\": unknown unit \"{unit}\"; use k, m, g, t or p, or none")
        })?;
        number.checked_mul(factor).ok_or_else(|| format!("\"{text}\" is too much"))
    }

    /// Parses a number of bytes, or a percentage up to 100.
    ///
    /// # Errors
    /// A sentence on what is wrong.
    pub(crate) fn extent(self, text: &str) -> Result<Extent, String> {
        let Some(share) = text.strip_suffix('%') else {
            return self.number(text).map(Extent::Bytes);
        };
        let percent = share.trim().parse().ok().filter(|percent| *percent <= 100);
        let percent = percent.ok_or_else(|| format!("\"{text}\": write 0% to 100%"))?;
        Ok(Extent::Percent(percent))
    }

    // Bytes of a unit; `None` if it is unknown.
    fn factor(self, unit: &str) -> Option<u64> {
        let [plain, with_ib]: [u64; 2] = match self {
            Self::Thousand => [1000, 1024],
            Self::Binary => [1024, 1000],
        };
        let unit = unit.to_ascii_lowercase();
        let (prefix, base) = match unit.strip_suffix("ib") {
            Some(prefix) => (prefix, with_ib),
            None => (unit.trim_end_matches(['i', 'b']), plain),
        };
        let power = match prefix {
            "" if matches!(unit.as_str(), "" | "b") => 0,
            "k" => 1,
            "m" => 2,
            "g" => 3,
            "t" => 4,
            "p" => 5,
            _ => return None,
        };
        Some(base.pow(power))
    }
}

impl Extent {
    /// The bytes of this extent, where 100 % are `all`.
    pub(crate) fn of(self, all: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                let part = u128::from(all) * u128::from(percent) / 100;
                u64::try_from(part).expect("a part is no more than the whole")
            }
        }
    }
}

/// Parses a time; a number without a unit counts `bare_ns` each.
///
/// # Errors
/// A sentence on what is wrong.
pub(crate) fn time(text: &str, bare_ns: u64) -> Result<Duration, String> {
    let (number, unit) = split(text, "10s")?;
    let factor_ns = match unit.to_ascii_lowercase().as_str() {
        "" => bare_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" => SECOND_NS,
        "m" => 60 * SECOND_NS,
        "h" => 3600 * SECOND_NS,
        "d" => 24 * 3600 * SECOND_NS,
        _ => return Err(format!("\"{text}\": unknown unit \"{unit}\"; use us, ms, s, m, h or d")),
    };
    let ns = number.checked_mul(factor_ns).filter(|ns| *ns <= MOST_NS);
    ns.map(Duration::from_ns).ok_or_else(|| format!("\"{text}\" is too long; at most 200 days"))
}

/// Parses a size as fio does without `kb_base`.
///
/// # Errors
/// A sentence on what is wrong.
pub(crate) fn fio_size(text: &str) -> Result<u64, String> {
    KbBase::Binary.number(text)
}

/// Parses a time as fio does: without a unit, in seconds.
///
/// # Errors
/// A sentence on what is wrong.
pub(crate) fn fio_time(text: &str) -> Result<Duration, String> {
    time(text, SECOND_NS)
}

/// Nanoseconds of a second, fio's default unit of most times.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
const MOST_NS: u64 = 200 * 24 * 3600 * SECOND_NS;

// Splits a number, hexadecimal after 0x, from the unit behind it. The error shows `example`.
fn split<'a>(text: &'a str, example: &str) -> Result<(u64, &'a str), String> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let end = digits.find(|one: char| !one.is_digit(radix)).unwrap_or(digits.len());
    let (number, unit) = digits.split_at(end);
    if number.is_empty() {
        return Err(format!("\"{text}\" is not a number; write a whole one, e.g. {example}"));
    }
    let number = u64::from_str_radix(number, radix).map_err(|_| format!("\"{text}\" is too much"));
    number.map(|number| (number, unit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Each as fio 3.33 has read it.
    #[test]
    fn sizes_are_fios() {
        let cases = [
            ("512", 512, 512),
            ("4k", 4096, 4000),
            ("4K", 4096, 4000),
            ("4kb", 4096, 4000),
            ("4KB", 4096, 4000),
            ("4ki", 4096, 4000),
            ("4KiB", 4000, 4096),
            ("1m", 1 << 20, 1_000_000),
            ("1MiB", 1_000_000, 1 << 20),
            ("2g", 2 << 30, 2_000_000_000),
            ("1t", 1 << 40, 1_000_000_000_000),
            ("0x1000", 4096, 4096),
            ("4096b", 4096, 4096),
            ("1p", 1 << 50, 1_000_000_000_000_000),
        ];
        for (text, binary, thousand) in cases {
            assert_eq!(KbBase::Binary.number(text), Ok(binary), "{text}");
            assert_eq!(KbBase::Thousand.number(text), Ok(thousand), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "k",
            "-1",
            "4q",
            "4kk",
            "4i",
            "4ib",
            "4 k",
            "1.5k",
            "1e3",
            "0x",
            "99999999999999999999",
        ] {
            assert!(KbBase::Binary.number(text).is_err(), "{text}");
        }
        let error = KbBase::Binary.number("16384p").expect_err("2^64");
        assert_eq!(error, "\"16384p\" is too much");
    }

    #[test]
    fn extents_may_be_shares() {
        let half = KbBase::Binary.extent("50%").expect("half");
        assert_eq!(
            (half, half.of(1001), half.of(u64::MAX)),
            (Extent::Percent(50), 500, u64::MAX / 2)
        );
        assert_eq!(KbBase::Binary.extent("1k"), Ok(Extent::Bytes(1024)));
        for text in ["101%", "%", "x%", "-1%"] {
            assert!(KbBase::Binary.extent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        let cases = [
            ("5", 5_000_000_000),
            ("5s", 5_000_000_000),
            ("10us", 10_000),
            ("10usec", 10_000),
            ("250ms", 250_000_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1D", 86_400_000_000_000),
        ];
        for (text, ns) in cases {
            assert_eq!(time(text, SECOND_NS), Ok(Duration::from_ns(ns)), "{text}");
        }
        assert_eq!(time("7", 1_000), Ok(Duration::from_us(7)));
        for text in ["", "s", "5 parsecs", "201d", "-5", "1:30"] {
            assert!(time(text, SECOND_NS).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_number_or_refused(text in "\\PC{0,20}") {
            let _ = KbBase::Binary.extent(&text);
            let _ = time(&text, SECOND_NS);
        }

        #[test]
        fn plain_numbers_are_themselves(number: u64) {
            prop_assert_eq!(KbBase::Binary.number(&number.to_string()), Ok(number));
            prop_assert_eq!(KbBase::Thousand.number(&format!("{number:#x}")), Ok(number));
        }
    }
}
