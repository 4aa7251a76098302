//! The key and the value of a record.
//!
//! A value begins with the number of its record and its version, and the rest follows from the two,
//! so a read detects a value that was torn, mixed up or lost.

use crate::draw::Draw;

/// Bytes at the beginning of a value that hold its record and version.
const HEADER: usize = 24;
const PREFIX: &[u8] = b"user";

/// How the key of a record follows from its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyOrder {
    /// `user` and the decimal hash of the number: keys of neighbours are unrelated.
    #[default]
    Hashed,
    /// `user` and the number.
    Ordered,
}

/// The absolute value of the 64-bit FNV-1a hash of the eight bytes of `number`, as YCSB scatters
/// record numbers (`Utils.fnvhash64`).
#[must_use]
pub fn fnv64(number: u64) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 1_099_511_628_211;
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(BASIS, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    hash.cast_signed().unsigned_abs()
}

/// A hash of `text`, by [`fnv64`] of each of its bytes; the same on every machine.
#[must_use]
pub fn fnv64_text(text: &str) -> u64 {
    text.bytes().fold(0, |state, byte| fnv64(state ^ u64::from(byte)))
}

/// Appends the key of record `number` to `out`.
pub fn write_key(out: &mut Vec<u8>, number: u64, order: KeyOrder) {
    out.extend_from_slice(PREFIX);
    write_decimal(out, order.suffix(number));
}

/// The length of the key of record `number`, in bytes.
#[must_use]
pub fn key_bytes(number: u64, order: KeyOrder) -> usize {
    let digits = order.suffix(number).checked_ilog10().unwrap_or(0) as usize + 1;
    PREFIX.len() + digits
}

/// Whether `key` is the key of record `number`.
#[must_use]
pub fn is_key(key: &[u8], number: u64, order: KeyOrder) -> bool {
    let Some(digits) = key.strip_prefix(PREFIX) else {
        return false;
    };
    let mut left = order.suffix(number);
    // Compares from the last digit on; after the first digit nothing of the number may be left.
    let matches = digits.iter().rev().all(|&digit| {
        let last = left % 10;
        left /= 10;
        u64::from(digit) == u64::from(b'0') + last
    });
    matches && left == 0 && key.len() == key_bytes(number, order)
}

impl KeyOrder {
    /// The number in the key of record `number`.
    fn suffix(self, number: u64) -> u64 {
        match self {
            Self::Hashed => fnv64(number),
            Self::Ordered => number,
        }
    }
}

/// The most decimal digits that a `u64` always holds.
const DIGITS_MOST: usize = 19;
/// A multiplier close to the golden section of 10^19 and prime to 10: it scatters neighbours and
/// maps no two numbers to the same.
const SCATTER: u64 = 6_180_339_887_498_948_483;

/// The smallest length of padded keys ([`write_padded_key`]) of `count` records: `user` and one
/// digit more than `count` has, for records that are inserted.
#[must_use]
pub fn padded_key_bytes_min(count: u64) -> usize {
    PREFIX.len() + count.checked_ilog10().unwrap_or(0) as usize + 2
}

/// Appends a key of `bytes` bytes, at least [`padded_key_bytes_min`], for record `number` to `out`:
/// `user`, zeros, and the number, which [`KeyOrder::Hashed`] scatters without collisions.
pub fn write_padded_key(out: &mut Vec<u8>, number: u64, order: KeyOrder, bytes: usize) {
    let all = bytes.saturating_sub(PREFIX.len());
    let digits = all.clamp(1, DIGITS_MOST);
    let span = u128::from(10_u64.pow(u32::try_from(digits).unwrap_or(1)));
    let scattered = match order {
        KeyOrder::Hashed => u128::from(number) * u128::from(SCATTER) % span,
        KeyOrder::Ordered => u128::from(number) % span,
    };
    let mut left = u64::try_from(scattered).unwrap_or(0);
    out.extend_from_slice(PREFIX);
    let first = out.len();
    out.resize(first + all, b'0');
    for digit in out[first..].iter_mut().rev() {
        *digit += u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
    }
}

/// Appends `number` in decimal to `out`.
pub fn write_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a value of `length` bytes for `version` of record `number` to `out`. One shorter than 24
/// bytes holds only the beginning of its header.
pub fn write_value(out: &mut Vec<u8>, number: u64, version: u64, length: usize) {
    let header = header(number, version);
    out.extend_from_slice(&header[..length.min(HEADER)]);
    let mut left = length.saturating_sub(HEADER);
    let mut filler = Filler::new(number, version);
    while left > 0 {
        let chunk = filler.next();
        let take = left.min(chunk.len());
        out.extend_from_slice(&chunk[..take]);
        left -= take;
    }
}

// The header of a value: record and version in hexadecimal, readable in other clients.
fn header(number: u64, version: u64) -> [u8; HEADER] {
    let mut header = [b' '; HEADER];
    let hex = |value: u64, out: &mut [u8]| {
        for (index, digit) in out.iter_mut().rev().enumerate() {
            let nibble = usize::try_from(value >> (4 * index) & 15).unwrap_or(0);
            *digit = b"0123456789abcdef"[nibble];
        }
    };
    hex(number, &mut header[..11]);
    hex(version, &mut header[12..23]);
    header
}

/// The pseudo-random bytes that follow the header of a value.
struct Filler {
    state: u64,
}

impl Filler {
    fn new(number: u64, version: u64) -> Self {
        let mut draw = Draw::new(number ^ version.rotate_left(32));
        Self { state: draw.below(u64::MAX) | 1 }
    }

