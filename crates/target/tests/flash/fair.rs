//! Peers that hold on to what they are lent, beside others that want to go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration as StdDuration;

use backend::{FileBackend, Opening};
use diskload::{Device, LoadConfig, Progress, Tally};
use host::initiator::{InitiatorConfig, LogicalUnit};
use measure::{Bytes, Duration};
use nvme::Digests;
use target::{Counters, Limits, Namespace, Target};

use crate::Scratch;
use crate::initiators::{Client, IQN, serve_namespace};
use crate::remote::{connect, memory};
use crate::reservations::{BLOCK, Raw, is_let_go, look_around};

const FILE_BYTES: u64 = 64 << 20;
/// For a hundred requests, or to see that there is no end.
const PATIENCE: StdDuration = StdDuration::from_secs(60);
/// A megabyte, in blocks.
const LARGE: u32 = (1 << 20) / BLOCK;
/// More than anybody is lent.
const MANY: u16 = 24;

/// A file, whose requests take the memory that they are lent.
fn serve(file: &Scratch, limits: Limits) -> Target {
    sys::disk::Disk::create(file.path(), FILE_BYTES).expect("it can be made");
    let backend =
        FileBackend::open(file.path(), None, Opening::default()).expect("it can be opened");
    serve_namespace(Namespace::new(1, Arc::new(backend), crate::identity("test")), 1, limits)
}

fn file() -> Scratch {
    Scratch::new(std::env::temp_dir().to_str().expect("paths here are text"))
}

fn limits(stall_ms: u64) -> Limits {
    Limits {
        data: Bytes::from_mib(4),
        share: Bytes::from_kib(1280),
        stall: Duration::from_ms(stall_ms),
        ..Limits::default()
    }
}

/// Two of each protocol: one that sends no data, and one that does not read.
struct Holders {
    hosts: [Raw; 2],
    initiators: [Client; 2],
}

impl Holders {
    fn begin(target: &Target) -> Self {
        let mut hosts = [[1; 16], [2; 16]].map(|id| Raw::connect(target, id));
        let mut initiators = [1, 2].map(|number| Client::log_in(target, number));
        for (index, writes) in [(0, true), (1, false)] {
            hosts[index].begin(MANY, LARGE, writes);
            initiators[index].begin(MANY, LARGE, writes);
        }
        Self { hosts, initiators }
    }
}

fn sum(target: &Target, of: fn(&Counters) -> &AtomicU64) -> u64 {
    target.counters().iter().map(|shard| of(shard).load(Ordering::Relaxed)).sum()
}

// Until it is so.
pub(crate) fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        std::thread::sleep(StdDuration::from_millis(10));
    }
    panic!("{what}: it has not come to pass");
}

// Everything that is written is read again, in a region of one's own.
fn go_on(device: &Arc<Device>, region: u64, request_bytes: u32) -> Tally {
    let load = LoadConfig {
        read_percent: 50,
        request_bytes,
        region: [region * (8 << 20), 8 << 20],
        depth: 4,
        runtime: Some(Duration::from_ms(20_000)),
        request_count: Some(100),
        verifies: true,
        ..LoadConfig::reads(0)
    };
    let (sender, ended) = channel();
    let device = Arc::clone(device);
    let device = device.clone();
    std::thread::spawn(move || {
        drop(sender.send(diskload::run(&load, &device, &Progress::default())));
    });
    let tally = ended.recv_timeout(PATIENCE).expect("it is answered in the end");
    tally.expect("it can be loaded")
}

fn neighbours(target: &Target) -> [Device; 2] {
    let digests = Digests { header: false, data: false };
    let host = connect(target, digests).expect("it connects");
    let uri = format!("iscsi://{}/{IQN}/0", target.iscsi_addresses()[0]);
    let config = InitiatorConfig::named("iqn.2026-11.example:neighbour");
    let unit = LogicalUnit::connect(&uri.parse().expect("it is one"), &config);
    [Device::Remote(Arc::new(host)), Device::Iscsi(Arc::new(unit.expect("it is there")))]
}

