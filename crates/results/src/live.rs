//! What goes on at one moment: a run, a target, the cells of a sweep. Whoever asks again and again
//! has a history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Findings, Record};

/// What `afar watch --json` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Watching {
    /// Version of the afar that wrote the record.
    pub version: String,
    /// What is watched, as a text.
    pub watched: String,
    /// Address of the page; whoever knows the address may look.
    pub url: String,
}

impl Record for Watching {
    const SCHEMA: &'static str = "afar.watch/1";
}

/// A run with far memory, as `afar ctl --json` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunState {
    /// The process id of afar itself.
    pub pid: u32,
    /// The program, as it was named.
    pub program: String,
    /// Time since the start of the program, in nanoseconds.
    pub elapsed_ns: u64,
    /// Processes with managed memory.
    pub process_count: u64,
    /// Memory that is local.
    pub local_bytes: u64,
    /// Memory that is far.
    pub far_bytes: u64,
    /// Fetches since the start.
    pub fetch_count: u64,
    /// The 99th percentile of all fetches since the start, in nanoseconds; 0 without any.
    pub fetch_p99_ns: u64,
    /// Faults that found no free frame of local memory, since the start.
    pub stall_count: u64,
    /// Tiers in the order of their numbers; the default tier is the first.
    pub tiers: Vec<TierState>,
}

/// A tier as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TierState {
    /// Name of the tier.
    pub name: String,
    /// Local memory as a user writes it; `none` for no limit.
    pub local: String,
    /// Round-trip time of the tier's link, in nanoseconds.
    pub rtt_ns: u64,
    /// Bandwidth of one direction of the link, in bits per second; missing if unlimited.
    pub bandwidth_bps: Option<u64>,
    /// How transfers share the link.
    pub link: String,
    /// Whether times are drawn from a profile, in place of the round trip.
    pub profile: bool,
}

/// What a target has done in an interval, as `afar top --json` has it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetView {
    /// Length of the interval by the target's clock, in seconds.
    pub interval_s: f64,
    /// Namespaces in order of subsystem and identifier.
    pub namespaces: Vec<NamespaceView>,
    /// Shards in the order of their numbers.
    pub shards: Vec<ShardView>,
    /// Hosts, by the memory that each holds, then by the bytes that each moves, most first.
    pub hosts: Vec<HostView>,
    /// Namespaces whose memory is leased to hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<LeaseView>,
}

/// Memory of a namespace of which each host sees a view of its own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lease {
    /// Views whose hosts are connected.
    pub held: f64,
    /// Views whose lease runs out.
    pub lapsing: f64,
    /// Bytes of all views.
    pub used_bytes: f64,
    /// Limit on the bytes of all views together.
    pub total_bytes: f64,
    /// Bytes of a view at most.
    pub quota_bytes: f64,
    /// Leases that have ended with bytes left, since the start.
    pub ended: f64,
    /// Writes that found no memory, since the start.
    pub refused_writes: f64,
    /// Bytes of each view, by host identifier.
    pub views: BTreeMap<String, f64>,
}

/// A namespace whose memory is leased.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeaseView {
    /// Name of the subsystem that has the namespace.
    pub subsystem: String,
    /// Identifier of the namespace.
    pub namespace: u32,
    /// Views of the namespace's memory, now.
    #[serde(flatten)]
    pub lease: Lease,
}

/// What a namespace has done in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceView {
    /// Name of the subsystem that has the namespace.
    pub subsystem: String,
    /// Identifier of the namespace.
    pub namespace: u32,
    /// Size of the namespace.
    pub size_bytes: f64,
    /// Reads of the namespace in the interval.
    pub read: OperationView,
    /// Writes of the namespace in the interval.
    pub write: OperationView,
    /// Median latency of reads and writes together, in microseconds; missing without any.
    pub p50_us: Option<f64>,
    /// 99th percentile of the latency of reads and writes together, in microseconds; missing
    /// without any.
    pub p99_us: Option<f64>,
    /// Commands that failed, per second.
    pub failures_per_s: f64,
    /// Commands received and not answered yet, now.
    pub in_flight: f64,
}

/// Reads or writes of an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationView {
    /// Commands in the interval.
    pub commands: f64,
    /// Commands per second.
    pub iops: f64,
    /// Megabytes (10^6 bytes) per second.
    pub mb_per_s: f64,
    /// Median latency, in microseconds; missing without commands.
    pub p50_us: Option<f64>,
    /// 99th percentile of the latency, in microseconds; missing without commands.
    pub p99_us: Option<f64>,
}

/// What a thread of the target has done in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShardView {
    /// Number of the shard.
    pub shard: u32,
    /// Share of the interval in which the shard worked, 0 to 1.
    pub utilisation: f64,
    /// Open connections, now.
    pub connections: f64,
}

/// What a host or an initiator has done in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostView {
    /// Name that the host has given itself.
    pub host: String,
    /// Commands per second.
    pub iops: f64,
    /// Megabytes (10^6 bytes) per second.
    pub mb_per_s: f64,
    /// Memory that the host's data takes on its way, now.
    pub memory_bytes: f64,
    /// Waits of commands for memory, per second.
    pub memory_waits_per_s: f64,
    /// Open connections, now.
    pub connections: f64,
}

/// How far the runs of a directory have come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Runs that have ended.
    pub run_count: u64,
    /// Runs in all; nothing where that is found out on the way.
    pub runs_of: Option<u64>,
    /// What the figure of a run is.
    pub metric: String,
    /// Those that are known from the start first, then others as they have begun.
    pub cells: Vec<CellProgress>,
}

/// How far one cell has come.
#[derive(Debug, Clone, PartialEq)]
pub struct CellProgress {
    /// Its name.
    pub name: String,
    /// Runs that have ended.
    pub run_count: u64,
    /// Runs in all, if that is known.
    pub runs_of: Option<u64>,
    /// Runs that failed or are invalid.
    pub trouble_count: u64,
    /// Why the last of them did or is.
    pub last_trouble: Option<String>,
    /// The figure of the last run that has one.
    pub last_value: Option<f64>,
}

/// The directory of a sweep at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepState {
    /// How far it has come.
    pub progress: Progress,
    /// What the runs say so far, if they are of a kind that findings are made of.
    pub findings: Option<Findings>,
}

impl CellProgress {
    /// The progress of a cell without runs; `runs_of` is how many it will have, if that is known.
    #[must_use]
    pub fn new(name: impl Into<String>, runs_of: Option<u64>) -> Self {
        let name = name.into();
        Self { name, run_count: 0, runs_of, trouble_count: 0, last_trouble: None, last_value: None }
    }

    /// Adds a run that has ended: with its figure, or with the reason why it has none.
    pub fn add(&mut self, value: Option<f64>, trouble: Option<&str>) {
        self.run_count += 1;
        if let Some(why) = trouble {
            self.trouble_count += 1;
            self.last_trouble = Some(why.to_owned());
        }
        self.last_value = value.or(self.last_value);
    }
}
