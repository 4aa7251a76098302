//! A target's metrics in Prometheus' text format.
//!
//! Nothing is counted here: [`Told`] reads the target's counters for each request. To names of
//! counters the library appends `_total`, to those of infos `_info`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use sys::clock::monotonic_ns;
use target::{
    Counters, EventCounts, Kind, Latencies, Namespace, NamespaceCounters, Observer, Usage,
};

use super::families::{About, COUNTER, GAUGE, family};
use super::leases;

/// Smallest and largest upper bound of a bucket of latency, in nanoseconds: about 1 µs and 17 s.
const SHORTEST_NS: u64 = 1 << 10;
const LONGEST_NS: u64 = 1 << 34;
/// Collects the metrics of a target that was started at `began_ns`.
struct Told {
    observer: Observer,
    began_ns: u64,
}

/// A namespace, its subsystem, and the number of shards.
struct Row {
    subsystem: String,
    namespace: Arc<Namespace>,
    shard_count: u16,
}

/// Returns a function that returns the metrics, now, of a target that was started at `began_ns`.
pub(crate) fn teller(observer: Observer, began_ns: u64) -> impl Fn() -> String + Send + 'static {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Told { observer, began_ns }));
    move || text(&registry)
}

// The metrics of a registry as text.
fn text(registry: &Registry) -> String {
    let mut text = String::new();
    let _infallible = prometheus_text::encode(&mut text, registry);
    text
}

// `Observer` has no `Debug`.
impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").finish_non_exhaustive()
    }
}

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let help = "The version that runs, as a label.";
        let mut build = encoder.encode_descriptor("afar_build", help, None, MetricType::Info)?;
        build.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
        let uptime = seconds(monotonic_ns().saturating_sub(self.began_ns));
        let help = "Since the target was started.";
        encoder
            .encode_descriptor("afar_uptime_seconds", help, None, GAUGE)?
            .encode_gauge(&uptime)?;
        namespaces(encoder, &rows(&self.observer))?;
        leases::encode(encoder, &self.observer)?;
        shards(encoder, self.observer.counters())?;
        hosts(encoder, &self.observer.usage(), &self.observer.witness().counts())
    }
}

// All namespaces.
fn rows(observer: &Observer) -> Vec<Row> {
    // The last counters are those of the control thread, which serves no namespaces.
    let shard_count = observer.counters().len().saturating_sub(1);
    let shard_count = u16::try_from(shard_count).unwrap_or(u16::MAX);
    let subsystems = observer.subsystems();
    let rows = subsystems.iter().flat_map(|subsystem| {
        let all = subsystem.namespaces();
        let rows = all.iter().map(|one| Row {
            subsystem: subsystem.nqn.as_str().to_owned(),
            namespace: Arc::clone(one),
            shard_count,
        });
        rows.collect::<Vec<_>>()
    });
    rows.collect()
}

impl Row {
    fn labels(&self) -> impl EncodeLabelSet {
        ([("subsystem", self.subsystem.as_str())], [("namespace", self.namespace.id)])
    }

    // The namespace's counters of each shard; `None` for a shard that has not used it.
    fn shards(&self) -> Vec<(u16, Option<&NamespaceCounters>)> {
        let mut shards: Vec<_> = (0..self.shard_count).map(|shard| (shard, None)).collect();
        for (shard, counters) in self.namespace.counters() {
            if let Some(place) = shards.get_mut(usize::from(shard)) {
                place.1 = Some(counters);
            }
        }
        shards
    }
}

// Writes the families of namespaces.
fn namespaces(encoder: &mut DescriptorEncoder<'_>, rows: &[Row]) -> fmt::Result {
    let about = ("afar_namespace_size_bytes", GAUGE, "How large the namespace is.");
    let size = |row: &Row| row.namespace.backend.geometry().bytes();
    family(encoder, about, rows.iter().map(|row| (row.labels(), size(row))))?;
    let help = "1 once its device has failed to keep what was written: no flush ends well any \
                more until it is opened anew.";
    let about = ("afar_namespace_lost", GAUGE, help);
    let is_lost = |row: &Row| u64::from(row.namespace.backend.lost().is_some());
    family(encoder, about, rows.iter().map(|row| (row.labels(), is_lost(row))))?;
    let all = &Kind::ALL[..];
    let help = "Commands that have been answered, however they went.";
    let about = ("afar_namespace_commands", COUNTER, help);
    by_kind(encoder, about, rows, all, |c, kind| &c.of(kind).commands)?;
    let about = ("afar_namespace_failures", COUNTER, "Commands that have failed.");
    by_kind(encoder, about, rows, all, |c, kind| &c.of(kind).failures)?;
    let about = ("afar_namespace_transferred_bytes", COUNTER, "Bytes that were read or written.");
    let moving = &[Kind::Read, Kind::Write];
    by_kind(encoder, about, rows, moving, |c, kind| &c.of(kind).bytes)?;
    let help = "Commands that have been taken and not answered.";
    let samples = rows.iter().flat_map(|row| {
        let of = |(shard, counters): (u16, Option<&NamespaceCounters>)| {
            ((row.labels(), [("shard", shard)]), counters.map_or(0, |c| value(&c.in_flight)))
        };
        row.shards().into_iter().map(of).collect::<Vec<_>>()
    });
    family(encoder, ("afar_namespace_in_flight_commands", GAUGE, help), samples)?;
    latencies(encoder, rows)
}

