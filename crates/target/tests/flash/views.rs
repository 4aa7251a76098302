//! Memory of which each host sees a disk of its own, for as long as it is there.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration as StdDuration, Instant};

use backend::{Failure, Lease, LeaseBackend};
use host::initiator::{InitiatorConfig, IscsiUri};
use host::{Disk, DiskConfig, DiskPath, HostConfig, identify};
use measure::Duration;
use nvme::Status;
use target::{Limits, Namespace, Target, ViewsSeen};

use crate::disk::{LONG, any_port, attach, config, config_of, host, serve_at, uri};
use crate::initiators::{IQN, serve_namespace};
use crate::proxy::Proxy;
use crate::reservations::Raw;

const MIB: u64 = 1 << 20;
const TTL_MS: u64 = 400;

fn lease(total: u64, quota: u64) -> Arc<LeaseBackend> {
    Arc::new(LeaseBackend::new(Lease::new(Duration::from_ms(TTL_MS), total, quota, 9)))
}

fn serve(addresses: Vec<SocketAddr>, total: u64, quota: u64) -> Target {
    serve_at(&(lease(total, quota) as _), addresses, "leased")
}

fn named(number: u8) -> HostConfig {
    HostConfig { host_id: [number; 16], ..host() }
}

fn disk(addresses: &[SocketAddr], number: u8) -> Disk {
    attach(config_of(addresses, &named(number))).expect("there is room").0
}

fn seen(target: &Target) -> ViewsSeen {
    target.subsystems()[0].namespaces()[0].views().expect("it is leased")
}

fn wait_until(target: &Target, what: &str, is_so: impl Fn(&ViewsSeen) -> bool) -> ViewsSeen {
    let began = Instant::now();
    loop {
        let seen = seen(target);
        if is_so(&seen) {
            return seen;
        }
        assert!(began.elapsed() < LONG, "{what}: {seen:?}");
        sleep(StdDuration::from_millis(5));
    }
}

#[test]
fn hosts_have_disks_of_their_own() {
    let target = serve(vec![any_port()], 8 * MIB, MIB);
    let addresses = target.addresses().to_vec();
    let disks = [1, 2, 3].map(|number| disk(&addresses, number));
    for (number, disk) in (1..).zip(&disks) {
        assert_eq!(disk.geometry().bytes(), MIB);
        disk.write_at(0, &[number; 8192], false).expect("there is room");
        disk.write_at(MIB - 4096, &[number; 4096], false).expect("there is room");
    }
    for (number, disk) in (1..).zip(&disks) {
        let mut read = vec![9; 1 << 20];
        disk.read_at(0, &mut read).expect("it answers");
        let own = |bytes: &[u8]| bytes.iter().all(|byte| *byte == number);
        assert!(own(&read[..8192]) && own(&read[(1 << 20) - 4096..]), "host {number}");
        assert!(read[8192..(1 << 20) - 4096].iter().all(|byte| *byte == 0), "host {number}");
    }
    assert_eq!(seen(&target).used_bytes, 3 * 12288);
    // One gives back all it has, at once, and the others keep theirs.
    disks[1].discard(0, MIB).expect("it answers");
    let mut read = [1; 4096];
    disks[1].read_at(0, &mut read).expect("it answers");
    assert_eq!(read, [0; 4096]);
    assert_eq!(seen(&target).used_bytes, 2 * 12288);
    disks[2].read_at(0, &mut read).expect("it answers");
    assert_eq!(read, [3; 4096]);
    drop(disks);
    target.stop().expect("it has not failed");
}

#[test]
fn a_full_memory_refuses_and_what_is_given_back_is_for_others() {
    // Two may have 1 MiB, and there is room for one and a half.
    let target = serve(vec![any_port()], 3 * MIB / 2, MIB);
    let addresses = target.addresses().to_vec();
    let [one, other] = [1, 2].map(|number| disk(&addresses, number));
    let all = vec![5; 1 << 20];
    one.write_at(0, &all, false).expect("there is room");
    assert_eq!(one.write_at(MIB, &all[..512], false), Err(Failure::OutOfRange), "its quota");
    other.write_at(0, &all[..1 << 19], false).expect("there is room");
    assert_eq!(other.write_at(MIB / 2, &all[..4096], false), Err(Failure::NoSpace));
    // What is there can be written again.
    other.write_at(0, &all[..4096], false).expect("it has its room");
    let now = seen(&target);
    assert_eq!((now.used_bytes, now.total_bytes, now.refused), (3 * MIB / 2, 3 * MIB / 2, 1));
    one.discard(0, MIB / 2).expect("it answers");
    other.write_at(MIB / 2, &all[..1 << 19], false).expect("there is room again");
    drop((one, other));
    target.stop().expect("it has not failed");
}

