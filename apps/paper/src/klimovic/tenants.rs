//! A target at one end of the cable and tenants that load it from the other: `afar serve` and
//! `afar bench` as child processes.

use std::io::Read;
use std::net::SocketAddr;
use std::process::Stdio;
use std::thread::JoinHandle;

use launch::{Child, ServeSpec, Served};
use measure::{Bytes, Duration};
use rustix::thread::{CpuSet, Pid, sched_setaffinity};
use serde_json::Value;

use super::super::ReproduceError;
use super::super::session::Session;
use super::cable::{ADDRESS, Cable, End, start};
use super::rungs::{CONNECTIONS, Rung, TENANTS, so_many};

/// The results of all tenants together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    pub(super) iops: f64,
    /// Processor time of the target for each request, in microseconds.
    pub(super) target_us: f64,
}

/// Outstanding requests of a tenant.
pub(super) const DEPTH: u16 = 32;
const BUSY_POLL: Duration = Duration::from_us(50);
/// The least size of a zero-copy send, which has two completions and so does not pay within a page.
const ZERO_COPY: Bytes = Bytes::new(4096);
const ISCSI_PORT: u16 = 3260;
const NVME_PORT: u16 = 4420;
/// The device of a tenant's disk.
const DISK: &str = "memory:64MiB";

/// A target on a cable.
pub(super) struct Target<'a> {
    cable: &'a Cable,
    rung: Rung,
    served: Served,
}

/// A running tenant, and the thread that reads its output.
struct Tenant {
    child: Child,
    answer: Option<JoinHandle<String>>,
}

impl<'a> Target<'a> {
    /// Starts a target with a disk for each tenant, tuned for a rung.
    ///
    /// # Errors
    /// When the target cannot be started.
    pub(super) fn start(
        cable: &'a Cable,
        rung: Rung,
        processors: usize,
    ) -> Result<Self, ReproduceError> {
        let most = TENANTS.into_iter().max().unwrap_or(1);
        let disk = |tenant| (format!("nqn.2026-11.local.afar:t{tenant}"), DISK.to_owned());
        let at = |port| vec![SocketAddr::new(ADDRESS.into(), port)];
        let (nvme, iscsi) = match rung {
            Rung::Nvme => (at(NVME_PORT), Vec::new()),
            _ => (Vec::new(), at(ISCSI_PORT)),
        };
        let spec = ServeSpec {
            disks: (0..most).map(disk).collect(),
            nvme,
            iscsi,
            shards: Some(if rung.has(Rung::ManyWorkers) { processors } else { 1 }),
            busy_poll: busy_poll(rung),
            zero_copy: rung.has(Rung::ZeroCopy).then_some(ZERO_COPY),
            traces: false,
        };
        let served = spec.start(cable.command(End::Target, &launch::program()))?;
        let target = Self { cable, rung, served };
        if rung.has(Rung::Affinity) {
            target.pin(processors);
        }
        Ok(target)
    }

    // Pins each shard to a processor.
    fn pin(&self, processors: usize) {
        for (number, thread) in self.served.ready.shards.iter().enumerate() {
            let mut one = CpuSet::new();
            one.set(number % processors);
            // Fails if this process may not use the processor; the shard then stays unpinned.
            let thread = i32::try_from(*thread).ok().and_then(Pid::from_raw);
            let _as_it_is = sched_setaffinity(thread, &one);
        }
    }

    /// Processor time of the target so far.
    fn processor_ns(&self) -> u64 {
        sys::usage::of_process(self.served.child.id()).map_or(0, |usage| usage.processor_ns())
    }

    /// Loads the target with `tenants` tenants for `runtime`; `None` if that was interrupted.
    ///
    /// # Errors
    /// When a tenant cannot be started, or a request of one fails.
    pub(super) fn load(
        &self,
        session: &mut Session,
        tenants: usize,
        runtime: Duration,
    ) -> Result<Option<Measured>, ReproduceError> {
        let what = format!("{}, {}", self.rung.name(), so_many(tenants));
        let before = self.processor_ns();
        let started: Result<Vec<Tenant>, _> =
            (0..tenants).map(|number| self.tenant(number, runtime)).collect();
        let mut running = started?;
        let has_ended = || running.iter().all(Tenant::has_ended);
        if !session.wait(&what, has_ended)? {
            return Ok(None);
        }
        let spent_us = self.processor_ns().saturating_sub(before) as f64 / 1e3;
        let (mut iops, mut count) = (0.0, 0.0);
        for tenant in &mut running {
            let (rate, done) = tenant.read(&what)?;
            iops += rate;
            count += done;
        }
        Ok(Some(Measured { iops, target_us: spent_us / count }))
    }

    /// Starts a tenant.
    fn tenant(&self, number: usize, runtime: Duration) -> Result<Tenant, ReproduceError> {
        let mut command = self.cable.command(End::Tenants, &launch::program());
        let name = format!("2026-11.local.afar:t{number}");
        let mut queues = 1;
        let uri = match self.rung {
            Rung::Nvme => {
                queues = CONNECTIONS;
                format!("nvme+tcp://{ADDRESS}:{NVME_PORT}/nqn.{name}")
            }
            Rung::Connections => {
                format!("iscsi://{ADDRESS}:{ISCSI_PORT}/iqn.{name}/0?connections={CONNECTIONS}")
            }
            _ => format!("iscsi://{ADDRESS}:{ISCSI_PORT}/iqn.{name}/0"),
        };
        command.args(["bench", &uri, "--json", "-", "--quiet"]);
        command.args(["--duration", &format!("{}ns", runtime.as_ns())]);
        command.args(["--depth", &(DEPTH / queues).to_string()]);
        command.args(["--threads", &queues.to_string(), "--busy-poll"]);
        command.arg(format!("{}ns", busy_poll(self.rung).as_ns()));
        command.args(["--seed", &(number + 1).to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(command)?;
        let mut stdout = child.output().expect("it has a pipe");
        let answer = std::thread::spawn(move || {
            let mut text = String::new();
            let _partly = stdout.read_to_string(&mut text);
            text
        });
        Ok(Tenant { child, answer: Some(answer) })
    }
}

impl Tenant {
    /// Whether the tenant has closed its output.
    fn has_ended(&self) -> bool {
        self.answer.as_ref().is_none_or(JoinHandle::is_finished)
    }

    // The tenant's requests per second, and their number.
    fn read(&mut self, what: &str) -> Result<(f64, f64), ReproduceError> {
        let text = self.answer.take().and_then(|answer| answer.join().ok()).unwrap_or_default();
        let record: Value = serde_json::from_str(&text).unwrap_or_default();
        let read = &record["jobs"][0]["read"];
        let numbers = read["iops"].as_f64().zip(read["total_ios"].as_f64());
        let failed = record["afar"]["failure_count"].as_u64().unwrap_or(1);
        match numbers {
            Some((iops, count)) if failed == 0 && count > 0.0 => Ok((iops, count)),
            _ => {
                let first = record["afar"]["first_failure"].as_str().map(str::to_owned);
                let first = first.unwrap_or_else(|| self.child.errors());
                Err(ReproduceError::Failed { what: what.to_owned(), count: failed, first })
            }
        }
    }
}

/// The busy-poll time of a rung.
fn busy_poll(rung: Rung) -> Duration {
    if rung.has(Rung::BusyPoll) { BUSY_POLL } else { Duration::ZERO }
}