    // The next eight bytes, from `@` to `_`: five bits of each byte of a congruential generator.
    fn next(&mut self) -> [u8; 8] {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 3 & 0x1f1f_1f1f_1f1f_1f1f | 0x4040_4040_4040_4040).to_le_bytes()
    }
}

/// How a value differs from the one that was stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// It has the wrong length.
    #[error("record {number} has {found} bytes, not {expected}")]
    Length {
        /// The record.
        number: u64,
        /// Bytes it should have.
        expected: usize,
        /// Bytes it has.
        found: usize,
    },
    /// It belongs to another record, or to none.
    #[error("record {number} holds what belongs elsewhere")]
    Header {
        /// The record.
        number: u64,
    },
    /// Its header is right, but a later byte is wrong.
    #[error("record {number} is wrong from byte {at} on")]
    Filler {
        /// The record.
        number: u64,
        /// The first byte of the eight that are wrong.
        at: usize,
    },
}

/// Checks that `value` is a version of record `number`, `length` bytes long. Returns the version.
///
/// # Errors
/// When length, header or filler differ.
pub fn check_value(value: &[u8], number: u64, length: usize) -> Result<u64, ValueError> {
    if value.len() != length {
        return Err(ValueError::Length { number, expected: length, found: value.len() });
    }
    let shown = value.len().min(HEADER);
    let version = value.get(12..23).and_then(parse_hex).unwrap_or(0);
    if value[..shown] != header(number, version)[..shown] {
        // A short value may lack its version, but not its record.
        let named = shown.min(12);
        if shown == HEADER || value[..named] != header(number, 0)[..named] {
            return Err(ValueError::Header { number });
        }
    }
    let mut filler = Filler::new(number, version);
    for (index, chunk) in value[shown..].chunks(8).enumerate() {
        if *chunk != filler.next()[..chunk.len()] {
            return Err(ValueError::Filler { number, at: shown + index * 8 });
        }
    }
    Ok(version)
}

/// The number that hexadecimal `digits` stand for; `None` if they are none.
fn parse_hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn padded_names_have_their_size_and_are_all_different() {
        use std::collections::HashSet;
        for order in [KeyOrder::Ordered, KeyOrder::Hashed] {
            for bytes in [padded_key_bytes_min(1000), 16, 21, 40] {
                let name = |number| {
                    let mut out = Vec::new();
                    write_padded_key(&mut out, number, order, bytes);
                    String::from_utf8(out).expect("text")
                };
                let names: HashSet<String> = (0..9_999).map(name).collect();
                assert_eq!(names.len(), 9_999, "{order:?} {bytes}");
                let is_one = |name: &String| name.len() == bytes && name.starts_with("user");
                assert!(names.iter().all(is_one), "{order:?} {bytes}");
            }
        }
        let mut out = Vec::new();
        write_padded_key(&mut out, 42, KeyOrder::Ordered, 16);
        write_padded_key(&mut out, 1, KeyOrder::Hashed, 16);
        assert_eq!(String::from_utf8_lossy(&out), "user000000000042user887498948483");
    }

    #[test]
    fn keys_are_those_of_ycsb() {
        let key = |number, order| {
            let mut out = Vec::new();
            write_key(&mut out, number, order);
            assert_eq!(out.len(), key_bytes(number, order));
            String::from_utf8(out).expect("text")
        };
        // The first key that YCSB's load phase inserts.
        assert_eq!(key(0, KeyOrder::Hashed), "user6284781860667377211");
        assert_eq!(key(42, KeyOrder::Ordered), "user42");
        assert_eq!(key(0, KeyOrder::Ordered), "user0");
        assert_eq!(key(10, KeyOrder::Ordered), "user10");
    }

    proptest! {
        #[test]
        fn keys_are_told_apart(number: u64, other in 0..200_u64, at in 0..24_usize, byte: u8) {
            for order in [KeyOrder::Ordered, KeyOrder::Hashed] {
                let mut key = Vec::new();
                write_key(&mut key, number, order);
                prop_assert!(is_key(&key, number, order));
                prop_assert_eq!(is_key(&key, other, order), number == other);
                prop_assert!(!is_key(&key[..key.len() - 1], number, order));
                let at = at % key.len();
                let same = key[at] == byte;
                key[at] = byte;
                prop_assert_eq!(is_key(&key, number, order), same);
            }
        }

        #[test]
        fn values_know_their_record(
            number in 0..1_u64 << 44,
            version in 0..1_u64 << 44,
            length in 0..400_usize,
        ) {
            let mut value = Vec::new();
            write_value(&mut value, number, version, length);
            prop_assert_eq!(value.len(), length);
            let found = check_value(&value, number, length);
            prop_assert!(found.is_ok());
            if length >= 24 {
                prop_assert_eq!(found, Ok(version));
                prop_assert!(check_value(&value, number + 1, length).is_err());
                prop_assert!(check_value(&value[1..], number, length).is_err());
            }
        }

        #[test]
        fn one_changed_byte_is_found(at in 0..300_usize, bit in 0..5_u8) {
            let mut value = Vec::new();
            write_value(&mut value, 77, 3, 300);
            value[at] ^= 1 << bit;
            prop_assert!(check_value(&value, 77, 300).is_err());
        }

        #[test]
        fn nothing_a_server_sends_is_too_much(value: Vec<u8>, number: u64) {
            let _verdict = check_value(&value, number, value.len());
        }
    }
}