#[test]
fn what_a_host_leaves_is_freed_when_its_lease_ends_and_not_before() {
    let target = serve(vec![any_port()], 8 * MIB, MIB);
    let addresses = target.addresses().to_vec();
    let [gone, stays] = [1, 2].map(|number| disk(&addresses, number));
    let again = disk(&addresses, 2);
    gone.write_at(0, &[1; 65536], false).expect("there is room");
    stays.write_at(0, &[2; 4096], false).expect("there is room");
    let before = Instant::now();
    drop(gone);
    // It comes back within the lease and finds what it has written.
    let back = disk(&addresses, 1);
    let mut read = [0; 4096];
    back.read_at(4096, &mut read).expect("it answers");
    let in_time = before.elapsed() < StdDuration::from_millis(TTL_MS);
    assert!(read == [1; 4096] || !in_time, "its lease has not ended");
    back.write_at(0, &[1; 65536], false).expect("there is room");
    drop((back, again));
    let dropped = Instant::now();
    let now = wait_until(&target, "a lease ends", |seen| seen.used_bytes == 4096);
    assert!(dropped.elapsed() >= StdDuration::from_millis(TTL_MS), "{:?}", dropped.elapsed());
    assert_eq!((now.ended_bytes % 65536, now.views.len()), (0, 1), "{now:?}");
    assert!(now.views[0].is_held && now.views[0].host_id == [2; 16], "{now:?}");
    stays.read_at(0, &mut read).expect("it answers");
    assert_eq!(read, [2; 4096]);
    // Who comes later finds zeros, on another disk.
    let late = disk(&addresses, 1);
    late.read_at(0, &mut read).expect("it answers");
    assert_eq!(read, [0; 4096]);
    drop((late, stays));
    wait_until(&target, "all leases end", |seen| seen.views.is_empty());
    target.stop().expect("it has not failed");
}

/// A host that was away for longer than its lease does not go on: what it finds is another disk.
#[test]
fn a_disk_whose_lease_has_ended_is_not_taken_for_the_new_one() {
    let target = serve(vec![any_port()], 8 * MIB, MIB);
    let addresses = target.addresses().to_vec();
    let proxy = Proxy::start(addresses[0]);
    let config =
        DiskConfig { loss_timeout: Duration::from_ms(10_000), ..config(&[proxy.address()]) };
    let (disk, events) = attach(config).expect("there is room");
    disk.write_at(0, &[1; 4096], false).expect("there is room");
    let subsystem = Arc::clone(&target.subsystems()[0]);
    proxy.hold();
    subsystem.admit(Some(std::collections::BTreeSet::new()));
    wait_until(&target, "the lease ends", |seen| seen.views.is_empty());
    subsystem.admit(None);
    // Whatever it sent before the target had given it up arrives now.
    proxy.release();
    std::thread::scope(|scope| {
        let late = scope.spawn(|| disk.write_at(0, &[2; 4096], false));
        events.wait_for("is another than this disk");
        let now = seen(&target);
        assert_eq!((now.used_bytes, now.ended_bytes), (0, 4096), "nothing is written");
        let mut new = [7; 4096];
        let other = crate::views::disk(&addresses, 7);
        other.read_at(0, &mut new).expect("it answers");
        assert_eq!(new, [0; 4096], "the same host, which knows nothing of it");
        drop((other, late));
        // Nobody answers the disk any more, so its write ends with its time.
        target.stop().expect("it has not failed");
    });
    drop(disk);
}

#[test]
fn two_ways_of_a_host_lead_to_one_disk() {
    let target = serve(vec![any_port(), any_port()], 8 * MIB, MIB);
    let [first, second] = [0, 1].map(|way| target.addresses()[way]);
    let both = disk(&[first, second], 1);
    both.write_at(0, &[6; 4096], false).expect("there is room");
    let other = disk(&[second], 1);
    let mut read = [0; 4096];
    other.read_at(0, &mut read).expect("it answers");
    assert_eq!((read, seen(&target).views.len()), ([6; 4096], 1));
    drop((both, other));
    target.stop().expect("it has not failed");
}

#[test]
fn a_view_says_that_it_is_private_and_thin_and_is_not_reserved() {
    let target = serve(vec![any_port()], 8 * MIB, MIB);
    let address = target.addresses()[0];
    let disk = disk(&[address], 1);
    disk.write_at(0, &[6; 8192], false).expect("there is room");
    let found = identify(&uri(&address), &named(1)).expect("it answers");
    let found = found.namespaces[0].found;
    assert_eq!((found.is_shared, found.reservation_kinds), (false, 0));
    assert_eq!((found.block_count, found.used_blocks), (MIB / 512, 16));
    let mut raw = Raw::connect(&target, [1; 16]);
    assert_eq!(raw.register(7, 0), Status::INVALID_FIELD.do_not_retry());
    assert!(raw.reads());
    drop((raw, disk));
    target.stop().expect("it has not failed");
}

#[test]
fn initiators_do_not_see_it() {
    let namespace = Namespace::new(1, lease(8 * MIB, MIB), crate::identity("leased"));
    let target = serve_namespace(namespace, 1, Limits::default());
    let address = target.iscsi_addresses()[0];
    let uri = format!("iscsi://{address}/{IQN}");
    let uri: IscsiUri = uri.parse().expect("it is one");
    let config = InitiatorConfig::named("iqn.2026-11.example:host");
    let path = DiskPath::Iscsi(uri, config);
    let refused = attach(DiskConfig { paths: vec![path], ..config_of(&[], &named(1)) });
    assert!(refused.is_err());
    assert_eq!(seen(&target).views.len(), 0);
    target.stop().expect("it has not failed");
}
