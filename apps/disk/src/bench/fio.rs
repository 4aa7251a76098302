//! The record, in the layout of fio 3's JSON, for programs that read fio's. Fields that fio does
//! not have are in `afar`.

use diskload::{Depths, OperationTally, Tally};
use measure::Histogram;
use serde_json::{Map, Value, json};

use super::job::Job;
use super::report::{self, Reported};
use super::run::Phase;
use crate::bench::flags::BenchFlags;
use console::machine;

/// fio's default percentiles.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];
/// Upper bounds of fio's classes of latency, in each unit.
const BOUNDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
/// The last bound, in milliseconds.
const LAST_BOUND: u64 = 2000;

/// The whole record; `beside` are fields for its `afar` object.
pub(crate) fn record(
    flags: &BenchFlags,
    jobs: &[Job],
    phases: &[&Phase],
    beside: &[(&str, Value)],
) -> Value {
    let all = phases.iter().enumerate().flat_map(|(phase, one)| {
        Reported::of(one).into_iter().map(move |reported| job(&reported, phase)).collect::<Vec<_>>()
    });
    let total = report::total(phases.iter().copied());
    let mut own = total.as_ref().map(counts).unwrap_or_default();
    let rest = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "command": std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect::<Vec<_>>(),
        "host": machine::describe(),
        "is_laid_out": flags.layout,
        "phases": phases.iter().copied().map(phase).collect::<Vec<_>>(),
    });
    own.extend(rest.as_object().cloned().into_iter().flatten());
    own.extend(beside.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    json!({
        "fio version": format!("afar-{}", env!("CARGO_PKG_VERSION")),
        "timestamp": sys::clock::unix_ns() / 1_000_000_000,
        "timestamp_ms": sys::clock::unix_ns() / 1_000_000,
        "global options": globals(flags, jobs),
        "jobs": all.collect::<Vec<_>>(),
        "afar": own,
    })
}

/// The record as CSV: a row for each job and operation that had requests, by the names of the
/// record, with units where fio's have them; without the bins of its distributions.
pub(crate) fn rows(record: &Value) -> String {
    let mut rows = Vec::new();
    for job in record["jobs"].as_array().into_iter().flatten() {
        for name in ["read", "write", "trim", "sync"] {
            let Some(of) = job[name].as_object().filter(|of| of["total_ios"] != 0) else {
                continue;
            };
            let mut row = Map::new();
            row.insert("jobname".to_owned(), job["jobname"].clone());
            row.insert("phase".to_owned(), job["afar"]["phase"].clone());
            row.insert("operation".to_owned(), name.into());
            row.extend(of.clone());
            for latency in ["slat_ns", "clat_ns", "lat_ns"] {
                if let Some(latency) = row.get_mut(latency).and_then(Value::as_object_mut) {
                    latency.remove("bins");
                }
            }
            rows.push(row.into());
        }
    }
    let leading = ["jobname", "phase", "operation", "total_ios", "io_bytes", "iops", "bw_bytes"];
    console::csv_of(&Value::Array(rows), &leading)
}

// Global options: the disk on the command line, and `[global]` of the job file.
fn globals(flags: &BenchFlags, jobs: &[Job]) -> Map<String, Value> {
    let target = flags.targets.iter().chain(&flags.filename);
    let target = target.map(|target| ("filename".to_owned(), target.clone()));
    let globals = jobs.last().into_iter().flat_map(|job| job.globals.iter().cloned());
    target.chain(globals).map(|(name, value)| (name, value.into())).collect()
}

// The jobs and the processor time of a phase.
fn phase(phase: &Phase) -> Value {
    let names: Vec<&str> = phase.outcomes.iter().map(|one| one.ready.job.name.as_str()).collect();
    json!({ "jobs": names, "processors": phase.processors.record() })
}

// Counters that fio does not have.
fn counts(tally: &Tally) -> Map<String, Value> {
    let value = json!({
        "processor_ns": tally.processor_time().as_ns(),
        "elapsed_ns": tally.elapsed.as_ns(),
        "request_count_by_second": by_second(tally),
        "unmade_count": tally.unmade_count,
        "reconnect_count": tally.losses.reconnect_count,
        "reopen_count": tally.losses.reopen_count,
        "uncertain_count": tally.losses.uncertain_count,
        "checked_count": tally.checks.checked_count,
        "lost_count": tally.checks.lost_count,
        "misdirected_count": tally.checks.misdirected_count,
        "torn_count": tally.checks.torn_count,
        "stale_count": tally.checks.stale_count,
        "failure_count": tally.failure_count(),
        "first_failure": tally.first_failure,
    });
    value.as_object().cloned().unwrap_or_default()
}

