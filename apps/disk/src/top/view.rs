//! The difference of two samples of a target, as a table and as JSON.

use std::fmt::Write;

use results::live::{HostView, NamespaceView, OperationView, ShardView, TargetView};

use super::leases;
use super::line::plain;
use super::sample::{HostSample, NamespaceSample, OperationSample, Sample};

/// Most hosts in the table.
const HOSTS_SHOWN: usize = 8;

/// Upper bounds in seconds, each with the number of commands that took no longer.
type Buckets = Vec<(f64, f64)>;

/// What the target has done since `last`. Counters that are new or were reset since count from 0.
pub(super) fn between(last: &Sample, now: &Sample) -> TargetView {
    let none = Sample::default();
    let last = if now.uptime < last.uptime { &none } else { last };
    let interval_s = (now.uptime - last.uptime).max(1e-9);
    let namespaces = now.namespaces.iter().map(|((subsystem, id), now)| {
        let before = last.namespaces.get(&(subsystem.clone(), *id));
        namespace(subsystem, *id, [before, Some(now)], interval_s)
    });
    let shards = now.shards.iter().map(|(shard, now)| {
        let before = last.shards.get(shard).map_or(0.0, |one| one.busy_seconds);
        let utilisation = (now.busy_seconds - before).max(0.0) / interval_s;
        ShardView { shard: *shard, utilisation, connections: now.connections }
    });
    let hosts = hosts(last, now, interval_s);
    let (namespaces, shards) = (namespaces.collect(), shards.collect());
    TargetView { interval_s, namespaces, shards, hosts, leases: leases::views(&now.leases) }
}

/// The view as a line of JSON.
pub(super) fn to_json(view: &TargetView) -> String {
    let mut text = serde_json::to_string(view).expect("plain data has a JSON form");
    text.push('\n');
    text
}

/// The view as CSV: a row for each namespace, shard and host, which `part` says. Leases are left
/// out: their columns would be names of hosts.
pub(super) fn to_csv(view: &TargetView) -> String {
    let rows = serde_json::json!({
        "interval_s": view.interval_s,
        "namespaces": view.namespaces,
        "shards": view.shards,
        "hosts": view.hosts,
    });
    console::csv_of(&rows, &["part", "interval_s"])
}

/// The view as tables: of namespaces, shards, leases and hosts.
pub(super) fn to_table(view: &TargetView) -> String {
    let names = view.namespaces.iter().map(|one| one.subsystem.chars().count());
    let wide = names.max().unwrap_or(0).max(9);
    let mut text = String::new();
    let _infallible = writeln!(
        text,
        "{:<wide$} {:>4} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "SUBSYSTEM",
        "NS",
        "READ/s",
        "WRITE/s",
        "READ MB",
        "WRITE MB",
        "P50 µs",
        "P99 µs",
        "IN FLIGHT"
    );
    for one in &view.namespaces {
        let _infallible = writeln!(
            text,
            "{:<wide$} {:>4} {:>9.0} {:>9.0} {:>9.1} {:>9.1} {:>9} {:>9} {:>9.0}",
            plain(&one.subsystem),
            one.namespace,
            one.read.iops,
            one.write.iops,
            one.read.mb_per_s,
            one.write.mb_per_s,
            micros(one.p50_us),
            micros(one.p99_us),
            one.in_flight,
        );
    }
    let _infallible = writeln!(text, "\nSHARD   BUSY  CONNECTIONS");
    for one in &view.shards {
        let percent = one.utilisation * 100.0;
        let _infallible =
            writeln!(text, "{:<5} {percent:>5.1}% {:>12.0}", one.shard, one.connections);
    }
    leases::add(&mut text, &view.leases);
    add_hosts(view, &mut text);
    text
}

// Appends the table of hosts, if there are any.
fn add_hosts(view: &TargetView, text: &mut String) {
    if view.hosts.is_empty() {
        return;
    }
    let shown = || view.hosts.iter().take(HOSTS_SHOWN);
    let wide = shown().map(|one| one.host.chars().count()).max().unwrap_or(0).max(4);
    let _infallible = writeln!(
        text,
        "\n{:<wide$} {:>9} {:>9} {:>10} {:>9} {:>11}",
        "HOST", "I/O/s", "MB/s", "MEMORY MiB", "WAITS/s", "CONNECTIONS"
    );
    for one in shown() {
        let _infallible = writeln!(
            text,
            "{:<wide$} {:>9.0} {:>9.1} {:>10.1} {:>9.0} {:>11.0}",
            plain(&one.host),
            one.iops,
            one.mb_per_s,
            one.memory_bytes / f64::from(1 << 20),
            one.memory_waits_per_s,
            one.connections
        );
    }
    let rest = view.hosts.len().saturating_sub(HOSTS_SHOWN);
    if rest > 0 {
        let _infallible = writeln!(text, "and {rest} more");
    }
}

