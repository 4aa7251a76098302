//! The table of latencies in summaries.

use std::fmt::Write as _;

use console::layout::count;
use measure::LatencySummary;

/// The table, in microseconds, with a line for each operation that was done; "" if none was. Names
/// have a column of `width`.
pub(crate) fn table(
    title: &str,
    width: usize,
    rows: impl Iterator<Item = (String, LatencySummary)>,
) -> String {
    let mut out = format!("\n{title:<width$}");
    for head in ["count", "p50", "p95", "p99", "p99.9", "max"] {
        let _infallible = write!(out, "{head:>12}");
    }
    out.push('\n');
    let mut is_any = false;
    for (name, latency) in rows.filter(|(_, latency)| latency.count > 0) {
        let LatencySummary { count: number, p50_ns, p95_ns, p99_ns, p999_ns, max_ns, .. } = latency;
        let _infallible = write!(out, "{name:<width$}{:>12}", count(number));
        for ns in [p50_ns, p95_ns, p99_ns, p999_ns, max_ns] {
            let _infallible = write!(out, "{:>12.1}", ns as f64 / 1000.0);
        }
        out.push('\n');
        is_any = true;
    }
    if is_any { out } else { String::new() }
}
