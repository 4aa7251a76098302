//! What `afar predict --json` says of a program: points of the curve that a pool needs.

use document::{Bandwidth, DocumentError, Source};
use measure::{BitsPerSec, Duration, LocalSize};
use results::prediction::Prediction;

/// One cell of a sweep with memory far away, or one point of a prediction.
#[derive(Debug)]
pub(super) struct Point {
    /// The byte in the table where it stands; 0 of a record, whose fields have no places.
    pub(super) at: usize,
    pub(super) local: String,
    /// Further axes and their values.
    pub(super) axes: Vec<(String, String)>,
    pub(super) slowdown: f64,
}

/// Reads the text as a prediction.
///
/// # Errors
/// A message, if the text is none.
pub(super) fn read(source: &Source) -> Result<Prediction, String> {
    results::read(&source.text).map_err(|error| error.to_string())
}

/// The points whose touches were all seen: of others nothing can be promised.
///
/// # Errors
/// If local memory is no share of a fixed amount.
pub(super) fn points(source: &Source, record: &Prediction) -> Result<Vec<Point>, DocumentError> {
    let wrong = |message: &str| source.wrong(&(0..0), message.to_owned());
    if record.of_bytes.is_none() {
        let message = "local memory is no share of a fixed amount in this prediction; predict \
                       with shares, such as --local 25%,50%, and --of peak";
        return Err(wrong(message));
    }
    let seen = record.points.iter().filter(|point| point.seen_whole);
    let shares = seen.filter(|point| {
        point.local.parse().is_ok_and(|local: LocalSize| matches!(local, LocalSize::Fraction(_)))
    });
    let point = |point: &results::prediction::Slowdown| {
        let rtt = ("rtt".to_owned(), rtt(point.rtt_ns));
        let bandwidth = ("bandwidth".to_owned(), rate(point.bandwidth_bps));
        // The upper end counts, since a bound is a promise.
        let slowdown = point.slowdown_high;
        Point { at: 0, local: point.local.clone(), axes: vec![rtt, bandwidth], slowdown }
    };
    Ok(shares.map(point).collect())
}

/// Whether two values of an axis are the same however they are written.
pub(super) fn is_same(axis: &str, one: &str, other: &str) -> bool {
    let as_times = || Some(one.parse::<Duration>().ok()? == other.parse::<Duration>().ok()?);
    let as_rates = || Some(one.parse::<Bandwidth>().ok()?.0 == other.parse::<Bandwidth>().ok()?.0);
    let is_equal = match axis {
        "rtt" => as_times(),
        "bandwidth" => as_rates(),
        _ => None,
    };
    is_equal.unwrap_or(one == other)
}

/// A round trip as a sweep names it.
fn rtt(ns: u64) -> String {
    if ns.is_multiple_of(1_000) { format!("{}us", ns / 1_000) } else { format!("{ns}ns") }
}

/// A bandwidth as a sweep names it; `None` is no limit.
fn rate(bps: Option<u64>) -> String {
    let Some(bps) = bps else { return "none".to_owned() };
    match bps.is_multiple_of(1_000_000_000) {
        true => format!("{}Gbps", bps / 1_000_000_000),
        false => BitsPerSec::new(bps).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_networks_are_compared_as_what_they_are() {
        assert!(is_same("rtt", "5us", "5000ns") && !is_same("rtt", "5us", "6us"));
        assert!(is_same("bandwidth", "40Gbps", "40Gb/s") && is_same("bandwidth", "none", "none"));
        assert!(is_same("policy", "lru", "lru") && !is_same("policy", "lru", "clock"));
        assert_eq!([rtt(5_000), rtt(1_500)], ["5us", "1500ns"]);
        assert_eq!(rate(Some(40_000_000_000)), "40Gbps");
    }
}