// A job or group, as an entry of fio's `jobs`.
fn job(reported: &Reported<'_>, phase: usize) -> Value {
    let Reported { members, tally } = reported;
    let first = reported.first();
    let Job { name, options, rate, percentiles, .. } = &first.ready.job;
    let config = &first.ready.config;
    let elapsed_ns = tally.elapsed.as_ns().max(1);
    // The time of all threads together, as fio reports for several jobs in one.
    let thread_ns = reported.thread_ns().max(1.0);
    let share = |ns: u64| ns as f64 / thread_ns * 100.0;
    let mut completion = Histogram::new();
    tally.operations().into_iter().for_each(|of| completion.merge(&of.completion));
    let percentiles = percentiles.as_deref().unwrap_or(&PERCENTILES);
    let operation = |of| operation(of, percentiles, elapsed_ns);
    let mut own = counts(tally);
    let rest = json!({
        "phase": phase,
        "jobs": members.iter().map(|one| one.ready.job.name.as_str()).collect::<Vec<_>>(),
        "target": first.ready.target,
        "seed": config.seed,
        "offset_bytes": config.region[0],
        "size_bytes": config.region[1],
        "rate_per_s": rate,
    });
    own.extend(rest.as_object().cloned().into_iter().flatten());
    let mut job = json!({
        "jobname": name,
        "groupid": first.group,
        "error": i32::from(tally.failure_count() > 0),
        "eta": 0,
        "elapsed": elapsed_ns.div_ceil(1_000_000_000),
        "job options": options.iter().cloned().map(|(name, value)| (name, value.into()))
            .collect::<Map<_, _>>(),
        "read": operation(&tally.reads),
        "write": operation(&tally.writes),
        "trim": operation(&tally.trims),
        "sync": {
            "total_ios": tally.flushes.latency.count(),
            "lat_ns": latency(&tally.flushes.latency, percentiles),
        },
        "job_runtime": whole_number(thread_ns / 1e6),
        "usr_cpu": share(tally.usage.user_ns),
        "sys_cpu": share(tally.usage.system_ns),
        "ctx": tally.usage.switches(),
        "majf": tally.usage.major_faults,
        "minf": tally.usage.minor_faults,
        "latency_depth": config.depth,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
        "total_err": tally.failure_count(),
        "afar": own,
    });
    for (name, value) in depths(&tally.depths).into_iter().chain(shares(&completion)) {
        job[name] = value;
    }
    job
}

// Requests that ended in each second.
fn by_second(tally: &Tally) -> Vec<u64> {
    let lists = tally.operations().map(|of| &of.seconds);
    let length = lists.iter().map(|list| list.len()).max().unwrap_or(0);
    let at = |second: usize| lists.iter().filter_map(|list| list.get(second)).sum();
    (0..length).map(at).collect()
}

// fio's object for reads, writes or trims.
fn operation(of: &OperationTally, percentiles: &[f64], elapsed_ns: u64) -> Value {
    let count = of.latency.count();
    let seconds = elapsed_ns as f64 / 1e9;
    let mut value = json!({
        "io_bytes": of.bytes,
        "io_kbytes": of.bytes / 1024,
        "bw_bytes": of.bytes as f64 / seconds,
        "bw": of.bytes as f64 / seconds / 1024.0,
        "iops": count as f64 / seconds,
        "runtime": if count == 0 { 0 } else { elapsed_ns / 1_000_000 },
        "total_ios": count,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": latency(&of.submission, percentiles),
        "clat_ns": latency(&of.completion, percentiles),
        "lat_ns": latency(&of.latency, percentiles),
        "bw_agg": if count == 0 { 0.0 } else { 100.0 },
    });
    let whole = usize::try_from(elapsed_ns / 1_000_000_000).unwrap_or(usize::MAX);
    let samples = Samples::of(&of.seconds[..whole.min(of.seconds.len())]);
    let kib = of.bytes as f64 / count.max(1) as f64 / 1024.0;
    for (name, unit, deviation) in [("iops", 1.0, "stddev"), ("bw", kib, "dev")] {
        value[format!("{name}_min")] = whole_number(samples.min * unit);
        value[format!("{name}_max")] = whole_number(samples.max * unit);
        value[format!("{name}_mean")] = (samples.mean * unit).into();
        value[format!("{name}_{deviation}")] = (samples.deviation * unit).into();
        value[format!("{name}_samples")] = samples.count.into();
    }
    value
}

/// Statistics of the number of requests in each whole second.
struct Samples {
    count: usize,
    min: f64,
    max: f64,
    mean: f64,
    deviation: f64,
}

