use std::fmt;
use std::str::FromStr;

use crate::error::{ParseError, Quantity};
use crate::number::{Measured, thousandths};
use crate::quantity::Bytes;
use crate::time::Duration;

const KILO: u64 = 1_000;
const MEGA: u64 = 1_000_000;
const GIGA: u64 = 1_000_000_000;
const TERA: u64 = 1_000_000_000_000;
const PS_PER_SEC: u128 = 1_000_000_000_000;

/// A bandwidth in bits per second, never zero.
///
/// Prefixes are decimal, as on network equipment. Read from `40G`, `40Gbit`, `40Gbit/s`, `40Gb/s`
/// and `40Gbps` (bits) or `5GB/s` and `5GBps` (bytes); `Ki`, `Mi`, `Gi` and `Ti` are powers of
/// 1024. The case of the prefix is free, that of `b` and `B` is not. A bare number is refused.
/// Shown as `40 Gb/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitsPerSec(u64);

impl BitsPerSec {
    /// A rate of `bits_per_sec`.
    ///
    /// # Panics
    ///
    /// If it is zero: a transfer would never end. No limit is `None`, not a rate.
    #[must_use]
    pub const fn new(bits_per_sec: u64) -> Self {
        assert!(bits_per_sec > 0, "a rate of zero never finishes a transfer");
        Self(bits_per_sec)
    }

    /// `gigabits` × 10⁹ bits per second, at most `u64::MAX`.
    ///
    /// # Panics
    ///
    /// If it is zero, as [`BitsPerSec::new`].
    #[must_use]
    pub const fn from_gbps(gigabits: u64) -> Self {
        Self::new(gigabits.saturating_mul(GIGA))
    }

    /// The rate in bits per second.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How long `bytes` occupy a link of this rate: `bytes`·8/B, exact in picoseconds and
    /// rounded up, so that no sum of transfers exceeds the rate; at most [`Duration::MAX`].
    #[must_use]
    pub fn transfer_time(self, bytes: Bytes) -> Duration {
        let bits = u128::from(bytes.get()) * 8;
        let ps = (bits * PS_PER_SEC).div_ceil(u128::from(self.0));
        u64::try_from(ps).map_or(Duration::MAX, Duration::from_ps)
    }
}

impl fmt::Display for BitsPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..KILO => (1, "b/s"),
            KILO..MEGA => (KILO, "kb/s"),
            MEGA..GIGA => (MEGA, "Mb/s"),
            GIGA..TERA => (GIGA, "Gb/s"),
            TERA.. => (TERA, "Tb/s"),
        };
        let unit = u128::from(unit);
        let rounded = (u128::from(self.0) * 1000 + unit / 2) / unit;
        f.pad(&format!("{} {name}", thousandths(rounded)))
    }
}

impl FromStr for BitsPerSec {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let measured = Measured::parse(text, Quantity::Rate)?;
        if measured.unit.is_empty() {
            return Err(measured.missing_unit());
        }
        let bits = unit_bits(measured.unit).ok_or_else(|| measured.unknown_unit())?;
        match measured.scaled(bits)? {
            0 => Err(measured.zero()),
            bits_per_sec => Ok(Self(bits_per_sec)),
        }
    }
}

