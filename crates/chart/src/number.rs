//! Numbers as text for ticks and hints, with as many digits as are useful.

/// A number with three significant digits and a letter for thousands, millions and so on: `0.0012`,
/// `1.05`, `25k`.
#[must_use]
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let size = value.abs();
    let (unit, letter) = match size {
        0.0..1e4 => (1.0, ""),
        0.0..1e6 => (1e3, "k"),
        0.0..1e9 => (1e6, "M"),
        0.0..1e12 => (1e9, "G"),
        _ => (1e12, "T"),
    };
    let scaled = size / unit;
    let decimals = match scaled {
        0.0 => 0,
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        0.01.. => 4,
        0.001.. => 5,
        _ => return format!("{value:.2e}"),
    };
    let text = format!("{:.decimals$}", value / unit);
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{letter}")
}

/// A number of bytes as [`short`] formats it, in powers of 1024.
#[must_use]
pub fn in_bytes(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = bytes;
    let mut index = 0;
    while scaled.abs() >= 1024.0 && index + 1 < units.len() {
        scaled /= 1024.0;
        index += 1;
    }
    format!("{} {}", short(scaled), units[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (1.0526, "1.05"),
            (-2.5, "-2.5"),
            (0.012_34, "0.0123"),
            (123.4, "123"),
            (25_000.0, "25k"),
            (1_200_000.0, "1.2M"),
            (12e9, "12G"),
            (3e-5, "3.00e-5"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!(
            [512.0, 4096.0, 3.5 * 1024.0 * 1024.0].map(in_bytes),
            ["512 B", "4 KiB", "3.5 MiB"]
        );
    }
}