// Writes a family of counters by namespace, operation and shard.
fn by_kind(
    encoder: &mut DescriptorEncoder<'_>,
    about: About,
    rows: &[Row],
    kinds: &[Kind],
    of: impl Fn(&NamespaceCounters, Kind) -> &AtomicU64,
) -> fmt::Result {
    let mut samples = Vec::new();
    for row in rows {
        for &kind in kinds {
            for (shard, counters) in row.shards() {
                let labels = (row.labels(), ([("operation", operation(kind))], [("shard", shard)]));
                samples.push((labels, counters.map_or(0, |c| value(of(c, kind)))));
            }
        }
    }
    family(encoder, about, samples)
}

// Writes the histogram of latency, by namespace and operation.
fn latencies(encoder: &mut DescriptorEncoder<'_>, rows: &[Row]) -> fmt::Result {
    let name = "afar_namespace_latency_seconds";
    let help = "From taking a command to answering it, of all shards.";
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for row in rows {
        for kind in Kind::ALL {
            let mut counts = [0; Latencies::BUCKETS];
            let mut sum_ns = 0;
            for counters in row.shards().iter().filter_map(|(_, counters)| *counters) {
                let latency = &counters.of(kind).latency;
                sum_ns += latency.sum_ns();
                for (sum, count) in counts.iter_mut().zip(latency.counts()) {
                    *sum += count;
                }
            }
            let labels = (row.labels(), [("operation", operation(kind))]);
            let count = counts.iter().sum();
            family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                seconds(sum_ns),
                count,
                &buckets(&counts),
                None,
            )?;
        }
    }
    Ok(())
}

// Upper bounds of buckets in seconds, and the count of each, not cumulated. The library adds the
// last bucket, without a bound.
fn buckets(counts: &[u64; Latencies::BUCKETS]) -> Vec<(f64, u64)> {
    let mut buckets = Vec::new();
    let mut untold = 0;
    for (index, count) in counts.iter().enumerate() {
        untold += count;
        let told =
            Latencies::end_ns(index).filter(|end_ns| (SHORTEST_NS..=LONGEST_NS).contains(end_ns));
        if let Some(end_ns) = told {
            buckets.push((seconds(end_ns), untold));
            untold = 0;
        }
    }
    buckets
}

// Writes the families of hosts.
fn hosts(
    encoder: &mut DescriptorEncoder<'_>,
    usage: &[(String, Usage)],
    events: &[(String, EventCounts)],
) -> fmt::Result {
    let mut of = |about: About, read: fn(&Usage) -> u64| {
        let samples = usage.iter().map(|(host, usage)| ([("host", host)], read(usage)));
        family(encoder, about, samples)
    };
    let help = "I/O queues, or connections of sessions.";
    of(("afar_host_connections", GAUGE, help), |one| one.connections)?;
    let help = "Memory for its data and answers.";
    of(("afar_host_memory_bytes", GAUGE, help), |one| one.memory_bytes)?;
    let help = "Times that a command of the host had to wait for memory.";
    of(("afar_host_memory_waits", COUNTER, help), |one| one.memory_waits)?;
    let help = "I/O commands that were answered.";
    of(("afar_host_commands", COUNTER, help), |one| one.commands)?;
    let help = "Bytes that were read or written.";
    of(("afar_host_transferred_bytes", COUNTER, help), |one| one.bytes)?;
    let help = "What has happened, by host; \"\" has not said its name.";
    let samples = events.iter().flat_map(|(host, counts)| {
        counts
            .iter()
            .map(move |(what, count)| (([("host", host)], [("event", what.name())]), *count))
    });
    family(encoder, ("afar_host_events", COUNTER, help), samples)
}

