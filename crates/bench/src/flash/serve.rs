//! Starts targets and loads them.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::context::Context;
use crate::failure::Failure;
use crate::process::{Job, LONG, SHORT, find};

/// The busy-poll time of a spinning end: longer than any answer takes.
pub(super) const SPIN: &str = "1ms";
const NQN: &str = "nqn.2026-11.local.afar:disk";
const IQN: &str = "iqn.2026-11.example:disk";

/// A load on a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) depth: u16,
    pub(super) jobs: u16,
    pub(super) spins: bool,
    pub(super) bytes: u32,
}

/// The results of a load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) iops: f64,
    pub(super) p50_us: f64,
    pub(super) target_us: f64,
    pub(super) host_us: f64,
}

/// A running `afar serve`, on the first processor.
pub(super) struct Server {
    job: Job,
    uri: String,
}

/// An iSCSI target, afar's or tgt, with its logical unit.
pub(super) trait IscsiServer {
    /// The process id of the target.
    fn pid(&self) -> u32;
    /// The URI of its logical unit.
    fn uri(&self) -> String;

    /// Loads the target with iscsi-perf.
    fn load_by_libiscsi(&self, context: &Context, depth: u16) -> Result<Run, Failure> {
        let before = processor_us(self.pid())?;
        let mut command = pinned("1")?;
        let seconds = context.size("4", "2");
        command.push(find("iscsi-perf", "libiscsi-bin")?);
        let depth_word = depth.to_string();
        command.extend(words(&["-m", &depth_word, "-b", "8", "-r", "-t", seconds, &self.uri()]));
        let said = Job::start(context, &command)?.finish(LONG)?;
        let seconds: f64 = seconds.parse().unwrap_or(1.0);
        // The last line such as "iops average 31093 (121 MB/s)".
        let iops = said.rsplit("iops average ").next().and_then(|rest| rest.split(' ').next());
        let iops = iops.and_then(|iops| iops.parse::<f64>().ok()).filter(|iops| *iops > 0.0);
        let wanted = "iops average";
        let iops = iops.ok_or(Failure::Unreadable { program: "iscsi-perf", wanted, said })?;
        let target_us = (processor_us(self.pid())? - before) / (iops * seconds);
        // iscsi-perf reports no latency; the mean follows from depth and rate.
        Ok(Run { iops, p50_us: f64::from(depth) * 1e6 / iops, target_us, host_us: 0.0 })
    }

    /// Loads the target with afar's initiator.
    fn load_by_afar(&self, context: &Context, load: Load) -> Result<Run, Failure> {
        let before = processor_us(self.pid())?;
        let (mut run, count) = bench(context, &self.uri(), load, pinned("1")?)?;
        run.target_us = (processor_us(self.pid())? - before) / count;
        Ok(run)
    }
}

impl IscsiServer for Server {
    fn pid(&self) -> u32 {
        self.job.pid()
    }

    fn uri(&self) -> String {
        self.uri.clone()
    }
}

/// `words` as arguments of a command.
pub(crate) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// The beginning of a command line that runs on `processor`.
fn pinned(processor: &str) -> Result<Vec<OsString>, Failure> {
    Ok(vec![find("taskset", "util-linux")?, "-c".into(), processor.into()])
}

/// The beginning of a command line that runs in the network namespace of the process `network`.
pub(super) fn inside(network: u32) -> Result<Vec<OsString>, Failure> {
    let mut command = vec![find("nsenter", "util-linux")?];
    command.extend(words(&["--net", "--target", &network.to_string()]));
    Ok(command)
}

/// A TCP port of 127.0.0.1 that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, Failure> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Ok(bound.map_err(Failure::file("bind", "127.0.0.1"))?.port())
}

