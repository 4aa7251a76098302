//! What a load on a disk came to, on one screen.

use std::fmt::Write as _;

use flash::load::{LoadConfig, Tally};
use measure::{Duration, Histogram};

use super::processors::Processors;
use crate::flags::BenchFlags;
use crate::summary::count;

const NAME: usize = 19;

/// The whole summary.
pub(crate) fn text(
    flags: &BenchFlags,
    config: &LoadConfig,
    tally: &Tally,
    processors: &Processors,
    interrupted: bool,
) -> String {
    let mut out = format!("\nafar: {}: {}\n\n", flags.target, how(flags, config));
    let mut row = |name: &str, text: String| {
        let _infallible = writeln!(out, "{name:<NAME$}{text}");
    };
    let seconds = tally.elapsed.as_ns_f64() / 1e9;
    for (name, of) in [("reads", &tally.reads), ("writes", &tally.writes)] {
        if of.latency.count() > 0 {
            let iops = of.latency.count() as f64 / seconds;
            let mb = of.bytes as f64 / seconds / 1e6;
            row(name, format!("{} IOPS, {mb:.1} MB/s", whole(iops)));
        }
    }
    row("counted", format!("{} requests in {}", count(tally.count()), tally.elapsed));
    for (name, text) in processors.lines() {
        row(name, text);
    }
    if tally.reconnect_count > 0 || tally.uncertain_count > 0 {
        let (found, lost) = (count(tally.reconnect_count), count(tally.uncertain_count));
        row("reconnected", format!("{found} times; {lost} requests are uncertain"));
    }
    if tally.failure_count() > 0 {
        row("FAILED", format!("{} requests", count(tally.failure_count())));
    }
    if tally.wrong_count() > 0 {
        row(
            "WRONG",
            format!(
                "blocks read: {} lost, {} misdirected, {} torn, {} stale",
                tally.lost_count, tally.misdirected_count, tally.torn_count, tally.stale_count
            ),
        );
    }
    if let Some(first) = &tally.first_failure {
        row("first", first.clone());
    }
    if tally.unmade_count > tally.count() / 1000 {
        row("not made", format!("{} requests that were due", count(tally.unmade_count)));
    }
    if interrupted {
        row("interrupted", "these are the figures until then".to_owned());
    }
    out.push_str(&latencies(tally));
    out
}

fn how(flags: &BenchFlags, config: &LoadConfig) -> String {
    let rw = flags.rw.name();
    let mix = match config.read_percent {
        0 | 100 => String::new(),
        share => format!(" ({share} % reads)"),
    };
    let pace = match &flags.rate_iops {
        Some(rate) => format!("open loop, {rate}/s"),
        None => "closed loop".to_owned(),
    };
    let jobs = if config.jobs == 1 { String::new() } else { format!(", {} jobs", config.jobs) };
    format!("{rw}{mix} of {}, {pace}, depth {}{jobs}", flags.bs, config.depth)
}

fn latencies(tally: &Tally) -> String {
    let mut out = format!("\n{:<NAME$}", "latency, µs");
    for head in ["count", "p50", "p95", "p99", "p99.9", "max"] {
        let _infallible = write!(out, "{head:>12}");
    }
    out.push('\n');
    let of = |name: &str, histogram: &Histogram| {
        let mut line = format!("{name:<NAME$}{:>12}", count(histogram.count()));
        for quantile in [0.5, 0.95, 0.99, 0.999, 1.0] {
            let ns = histogram.quantile(quantile).as_ns_f64();
            let _infallible = write!(line, "{:>12.1}", ns / 1000.0);
        }
        line + "\n"
    };
    for (name, one) in [("read", &tally.reads), ("write", &tally.writes)] {
        if one.latency.count() > 0 {
            out += &of(name, &one.latency);
            // Nothing is submitted to a device that answers at once.
            if one.submission.max() > Duration::ZERO {
                out += &of("  submission", &one.submission);
                out += &of("  completion", &one.completion);
            }
        }
    }
    out
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
fn whole(rate: f64) -> String {
    count(rate.round() as u64)
}
