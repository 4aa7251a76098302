//! What `afar predict --json` says of programs: curves for a pool, and how much memory they want.

use std::path::{Path, PathBuf};

use document::{Bandwidth, DocumentError, Source};
use measure::{BitsPerSec, Duration, LocalSize};
use results::prediction::Prediction;

use super::curve::{self, Point};
use super::demand::{Day, Program};

/// Programs that were predicted, and what they may become.
#[derive(Debug, Default)]
pub(super) struct Predicted<'a> {
    pub(super) files: &'a [PathBuf],
    /// `AXIS=VALUE` of the network.
    pub(super) held: &'a [String],
    /// How much slower each may be, as a share.
    pub(super) bound: f64,
    /// How many servers run each.
    pub(super) servers: u32,
}

impl Predicted<'_> {
    /// A program for each file, which wants the most that it used all the time.
    ///
    /// # Errors
    /// When a file is no prediction, or of several networks.
    pub(super) fn programs(&self) -> Result<Vec<Program>, DocumentError> {
        self.files.iter().map(|path| self.program(path)).collect()
    }

    fn program(&self, path: &Path) -> Result<Program, DocumentError> {
        let source = Source::read(path)?;
        let record = read(&source).map_err(|error| DocumentError::At {
            place: source.name.clone(),
            message: format!(
                "this is no prediction: {error}; give what afar predict --json has written"
            ),
        })?;
        let held = self.held.iter().map(|text| {
            let wrong = || DocumentError::At {
                place: format!("--network {text}"),
                message: "write AXIS=VALUE, such as rtt=5us".to_owned(),
            };
            text.split_once('=').ok_or_else(wrong)
        });
        let held: Vec<(&str, &str)> = held.collect::<Result<_, _>>()?;
        let memory = record.of_bytes.unwrap_or(record.profile.managed_peak_bytes);
        let curve = curve::of(&source, points(&source, &record)?, &held)?;
        let name = path.file_stem().map_or_else(String::new, |name| name.display().to_string());
        let alone = Some(Day { servers: self.servers, memory, low: 1.0, peak: 0 });
        Ok(Program { name, bound: self.bound, least_ppm: curve.least_ppm(self.bound), alone })
    }
}

/// A prediction, if it is one.
///
/// # Errors
/// Why it is none.
pub(super) fn read(source: &Source) -> Result<Prediction, String> {
    results::read(&source.text).map_err(|error| error.to_string())
}

/// The points of which all touches were seen: of others nothing is promised.
///
/// # Errors
/// When local memory is no share of a fixed amount.
pub(super) fn points(source: &Source, record: &Prediction) -> Result<Vec<Point>, DocumentError> {
    let wrong = |message: &str| source.wrong(&(0..0), message.to_owned());
    if record.of_bytes.is_none() {
        let message = "local memory is no share of a fixed amount in this prediction; predict \
                       with shares, such as --local 25%,50%, and --of peak";
        return Err(wrong(message));
    }
    let seen = record.points.iter().enumerate().filter(|(_, point)| point.seen_whole);
    let shares = seen.filter(|(_, point)| {
        point.local.parse().is_ok_and(|local: LocalSize| matches!(local, LocalSize::Fraction(_)))
    });
    let point = |(at, point): (usize, &results::prediction::Slowdown)| {
        let rtt = ("rtt".to_owned(), rtt(point.rtt_ns));
        let bandwidth = ("bandwidth".to_owned(), rate(point.bandwidth_bps));
        // A bound is a promise.
        let slowdown = point.slowdown_high;
        Point { at, local: point.local.clone(), axes: vec![rtt, bandwidth], slowdown }
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

fn rtt(ns: u64) -> String {
    if ns.is_multiple_of(1_000) { format!("{}us", ns / 1_000) } else { format!("{ns}ns") }
}

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
