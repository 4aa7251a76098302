//! What a target has done as Prometheus' text format 0.0.4.

use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sys::clock::monotonic_ns;
use target::{Counters, Kind, Latencies, Namespace, NamespaceCounters, Observer, Usage};

/// Ends of the buckets that are told, in nanoseconds: 1 µs and less are one, and so are 17 s and
/// more.
const SHORTEST_NS: u64 = 1 << 10;
const LONGEST_NS: u64 = 1 << 34;

/// A namespace and what each shard has done with it.
struct Row<'a> {
    namespace: &'a Namespace,
    labels: String,
    shards: Vec<(u16, Option<&'a NamespaceCounters>)>,
}

/// Text that grows.
#[derive(Default)]
struct Page(String);

/// What there is to tell of a target that was started at that time.
pub(crate) fn render(observer: &Observer, began_ns: u64) -> String {
    let mut page = Page::default();
    page.family("afar_build_info", "gauge", "The version that runs, as a label.");
    page.sample("afar_build_info", &format!("version=\"{}\"", env!("CARGO_PKG_VERSION")), 1);
    let uptime = seconds(monotonic_ns().saturating_sub(began_ns));
    page.family("afar_uptime_seconds", "gauge", "Since the target was started.");
    page.sample("afar_uptime_seconds", "", uptime);
    // The last is the control thread, which does nothing with namespaces.
    let shard_count = observer.counters().len().saturating_sub(1);
    let shard_count = u16::try_from(shard_count).unwrap_or(u16::MAX);
    let subsystems = observer.subsystems();
    let namespaces: Vec<(String, Arc<Namespace>)> = subsystems
        .iter()
        .flat_map(|subsystem| {
            let nqn = escape(subsystem.nqn.as_str());
            let namespaces = subsystem.namespaces();
            let all = namespaces.iter().map(|one| {
                (format!("subsystem=\"{nqn}\",namespace=\"{}\"", one.id), Arc::clone(one))
            });
            all.collect::<Vec<_>>()
        })
        .collect();
    let rows: Vec<Row<'_>> =
        namespaces.iter().map(|(labels, one)| Row::new(labels, one, shard_count)).collect();
    page.namespaces(&rows);
    page.shards(observer.counters());
    page.hosts(observer);
    page.0
}