// Waits until `job` listens at `port`.
pub(crate) fn wait_for(job: &mut Job, port: u16) -> Result<(), Failure> {
    let deadline = Instant::now() + SHORT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if Instant::now() > deadline {
            return Err(job.too_slow("answer", SHORT));
        }
        job.check()?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The processor time of a process so far, in microseconds.
fn processor_us(pid: u32) -> Result<f64, Failure> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).map_err(Failure::file("read", &path))?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // utime and stime, in hundredths of a second.
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() * 10_000.0)
}

impl Server {
    /// Starts a target over NVMe/TCP. `busy_poll` is the target's; `None` for its default.
    pub(super) fn start(
        context: &Context,
        device: &str,
        busy_poll: Option<&str>,
    ) -> Result<Self, Failure> {
        let port = free_port()?;
        let mut command = pinned("0")?;
        command.push(context.afar.clone().into());
        let (disk, address) =
            (format!("nqn.2026-11.local.afar:disk={device}"), format!("127.0.0.1:{port}"));
        command.extend(words(&["serve", &disk, "--nvme", &address, "--shards", "1", "--quiet"]));
        if let Some(time) = busy_poll {
            command.extend(words(&["--busy-poll", time]));
        }
        let mut job = Job::start(context, &command)?;
        wait_for(&mut job, port)?;
        Ok(Self { job, uri: format!("nvme+tcp://{address}/{NQN}") })
    }

    /// Starts a target over iSCSI.
    pub(super) fn start_iscsi(context: &Context, device: &str) -> Result<Self, Failure> {
        let port = free_port()?;
        let mut command = pinned("0")?;
        command.push(context.afar.clone().into());
        let (disk, address) =
            (format!("nqn.2026-11.local.afar:disk={device}"), format!("127.0.0.1:{port}"));
        command.extend(words(&["serve", &disk, "--iscsi", &address, "--shards", "1", "--quiet"]));
        let mut job = Job::start(context, &command)?;
        wait_for(&mut job, port)?;
        Ok(Self { job, uri: format!("iscsi://{address}/iqn.2026-11.local.afar:disk/0") })
    }

    /// The share of a processor that the target takes without requests, over `seconds`.
    pub(super) fn idle(&self, seconds: u64) -> Result<f64, Failure> {
        let before = processor_us(self.job.pid())?;
        std::thread::sleep(Duration::from_secs(seconds));
        Ok((processor_us(self.job.pid())? - before) / (seconds as f64 * 1e6))
    }

    /// Starts a target over NVMe/TCP at `address` in the network namespace of a process.
    pub(super) fn start_in(
        context: &Context,
        network: u32,
        device: &str,
        address: &str,
    ) -> Result<Self, Failure> {
        let mut command = inside(network)?;
        command.extend(pinned("0")?);
        command.push(context.afar.clone().into());
        let disk = format!("nqn.2026-11.local.afar:disk={device}");
        command.extend(words(&["serve", &disk, "--nvme", address, "--shards", "1", "--quiet"]));
        let job = Job::start(context, &command)?;
        Ok(Self { job, uri: format!("nvme+tcp://{address}/{NQN}") })
    }

    /// Loads the target from the network namespace of a process; `target_us` stays 0.
    pub(super) fn load_from(
        &self,
        context: &Context,
        network: u32,
        load: Load,
    ) -> Result<Run, Failure> {
        bench(context, &self.uri, load, inside(network)?).map(|(run, _)| run)
    }

    /// Loads the target from the second processor.
    pub(super) fn load(&self, context: &Context, load: Load) -> Result<Run, Failure> {
        let before = processor_us(self.job.pid())?;
        let (mut run, count) = bench(context, &self.uri, load, pinned("1")?)?;
        run.target_us = (processor_us(self.job.pid())? - before) / count;
        Ok(run)
    }
}

/// Runs a load on a device of the loading process itself, which may use every processor.
pub(super) fn local(context: &Context, uri: &str, load: Load) -> Result<Run, Failure> {
    bench(context, uri, load, Vec::new()).map(|(run, _)| run)
}