fn all_go_on(target: &Target) {
    for (region, device) in (1..).zip(neighbours(target)) {
        let device = Arc::new(device);
        for request_bytes in [4096, 64 << 10, 1 << 20] {
            let tally = go_on(&device, region, request_bytes);
            assert_eq!(tally.first_failure, None, "{request_bytes} bytes of {region}");
            assert_eq!(tally.count(), 100, "{request_bytes} bytes of {region}");
        }
    }
}

#[test]
fn neighbours_go_on_while_others_hold_what_they_were_lent() {
    let file = file();
    let target = serve(&file, limits(600_000));
    let holders = Holders::begin(&target);
    let held = || sum(&target, |shard| &shard.lent_bytes);
    // All that is common, beside what each has of its own.
    wait("they hold all there is", || held() > 5 << 20);
    all_go_on(&target);
    let most = (4 << 20) + 6 * (1280 << 10) + (1 << 20);
    assert!(held() <= most, "{} of {most}", held());
    drop(holders);
    wait("all of it comes back", || held() == 0);
}

#[test]
fn who_sends_no_data_and_who_does_not_read_is_let_go() {
    let file = file();
    let target = serve(&file, limits(500));
    let mut holders = Holders::begin(&target);
    wait("two are late", || sum(&target, |shard| &shard.late_data) == 2);
    wait("two do not read", || sum(&target, |shard| &shard.unread) == 2);
    assert!(holders.hosts.iter_mut().all(Raw::is_let_go));
    assert!(holders.initiators.iter_mut().all(Client::is_let_go));
    wait("all of it comes back", || sum(&target, |shard| &shard.lent_bytes) == 0);
    all_go_on(&target);
}

// What is waiting to be sent is memory like any other: who does not read has as much and no more.
#[test]
fn who_does_not_read_holds_no_more_than_anybody_may() {
    let file = file();
    let target = serve(&file, limits(600_000));
    let mut hosts: Vec<Raw> = (1..9).map(|id| Raw::connect(&target, [id; 16])).collect();
    hosts.iter_mut().for_each(|host| host.begin(MANY, LARGE, false));
    let held = || sum(&target, |shard| &shard.lent_bytes);
    wait("they are all answered as far as can be", || held() > 8 << 20);
    let most = (4 << 20) + 8 * (1280 << 10);
    for _ in 0..50 {
        assert!(held() <= most, "{} of {most}", held());
        std::thread::sleep(StdDuration::from_millis(10));
    }
    let reads = sum(&target, |shard| &shard.reads);
    assert!(reads <= 8 * 8, "{reads} reads were answered to hosts that read nothing");
}

// Each has one queue of the same number.
#[test]
fn queues_live_where_least_is() {
    let target =
        serve_namespace(Namespace::new(1, memory(), crate::identity("test")), 4, Limits::default());
    let hosts: Vec<Raw> = (1..7).map(|id| Raw::connect(&target, [id; 16])).collect();
    let open = || {
        let shards = &target.counters()[..4];
        let mut open: Vec<u64> =
            shards.iter().map(|shard| shard.connections.load(Ordering::Relaxed)).collect();
        open.sort_unstable();
        open
    };
    wait("they are spread", || open() == [1, 1, 2, 2]);
    drop(hosts);
    wait("they are gone", || open() == [0; 4]);
    let client = Client::log_in(&target, 1);
    let host = Raw::connect(&target, [1; 16]);
    wait("sessions and queues count alike", || open() == [0, 0, 1, 1]);
    drop((client, host));
}

// Nobody who only looks around keeps out who has something to do.
#[test]
fn discovery_keeps_nobody_out() {
    let limits = Limits { controllers: 8, ..Limits::default() };
    let file = file();
    let target = serve(&file, limits);
    let mut looking: Vec<_> = (0..32).map(|_| look_around(&target)).collect();
    all_go_on(&target);
    let gone = looking.iter_mut().take(24).all(is_let_go);
    assert!(gone, "those that came first are gone");
}
