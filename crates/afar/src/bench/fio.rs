//! What was measured, laid out as fio 3's JSON, so that what reads that reads this; what fio does
//! not have is under `afar`.

use flash::load::{LoadConfig, OperationTally, Tally};
use measure::Histogram;
use serde_json::{Map, Value, json};

use crate::flags::BenchFlags;
use crate::host;

/// fio's default list.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// The whole record.
pub(crate) fn record(
    flags: &BenchFlags,
    config: &LoadConfig,
    tally: &Tally,
    interrupted: bool,
) -> Value {
    let elapsed_ns = tally.elapsed.as_ns().max(1);
    let share = tally.processor_time.as_ns_f64() / elapsed_ns as f64 * 100.0;
    let job = json!({
        "jobname": "afar",
        "error": i32::from(tally.failure_count() > 0),
        "elapsed": elapsed_ns.div_ceil(1_000_000_000),
        "job options": {
            "rw": flags.rw.name(),
            "bs": config.request_bytes.to_string(),
            "iodepth": config.depth.to_string(),
            "numjobs": config.jobs.to_string(),
            "rwmixread": config.read_percent.to_string(),
        },
        "read": operation(&tally.reads, elapsed_ns),
        "write": operation(&tally.writes, elapsed_ns),
        "usr_cpu": share,
        "total_err": tally.failure_count(),
    });
    json!({
        "fio version": format!("afar-{}", env!("CARGO_PKG_VERSION")),
        "timestamp": sys::clock::unix_ns() / 1_000_000_000,
        "global options": { "filename": flags.target },
        "jobs": [job],
        "afar": {
            "version": env!("CARGO_PKG_VERSION"),
            "command": std::env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect::<Vec<_>>(),
            "seed": config.seed,
            "host": host::describe(),
            "offset_bytes": config.region[0],
            "size_bytes": config.region[1],
            "rate_iops": flags.rate_iops,
            "processor_ns": tally.processor_time.as_ns(),
            "elapsed_ns": tally.elapsed.as_ns(),
            "request_count_by_second": tally.seconds,
            "reconnect_count": tally.reconnect_count,
            "uncertain_count": tally.uncertain_count,
            "lost_count": tally.lost_count,
            "misdirected_count": tally.misdirected_count,
            "torn_count": tally.torn_count,
            "stale_count": tally.stale_count,
            "failure_count": tally.failure_count(),
            "first_failure": tally.first_failure,
            "interrupted": interrupted,
        },
    })
}

fn operation(of: &OperationTally, elapsed_ns: u64) -> Value {
    let seconds = elapsed_ns as f64 / 1e9;
    let latency = latency(&of.latency);
    json!({
        "io_bytes": of.bytes,
        "io_kbytes": of.bytes / 1024,
        "bw_bytes": of.bytes as f64 / seconds,
        "bw": of.bytes as f64 / seconds / 1024.0,
        "iops": of.latency.count() as f64 / seconds,
        "runtime": elapsed_ns / 1_000_000,
        "total_ios": of.latency.count(),
        // Requests are handed over in batches: there is no submission of its own to time.
        "slat_ns": { "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0 },
        "clat_ns": latency,
        "lat_ns": latency,
    })
}

fn latency(histogram: &Histogram) -> Value {
    let percentiles: Map<String, Value> = PERCENTILES
        .iter()
        .map(|&p| (format!("{p:.6}"), histogram.quantile(p / 100.0).as_ns().into()))
        .collect();
    let bins: Map<String, Value> =
        histogram.bins().into_iter().map(|(ns, count)| (ns.to_string(), count.into())).collect();
    json!({
        "min": histogram.min().as_ns(),
        "max": histogram.max().as_ns(),
        "mean": histogram.mean().as_ns_f64(),
        "N": histogram.count(),
        "percentile": percentiles,
        "bins": bins,
    })
}
