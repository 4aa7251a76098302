//! The target and the host, over loopback.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration as StdDuration;

use backend::{
    Backend, BackendUri, Claim, FileBackend, MemoryBackend, Opening, Operation, Request,
};
use diskload::{Device, LoadConfig, Order, Progress, Tally, Think};
use host::{Controller, HostConfig, HostError, NvmeUri, discover};
use measure::{Bytes, Duration};
use nvme::{Digests, Nqn, Status};
use target::{Kind, Limits, Namespace, Subsystem, Target, TargetConfig};

use crate::Scratch;

pub(crate) const NAME: &str = "nqn.2026-11.example:disk";

pub(crate) fn nqn(name: &str) -> Nqn {
    Nqn::new(name).expect("it is one")
}

/// One subsystem with one namespace, on a port of its own.
pub(crate) fn serve(backend: Arc<dyn Backend>, shards: u16, limits: Limits) -> Target {
    let namespace = Namespace::new(1, backend, crate::identity("test"));
    let subsystem = Subsystem::new(nqn(NAME), None, vec![namespace]);
    let nvme = vec!["127.0.0.1:0".parse().expect("an address")];
    let busy_poll = Duration::from_us(0);
    let config = TargetConfig { nvme, shards, busy_poll, limits, ..TargetConfig::default() };
    Target::start(&config, vec![subsystem]).expect("it can listen")
}

pub(crate) fn memory() -> Arc<dyn Backend> {
    Arc::new(MemoryBackend::new(16 << 20, 9).expect("there is memory"))
}

fn host(digests: Digests) -> HostConfig {
    HostConfig {
        host: nqn("nqn.2026-11.example:host"),
        host_id: [7; 16],
        keep_alive_ms: 5000,
        digests,
    }
}

const PLAIN: Digests = Digests { header: false, data: false };

pub(crate) fn connect(target: &Target, digests: Digests) -> Result<Controller, HostError> {
    let address = target.addresses()[0];
    let uri: NvmeUri = format!("nvme+tcp://{address}/{NAME}").parse().expect("it is one");
    Controller::connect(&uri, &host(digests), 4)
}

fn load(device: &Device, request_bytes: u32, jobs: u16, requests: u64) -> Tally {
    let length = device.geometry().bytes() / u64::from(request_bytes) * u64::from(request_bytes);
    let config = LoadConfig {
        read_percent: 50,
        request_bytes,
        region: [0, length],
        depth: 8,
        jobs,
        runtime: Some(Duration::from_ms(60_000)),
        request_count: Some(requests),
        verifies: true,
        traces: true,
        seed: 3,
        ..LoadConfig::reads(0)
    };
    diskload::run(&config, device, &Progress::default()).expect("it can be loaded")
}

fn is_right(tally: &Tally, requests: u64, what: &str) {
    assert_eq!(tally.first_failure, None, "{what}");
    assert_eq!((tally.count(), tally.checks.wrong_count()), (requests, 0), "{what}");
}

#[test]
fn what_is_written_is_read_whatever_its_size_and_digests() {
    let target = serve(memory(), 2, Limits::default());
    for (header, data) in [(false, false), (true, false), (false, true), (true, true)] {
        let controller = connect(&target, Digests { header, data }).expect("it connects");
        let device = Device::Remote(Arc::new(controller));
        // A block, just below and above what fits a capsule, larger than buffers, and the most.
        for bytes in [512, 8192, 8704, 128 << 10, 1 << 20] {
            let tally = load(&device, bytes, 3, 100);
            is_right(&tally, 300, &format!("{bytes} bytes, digests {header} {data}"));
        }
    }
    target.stop().expect("no shard has failed");
}

#[test]
fn a_file_is_served_as_memory_is() {
    let scratch = Scratch::new(std::env::temp_dir().to_str().expect("paths here are text"));
    sys::disk::Disk::create(scratch.path(), 16 << 20).expect("it can be made");
    let backend =
        FileBackend::open(scratch.path(), None, Opening::default()).expect("it can be opened");
    let target = serve(Arc::new(backend), 2, Limits::default());
    let device = Device::Remote(Arc::new(connect(&target, PLAIN).expect("it connects")));
    for bytes in [4096, 1 << 20] {
        is_right(&load(&device, bytes, 2, 100), 200, "over the network");
    }
}

