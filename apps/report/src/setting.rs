//! Settings of far memory as places on an axis and as words.

use chart::{Axis, Kind, in_bytes, short};
use measure::{BitsPerSec, Duration, LocalSize, ShareOf};

use super::words::{bits_per_s, time_ns};
use document::{Bandwidth, delay};
use results::Finding;

/// An axis for the values of a setting, with each value's place on it, from the smallest on.
pub(super) struct AxisOf {
    pub(super) axis: Axis,
    pub(super) values: Vec<(String, f64)>,
}

/// What a setting is called in a sentence.
pub(super) fn name(axis: &str) -> &str {
    match axis {
        "local" => "local memory",
        "rtt" => "round trip",
        other => other,
    }
}

/// A setting with its value in words.
pub(super) fn words(axis: &str, value: &str) -> String {
    match axis {
        "local" => format!("{} of its memory local", local_words(value)),
        // Its bytes are said once, in a sentence.
        "of" => match value.parse() {
            Ok(of) => format!("shares of {}", ShareOf::told(of, None)),
            Err(_) => format!("shares of {value}"),
        },
        "rtt" => format!("round trip {}", rtt_ns(value).map_or_else(|| value.to_owned(), time_ns)),
        "bandwidth" => match rate(value) {
            Some(rate) => bits_per_s(rate),
            None => "no limit of bandwidth".to_owned(),
        },
        _ => format!("{axis} {value}"),
    }
}

/// Local memory in the words of a sentence.
pub(super) fn local_words(value: &str) -> String {
    match value.strip_suffix('%') {
        Some(share) => format!("{} %", share.trim()),
        None => value.to_owned(),
    }
}

/// A round trip in nanoseconds; `None` if `value` is no time.
pub(super) fn rtt_ns(value: &str) -> Option<f64> {
    delay(value).ok().map(Duration::as_ns_f64)
}

/// A bandwidth in bits per second; `None` if it has no limit, or `value` is no bandwidth.
pub(super) fn rate(value: &str) -> Option<f64> {
    let Bandwidth(rate) = value.parse().ok()?;
    rate.map(|rate: BitsPerSec| rate.get() as f64)
}

/// A value in the unit of its axis; `None` if it is no number.
fn amount(axis: &str, value: &str) -> Option<f64> {
    match axis {
        "local" => Some(match value.parse().ok()? {
            LocalSize::Fraction(share) => f64::from(share.ppm()) / 1e4,
            LocalSize::Bytes(bytes) => bytes.get() as f64,
        }),
        "rtt" => rtt_ns(value).map(|ns| ns / 1e3),
        "bandwidth" => rate(value).map(|rate| rate / 1e9),
        _ => None,
    }
}

/// The axis of `values`, each with its place; an axis of names if one of them is no number.
pub(super) fn axis_of<'a>(axis: &str, values: impl Iterator<Item = &'a str>) -> AxisOf {
    let mut texts: Vec<String> = Vec::new();
    for value in values.filter(|value| !value.is_empty()) {
        if !texts.iter().any(|text| text == value) {
            texts.push(value.to_owned());
        }
    }
    let is_share = |text: &&String| matches!(text.parse(), Ok(LocalSize::Fraction(_)));
    let shares = texts.iter().filter(is_share).count();
    let is_mixed = axis == "local" && shares > 0 && shares < texts.len();
    let amounts: Option<Vec<f64>> = texts.iter().map(|text| amount(axis, text)).collect();
    let Some(amounts) = amounts.filter(|_| !is_mixed) else {
        // No limit is more than any bandwidth.
        texts.sort_by(|one, other| {
            let of = |text: &str| amount(axis, text).unwrap_or(f64::INFINITY);
            if is_mixed { std::cmp::Ordering::Equal } else { of(one).total_cmp(&of(other)) }
        });
        let values = texts.iter().enumerate().map(|(at, text)| (text.clone(), at as f64)).collect();
        return AxisOf { axis: Axis::new(name(axis), Kind::Named(texts)), values };
    };
    let mut values: Vec<(String, f64)> = texts.into_iter().zip(amounts).collect();
    values.sort_by(|one, other| one.1.total_cmp(&other.1));
    let axis = match axis {
        "local" if shares > 0 => {
            Axis::new("local memory, %", Kind::Linear).showing(&[0.0, 100.0]).labelled(short)
        }
        "local" => Axis::new("local memory", Kind::Either).labelled(in_bytes),
        "rtt" => Axis::new("round trip, µs", Kind::Either),
        _ => Axis::new("bandwidth, Gb/s", Kind::Either),
    };
    AxisOf { axis, values }
}

/// The settings of a cell in words, without some axes.
pub(super) fn rest(cell: &Finding, without: &[&str]) -> String {
    let first = ["local", "of", "rtt", "bandwidth"];
    let others = cell.settings.keys().map(String::as_str).filter(|axis| !first.contains(axis));
    let axes = first.into_iter().chain(others).filter(|axis| !without.contains(axis));
    let words = axes.filter_map(|axis| {
        let value = cell.settings.get(axis)?;
        Some(match axis {
            "local" => format!("{} local", local_words(value)),
            axis => words(axis, value),
        })
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_ordered_by_size() {
        let of = |axis: &str, texts: &[&str]| axis_of(axis, texts.iter().copied()).values;
        let rtts = of("rtt", &["40us", "900ns", "40us", "3us"]);
        assert_eq!(
            rtts.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(),
            ["900ns", "3us", "40us"]
        );
        assert_eq!(of("local", &["75%", "0.125"])[0], ("0.125".to_owned(), 12.5));
        assert_eq!(of("local", &["1GiB", "512MiB"])[0].1, 512.0 * 1048576.0);
        // Shares and sizes are not on one axis.
        assert_eq!(of("local", &["75%", "1MiB"])[1].1, 1.0);
        assert_eq!(of("bandwidth", &["none", "40Gbps"])[1], ("none".to_owned(), 1.0));
        assert!(of("policy", &["", ""]).is_empty());
    }

    #[test]
    fn settings_in_words() {
        assert_eq!(words("local", "25%"), "25 % of its memory local");
        assert_eq!(words("of", "peak"), "shares of the most it used");
        let live = "shares of what is in use at each moment (live footprint)";
        assert_eq!(words("of", "live"), live);
        assert_eq!(words("of", "2GiB"), "shares of 2.0 GiB");
        assert_eq!(words("rtt", "3us"), "round trip 3 µs");
        assert_eq!(words("bandwidth", "40Gbps"), "40 Gb/s");
        assert_eq!(words("bandwidth", "none"), "no limit of bandwidth");
        assert_eq!(words("policy", "lru"), "policy lru");
    }
}
