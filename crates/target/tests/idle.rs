//! A target that nobody asks for anything sleeps, and so do the hosts that are connected to it.
//!
//! The test is alone in its process, for it counts what the process does, the threads included that
//! the kernel has for it.

use std::sync::Arc;
use std::time::Duration as StdDuration;

use backend::MemoryBackend;
use diskload::{Device, LoadConfig, Progress};
use host::initiator::{InitiatorConfig, LogicalUnit};
use host::{Controller, HostConfig};
use measure::Duration;
use nvme::Nqn;
use sys::usage::{Usage, of_this_process};
use target::{Identity, IscsiAccess, Namespace, Subsystem, Target, TargetConfig};

const NAME: &str = "nqn.2026-11.example:disk";
const IQN: &str = "iqn.2026-11.example:disk";
const BYTES: u64 = 16 << 20;
const WHILE: StdDuration = StdDuration::from_millis(300);
/// Whiles of which one has to be quiet. A busy machine disturbs some of them; a thread that wakes
/// again and again disturbs each.
const WHILES: usize = 20;
/// The test itself waits once in a while; one more is not again and again.
const WAITS_MAX: u64 = 2;
/// A thread that polls takes more than this tenth of a processor, even beside busy others.
const PROCESSOR_NS_MAX: u64 = 30_000_000;

fn nqn(name: &str) -> Nqn {
    Nqn::new(name).expect("it is one")
}

// The shards look for the next request before they sleep; the control thread does not.
fn serve() -> Target {
    let backend = Arc::new(MemoryBackend::new(BYTES, 12).expect("there is memory"));
    let namespace = Namespace::new(1, backend, Identity::of([7; 16]));
    let subsystem = Subsystem::new(nqn(NAME), None, vec![namespace]);
    subsystem.set_iscsi(Some(IscsiAccess { name: IQN.to_owned(), ..IscsiAccess::default() }));
    let any = || vec!["127.0.0.1:0".parse().expect("an address")];
    let busy_poll = Duration::from_us(50);
    let config =
        TargetConfig { nvme: any(), iscsi: any(), shards: 2, busy_poll, ..TargetConfig::default() };
    Target::start(&config, vec![subsystem]).expect("it can listen")
}

fn ask(devices: &[Device]) {
    for device in devices {
        let config = LoadConfig { jobs: 2, request_count: Some(100), ..LoadConfig::reads(BYTES) };
        let tally = diskload::run(&config, device, &Progress::default()).expect("it is loaded");
        assert_eq!((tally.count(), tally.first_failure), (200, None));
    }
}

fn used_in_a_while() -> Usage {
    let before = of_this_process();
    std::thread::sleep(WHILE);
    of_this_process().since(&before)
}

#[test]
fn an_idle_target_sleeps() {
    let target = serve();
    let [nvme, iscsi] = [target.addresses()[0], target.iscsi_addresses()[0]];
    let uri = format!("nvme+tcp://{nvme}/{NAME}").parse().expect("it is one");
    // This host need not say that it is there.
    let config = HostConfig::named(nqn("nqn.2026-11.example:host"));
    let controller = Controller::connect(&uri, &config, 4).expect("it answers");
    let uri = format!("iscsi://{iscsi}/{IQN}/0").parse().expect("it is one");
    let config = InitiatorConfig::named("iqn.2026-11.example:host");
    let unit = LogicalUnit::connect(&uri, &config).expect("it answers");
    let queues = [3, 4].map(|number| controller.queue::<()>(number, 8, 0).expect("it may have it"));
    let sessions = [3, 4].map(|number| unit.queue::<()>(number, 8, 0).expect("it may have it"));
    let devices = [Device::Remote(Arc::new(controller)), Device::Iscsi(Arc::new(unit))];
    ask(&devices);
    let mut whiles = (0..WHILES).map(|_| used_in_a_while());
    let is_quiet = |used: &Usage| {
        used.voluntary_switches <= WAITS_MAX && used.processor_ns() <= PROCESSOR_NS_MAX
    };
    assert!(whiles.any(|used| is_quiet(&used)), "it never slept: {:?}", used_in_a_while());
    ask(&devices);
    drop((queues, sessions));
    target.stop().expect("no shard has failed");
}
