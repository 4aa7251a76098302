//! A prediction as text, JSON and CSV.

use console::layout::{kilo, table};
use measure::{BitsPerSec, Bytes, Duration};
use paging::PolicyKind;
use paging::reuse::Replayed;
use planner::slowdown::Estimate;
use results::prediction::{self, Facts, Fetches, Slowdown};
use results::validity::ALLOWED;

use super::model::{Point, Prediction, Size, peak};
use super::profile;

/// Introduces what shares relate to.
const SHARES: &str = "local memory is a share of ";

/// What shares relate to, in words.
fn told_of(facts: &Facts, prediction: &Prediction) -> String {
    prediction.of.told(Some(peak(facts)))
}

/// The prediction as text, with tables.
pub(super) fn text(facts: &Facts, prediction: &Prediction) -> String {
    let alone = profile::alone(facts);
    let mut text = match &facts.allowed[..] {
        [] => String::new(),
        reasons => format!("{ALLOWED}: {}\n", reasons.join("; ")),
    };
    text += &format!(
        "{}: {alone} with {} local; {:.1} % of the pages were watched, {} touches seen\n\n",
        facts.program.join(" "),
        Bytes::new(facts.managed_peak_bytes),
        facts.sampled_share * 100.0,
        facts.soft_count,
    );
    if prediction.has_share() {
        text = format!("{}\n{SHARES}{}\n\n", text.trim_end(), told_of(facts, prediction));
    }
    text += &fetches(facts, prediction);
    let mut bandwidths: Vec<Option<BitsPerSec>> = Vec::new();
    for point in prediction.sizes.iter().flat_map(|size| &size.points) {
        if !bandwidths.contains(&point.bandwidth) {
            bandwidths.push(point.bandwidth);
        }
    }
    for bandwidth in bandwidths {
        let link = bandwidth.map_or_else(|| "any bandwidth".to_owned(), |rate| rate.to_string());
        text += &format!("\nslowdown with {} at {link}\n", prediction.policy);
        text += &slowdowns(prediction, bandwidth);
    }
    if prediction.sizes.iter().any(|size| size.is_blind) {
        text += "\n* so little memory that not all touches were seen: at least this\n";
    }
    text
}

/// The table of fetches.
fn fetches(facts: &Facts, prediction: &Prediction) -> String {
    let mut head = vec!["local".to_owned()];
    head.extend(prediction.policies.iter().map(PolicyKind::to_string));
    let mut rows = vec![head];
    for size in &prediction.sizes {
        let mut row = vec![name(size)];
        row.extend(size.replayed.iter().map(|replayed| {
            let rate = per_second(facts, replayed.fetches);
            format!("{}/s {:>5.1} %", kilo(rate), miss_ratio(replayed) * 100.0)
        }));
        rows.push(row);
    }
    format!("fetches per second of the program alone, and as a share of touches\n{}", table(&rows))
}

// The table of slowdowns for one bandwidth.
fn slowdowns(prediction: &Prediction, bandwidth: Option<BitsPerSec>) -> String {
    let of = |size: &Size| -> Vec<(Duration, Estimate)> {
        let points = size.points.iter().filter(|point| point.bandwidth == bandwidth);
        points.map(|point| (point.rtt, point.slowdown)).collect()
    };
    let mut head = vec!["local".to_owned()];
    let first = prediction.sizes.first().map(of).unwrap_or_default();
    head.extend(first.iter().map(|(rtt, _)| format!("rtt {rtt}")));
    let mut rows = vec![head];
    for size in &prediction.sizes {
        let mut row = vec![name(size)];
        row.extend(of(size).iter().map(|(_, estimate)| {
            format!("{:.2} ({:.2} to {:.2})", estimate.value, estimate.low, estimate.high)
        }));
        rows.push(row);
    }
    table(&rows)
}

// The name of a row: the size, with * if it is blind.
fn name(size: &Size) -> String {
    format!("{}{}", size.local, if size.is_blind { "*" } else { "" })
}

/// The prediction as JSON.
pub(super) fn json(facts: &Facts, prediction: &Prediction) -> String {
    let mut curve = Vec::new();
    let mut points = Vec::new();
    for size in &prediction.sizes {
        for (policy, replayed) in prediction.policies.iter().zip(&size.replayed) {
            curve.push(Fetches {
                local: size.local.to_string(),
                policy: policy.to_string(),
                miss_ratio: miss_ratio(replayed),
                fetch_count: replayed.fetches,
                fetch_deviation: replayed.fetches_deviation,
                fetches_in_turn: replayed.in_turn,
                fetches_in_order: replayed.in_order,
                soft_count: replayed.softs,
                eviction_count: replayed.evictions,
                write_back_count: replayed.write_backs,
                seen_whole: !size.is_blind,
            });
        }
        points.extend(size.points.iter().map(|point| slowdown(size, point)));
    }
    let of = prediction.of.bytes(Some(peak(facts)));
    results::write(&prediction::Prediction {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        profile: facts.clone(),
        alone_ns: profile::alone(facts).as_ns(),
        of: prediction.has_share().then(|| prediction.of.name().to_owned()),
        of_bytes: prediction.has_share().then_some(of).flatten().map(Bytes::get),
        policy: prediction.policy.to_string(),
        curve,
        points,
    })
}

/// The prediction as CSV: a row for each slowdown.
pub(super) fn csv(prediction: &Prediction) -> String {
    let head = "local,rtt_ns,bandwidth_bps,slowdown,slowdown_low,slowdown_high,seen_whole\n";
    let points = prediction
        .sizes
        .iter()
        .flat_map(|size| size.points.iter().map(move |point| slowdown(size, point)));
    points.fold(head.to_owned(), |text, point| {
        let Slowdown { local, rtt_ns, slowdown, slowdown_low, slowdown_high, .. } = point;
        let rate = point.bandwidth_bps.map_or_else(String::new, |rate| rate.to_string());
        let seen = point.seen_whole;
        text + &format!(
            "{local},{rtt_ns},{rate},{slowdown},{slowdown_low},{slowdown_high},{seen}\n"
        )
    })
}

// A row of the record.
fn slowdown(size: &Size, point: &Point) -> Slowdown {
    Slowdown {
        local: size.local.to_string(),
        rtt_ns: point.rtt.as_ns(),
        bandwidth_bps: point.bandwidth.map(BitsPerSec::get),
        slowdown: point.slowdown.value,
        slowdown_low: point.slowdown.low,
        slowdown_high: point.slowdown.high,
        seen_whole: !size.is_blind,
    }
}

/// Fetches as a share of the touches that were seen.
pub(super) fn miss_ratio(replayed: &Replayed) -> f64 {
    if replayed.touches > 0.0 { replayed.fetches / replayed.touches } else { 0.0 }
}

/// `count` per second of the program alone.
pub(super) fn per_second(facts: &Facts, count: f64) -> f64 {
    count / (profile::alone(facts).as_ns_f64() * 1e-9).max(1e-9)
}
