//! A target: `afar serve` as a child process on free loopback ports.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ChildStdout;
use std::sync::Arc;

use diskload::Device;
use host::initiator::{InitiatorConfig, LogicalUnit};
use host::{Controller, HostConfig, HostError};
use launch::{Child, ServeSpec, Served};
use measure::Duration;
use nvme::{Digests, Nqn};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Deserialize;

use super::ReproduceError;
use super::way::Way;
use disk::TRACE;

/// A running `afar serve`; dropping it kills it.
pub(super) struct ServeChild {
    child: Child,
    answers: ChildStdout,
    nvme: SocketAddr,
    iscsi: SocketAddr,
}

/// Sums of the times of commands by part, from the target's trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct TargetTrace {
    pub(super) count: u64,
    pub(super) device_ns: u64,
    pub(super) late_ns: u64,
    pub(super) answer_ns: u64,
}

const SUBSYSTEM: &str = "nqn.2026-11.local.afar:disk";
const HOST: &str = "nqn.2026-11.local.afar:reproduce";
const LOGICAL_UNIT: &str = "iqn.2026-11.local.afar:disk/0";
const INITIATOR: &str = "iqn.2026-11.local.afar:reproduce";
const KEEP_ALIVE_MS: u32 = 10_000;

impl ServeChild {
    /// Starts a target that serves the device `uri` on `processors` of this process' processors, or
    /// all if `None`.
    ///
    /// # Errors
    /// When it cannot be started, or does not begin to serve.
    pub(super) fn start(
        uri: &str,
        processors: Option<usize>,
        busy_poll: Duration,
        traces: bool,
    ) -> Result<Self, ReproduceError> {
        let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let spec = ServeSpec {
            disks: vec![(SUBSYSTEM.to_owned(), uri.to_owned())],
            nvme: vec![any],
            iscsi: vec![any],
            busy_poll,
            traces,
            ..ServeSpec::default()
        };
        let Served { mut child, ready } = on_processors(processors, || spec.start(launch::afar()))?;
        let answers = child.output().expect("it has a pipe");
        let (nvme, iscsi) = (ready.nvme[0], ready.iscsi[0]);
        Ok(Self { child, answers, nvme, iscsi })
    }

    /// Connects to the target over a remote way. Over NVMe/TCP `jobs` jobs have a queue each; over
    /// iSCSI each job logs in when a load begins.
    ///
    /// # Errors
    /// When the connection fails.
    pub(super) fn connect(&self, way: Way, jobs: u16) -> Result<Device, ReproduceError> {
        let device = match way {
            Way::Local => unreachable!("there is nothing to connect to"),
            Way::Nvme => self.connect_nvme(jobs),
            Way::Iscsi => self.connect_iscsi(),
        };
        device.map_err(ReproduceError::Connect)
    }

    /// Connects over NVMe/TCP.
    fn connect_nvme(&self, jobs: u16) -> Result<Device, HostError> {
        let uri = format!("nvme+tcp://{}/{SUBSYSTEM}", self.nvme);
        let uri = uri.parse().expect("it is made of an address and a name");
        let host = Nqn::new(HOST).expect("it is one");
        let digests = Digests { header: false, data: false };
        let config = HostConfig { host, host_id: [1; 16], keep_alive_ms: KEEP_ALIVE_MS, digests };
        Ok(Device::Remote(Arc::new(Controller::connect(&uri, &config, jobs)?)))
    }

    /// Connects over iSCSI.
    fn connect_iscsi(&self) -> Result<Device, HostError> {
        let uri = format!("iscsi://{}/{LOGICAL_UNIT}", self.iscsi);
        let uri = uri.parse().expect("it is made of an address and a name");
        let unit = LogicalUnit::connect(&uri, &InitiatorConfig::named(INITIATOR))?;
        Ok(Device::Iscsi(Arc::new(unit)))
    }

    /// The processor time of the target so far; zero if it has ended.
    pub(super) fn processor_time(&self) -> Duration {
        let usage = sys::usage::of_process(self.child.id());
        Duration::from_ns(usage.map_or(0, |usage| usage.processor_ns()))
    }

    /// Ends the target. Returns its trace; `None` if it did not trace.
    pub(super) fn stop(mut self) -> Option<TargetTrace> {
        self.child.terminate();
        let mut rest = String::new();
        let _partly = self.answers.read_to_string(&mut rest);
        let _reaped = self.child.finish();
        trace(&rest)
    }
}

/// The trace in the target's output.
fn trace(text: &str) -> Option<TargetTrace> {
    let line = text.lines().find_map(|line| line.strip_prefix(TRACE))?;
    serde_json::from_str(line).ok()
}

// Runs `start` with this thread limited to `most` processors, which a child process inherits.
fn on_processors<T>(most: Option<usize>, start: impl FnOnce() -> T) -> T {
    let own = most.zip(sched_getaffinity(None).ok());
    if let Some((most, all)) = &own {
        let mut some = CpuSet::new();
        let first = (0..CpuSet::MAX_CPU).filter(|&number| all.is_set(number)).take(*most);
        first.for_each(|number| some.set(number));
        let _as_it_is = sched_setaffinity(None, &some);
    }
    let started = start();
    if let Some((_, all)) = &own {
        let _as_it_is = sched_setaffinity(None, all);
    }
    started
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_one_line_of_many() {
        let text =
            "afar: x\nafar: trace {\"count\":2,\"device_ns\":9,\"late_ns\":1,\"answer_ns\":3}\n";
        let expected = TargetTrace { count: 2, device_ns: 9, late_ns: 1, answer_ns: 3 };
        assert_eq!(trace(text), Some(expected));
        assert_eq!(trace("afar: served\n"), None);
    }

    #[test]
    fn processors_are_as_before_afterwards() {
        let before = sched_getaffinity(None).expect("we have some");
        let within = on_processors(Some(1), || sched_getaffinity(None).expect("we have some"));
        assert_eq!(within.count(), 1);
        assert_eq!(sched_getaffinity(None).expect("we have some"), before);
    }
}
