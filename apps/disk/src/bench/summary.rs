//! The summary of `afar bench` for people.

use std::fmt::Write as _;

use diskload::Tally;
use measure::{Bytes, Duration, Histogram};

use super::job::Job;
use super::report::{Reported, total};
use super::run::Phase;
use console::layout::count;

const NAME: usize = 19;

/// A sentence on failed requests, wrong bytes, or no answer at all; `None` if all is well.
pub(crate) fn shortfall(phases: &[Phase]) -> Option<String> {
    let total = total(phases).filter(|total| total.count() + total.failure_count() > 0);
    let Some(total) = total else { return Some("no request was answered".to_owned()) };
    match (total.failure_count(), total.checks.wrong_count()) {
        (0, 0) => None,
        (failed, 0) => Some(format!("{} requests failed", count(failed))),
        (0, wrong) => Some(format!("{} reads brought wrong bytes", count(wrong))),
        (failed, wrong) => Some(format!(
            "{} requests failed, and {} reads brought wrong bytes",
            count(failed),
            count(wrong)
        )),
    }
}

/// The summary of all jobs.
pub(crate) fn text(jobs: &[Job], phases: &[Phase], interrupted: bool) -> String {
    let mut out = String::new();
    for phase in phases {
        let all = Reported::of(phase);
        let costs = phase.processors.lines();
        for reported in &all {
            let alone = if all.len() == 1 { &costs[..] } else { &[] };
            out += &one(reported, jobs.len() > 1, alone);
        }
        if all.len() > 1 && !costs.is_empty() {
            out += "\nall of these together\n";
            costs.into_iter().for_each(|(name, text)| out += &row(name, text));
        }
    }
    if interrupted {
        let done = phases.iter().map(|phase| phase.outcomes.len()).sum();
        let rest: Vec<&str> = jobs[done..].iter().map(|job| job.name.as_str()).collect();
        out.push('\n');
        out += &row("interrupted", "these are the figures until then");
        if !rest.is_empty() {
            out += &row("not run", rest.join(", "));
        }
    }
    out
}

// A line of the summary: name and text in columns.
fn row(name: &str, text: impl AsRef<str>) -> String {
    format!("{name:<NAME$}{}\n", text.as_ref())
}

// The summary of one job or group. `costs` are the lines on processor time.
fn one(reported: &Reported<'_>, is_named: bool, costs: &[(&str, String)]) -> String {
    let tally = &reported.tally;
    let mut out = format!("\nafar: {}\n\n", title(reported, is_named));
    let mut row = |name: &str, text: String| out += &row(name, text);
    let seconds = tally.elapsed.as_ns_f64() / 1e9;
    for (name, of) in ["reads", "writes", "trims"].into_iter().zip(tally.operations()) {
        if of.latency.count() > 0 {
            let iops = of.latency.count() as f64 / seconds;
            let mb = of.bytes as f64 / seconds / 1e6;
            row(name, format!("{} IOPS, {mb:.1} MB/s", whole(iops)));
        }
    }
    if tally.flushes.latency.count() > 0 {
        let each = tally.flushes.latency.count() as f64 / seconds;
        row("flushes", format!("{}/s", whole(each)));
    }
    row("counted", format!("{} requests in {}", count(tally.count()), tally.elapsed));
    costs.iter().for_each(|(name, text)| row(name, text.clone()));
    if tally.losses.reconnect_count > 0 || tally.losses.uncertain_count > 0 {
        let (found, lost) =
            (count(tally.losses.reconnect_count), count(tally.losses.uncertain_count));
        row("reconnected", format!("{found} times; {lost} requests are uncertain"));
    }
    if tally.losses.reopen_count > 0 {
        let times = count(tally.losses.reopen_count);
        row("opened anew", format!("{times} times by its target"));
    }
    if tally.checks.checked_count > 0 {
        row("verified", format!("{} requests' bytes", count(tally.checks.checked_count)));
    }
    if tally.failure_count() > 0 {
        row("FAILED", format!("{} requests", count(tally.failure_count())));
    }
    if tally.checks.wrong_count() > 0 {
        row(
            "WRONG",
            format!(
                "blocks read: {} lost, {} misdirected, {} torn, {} stale",
                tally.checks.lost_count,
                tally.checks.misdirected_count,
                tally.checks.torn_count,
                tally.checks.stale_count
            ),
        );
    }
    if let Some(first) = &tally.first_failure {
        row("first", first.clone());
    }
    if tally.unmade_count > tally.count() / 1000 {
        row("not made", format!("{} requests that were due", count(tally.unmade_count)));
    }
    out + &latencies(tally)
}

// The disk and the load, in a line; the job's name too if `is_named`.
fn title(reported: &Reported<'_>, is_named: bool) -> String {
    let first = &reported.first().ready;
    let names: Vec<&str> = reported.members.iter().map(|one| one.ready.job.name.as_str()).collect();
    match &names[..] {
        [name] if is_named => format!("[{name}] {}: {}", first.target, how(&first.job)),
        [_] => format!("{}: {}", first.target, how(&first.job)),
        names => format!("[{}] as a group: first {}", names.join("] ["), how(&first.job)),
    }
}

/// Describes a job in a line.
pub(crate) fn how(job: &Job) -> String {
    let rw = job.rw.name();
    let mix = match job.read_percent {
        0 | 100 => String::new(),
        share => format!(" ({share} % reads)"),
    };
    let skew = job.zipf.map_or_else(String::new, |skew| format!(", zipf {skew}"));
    let pace = match job.rate {
        Some(rate) => format!("open loop, {}/s", whole(rate)),
        None => "closed loop".to_owned(),
    };
    let threads = if job.threads == 1 { String::new() } else { format!(", {} jobs", job.threads) };
    let bytes = Bytes::new(job.block_bytes);
    format!("{rw}{mix} of {bytes}{skew}, {pace}, depth {}{threads}", job.depth)
}

// The table of latencies, in microseconds.
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
    let requests = ["read", "write", "trim"].into_iter().zip(tally.operations());
    for (name, one) in requests.chain([("flush", &tally.flushes)]) {
        if one.latency.count() > 0 {
            out += &of(name, &one.latency);
            // A device that answers at once has no time of submission.
            if one.submission.max() > Duration::ZERO {
                out += &of("  submission", &one.submission);
                out += &of("  completion", &one.completion);
            }
        }
    }
    out
}

// A rate, rounded to a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
fn whole(rate: f64) -> String {
    count(rate.round() as u64)
}
