//! The benchmark `fair`: does a tenant of `afar serve` suffer from other hosts of the same target?
//!
//! ```text
//! bench fair ─► two targets ─► bench attackers on one of them, two slow writers, two neighbours
//! ```
//!
//! The neighbours always load the first target. In a run the attackers are on the same target, in
//! the control on the second, so that the machine is equally busy in both.

mod attackers;
mod host;
mod initiator;
mod link;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sys::group::{Group, Hierarchy};

use crate::context::Context;
use crate::failure::Failure;
use crate::flash::serve::{fill, free_port, wait_for, words};
use crate::process::{Job, LONG};
use crate::report::{Bound, Report, Table, Verdict};
use crate::stats::Spread;

pub(crate) use attackers::run as attack;

/// Memory limit of a target's control group, its page cache included.
const GROUP_BYTES: u64 = 256 << 20;
const FILE_BYTES: u64 = 256 << 20;
const NQN: &str = "nqn.2026-11.example:";
const IQN: &str = "iqn.2026-11.example:";
const IDLE: f64 = 10_000.0;
/// Depth of the writers on slow links; an iSCSI session takes fewer at a time.
const SLOW_DEPTH: &str = "200";
/// Time for 10,000 connections to be closed.
const SETTLE: Duration = Duration::from_secs(15);
const NEIGHBOURS: [&str; 4] = ["NVMe/TCP reads", "NVMe/TCP writes", "iSCSI reads", "iSCSI writes"];
const TENANTS: usize = 6;

/// A target with a disk for the neighbour and one for the attackers.
struct Server {
    job: Job,
    nvme: u16,
    iscsi: u16,
    group: Option<Group>,
}

impl Server {
    /// Starts a target in a control group, if the machine has them, and waits until it listens.
    fn start(context: &Context, name: &str) -> Result<Self, Failure> {
        let [nvme, iscsi] = [free_port()?, free_port()?];
        let mut command: Vec<OsString> = vec![context.afar.clone().into(), "serve".into()];
        for disk in ["disk", "other"] {
            let path = context.fresh("img");
            fill(&path, FILE_BYTES)?;
            command.push(format!("{NQN}{disk}=file:{}", path.display()).into());
        }
        let [own, other] = [nvme, iscsi].map(|port| format!("127.0.0.1:{port}"));
        command.extend(words(&["--nvme", &own, "--iscsi", &other, "--log", "error", "--quiet"]));
        let group = Hierarchy::find().map(|all| {
            Group::create(&all.root.join(format!("afar-bench-{}-{name}", std::process::id())))
        });
        let group = group.transpose()?;
        if let Some(group) = &group {
            group.limit(Some(GROUP_BYTES))?;
        }
        let mut job = Job::start_in(context, &command, group.as_ref())?;
        wait_for(&mut job, nvme)?;
        Ok(Self { job, nvme, iscsi, group })
    }

    /// The resident memory of the target, in bytes.
    fn resident_bytes(&self) -> Result<f64, Failure> {
        let path = format!("/proc/{}/statm", self.job.pid());
        let text = std::fs::read_to_string(&path).map_err(Failure::file("read", &path))?;
        let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
        Ok(pages.unwrap_or(0.0) * 4096.0)
    }

    /// The URI of one of its disks.
    fn uri(&self, over_iscsi: bool, disk: &str) -> String {
        if over_iscsi {
            format!("iscsi://127.0.0.1:{}/{IQN}{disk}/0", self.iscsi)
        } else {
            format!("nvme+tcp://127.0.0.1:{}/{NQN}{disk}", self.nvme)
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.job.kill();
        if let Some(group) = &self.group {
            let _left = group.remove();
        }
    }
}

/// The process of the attackers, killed when this is dropped.
struct Crowd {
    job: Job,
    links: [String; 2],
    ready: PathBuf,
}

impl Crowd {
    /// Starts the attackers and waits until all are connected.
    fn start(context: &Context, server: &Server, idle_only: bool) -> Result<Self, Failure> {
        let ready = context.fresh("ready");
        let mut command = context.hidden("attackers");
        let [nvme, iscsi] = [server.nvme, server.iscsi].map(|port| format!("127.0.0.1:{port}"));
        let (nqn, iqn) = (format!("{NQN}other"), format!("{IQN}other"));
        command.extend(words(&["--nvme", &nvme, "--iscsi", &iscsi, "--nqn", &nqn]));
        command.extend(words(&["--iqn", &iqn, "--ready"]));
        command.push(ready.clone().into());
        if idle_only {
            command.push("--idle-only".into());
        }
        let mut job = Job::start(context, &command)?;
        let links = wait_for_file(&mut job, &ready)?;
        let mut links = links.split(' ').map(str::to_owned);
        let links = [(); 2].map(|()| links.next().unwrap_or_default());
        Ok(Self { job, links, ready })
    }