impl Samples {
    fn of(seconds: &[u64]) -> Self {
        let rates = || seconds.iter().map(|&count| count as f64);
        let number = seconds.len().max(1) as f64;
        let mean = rates().sum::<f64>() / number;
        let deviation = (rates().map(|rate| (rate - mean).powi(2)).sum::<f64>() / number).sqrt();
        let min = rates().reduce(f64::min).unwrap_or(0.0);
        let max = rates().fold(0.0, f64::max);
        Self { count: seconds.len(), min, max, mean, deviation }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate")]
fn whole_number(rate: f64) -> Value {
    (rate.round() as u64).into()
}

// fio's object for a distribution of latencies.
fn latency(histogram: &Histogram, percentiles: &[f64]) -> Value {
    let mut value = json!({
        "min": histogram.min().as_ns(),
        "max": histogram.max().as_ns(),
        "mean": histogram.mean().as_ns_f64(),
        "stddev": histogram.deviation().as_ns_f64(),
        "N": histogram.count(),
    });
    if !histogram.is_empty() {
        let percentiles: Map<String, Value> = percentiles
            .iter()
            .map(|&p| (format!("{p:.6}"), histogram.quantile(p / 100.0).as_ns().into()))
            .collect();
        let bins = histogram.bins().into_iter();
        let bins: Map<String, Value> =
            bins.map(|(ns, count)| (ns.to_string(), count.into())).collect();
        value["percentile"] = percentiles.into();
        value["bins"] = bins.into();
    }
    value
}

// Percentages of requests by queue depth, and of calls by the requests they submit or complete.
fn depths(depths: &Depths) -> [(&'static str, Value); 3] {
    let spread = |names: [&str; 7], counts: &[u64; 7]| -> Value {
        let sum = counts.iter().sum::<u64>().max(1) as f64;
        let share = |&count: &u64| Value::from(count as f64 * 100.0 / sum);
        let named = names.map(str::to_owned).into_iter().zip(counts.iter().map(share));
        named.collect::<Map<_, _>>().into()
    };
    let levels = ["1", "2", "4", "8", "16", "32", ">=64"];
    let calls = ["0", "4", "8", "16", "32", "64", ">=64"];
    [
        ("iodepth_level", spread(levels, &depths.level)),
        ("iodepth_submit", spread(calls, &depths.submitted)),
        ("iodepth_complete", spread(calls, &depths.completed)),
    ]
}

// Percentages of latencies in each of fio's classes.
fn shares(latency: &Histogram) -> [(&'static str, Value); 3] {
    let bins = latency.bins();
    let share = |from: u64, to: u64| {
        let within = bins.iter().filter(|(ns, _)| (from..to).contains(ns));
        let count: u64 = within.map(|(_, count)| count).sum();
        count as f64 * 100.0 / latency.count().max(1) as f64
    };
    let of = |unit: u64, before: u64| {
        let mut from = before;
        let mut all = Map::new();
        for bound in BOUNDS {
            all.insert(bound.to_string(), share(from, bound * unit).into());
            from = bound * unit;
        }
        all
    };
    let mut ms = of(1_000_000, 1_000_000);
    let bound = 1_000_000 * LAST_BOUND;
    ms.insert(LAST_BOUND.to_string(), share(1_000_000_000, bound).into());
    ms.insert(format!(">={LAST_BOUND}"), share(bound, u64::MAX).into());
    let us = of(1000, 1000);
    [("latency_ns", of(1, 0).into()), ("latency_us", us.into()), ("latency_ms", ms.into())]
}

/// The text of a record.
pub(super) fn text(record: &Value) -> String {
    serde_json::to_string_pretty(record).expect("plain data has a JSON form") + "\n"
}

#[cfg(test)]
mod tests {
    use measure::Duration;

    use super::*;

    #[test]
    fn every_latency_has_one_share() {
        let mut histogram = Histogram::new();
        for ns in [0, 1, 2, 999, 1000, 1999, 2000, 50_000, 1_000_000, 999_000_000, 5_000_000_000] {
            histogram.record(Duration::from_ns(ns));
        }
        let shares = shares(&histogram);
        let sum = |value: &Value| -> f64 {
            value.as_object().expect("shares").values().filter_map(Value::as_f64).sum()
        };
        let all: f64 = shares.iter().map(|(_, value)| sum(value)).sum();
        assert!((all - 100.0).abs() < 1e-9, "{shares:?}");
        let [(_, ns), (_, us), (_, ms)] = shares;
        let each = 100.0 / 11.0;
        let is = |value: &Value, count: f64| {
            (value.as_f64().expect("a share") - count * each).abs() < 1e-9
        };
        assert!(is(&ns["2"], 2.0) && is(&ns["4"], 1.0) && is(&ns["1000"], 1.0), "{ns}");
        assert!(is(&us["2"], 2.0) && is(&us["4"], 1.0) && is(&us["100"], 1.0), "{us}");
        assert!(is(&ms["2"], 1.0) && is(&ms["1000"], 1.0) && is(&ms[">=2000"], 1.0), "{ms}");
    }

    #[test]
    fn samples_are_of_whole_seconds() {
        let samples = Samples::of(&[10, 20, 30]);
        assert_eq!((samples.min, samples.max, samples.mean, samples.count), (10.0, 30.0, 20.0, 3));
        assert!((samples.deviation - 8.164_965_809).abs() < 1e-6);
        let none = Samples::of(&[]);
        assert_eq!((none.min, none.max, none.mean, none.deviation), (0.0, 0.0, 0.0, 0.0));
    }
}