// With memory for one request at a time, the others wait for it.
#[test]
fn little_memory_is_enough() {
    let scratch = Scratch::new(std::env::temp_dir().to_str().expect("paths here are text"));
    sys::disk::Disk::create(scratch.path(), 16 << 20).expect("it can be made");
    let backend =
        FileBackend::open(scratch.path(), None, Opening::default()).expect("it can be opened");
    let limits = Limits { data: Bytes::from_kib(64), ..Limits::default() };
    let target = serve(Arc::new(backend), 1, limits);
    let device = Device::Remote(Arc::new(connect(&target, PLAIN).expect("it connects")));
    is_right(&load(&device, 64 << 10, 3, 50), 150, "64 KiB each");
    is_right(&load(&device, 1 << 20, 2, 20), 40, "more than there is");
}

#[test]
fn only_hosts_that_are_allowed_connect() {
    let namespace = Namespace::new(1, memory(), crate::identity("test"));
    let allowed = BTreeSet::from([nqn("nqn.2026-11.example:other")]);
    let subsystem = Subsystem::new(nqn(NAME), Some(allowed), vec![namespace]);
    let config = TargetConfig {
        nvme: vec!["127.0.0.1:0".parse().expect("an address")],
        shards: 1,
        busy_poll: Duration::from_us(0),
        traces: false,
        limits: Limits::default(),
        ..TargetConfig::default()
    };
    let target = Target::start(&config, vec![subsystem]).expect("it can listen");
    match connect(&target, PLAIN).map(|_| ()) {
        Err(HostError::Refused { status, .. }) => assert!(status.is(Status::CONNECT_INVALID_HOST)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_subsystem_that_is_not_there_is_said_to_be_missing() {
    let target = serve(memory(), 1, Limits::default());
    let uri = format!("nvme+tcp://{}/nqn.2026-11.example:none", target.addresses()[0]);
    let uri: NvmeUri = uri.parse().expect("it is one");
    match Controller::connect(&uri, &host(PLAIN), 1).map(|_| ()) {
        Err(HostError::Refused { status, .. }) => {
            assert!(status.is(Status::CONNECT_INVALID_PARAMETERS));
        }
        other => panic!("{other:?}"),
    }
}

// A target that stops answers what it has and closes; requests after that are lost, not done.
#[test]
fn a_target_that_stops_lets_requests_end() {
    let target = serve(memory(), 2, Limits::default());
    let device = Device::Remote(Arc::new(connect(&target, PLAIN).expect("it connects")));
    let loading = std::thread::spawn(move || load(&device, 4096, 2, u64::MAX));
    std::thread::sleep(StdDuration::from_millis(100));
    target.stop().expect("no shard has failed");
    let tally = loading.join().expect("it ends");
    assert!(tally.count() > 0, "some were answered");
    assert_eq!(tally.checks.wrong_count(), 0);
    let first = tally.first_failure.expect("the rest was not");
    assert!(first.contains("the connection was lost"), "{first}");
}

#[test]
fn two_targets_do_not_share_an_address() {
    let target = serve(memory(), 1, Limits::default());
    let config = TargetConfig {
        nvme: target.addresses().to_vec(),
        shards: 1,
        busy_poll: Duration::from_us(0),
        traces: false,
        limits: Limits::default(),
        ..TargetConfig::default()
    };
    assert!(Target::start(&config, Vec::new()).is_err());
}

// One shard writes them; they are complete when the host has its answers.
#[test]
fn what_is_done_is_counted_by_namespace_and_shard() {
    let target = serve(memory(), 2, Limits::default());
    let device = Device::Remote(Arc::new(connect(&target, PLAIN).expect("it connects")));
    is_right(&load(&device, 4096, 2, 500), 1000, "it is not counted otherwise");
    let namespaces = target.subsystems()[0].namespaces();
    let mut total = 0;
    for (shard, counters) in namespaces[0].counters() {
        assert_eq!(counters.in_flight.load(Ordering::Relaxed), 0, "{shard}");
        for kind in Kind::ALL {
            let of = counters.of(kind);
            let commands = of.commands.load(Ordering::Relaxed);
            let bytes = if kind == Kind::Other { 0 } else { commands * 4096 };
            assert_eq!(of.bytes.load(Ordering::Relaxed), bytes, "{shard} {kind:?}");
            assert_eq!(of.failures.load(Ordering::Relaxed), 0, "{shard} {kind:?}");
            let counts = of.latency.counts();
            assert_eq!(counts.iter().sum::<u64>(), commands, "{shard} {kind:?}");
            assert_eq!(of.latency.sum_ns() > 0, commands > 0, "{shard} {kind:?}");
            total += commands;
        }
    }
    assert_eq!((total, namespaces[0].counters().count()), (1000, 2));
}

#[test]
fn what_is_served_can_be_discovered() {
    let target = serve(memory(), 2, Limits::default());
    let address = target.addresses()[0];
    let find = || discover(&address.to_string(), &host(PLAIN)).expect("it answers");
    let page = find();
    assert_eq!((page.generation, page.entries.len()), (1, 2));
    let [own, entry] = &page.entries[..] else { panic!("{page:?}") };
    assert_eq!((own.is_this_discovery(), &*own.subsystem), (true, Nqn::DISCOVERY));
    assert_eq!((&*entry.subsystem, &*entry.address), (NAME, "127.0.0.1"));
    assert_eq!(entry.service, address.port().to_string());
    // More than fits what is sent at once.
    let more = (0..20).map(|number| {
        let nqn = nqn(&format!("nqn.2026-11.example:{number}"));
        Arc::new(Subsystem::new(nqn, None, Vec::new()))
    });
    target.serve(more.collect());
    let began = std::time::Instant::now();
    let mut page = find();
    while page.generation < 2 {
        assert!(began.elapsed() < StdDuration::from_secs(10), "{page:?}");
        page = find();
    }
    assert_eq!(page.entries.len(), 21);
    assert_eq!(page.entries[20].subsystem, "nqn.2026-11.example:19");
}

// The device of the model names its time, so that is told from what comes after it.
#[test]
fn a_target_that_traces_says_where_the_time_went() {
    let uri: BackendUri = "model:pm1725:memory:1MiB".parse().expect("it is one");
    let backend = uri.open(Claim::Alone).expect("it can be opened");
    let namespace = Namespace::new(1, backend, crate::identity("test"));
    let config = TargetConfig {
        nvme: vec!["127.0.0.1:0".parse().expect("an address")],
        shards: 1,
        busy_poll: Duration::from_us(0),
        traces: true,
        limits: Limits::default(),
        ..TargetConfig::default()
    };
    let subsystem = Subsystem::new(nqn(NAME), None, vec![namespace]);
    let target = Target::start(&config, vec![subsystem]).expect("it can listen");
    let device = Device::Remote(Arc::new(connect(&target, PLAIN).expect("it answers")));
    let tally = load(&device, 4096, 1, 200);
    let counters = target.counters()[0].clone();
    target.stop().expect("it ends well");
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!((read(&counters.traced), tally.count()), (200, 200));
    assert!(read(&counters.device_ns) >= 200 * 20_000, "the model's fastest is 20 us");
    assert!(read(&counters.late_ns) > 0 && read(&counters.answer_ns) > 0);
    assert!(tally.reads.submission.min() > Duration::ZERO);
}

// In a closed loop a request is made when there is room for it.
#[test]
fn a_latency_is_submission_and_completion() {
    let target = serve(memory(), 1, Limits::default());
    let remote = Device::Remote(Arc::new(connect(&target, PLAIN).expect("it connects")));
    for (device, is_local) in [(remote, false), (Device::Local(memory()), true)] {
        let tally = load(&device, 4096, 2, 500);
        let depths = tally.depths;
        assert_eq!(depths.level.iter().sum::<u64>(), 1000, "{depths:?}");
        assert!(depths.level[4..] == [0; 3], "8 at a time: {depths:?}");
        assert_eq!((depths.submitted[0], depths.completed[0]), (0, 0), "{depths:?}");
        for of in [&tally.reads, &tally.writes] {
            let count = of.latency.count();
            assert_eq!((of.submission.count(), of.completion.count()), (count, count));
            assert_eq!(of.seconds.iter().sum::<u64>(), count);
            let sum = of.submission.mean().as_ns() + of.completion.mean().as_ns();
            assert!(sum.abs_diff(of.latency.mean().as_ns()) <= 1, "rounded means");
            assert_eq!(of.submission.max() == Duration::ZERO, is_local, "answered at once");
        }
        // The kernel counts what a thread used when it sleeps or at a tick: one that did neither,
        // but copied memory for less than a millisecond, has used nothing yet.
        assert!(is_local || tally.processor_time() > Duration::ZERO);
    }
    target.stop().expect("it ends well");
}

// What is written is read in the end, whatever is read in between, and that is not counted.
#[test]
fn what_is_written_is_read_back() {
    let target = serve(memory(), 1, Limits::default());
    let device = Device::Remote(Arc::new(connect(&target, PLAIN).expect("it connects")));
    let config = LoadConfig {
        read_percent: 0,
        depth: 8,
        jobs: 2,
        request_count: Some(300),
        verifies: true,
        reads_back: true,
        ..LoadConfig::reads(16 << 20)
    };
    let run = |config: &LoadConfig| {
        diskload::run(config, &device, &Progress::default()).expect("it can be loaded")
    };
    let tally = run(&config);
    is_right(&tally, 600, "writes that are read back");
    assert_eq!((tally.reads.latency.count(), tally.writes.latency.count()), (0, 600));
    assert!((1..=600).contains(&tally.checks.checked_count), "{}", tally.checks.checked_count);
    let tally = run(&LoadConfig { reads_back: false, ..config });
    assert_eq!(tally.checks.checked_count, 0);
    target.stop().expect("it ends well");
}

#[test]
fn room_is_given_back() {
    let backend = memory();
    let device = Device::Local(Arc::clone(&backend));
    let run = |config: &LoadConfig| {
        diskload::run(config, &device, &Progress::default()).expect("it can be loaded")
    };
    let every = Some((16 << 20) / 4096);
    let config = LoadConfig {
        order: Order::Sequential,
        read_percent: 0,
        request_count: every,
        ..LoadConfig::reads(16 << 20)
    };
    run(&config);
    let read = || {
        let mut data = [0; 4096];
        let request = Request { operation: Operation::Read, offset: 8192, length: 4096 };
        backend.start(&request, &mut data, 0);
        data
    };
    assert_ne!(read(), [0; 4096]);
    let tally = run(&LoadConfig { trims: true, ..config });
    assert_eq!((Some(tally.trims.latency.count()), tally.count()), (every, 4096));
    assert_eq!(tally.trims.bytes, 16 << 20);
    assert_eq!(read(), [0; 4096]);
}

#[test]
fn a_load_begins_when_it_is_to_and_pauses() {
    let device = Device::Local(memory());
    let ms = Duration::from_ms;
    let think = Some(Think { time: ms(5), requests: 10 });
    let config =
        LoadConfig { delay: ms(20), think, request_count: Some(40), ..LoadConfig::reads(16 << 20) };
    let began_ns = sys::clock::monotonic_ns();
    let tally = diskload::run(&config, &device, &Progress::default()).expect("it is loaded");
    let took_ns = sys::clock::monotonic_ns() - began_ns;
    assert_eq!(tally.count(), 40);
    assert!(tally.elapsed >= ms(15), "three pauses: {}", tally.elapsed);
    assert!(took_ns - tally.elapsed.as_ns() >= 20_000_000, "{took_ns}");
}