impl<'a> Row<'a> {
    fn new(labels: &str, namespace: &'a Namespace, shard_count: u16) -> Self {
        let mut shards: Vec<_> = (0..shard_count).map(|shard| (shard, None)).collect();
        for (shard, counters) in namespace.counters() {
            if let Some(place) = shards.get_mut(usize::from(shard)) {
                place.1 = Some(counters);
            }
        }
        Self { namespace, labels: labels.to_owned(), shards }
    }
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _infallible = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _infallible = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            _ => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn namespaces(&mut self, rows: &[Row<'_>]) {
        let name = "afar_namespace_size_bytes";
        self.family(name, "gauge", "How large the namespace is.");
        for row in rows {
            self.sample(name, &row.labels, row.namespace.backend.geometry().bytes());
        }
        let name = "afar_namespace_lost";
        let help = "1 once its device has failed to keep what was written: no flush ends well any \
                    more until it is opened anew.";
        self.family(name, "gauge", help);
        for row in rows {
            self.sample(name, &row.labels, u8::from(row.namespace.backend.lost().is_some()));
        }
        let all = &Kind::ALL[..];
        let name = "afar_namespace_commands_total";
        self.family(name, "counter", "Commands that have been answered, however they went.");
        self.by_kind(name, rows, all, |c, kind| &c.of(kind).commands);
        let name = "afar_namespace_failures_total";
        self.family(name, "counter", "Commands that have failed.");
        self.by_kind(name, rows, all, |c, kind| &c.of(kind).failures);
        let name = "afar_namespace_transferred_bytes_total";
        self.family(name, "counter", "Bytes that were read or written.");
        let moving = &[Kind::Read, Kind::Write];
        self.by_kind(name, rows, moving, |c, kind| &c.of(kind).bytes);
        let name = "afar_namespace_in_flight_commands";
        self.family(name, "gauge", "Commands that have been taken and not answered.");
        for row in rows {
            for (shard, counters) in &row.shards {
                let labels = format!("{},shard=\"{shard}\"", row.labels);
                self.sample(name, &labels, counters.map_or(0, |c| value(&c.in_flight)));
            }
        }
        let name = "afar_namespace_latency_seconds";
        self.family(name, "histogram", "From taking a command to answering it, of all shards.");
        for row in rows {
            for kind in Kind::ALL {
                self.histogram(name, row, kind);
            }
        }
    }

    fn by_kind(
        &mut self,
        name: &str,
        rows: &[Row<'_>],
        kinds: &[Kind],
        of: impl Fn(&NamespaceCounters, Kind) -> &AtomicU64,
    ) {
        for row in rows {
            for &kind in kinds {
                for (shard, counters) in &row.shards {
                    let operation = operation(kind);
                    let labels =
                        format!("{},operation=\"{operation}\",shard=\"{shard}\"", row.labels);
                    self.sample(name, &labels, counters.map_or(0, |c| value(of(c, kind))));
                }
            }
        }
    }

    fn histogram(&mut self, name: &str, row: &Row<'_>, kind: Kind) {
        let mut counts = [0; Latencies::BUCKETS];
        let mut sum_ns = 0;
        for latency in row.shards.iter().filter_map(|(_, c)| Some(&(*c)?.of(kind).latency)) {
            sum_ns += latency.sum_ns();
            for (sum, count) in counts.iter_mut().zip(latency.counts()) {
                *sum += count;
            }
        }
        let labels = format!("{},operation=\"{}\"", row.labels, operation(kind));
        let bucket = format!("{name}_bucket");
        let mut below = 0;
        for (index, count) in counts.iter().enumerate() {
            below += count;
            let told = Latencies::end_ns(index)
                .filter(|end_ns| (SHORTEST_NS..=LONGEST_NS).contains(end_ns));
            if let Some(end_ns) = told {
                let labels = format!("{labels},le=\"{}\"", seconds(end_ns));
                self.sample(&bucket, &labels, below);
            }
        }
        self.sample(&bucket, &format!("{labels},le=\"+Inf\""), below);
        self.sample(&format!("{name}_sum"), &labels, seconds(sum_ns));
        self.sample(&format!("{name}_count"), &labels, below);
    }

    fn hosts(&mut self, observer: &Observer) {
        let usage = observer.usage();
        let mut of = |name: &str, kind: &str, help: &str, read: fn(&Usage) -> u64| {
            self.family(name, kind, help);
            for (host, usage) in &usage {
                self.sample(name, &format!("host=\"{}\"", escape(host)), read(usage));
            }
        };
        of("afar_host_connections", "gauge", "I/O queues, or connections of sessions.", |one| {
            one.connections
        });
        of("afar_host_memory_bytes", "gauge", "Memory for its data and answers.", |one| {
            one.memory_bytes
        });
        of(
            "afar_host_memory_waits_total",
            "counter",
            "Times that a command of the host had to wait for memory.",
            |one| one.memory_waits,
        );
        of("afar_host_commands_total", "counter", "I/O commands that were answered.", |one| {
            one.commands
        });
        let name = "afar_host_transferred_bytes_total";
        of(name, "counter", "Bytes that were read or written.", |one| one.bytes);
        let name = "afar_host_events_total";
        self.family(name, "counter", "What has happened, by host; \"\" has not said its name.");
        for (host, counts) in observer.witness().counts() {
            for (what, count) in counts {
                let labels = format!("host=\"{}\",event=\"{}\"", escape(&host), what.name());
                self.sample(name, &labels, count);
            }
        }
    }

    fn shards(&mut self, counters: &[Arc<Counters>]) {
        let mut of = |name: &str, kind: &str, help: &str, read: fn(&Counters) -> String| {
            self.family(name, kind, help);
            for (shard, counters) in counters.iter().enumerate() {
                self.sample(name, &format!("shard=\"{shard}\""), read(counters));
            }
        };
        of(
            "afar_shard_busy_seconds_total",
            "counter",
            "Processor time of the shard, without what it spent looking for work.",
            |c| seconds(value(&c.busy_ns)).to_string(),
        );
        of(
            "afar_shard_connections",
            "gauge",
            "Connections that are open; the last shard is the control thread.",
            |c| value(&c.connections).to_string(),
        );
        of("afar_shard_failures_total", "counter", "Commands that have failed.", |c| {
            value(&c.failures).to_string()
        });
        of(
            "afar_shard_violations_total",
            "counter",
            "Connections that ended because of what the peer sent.",
            |c| value(&c.violations).to_string(),
        );
        of("afar_shard_lent_bytes", "gauge", "Memory for data and answers on their way.", |c| {
            value(&c.lent_bytes).to_string()
        });
        of(
            "afar_shard_memory_waits_total",
            "counter",
            "Times that a command had to wait for memory.",
            |c| value(&c.memory_waits).to_string(),
        );
        of(
            "afar_shard_late_data_total",
            "counter",
            "Connections that ended because data that was asked for did not come.",
            |c| value(&c.late_data).to_string(),
        );
        of(
            "afar_shard_unread_total",
            "counter",
            "Connections that ended because their peers did not read.",
            |c| value(&c.unread).to_string(),
        );
        of("afar_shard_sleeps_total", "counter", "Times that the shard has slept.", |c| {
            value(&c.sleeps).to_string()
        });
    }
}

const fn operation(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Other => "other",
    }
}

fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

// Of a label's value.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use backend::NullBackend;
    use target::Identity;

    #[test]
    fn a_histogram_is_cumulative_and_ends_with_all() {
        let backend = Arc::new(NullBackend::new(1 << 20, 9));
        let namespace = Namespace::new(7, backend, Identity::drawn());
        let row = Row::new("subsystem=\"x\",namespace=\"7\"", &namespace, 2);
        let mut page = Page::default();
        page.namespaces(&[row]);
        let text = page.0;
        assert!(
            text.contains("afar_namespace_size_bytes{subsystem=\"x\",namespace=\"7\"} 1048576")
        );
        assert!(text.contains("afar_namespace_lost{subsystem=\"x\",namespace=\"7\"} 0"));
        let commands = "commands_total{subsystem=\"x\",namespace=\"7\",operation=\"read\",shard=";
        assert_eq!(text.matches(commands).count(), 2, "{text}");
        let buckets: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("_bucket") && line.contains("\"write\""))
            .filter_map(|line| line.split("le=\"").nth(1)?.split('"').next())
            .collect();
        assert_eq!((buckets[0], buckets[4]), ("0.000001024", "0.000002048"));
        assert_eq!(buckets.last(), Some(&"+Inf"));
        let ends: Vec<f64> = buckets.iter().map(|end| end.parse().expect("a number")).collect();
        assert!(ends.is_sorted() && ends.len() == 98, "{ends:?}");
    }

    #[test]
    fn labels_may_have_any_text() {
        assert_eq!(escape("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
