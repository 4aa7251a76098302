//! A target's counters at one time, from the text of its metrics.

use std::collections::BTreeMap;

use super::leases::{self, Leases};
use super::line::{Line, number};

/// A target's counters at one time.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Sample {
    /// Seconds since the target was started.
    pub(super) uptime: f64,
    /// Namespaces, by subsystem and identifier.
    pub(super) namespaces: BTreeMap<(String, u32), NamespaceSample>,
    /// Shards, by number.
    pub(super) shards: BTreeMap<u32, ShardSample>,
    /// Hosts, by name.
    pub(super) hosts: BTreeMap<String, HostSample>,
    pub(super) leases: Leases,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct NamespaceSample {
    pub(super) size_bytes: f64,
    pub(super) in_flight: f64,
    pub(super) failures: f64,
    pub(super) read: OperationSample,
    pub(super) write: OperationSample,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct OperationSample {
    pub(super) commands: f64,
    pub(super) bytes: f64,
    /// Upper bounds in seconds, ascending, each with the number of commands that took no longer.
    pub(super) buckets: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ShardSample {
    pub(super) busy_seconds: f64,
    pub(super) connections: f64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct HostSample {
    pub(super) connections: f64,
    pub(super) memory_bytes: f64,
    pub(super) memory_waits: f64,
    pub(super) commands: f64,
    pub(super) bytes: f64,
}

impl Sample {
    /// Parses metrics; ignores unknown ones.
    ///
    /// # Errors
    /// When a line is malformed, or the metrics are not those of an afar target.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut sample = Self::default();
        let mut is_ours = false;
        let lines = text.lines().map(str::trim);
        for (number, line) in (1..).zip(lines) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = Line::read(line).ok_or_else(|| format!("line {number} is no metric"))?;
            is_ours |= line.name == "afar_uptime_seconds";
            sample.take(&line);
        }
        if is_ours { Ok(sample) } else { Err("there are no metrics of afar".to_owned()) }
    }

    // Adds one sample of a metric.
    fn take(&mut self, line: &Line) {
        let Line { name, value, .. } = line;
        if name == "afar_uptime_seconds" {
            self.uptime = *value;
        } else if let Some(name) = name.strip_prefix("afar_namespace_") {
            self.take_namespace(name, line);
        } else if let Some(name) = name.strip_prefix("afar_view") {
            leases::take(&mut self.leases, name, line);
        } else if let Some(name) = name.strip_prefix("afar_host_")
            && name != "events_total"
            && let Some(host) = line.labels.get("host")
        {
            self.take_host(name, host, *value);
        } else if let Some(name) = name.strip_prefix("afar_shard_")
            && let Some(shard) = line.number("shard")
        {
            let shard = self.shards.entry(shard).or_default();
            match name {
                "busy_seconds_total" => shard.busy_seconds = *value,
                "connections" => shard.connections = *value,
                _ => {}
            }
        }
    }

    // Adds a metric of a host; `name` is what follows `afar_host_`.
    fn take_host(&mut self, name: &str, host: &str, value: f64) {
        let host = self.hosts.entry(host.to_owned()).or_default();
        match name {
            "connections" => host.connections = value,
            "memory_bytes" => host.memory_bytes = value,
            "memory_waits_total" => host.memory_waits = value,
            "commands_total" => host.commands = value,
            "transferred_bytes_total" => host.bytes = value,
            _ => {}
        }
    }

    // Adds a metric of a namespace; `name` is what follows `afar_namespace_`.
    fn take_namespace(&mut self, name: &str, line: &Line) {
        let value = line.value;
        let Some(subsystem) = line.labels.get("subsystem") else { return };
        let Some(id) = line.number("namespace") else { return };
        let namespace = self.namespaces.entry((subsystem.clone(), id)).or_default();
        match name {
            "size_bytes" => namespace.size_bytes = value,
            "in_flight_commands" => namespace.in_flight += value,
            "failures_total" => namespace.failures += value,
            _ => {}
        }
        let operation = match line.labels.get("operation").map(String::as_str) {
            Some("read") => &mut namespace.read,
            Some("write") => &mut namespace.write,
            _ => return,
        };
        match name {
            "commands_total" => operation.commands += value,
            "transferred_bytes_total" => operation.bytes += value,
            "latency_seconds_bucket" => {
                if let Some(end) = line.labels.get("le").and_then(|end| number(end)) {
                    operation.buckets.push((end, value));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_names_labels_and_a_number() {
        let line =
            Line::read("a_b{x=\"1\",y=\"q\\\"\\\\\\n}\"} 2.5 1700000000").expect("it is one");
        assert_eq!((line.name.as_str(), line.value), ("a_b", 2.5));
        assert_eq!(line.labels["y"], "q\"\\\n}");
        assert_eq!(Line::read("a 1").map(|line| line.value), Some(1.0));
        assert_eq!(Line::read("a{} +Inf").map(|line| line.value), Some(f64::INFINITY));
        for wrong in ["a", "a b", "{x=\"1\"} 1", "a{x=1} 1", "a{x=\"1} 1", "a{x=\"1\" 1", "a{"] {
            assert_eq!(Line::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn shards_of_a_namespace_are_summed() {
        let commands = "afar_namespace_commands_total{subsystem=\"s\",namespace=\"2\"";
        let latency = "afar_namespace_latency_seconds_bucket{subsystem=\"s\",namespace=\"2\"";
        let text = format!(
            "# HELP x\nafar_uptime_seconds 3\n\
             {commands},operation=\"read\",shard=\"0\"}} 5\n\
             {commands},operation=\"read\",shard=\"1\"}} 7\n\
             {latency},operation=\"read\",le=\"+Inf\"}} 12\n\
             afar_shard_connections{{shard=\"1\"}} 4\nother 1\n\
             afar_host_memory_bytes{{host=\"nqn.h\"}} 9\n\
             afar_host_events_total{{host=\"nqn.h\",event=\"login\"}} 1\n"
        );
        let sample = Sample::read(&text).expect("it is one");
        let namespace = &sample.namespaces[&("s".to_owned(), 2)];
        assert_eq!(namespace.read.commands, 12.0);
        assert_eq!(namespace.read.buckets, [(f64::INFINITY, 12.0)]);
        assert_eq!((sample.hosts.len(), sample.hosts["nqn.h"].memory_bytes), (1, 9.0));
        assert_eq!((sample.uptime, sample.shards[&1].connections), (3.0, 4.0));
        assert!(Sample::read("other 1\n").expect_err("it is not").contains("no metrics of afar"));
        assert!(Sample::read("<html>\n").expect_err("it is not").contains("line 1"));
    }
}