/// Bits per second in one of `unit`, or `None` if it is not a unit of rate.
fn unit_bits(unit: &str) -> Option<u64> {
    let mut rest = unit;
    let mut prefix = 1;
    let decimal = [('k', KILO), ('m', MEGA), ('g', GIGA), ('t', TERA)];
    for (power, (letter, value)) in (1_u32..).zip(decimal) {
        if let Some(after) = rest.strip_prefix([letter, letter.to_ascii_uppercase()]) {
            (rest, prefix) = match after.strip_prefix('i') {
                Some(after) => (after, 1 << (10 * power)),
                None => (after, value),
            };
            break;
        }
    }
    let bits_each = match rest {
        "" | "b" | "b/s" | "bps" | "bit" | "bits" | "bit/s" | "bits/s" => 1,
        "B/s" | "Bps" => 8,
        _ => return None,
    };
    Some(prefix * bits_each)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parse_known_values() {
        let cases = [
            ("40Gbps", 40 * GIGA),
            ("40G", 40 * GIGA),
            ("40g", 40 * GIGA),
            ("40Gbit", 40 * GIGA),
            ("40 Gbit/s", 40 * GIGA),
            ("10Gb/s", 10 * GIGA),
            ("5GB/s", 40 * GIGA),
            ("5GBps", 40 * GIGA),
            ("2.5Gb/s", 2_500 * MEGA),
            ("100 Mb/s", 100 * MEGA),
            ("1GiB/s", 8 << 30),
            ("1.5Tb/s", 1_500 * GIGA),
            ("9600bps", 9_600),
        ];
        for (text, bits_per_sec) in cases {
            assert_eq!(text.parse(), Ok(BitsPerSec::new(bits_per_sec)), "{text}");
        }
    }

    #[test]
    fn parse_error_texts() {
        let units = "use k, M, G or T with bit/s, b/s, bps or B/s, e.g. 40Gb/s";
        let cases = [
            ("40", format!("\"40\": a rate needs a unit; {units}")),
            ("40GB", format!("\"40GB\": unknown unit \"GB\" for a rate; {units}")),
            ("40Gb/h", format!("\"40Gb/h\": unknown unit \"Gb/h\" for a rate; {units}")),
            ("0G", "\"0G\": a rate must be more than zero; write e.g. 40Gb/s".to_owned()),
            ("0.1b/s", "\"0.1b/s\": a rate must be more than zero; write e.g. 40Gb/s".to_owned()),
            ("-1G", "\"-1G\": a rate cannot be negative; write e.g. 40Gb/s".to_owned()),
            ("fast", "\"fast\": not a rate; write a number and a unit, e.g. 40Gb/s".to_owned()),
            (
                "18446745Tb/s",
                "\"18446745Tb/s\": a rate can be at most 18446744 Tb/s; write e.g. 40Gb/s"
                    .to_owned(),
            ),
        ];
        for (text, message) in cases {
            assert_eq!(text.parse::<BitsPerSec>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn display_decimal_bits() {
        let cases = [
            (1, "1 b/s"),
            (40 * GIGA, "40 Gb/s"),
            (2_500 * MEGA, "2.5 Gb/s"),
            (100 * MEGA, "100 Mb/s"),
            (1_234_567, "1.235 Mb/s"),
            (1_500 * GIGA, "1.5 Tb/s"),
        ];
        for (bits_per_sec, text) in cases {
            assert_eq!(BitsPerSec::new(bits_per_sec).to_string(), text);
        }
    }

    /// Gao et al., Table 4, row "transmission": 0.8192 µs at 40 Gb/s, 0.3277 µs at 100 Gb/s.
    #[test]
    fn transfer_time_page() {
        let page = |gbps| BitsPerSec::from_gbps(gbps).transfer_time(Bytes::PAGE).as_ps();
        assert_eq!(page(10), 3_276_800);
        assert_eq!(page(40), 819_200);
        assert_eq!(page(100), 327_680);
    }

    #[test]
    fn transfer_time_rounds_up_and_saturates() {
        let three = BitsPerSec::new(3);
        assert_eq!(three.transfer_time(Bytes::ZERO), Duration::ZERO);
        assert_eq!(three.transfer_time(Bytes::new(1)).as_ps(), 2_666_666_666_667);
        assert_eq!(three.transfer_time(Bytes::new(u64::MAX)), Duration::MAX);
    }

    #[test]
    #[should_panic(expected = "a rate of zero")]
    fn new_zero() {
        let _ = BitsPerSec::new(0);
    }

    proptest! {
        #[test]
        fn parse_never_panics(text in "[0-9.]{0,24} ?[kKmMgGtTi]{0,2}[bBpits/]{0,5}\\PC{0,3}") {
            let _ = text.parse::<BitsPerSec>();
        }

        #[test]
        fn parse_reads_display(thousands in 1..=999_999_u64, power in 0..4_u32) {
            let rate = BitsPerSec::new(thousands * 1_000_u64.pow(power));
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn transfer_time_never_exceeds_the_rate(bytes in 0..1_u64 << 40, bps in 1_000_u64..) {
            let ps = BitsPerSec::new(bps).transfer_time(Bytes::new(bytes)).as_ps();
            let carried = u128::from(ps) * u128::from(bps);
            let asked = u128::from(bytes) * 8 * PS_PER_SEC;
            prop_assume!(ps < u64::MAX);
            prop_assert!(carried >= asked);
            prop_assert!(carried - asked < u128::from(bps));
        }
    }
}