    // Ends the attack and returns its record; an error if an attacker failed.
    fn finish(self) -> Result<Value, Failure> {
        std::fs::remove_file(&self.ready).map_err(Failure::file("remove", &self.ready))?;
        let said = self.job.finish(LONG)?;
        let record = serde_json::from_str::<Value>(&said).unwrap_or(Value::Null);
        if record["failures"].as_u64() == Some(0) {
            return Ok(record);
        }
        let (program, wanted) = ("bench attackers", "attack without failures");
        Err(Failure::Unreadable { program, wanted, said })
    }
}

/// Waits until `job` has written the file at `path`, and reads it.
fn wait_for_file(job: &mut Job, path: &PathBuf) -> Result<String, Failure> {
    let deadline = Instant::now() + LONG;
    loop {
        if let Ok(text) = std::fs::read_to_string(path) {
            return Ok(text);
        }
        if Instant::now() > deadline {
            return Err(job.too_slow("connect", LONG));
        }
        job.check()?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The results of one run.
struct Sample {
    /// 99th percentiles in microseconds, in the order of [`NEIGHBOURS`].
    p99_us: [f64; 4],
    /// Completed commands of the two slow writers.
    slow: [f64; 2],
    changes: f64,
    /// Peak memory of the attacked target's control group.
    group_bytes: f64,
    resident_bytes: [f64; 2],
}

/// Runs the benchmark.
///
/// # Errors
/// When a program fails, or a neighbour or slow writer gets an error.
pub(crate) fn run(context: &Context) -> Result<Report, Failure> {
    let seconds = context.size(20, 4);
    let idle = idle_memory(context)?;
    let tenants = context.alternate("tenants", &[()], |()| tenants(context))?;
    let spread = tenants[0].iter().map(|rates| unevenness(rates));
    let spread = Spread::of(spread);
    let runs = context
        .alternate("fair", &[true, false], |attacked| sample(context, *attacked, seconds))?;
    let mut table =
        Table::new(&["p99 of a 4 KiB request, us", "beside attackers", "control", "added"]);
    let mut verdicts = Vec::new();
    let mut results = serde_json::Map::new();
    for (which, name) in NEIGHBOURS.iter().enumerate() {
        let of = |runs: &[Sample]| Spread::of(runs.iter().map(|run| run.p99_us[which]));
        let added = runs[0].iter().zip(&runs[1]).map(|(a, b)| a.p99_us[which] - b.p99_us[which]);
        let (attacked, control, added) = (of(&runs[0]), of(&runs[1]), Spread::of(added));
        table.row(vec![(*name).to_owned(), attacked.show(0), control.show(0), added.show(0)]);
        results.insert(
            (*name).to_owned(),
            json!({
                "attacked_us": attacked.json(), "control_us": control.json(),
                "added_us": added.json(),
            }),
        );
        verdicts.push(Verdict {
            what: format!("{name}: what attackers add to the 99th percentile"),
            value: added.median,
            bound: Bound::AtMost(1000.0),
            unit: "us",
        });
    }
    let attacked = &runs[0];
    let most = |of: fn(&Sample) -> f64| attacked.iter().map(of).fold(0.0, f64::max);
    let memory = Memory { idle, group_bytes: most(|run| run.group_bytes), spread };
    let back = most(|run| run.resident_bytes[1] / run.resident_bytes[0]);
    let least = |of: fn(&Sample) -> f64| attacked.iter().map(of).fold(f64::MAX, f64::min);
    let slow = least(|run| run.slow[0].min(run.slow[1]));
    let changes = least(|run| run.changes);
    memory.add(&mut verdicts, &mut results, back);
    results.insert("slow_writers_requests".to_owned(), json!(slow));
    results.insert("reservation_changes_per_s".to_owned(), json!(changes));
    let text = format!(
        "{}attackers: 10,000 idle connections of 200 hosts, 1,024 discovery controllers, 16 hosts \
         stalled in writes,\n16 that do not read, a writer on a 100 Mb/s link {SLOW_DEPTH} deep \
         over each protocol ({slow:.0} writes at least),\n{changes:.0} reservation changes a \
         second at least; the target is in a control group of 256 MiB\n",
        table.text()
    );
    Ok(Report {
        name: "fair",
        settings: json!({
            "seconds": seconds,
            "neighbours": NEIGHBOURS,
            "request": "4 KiB, random, half reads, one at a time, on a file",
            "group_bytes": GROUP_BYTES,
        }),
        results: Value::Object(results),
        text,
        verdicts,
    })
}

/// The memory of targets, and how evenly tenants share one.
struct Memory {
    /// Bytes of an idle connection, and resident memory after all have gone over that before.
    idle: [f64; 2],
    group_bytes: f64,
    spread: Spread,
}

impl Memory {
    /// Adds the verdicts on memory and tenants, and their figures.
    fn add(
        &self,
        verdicts: &mut Vec<Verdict>,
        results: &mut serde_json::Map<String, Value>,
        back: f64,
    ) {
        let mut verdict = |what: &str, value: f64, bound: f64, unit: &'static str| {
            let bound = Bound::AtMost(bound);
            results.insert(what.to_owned(), json!(value));
            verdicts.push(Verdict { what: what.to_owned(), value, bound, unit });
        };
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        verdict("memory of an idle connection", self.idle[0], 8192.0, "bytes");
        verdict("memory after 10,000 idle connections over that before", self.idle[1], 1.1, "");
        verdict("memory of the attacked target's group, peak", mib(self.group_bytes), 256.0, "MiB");
        verdict("memory after an attack over that before", back, 1.1, "");
        verdict("six tenants: farthest from the mean rate", self.spread.median, 0.15, "");
    }
}

// Bytes of each of 10,000 idle connections, and resident memory after them over that before.
fn idle_memory(context: &Context) -> Result<[f64; 2], Failure> {
    let server = Server::start(context, "idle")?;
    warm_up(context, &server)?;
    let before = server.resident_bytes()?;
    let crowd = Crowd::start(context, &server, true)?;
    std::thread::sleep(Duration::from_secs(1));
    let with = server.resident_bytes()?;
    crowd.finish()?;
    std::thread::sleep(SETTLE);
    Ok([(with - before) / IDLE, server.resident_bytes()? / before])
}

// Loads the target, so that it has allocated what any load needs before memory is measured.
fn warm_up(context: &Context, server: &Server) -> Result<(), Failure> {
    for over_iscsi in [false, true] {
        neighbour(context, server, over_iscsi, 1)?.finish(LONG)?;
    }
    std::thread::sleep(Duration::from_secs(3));
    Ok(())
}

// Starts the neighbour's load on its disk.
fn neighbour(
    context: &Context,
    server: &Server,
    over_iscsi: bool,
    seconds: u64,
) -> Result<Job, Failure> {
    load(context, &server.uri(over_iscsi, "disk"), "randrw", ["4096", "1"], seconds)
}

// Starts `afar bench` on `uri`.
fn load(
    context: &Context,
    uri: &str,
    kind: &str,
    [bytes, depth]: [&str; 2],
    seconds: u64,
) -> Result<Job, Failure> {
    let mut command: Vec<OsString> = vec![context.afar.clone().into()];
    let runtime = format!("{seconds}s");
    command.extend(words(&["bench", uri, "--json", "-", "--quiet", "--duration", &runtime]));
    command.extend(words(&["--rw", kind, "--bs", bytes, "--depth", depth]));
    Job::start(context, &command)
}

// One run: neighbours on the first target, attackers on the same or (the control) the other.
fn sample(context: &Context, attacked: bool, seconds: u64) -> Result<Sample, Failure> {
    let servers = [Server::start(context, "one")?, Server::start(context, "two")?];
    for server in &servers {
        warm_up(context, server)?;
    }
    let place = &servers[usize::from(!attacked)];
    let before = place.resident_bytes()?;
    let crowd = Crowd::start(context, place, false)?;
    let [nvme, iscsi] = &crowd.links;
    let slow = [format!("nvme+tcp://{nvme}/{NQN}other"), format!("iscsi://{iscsi}/{IQN}other/0")]
        .map(|uri| load(context, &uri, "write", ["1048576", SLOW_DEPTH], seconds + 2));
    let slow = slow.into_iter().collect::<Result<Vec<_>, _>>()?;
    let neighbours = [false, true].map(|iscsi| neighbour(context, &servers[0], iscsi, seconds));
    let neighbours = neighbours.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut p99_us = [0.0; 4];
    for (which, job) in neighbours.into_iter().enumerate() {
        let record = record(job)?;
        for (kind, name) in ["read", "write"].iter().enumerate() {
            let p99 = &record["jobs"][0][name]["lat_ns"]["percentile"]["99.000000"];
            p99_us[which * 2 + kind] = number(p99, "a 99th percentile", &record)? / 1e3;
        }
    }
    let mut slow_requests = [0.0; 2];
    for (place, job) in slow_requests.iter_mut().zip(slow) {
        let record = record(job)?;
        *place = number(&record["jobs"][0]["write"]["total_ios"], "writes", &record)?;
    }
    let said = crowd.finish()?;
    std::thread::sleep(SETTLE);
    let group = place.group.as_ref();
    Ok(Sample {
        p99_us,
        slow: slow_requests,
        changes: said["changes_per_s"].as_f64().unwrap_or(0.0),
        group_bytes: group.and_then(Group::resident_peak_bytes).unwrap_or(0) as f64,
        resident_bytes: [before, place.resident_bytes()?],
    })
}

// Waits for a load and parses its record.
fn record(job: Job) -> Result<Value, Failure> {
    let said = job.finish(LONG)?;
    let (program, wanted) = ("afar bench", "a record");
    serde_json::from_str(&said).map_err(|_| Failure::Unreadable { program, wanted, said })
}

// A value of a record as a number.
fn number(value: &Value, wanted: &'static str, record: &Value) -> Result<f64, Failure> {
    let program = "afar bench";
    let missing = || Failure::Unreadable { program, wanted, said: record.to_string() };
    value.as_f64().ok_or_else(missing)
}

// The IOPS of six tenants with one queue each on a target with four shards.
fn tenants(context: &Context) -> Result<Vec<f64>, Failure> {
    let port = free_port()?;
    let address = format!("127.0.0.1:{port}");
    let mut command: Vec<OsString> = vec![context.afar.clone().into()];
    // A slow device, so that tenants do not compete for processors.
    let disk = format!("{NQN}disk=model:pm1725:memory:1GiB");
    command.extend(words(&["serve", &disk, "--nvme", &address, "--shards", "4", "--quiet"]));
    let mut server = Job::start(context, &command)?;
    wait_for(&mut server, port)?;
    let uri = format!("nvme+tcp://{address}/{NQN}disk");
    let loads = (0..TENANTS)
        .map(|_| load(context, &uri, "randread", ["4096", "4"], context.size(5, 2)))
        .collect::<Result<Vec<_>, _>>()?;
    loads
        .into_iter()
        .map(|job| {
            let record = record(job)?;
            number(&record["jobs"][0]["read"]["iops"], "IOPS", &record)
        })
        .collect()
}

// The largest deviation of a rate from the mean, as a share of the mean.
fn unevenness(rates: &[f64]) -> f64 {
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    rates.iter().map(|rate| (rate / mean - 1.0).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_are_as_uneven_as_the_farthest() {
        assert!((unevenness(&[100.0, 100.0, 100.0]) - 0.0).abs() < 1e-9);
        assert!((unevenness(&[100.0, 100.0, 40.0]) - 0.5).abs() < 1e-9);
    }
}