// What each host has done, the one that uses the most first.
fn hosts(last: &Sample, now: &Sample, interval_s: f64) -> Vec<HostView> {
    let views = now.hosts.iter().map(|(host, now)| {
        let none = HostSample::default();
        let before = last.hosts.get(host).filter(|one| one.commands <= now.commands);
        let before = before.unwrap_or(&none);
        HostView {
            host: host.clone(),
            iops: (now.commands - before.commands) / interval_s,
            mb_per_s: (now.bytes - before.bytes) / 1e6 / interval_s,
            memory_bytes: now.memory_bytes,
            memory_waits_per_s: (now.memory_waits - before.memory_waits).max(0.0) / interval_s,
            connections: now.connections,
        }
    });
    let mut views: Vec<_> = views.collect();
    // By memory, the scarcest, then by bytes, then by commands.
    let key = |one: &HostView| (one.memory_bytes, one.mb_per_s, one.iops);
    views.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal));
    views
}

// A time for the table; "-" if there is none.
fn micros(time: Option<f64>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1}"))
}

// What was done on a namespace between two samples.
fn namespace(
    subsystem: &str,
    id: u32,
    [before, now]: [Option<&NamespaceSample>; 2],
    interval_s: f64,
) -> NamespaceView {
    let none = NamespaceSample::default();
    let [before, now] = [before.unwrap_or(&none), now.unwrap_or(&none)];
    // If a counter went down, this is another disk under the same identifier: it counts from 0.
    let is_anew = now.read.commands < before.read.commands
        || now.write.commands < before.write.commands
        || now.failures < before.failures;
    let before = if is_anew { &none } else { before };
    let reads = since(&before.read.buckets, &now.read.buckets);
    let writes = since(&before.write.buckets, &now.write.buckets);
    let both: Buckets = match (reads.is_empty(), writes.is_empty()) {
        (true, _) => writes.clone(),
        (_, true) => reads.clone(),
        _ => reads.iter().zip(&writes).map(|(one, two)| (one.0, one.1 + two.1)).collect(),
    };
    NamespaceView {
        subsystem: subsystem.to_owned(),
        namespace: id,
        size_bytes: now.size_bytes,
        read: operation(&before.read, &now.read, &reads, interval_s),
        write: operation(&before.write, &now.write, &writes, interval_s),
        p50_us: quantile_us(&both, 0.5),
        p99_us: quantile_us(&both, 0.99),
        failures_per_s: (now.failures - before.failures) / interval_s,
        in_flight: now.in_flight,
    }
}

// What was read or written between two samples; `buckets` are of the commands between them.
fn operation(
    before: &OperationSample,
    now: &OperationSample,
    buckets: &Buckets,
    interval_s: f64,
) -> OperationView {
    let commands = now.commands - before.commands;
    OperationView {
        commands,
        iops: commands / interval_s,
        mb_per_s: (now.bytes - before.bytes) / 1e6 / interval_s,
        p50_us: quantile_us(buckets, 0.5),
        p99_us: quantile_us(buckets, 0.99),
    }
}

// The buckets of commands between two samples.
fn since(before: &Buckets, now: &Buckets) -> Buckets {
    let count = |place: usize| before.get(place).map_or(0.0, |(_, count)| *count);
    now.iter().enumerate().map(|(place, (end, below))| (*end, below - count(place))).collect()
}

