//! A target of our own: `afar serve` as a child, on a free loopback port, gone with this process.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use flash::host::{Controller, HostConfig, HostError};
use flash::initiator::{InitiatorConfig, LogicalUnit};
use flash::load::Device;
use measure::Duration;
use proto::nvme::{Digests, Nqn};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Deserialize;

use super::ReproduceError;
use super::way::Way;
use crate::serve::TRACE;

/// See the module's description. Dropping it ends it.
pub(super) struct ServeChild {
    child: Child,
    answers: BufReader<ChildStdout>,
    addresses: Addresses,
}

/// Where it listens.
#[derive(Debug, Default, PartialEq, Eq)]
struct Addresses {
    nvme: String,
    iscsi: String,
}

/// Where the time of commands went, in sums over them; see the target's counters.
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
const SIGTERM: i32 = 15;

impl ServeChild {
    /// Starts one that serves this device on so many of our processors, all if `None`, and looks
    /// for requests for so long before it sleeps.
    ///
    /// # Errors
    /// When it cannot be started, or does not begin to serve.
    pub(super) fn start(
        uri: &str,
        processors: Option<usize>,
        busy_poll: Duration,
        traces: bool,
    ) -> Result<Self, ReproduceError> {
        let program = std::env::current_exe().map_err(ReproduceError::Start)?;
        let mut command = Command::new(program);
        command.args([
            "serve",
            &format!("nqn.2026-11.local.afar:disk={uri}"),
            "--nvme",
            "127.0.0.1:0",
        ]);
        command.args(["--iscsi", "127.0.0.1:0"]);
        command.args(["--busy-poll", &format!("{}ns", busy_poll.as_ns())]);
        command.args(traces.then_some("--trace"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for this process, which ends the target after the load.
        command.process_group(0);
        sys::process::die_with_caller(&mut command);
        let started = on_processors(processors, || command.spawn());
        let mut child = started.map_err(ReproduceError::Start)?;
        let answers = BufReader::new(child.stdout.take().expect("it has a pipe"));
        let mut target = Self { child, answers, addresses: Addresses::default() };
        target.addresses = target.welcome()?;
        Ok(target)
    }

    fn welcome(&mut self) -> Result<Addresses, ReproduceError> {
        if let Some(addresses) = addresses(&mut self.answers) {
            return Ok(addresses);
        }
        let mut why = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _partly = stderr.read_to_string(&mut why);
        }
        Err(ReproduceError::Target(why.trim().to_owned()))
    }

    /// Connects to it over a way that is not local. So many jobs have a queue each; over iSCSI
    /// each has a session, as soon as there is a load.
    ///
    /// # Errors
    /// When it does not answer as it should.
    pub(super) fn connect(&self, way: Way, jobs: u16) -> Result<Device, ReproduceError> {
        let device = match way {
            Way::Local => unreachable!("there is nothing to connect to"),
            Way::Nvme => self.connect_nvme(jobs),
            Way::Iscsi => self.connect_iscsi(),
        };
        device.map_err(ReproduceError::Connect)
    }

    fn connect_nvme(&self, jobs: u16) -> Result<Device, HostError> {
        let uri = format!("nvme+tcp://{}/{SUBSYSTEM}", self.addresses.nvme);
        let uri = uri.parse().expect("it is made of an address and a name");
        let host = Nqn::new(HOST).expect("it is one");
        let digests = Digests { header: false, data: false };
        let config = HostConfig { host, host_id: [1; 16], keep_alive_ms: KEEP_ALIVE_MS, digests };
        Ok(Device::Remote(Arc::new(Controller::connect(&uri, &config, jobs)?)))
    }

    fn connect_iscsi(&self) -> Result<Device, HostError> {
        let uri = format!("iscsi://{}/{LOGICAL_UNIT}", self.addresses.iscsi);
        let uri = uri.parse().expect("it is made of an address and a name");
        let unit = LogicalUnit::connect(&uri, &InitiatorConfig::named(INITIATOR))?;
        Ok(Device::Iscsi(Arc::new(unit)))
    }

    /// Processor time it has used; zero if it is gone.
    pub(super) fn processor_time(&self) -> Duration {
        let usage = sys::usage::of_process(self.child.id());
        Duration::from_ns(usage.map_or(0, |usage| usage.processor_ns()))
    }

    /// Ends it; what it has traced, if it was to.
    pub(super) fn stop(mut self) -> Option<TargetTrace> {
        let _gone = sys::process::kill(self.child.id(), SIGTERM);
        let mut rest = String::new();
        let _partly = self.answers.read_to_string(&mut rest);
        let _reaped = self.child.wait();
        trace(&rest)
    }
}

impl Drop for ServeChild {
    fn drop(&mut self) {
        // Nothing it serves outlives it, so there is nothing to be careful with.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

// By its own words; `None` if it ended before it said both.
fn addresses(answers: &mut impl BufRead) -> Option<Addresses> {
    let mut found = Addresses::default();
    let mut line = String::new();
    while answers.read_line(&mut line).is_ok_and(|count| count > 0) {
        let places = [("serving at ", &mut found.nvme), ("serving iSCSI at ", &mut found.iscsi)];
        for (words, place) in places {
            if let Some((_, rest)) = line.split_once(words) {
                rest.split(' ').next().unwrap_or_default().clone_into(place);
            }
        }
        if !found.nvme.is_empty() && !found.iscsi.is_empty() {
            return Some(found);
        }
        line.clear();
    }
    None
}

fn trace(text: &str) -> Option<TargetTrace> {
    let line = text.lines().find_map(|line| line.strip_prefix(TRACE))?;
    serde_json::from_str(line).ok()
}

// A child begins on the processors of the thread that starts it.
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
    fn both_addresses_are_said() {
        let nvme = "afar: serving at 127.0.0.1:1 until Ctrl-C; x\n      nvme connect\n";
        let iscsi = "afar: serving iSCSI at 127.0.0.1:2 until Ctrl-C; y\n";
        let both = addresses(&mut format!("{nvme}{iscsi}").as_bytes());
        let expected = ["127.0.0.1:1", "127.0.0.1:2"].map(str::to_owned);
        let [nvme_address, iscsi_address] = expected;
        assert_eq!(both, Some(Addresses { nvme: nvme_address, iscsi: iscsi_address }));
        assert_eq!(addresses(&mut nvme.as_bytes()), None);
    }

    #[test]
    fn processors_are_as_before_afterwards() {
        let before = sched_getaffinity(None).expect("we have some");
        let within = on_processors(Some(1), || sched_getaffinity(None).expect("we have some"));
        assert_eq!(within.count(), 1);
        assert_eq!(sched_getaffinity(None).expect("we have some"), before);
    }
}
