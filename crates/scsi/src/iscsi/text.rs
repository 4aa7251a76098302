//! Keys and values as text (RFC 7143 6.1).

/// Bytes of text in one exchange, over all its PDUs, at most.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 10;
/// Bytes of a key (6.1: key-name), and of a value unless its key allows longer ones, at most.
const KEY_BYTES_MAX: usize = 63;
const VALUE_BYTES_MAX: usize = 255;
/// Characters of a value that encodes up to 1,024 bytes (12.1.3) in hexadecimal digits.
const LONG_BYTES_MAX: usize = 2 + 2 * 1024;

/// The error of an invalid text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadText;

/// Parses the pairs of a text, in order. Every pair has to end with NUL; repeated keys and control
/// characters are errors.
pub(crate) fn read(text: &[u8]) -> Result<Vec<(&str, &str)>, BadText> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    if text.last().is_some_and(|last| *last != 0) {
        return Err(BadText);
    }
    // Extra NULs are padding that was counted as text.
    for pair in text.split(|byte| *byte == 0).filter(|pair| !pair.is_empty()) {
        let pair = std::str::from_utf8(pair).map_err(|_| BadText)?;
        let (key, value) = pair.split_once('=').ok_or(BadText)?;
        let is_long = matches!(key, "CHAP_C" | "CHAP_R" | "TargetAddress" | "AuthMethod");
        let most = if is_long { LONG_BYTES_MAX } else { VALUE_BYTES_MAX };
        let is_name = !key.is_empty() && key.len() <= KEY_BYTES_MAX && key.bytes().all(is_in_key);
        let is_value = value.len() <= most && !value.chars().any(char::is_control);
        if !is_name || !is_value || pairs.iter().any(|(before, _)| *before == key) {
            return Err(BadText);
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

// Whether a byte is allowed in a key: letters, digits, and characters of extension names (6.1).
const fn is_in_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'@' | b'_' | b'/' | b'#')
}

/// Appends a pair.
pub(crate) fn push(out: &mut Vec<u8>, key: &str, value: &str) {
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// Parses a decimal or hexadecimal number (6.1: numerical-value); `None` if it is none.
pub(crate) fn number(value: &str) -> Option<u64> {
    let hex = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((value, 10), |digits| (digits, 16));
    let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    is_number.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

/// Parses bytes in hexadecimal digits or base 64 (6.1: binary-value); `None` if they are invalid,
/// empty, or more than `most`.
pub(crate) fn binary(value: &str, most: usize) -> Option<Vec<u8>> {
    let bytes = match value.as_bytes() {
        [b'0', b'x' | b'X', digits @ ..] => read_hex(digits)?,
        [b'0', b'b' | b'B', digits @ ..] => read_base64(digits)?,
        _ => return None,
    };
    (!bytes.is_empty() && bytes.len() <= most).then_some(bytes)
}

/// Writes bytes in hexadecimal digits, with `0x`.
pub(crate) fn write_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

// Parses hexadecimal digits, two for each byte.
fn read_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    rest.is_empty().then(|| pairs.iter().map(byte).collect()).flatten()
}

// Parses base 64 with padding (RFC 4648 4).
fn read_base64(digits: &[u8]) -> Option<Vec<u8>> {
    let (groups, rest) = digits.as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        Some(u32::from(value))
    };
    let mut bytes = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || padding > 0 && index + 1 != groups.len() {
            return None;
        }
        let known = &group[..4 - padding];
        let bits = known.iter().try_fold(0, |bits, byte| Some(bits << 6 | digit(*byte)?))?;
        let whole = (bits << (6 * padding)).to_be_bytes();
        // Unused bits must be zeros, so that each value has one encoding.
        if whole[4 - padding..].iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&whole[1..4 - padding]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_whole_or_not_at_all() {
        assert_eq!(read(b"A=1\0B=\0C=a=b\0"), Ok(vec![("A", "1"), ("B", ""), ("C", "a=b")]));
        assert_eq!(read(b"A=1\0\0\0"), Ok(vec![("A", "1")]));
        assert_eq!(read(b""), Ok(vec![]));
        let long = |count: usize| format!("{}=1\0", "k".repeat(count));
        let value = |key: &str, count: usize| format!("{key}={}\0", "v".repeat(count));
        assert!(read(long(63).as_bytes()).is_ok() && read(value("A", 255).as_bytes()).is_ok());
        assert!(read(value("CHAP_R", 2050).as_bytes()).is_ok());
        for bad in [
            "A\0".to_owned(),
            "A=1".to_owned(),
            "=1\0".to_owned(),
            "A=1\0A=2\0".to_owned(),
            "A b=1\0".to_owned(),
            "A=1\nB\0".to_owned(),
            long(64),
            value("A", 256),
            value("CHAP_R", 8192),
        ] {
            assert_eq!(read(bad.as_bytes()), Err(BadText), "{bad}");
        }
        assert_eq!(read(b"A=\xff\xfe\0"), Err(BadText));
    }

    #[test]
    fn numbers_are_digits() {
        assert_eq!(
            [number("0"), number("0x1F"), number("4294967296")].map(Option::unwrap),
            [0, 31, 1 << 32]
        );
        for bad in ["", "0x", "-1", "+1", " 512", "1e9", "1.5", "0xg", "18446744073709551616"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }

    #[test]
    fn bytes_are_written_in_two_ways() {
        assert_eq!(binary("0x00fF", 2), Some(vec![0, 255]));
        assert_eq!(write_hex(&[0, 255]), "0x00ff");
        assert_eq!(binary("0bAP8=", 2), Some(vec![0, 255]));
        assert_eq!(binary("0bZm9vYmE=", 5), Some(b"fooba".to_vec()));
        assert_eq!(binary("0bZm9vYmFy", 6), Some(b"foobar".to_vec()));
        let bad =
            ["0x", "0x0", "0x0g", "0b", "0bA", "0bAP8", "0bAP9=", "0bA===", "0bAP8=AP8=", "1"];
        for bad in bad {
            assert_eq!(binary(bad, 100), None, "{bad}");
        }
        assert_eq!(binary("0x000000", 2), None, "too many");
    }
}