// Writes the families of shards.
fn shards(encoder: &mut DescriptorEncoder<'_>, counters: &[Arc<Counters>]) -> fmt::Result {
    let help = "Processor time of the shard, without what it spent looking for work.";
    let samples =
        (0_u32..).zip(counters).map(|(shard, c)| ([("shard", shard)], seconds(value(&c.busy_ns))));
    family(encoder, ("afar_shard_busy_seconds", COUNTER, help), samples)?;
    let mut of = |about: About, read: fn(&Counters) -> &AtomicU64| {
        let samples =
            (0_u32..).zip(counters).map(|(shard, c)| ([("shard", shard)], value(read(c))));
        family(encoder, about, samples)
    };
    let help = "Connections that are open; the last shard is the control thread.";
    of(("afar_shard_connections", GAUGE, help), |c| &c.connections)?;
    of(("afar_shard_failures", COUNTER, "Commands that have failed."), |c| &c.failures)?;
    let help = "Connections that ended because of what the peer sent.";
    of(("afar_shard_violations", COUNTER, help), |c| &c.violations)?;
    let help = "Memory for data and answers on their way.";
    of(("afar_shard_lent_bytes", GAUGE, help), |c| &c.lent_bytes)?;
    let help = "Times that a command had to wait for memory.";
    of(("afar_shard_memory_waits", COUNTER, help), |c| &c.memory_waits)?;
    let help = "Connections that ended because data that was asked for did not come.";
    of(("afar_shard_late_data", COUNTER, help), |c| &c.late_data)?;
    let help = "Connections that ended because their peers did not read.";
    of(("afar_shard_unread", COUNTER, help), |c| &c.unread)?;
    of(("afar_shard_sleeps", COUNTER, "Times that the shard has slept."), |c| &c.sleeps)
}

// The value of label `operation`.
const fn operation(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Other => "other",
    }
}

// Reads a counter.
fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use backend::NullBackend;
    use target::{Happening, Identity};

    /// Has a test tell what it wants.
    struct Of<F>(F);

    impl<F> fmt::Debug for Of<F> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Of")
        }
    }

    impl<F> Collector for Of<F>
    where
        F: Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync + 'static,
    {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            self.0(&mut encoder)
        }
    }

    fn told<F>(what: F) -> String
    where
        F: Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync + 'static,
    {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Of(what)));
        text(&registry)
    }

    #[test]
    fn a_namespace_has_its_labels_and_all_shards() {
        let backend = Arc::new(NullBackend::new(1 << 20, 9));
        let namespace = Arc::new(Namespace::new(7, backend, Identity::drawn()));
        let row = Row { subsystem: "x".to_owned(), namespace, shard_count: 2 };
        let text = told(move |encoder| namespaces(encoder, std::slice::from_ref(&row)));
        let of = "{subsystem=\"x\",namespace=\"7\"";
        assert!(text.contains(&format!("afar_namespace_size_bytes{of}}} 1048576\n")), "{text}");
        assert!(text.contains(&format!("afar_namespace_lost{of}}} 0\n")), "{text}");
        let commands = format!("commands_total{of},operation=\"read\",shard=");
        assert_eq!(text.matches(&commands).count(), 2, "{text}");
        let last = format!("latency_seconds_bucket{of},operation=\"write\",le=\"+Inf\"}} 0\n");
        assert!(text.contains(&last), "{text}");
    }

    #[test]
    fn a_histogram_is_cumulative_and_ends_with_all() {
        let mut counts = [0; Latencies::BUCKETS];
        for (index, count) in counts.iter_mut().enumerate() {
            *count = index as u64 + 1;
        }
        let text = told(move |encoder| {
            let kind = MetricType::Histogram;
            let mut family = encoder.encode_descriptor("x", "y", None, kind)?;
            let all = counts.iter().sum();
            family.encode_histogram::<NoLabelSet>(2.5, all, &buckets(&counts), None)
        });
        let of = |line: &str| {
            let (end, count) = line.strip_prefix("x_bucket{le=\"")?.split_once("\"} ")?;
            Some((end.parse::<f64>().ok()?, count.parse::<u64>().ok()?))
        };
        let told: Vec<(f64, u64)> = text.lines().filter_map(of).collect();
        assert_eq!(told.len(), 98, "{text}");
        assert_eq!((told[0].0, told[4].0, told[97].0), (1.024e-6, 2.048e-6, f64::INFINITY));
        for (end, count) in &told {
            // A bucket has all that took no longer, told apart or not.
            let is_below =
                |index: &usize| Latencies::end_ns(*index).map_or(f64::INFINITY, seconds) <= *end;
            let below = (0..Latencies::BUCKETS).filter(is_below).map(|index| counts[index]);
            assert_eq!(*count, below.sum::<u64>(), "up to {end}");
        }
        let all: u64 = counts.iter().sum();
        assert!(text.ends_with(&format!("x_sum 2.5\nx_count {all}\n")), "{text}");
    }

    #[test]
    fn hosts_may_have_any_name() {
        let name = "a\"b\\c\nd}".to_owned();
        let usage = vec![(name.clone(), Usage { commands: 3, ..Usage::default() })];
        let events = vec![(name, vec![(Happening::LoggedIn, 2)])];
        let text = told(move |encoder| hosts(encoder, &usage, &events));
        let escaped = "host=\"a\\\"b\\\\c\\nd}\"";
        let line = format!("\nafar_host_commands_total{{{escaped}}} 3\n");
        assert!(text.contains(&line), "{text}");
        let line = format!("\nafar_host_events_total{{{escaped},event=\"login\"}} 2\n");
        assert!(text.contains(&line), "{text}");
    }
}