// Runs `afar bench`; `prefix` begins its command line. Returns the results and the number of I/Os.
fn bench(
    context: &Context,
    uri: &str,
    load: Load,
    prefix: Vec<OsString>,
) -> Result<(Run, f64), Failure> {
    let mut command = prefix;
    command.push(context.afar.clone().into());
    let seconds = context.size("3s", "1s");
    command.extend(words(&["bench", uri, "--json", "-", "--quiet", "--duration", seconds]));
    let sizes = [
        ("--depth", load.depth.to_string()),
        ("--threads", load.jobs.to_string()),
        ("--bs", load.bytes.to_string()),
    ];
    for (flag, value) in sizes {
        command.extend([flag.into(), value.into()]);
    }
    if load.spins {
        command.extend(words(&["--busy-poll", SPIN]));
    }
    let said = Job::start(context, &command)?.finish(LONG)?;
    let run = serde_json::from_str(&said).ok().and_then(|record: Value| {
        let read = &record["jobs"][0]["read"];
        let count = read["total_ios"].as_f64().filter(|count| *count > 0.0)?;
        let run = Run {
            iops: read["iops"].as_f64()?,
            p50_us: read["lat_ns"]["percentile"]["50.000000"].as_f64()? / 1e3,
            target_us: 0.0,
            host_us: record["afar"]["processor_ns"].as_f64()? / 1e3 / count,
        };
        Some((run, count))
    });
    run.ok_or(Failure::Unreadable { program: "afar bench", wanted: "reads", said })
}

/// Debian's tgt over a file in the page cache, on the first processor.
pub(super) struct Tgt {
    job: Job,
    port: u16,
    control: String,
}

impl Tgt {
    /// Starts tgt with one logical unit.
    pub(super) fn start(context: &Context) -> Result<Self, Failure> {
        let port = free_port()?;
        // Written here, so it is in the page cache; removed with the benchmark's directory.
        let file = context.fresh("img");
        fill(&file, 1 << 30)?;
        // A number up to 32767, part of the name of tgtd's control socket, that no other tgtd has.
        let control = (port % 32_768).to_string();
        let mut command = pinned("0")?;
        command.push(find("tgtd", "tgt")?);
        let portal = format!("portal=127.0.0.1:{port}");
        command.extend(words(&["-f", "-C", &control, "--iscsi", &portal]));
        let mut job = Job::start(context, &command)?;
        wait_for(&mut job, port)?;
        let tgt = Self { job, port, control: control.clone() };
        let path = file.display().to_string();
        for rest in [
            &["--op", "new", "--mode", "target", "--tid", "1", "-T", IQN][..],
            &["--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", &path],
            &["--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"],
        ] {
            let mut command = vec![find("tgtadm", "tgt")?];
            command.extend(words(&["-C", &control, "--lld", "iscsi"]));
            command.extend(words(rest));
            Job::start(context, &command)?.finish(SHORT)?;
        }
        Ok(tgt)
    }
}

impl IscsiServer for Tgt {
    fn pid(&self) -> u32 {
        self.job.pid()
    }

    fn uri(&self) -> String {
        format!("iscsi://127.0.0.1:{}/{IQN}/1", self.port)
    }
}

impl Drop for Tgt {
    fn drop(&mut self) {
        let socket = format!("/var/run/tgtd/socket.{}", self.control);
        for path in [socket.clone(), socket + ".lock"] {
            let _absent = std::fs::remove_file(path);
        }
    }
}

/// Creates a file of `bytes` (whole MiB) that do not compress, and syncs it to the disk.
pub(crate) fn fill(path: &Path, bytes: u64) -> Result<(), Failure> {
    let failed = || Failure::file("write", path);
    let mut file = File::create(path).map_err(failed())?;
    let mut state = 1_u64;
    let mut piece = vec![0; 1 << 20];
    for _ in 0..bytes >> 20 {
        for word in piece.chunks_exact_mut(8) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&piece).map_err(failed())?;
    }
    file.sync_all().map_err(failed())
}