// A quantile of latency in microseconds, interpolated linearly within its bucket; `None` if there
// was no command.
fn quantile_us(buckets: &Buckets, share: f64) -> Option<f64> {
    let total = buckets.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
    let rank = total * share;
    let mut last = (0.0, 0.0);
    for &(end, below) in buckets {
        if below >= rank && below > last.1 {
            if end.is_infinite() {
                return Some(last.0 * 1e6);
            }
            let into = (rank - last.1).max(0.0) / (below - last.1);
            return Some((last.0 + (end - last.0) * into) * 1e6);
        }
        last = (end, below);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(uptime: f64, reads: f64, in_time: f64) -> Sample {
        let buckets = vec![(0.0001, in_time), (0.0002, reads), (f64::INFINITY, reads)];
        let read = OperationSample { commands: reads, bytes: reads * 4096.0, buckets };
        let namespace = NamespaceSample { in_flight: 3.0, read, ..NamespaceSample::default() };
        let mut sample = Sample { uptime, ..Sample::default() };
        sample.namespaces.insert(("nqn.x".to_owned(), 1), namespace);
        let shard = sample.shards.entry(0).or_default();
        (shard.busy_seconds, shard.connections) = (uptime / 4.0, 2.0);
        sample
    }

    #[test]
    fn rates_are_of_the_interval() {
        let view = between(&sample(10.0, 1000.0, 0.0), &sample(12.0, 3000.0, 1000.0));
        let one = &view.namespaces[0];
        assert_eq!((one.read.iops, one.read.commands, one.write.iops), (1000.0, 2000.0, 0.0));
        assert!((one.read.mb_per_s - 4.096).abs() < 1e-9);
        // Half took 100 µs or less.
        assert!((one.p50_us.expect("there is one") - 100.0).abs() < 1e-6, "{one:?}");
        assert!((one.p99_us.expect("there is one") - 198.0).abs() < 1e-6, "{one:?}");
        assert_eq!(one.write.p50_us, None);
        assert!((view.shards[0].utilisation - 0.25).abs() < 1e-9);
        let table = to_table(&view);
        assert!(table.contains("nqn.x        1      1000         0       4.1       0.0     100.0"));
        assert!(table.contains("0      25.0%            2"), "{table}");
        let greedy = HostSample { memory_bytes: 3e6, ..HostSample::default() };
        let busy = HostSample { commands: 100.0, ..HostSample::default() };
        let [mut before, mut after] = [sample(1.0, 0.0, 0.0), sample(2.0, 0.0, 0.0)];
        before.hosts.insert("nqn.busy".to_owned(), HostSample::default());
        after.hosts.insert("nqn.busy".to_owned(), busy);
        after.hosts.insert("nqn.greedy".to_owned(), greedy);
        let hosts = between(&before, &after);
        let shown: Vec<_> = hosts.hosts.iter().map(|one| (one.host.as_str(), one.iops)).collect();
        assert_eq!(shown, [("nqn.greedy", 0.0), ("nqn.busy", 100.0)]);
        assert!(to_table(&hosts).contains("nqn.greedy         0       0.0        2.9"));
        let json: serde_json::Value = serde_json::from_str(&to_json(&view)).expect("it is JSON");
        assert_eq!(json["namespaces"][0]["read"]["commands"], 2000.0);
        let rows = to_csv(&hosts);
        let parts = rows.lines().map(|row| row.split(',').next().unwrap_or_default());
        let wanted = ["part", "hosts", "hosts", "namespaces", "shards"];
        assert_eq!(parts.collect::<Vec<_>>(), wanted, "{rows}");
        assert!(rows.starts_with("part,interval_s,") && rows.contains("nqn.greedy"), "{rows}");
    }

    #[test]
    fn what_begins_anew_counts_from_nothing() {
        // The target, or the namespace alone.
        for uptime in [1.0, 12.0] {
            let view = between(&sample(10.0, 1000.0, 0.0), &sample(uptime, 30.0, 30.0));
            assert_eq!(view.namespaces[0].read.commands, 30.0);
        }
        let view = between(&Sample::default(), &sample(1.0, 30.0, 30.0));
        assert_eq!(view.namespaces[0].read.iops, 30.0);
    }

    #[test]
    fn quantiles_of_nothing_and_of_what_took_longest() {
        assert_eq!(quantile_us(&Vec::new(), 0.5), None);
        assert_eq!(quantile_us(&vec![(1.0, 0.0), (f64::INFINITY, 0.0)], 0.5), None);
        let long = vec![(1.0, 0.0), (f64::INFINITY, 9.0)];
        assert_eq!(quantile_us(&long, 0.5), Some(1e6), "at least the last end");
    }
}
