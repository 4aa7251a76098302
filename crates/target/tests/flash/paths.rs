//! A disk over several paths, and over one that leads elsewhere or says that it cannot be taken.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration as StdDuration;

use backend::{Failure, Operation, Request};
use host::{DiskConfig, DiskPath, HostError, NvmeUri, identify};
use measure::Duration;
use nvme::log::AnaState;

use crate::disk::{LONG, Writers, any_port, attach, config, host, serve, serve_at, uri, written};
use crate::proxy::Proxy;
use crate::remote::{NAME, memory};

// Two targets over one medium cannot prove that it is one.
fn unproved(addresses: &[SocketAddr]) -> DiskConfig {
    DiskConfig { trusts_identity: true, ..config(addresses) }
}

#[test]
fn another_path_takes_over_and_gives_back() {
    let backend = memory();
    let mut first = serve(&backend, None, "test");
    let second = serve(&backend, None, "test");
    let addresses = [first.addresses()[0], second.addresses()[0]];
    let (disk, events) = attach(unproved(&addresses)).expect("it is there");
    let write = |times: u64| {
        (0..times).for_each(|n| disk.write_at(n * 512, &[7; 512], false).expect("it lasts"));
    };
    events.wait_for_each(&["PathUp { path: 0", "PathUp { path: 1"]);
    write(10);
    assert_eq!((written(&first), written(&second)), (10, 0), "the first is preferred");
    first.stop().expect("no shard has failed");
    write(10);
    assert_eq!(written(&second), 10, "the other takes over");
    events.wait_for("PathDown { path: 0");
    first = serve(&backend, Some(addresses[0]), "test");
    events.wait_for("PathUp { path: 0");
    // Lanes hear of it one by one.
    let began = std::time::Instant::now();
    while written(&first) == 0 {
        write(1);
        assert!(began.elapsed() < LONG, "the first takes it back");
    }
    first.stop().expect("no shard has failed");
    second.stop().expect("no shard has failed");
}

// A target of two addresses, with a proxy before each that tells how much passes there.
#[test]
fn the_path_that_is_told_to_be_taken_is_taken() {
    let target = serve_at(&memory(), vec![any_port(); 2], "test");
    let proxies = [0, 1].map(|at: usize| Proxy::start(target.addresses()[at]));
    let addresses = [0, 1].map(|at: usize| proxies[at].address());
    let (disk, events) = attach(config(&addresses)).expect("it is there");
    events.wait_for_each(&["PathUp { path: 0", "PathUp { path: 1"]);
    // Which of them a megabyte takes.
    let takes = || {
        let before = proxies.each_ref().map(Proxy::passed_bytes);
        for at in 0..16 {
            disk.write_at(at << 16, &[7; 64 << 10], false).expect("it lasts");
        }
        let taken = [0, 1].map(|at| proxies[at].passed_bytes() - before[at] > 512 << 10);
        assert!(taken[0] != taken[1], "one of them");
        usize::from(taken[1])
    };
    let reach = |path: usize, state: AnaState| {
        assert!(target.reach(path, state));
        events.wait_for(&format!("PathState {{ path: {path}, state: {state:?} }}"));
    };
    assert_eq!(takes(), 0, "the first of two that are as good");
    reach(0, AnaState::NonOptimized);
    assert_eq!(takes(), 1, "the better one");
    reach(1, AnaState::NonOptimized);
    assert_eq!(takes(), 0, "neither is better");
    reach(0, AnaState::Inaccessible);
    assert_eq!(takes(), 1, "the only one");
    reach(1, AnaState::PersistentLoss);
    // What is asked now waits until there is one.
    let (sender, told) = channel();
    let request = Request { operation: Operation::Read, offset: 0, length: 512 };
    disk.submit(request, &[], Box::new(move |result| _ = sender.send(result.is_ok())));
    reach(0, AnaState::Change);
    assert!(told.try_recv().is_err(), "there is none");
    reach(0, AnaState::Optimized);
    assert_eq!(told.recv_timeout(LONG), Ok(true));
    assert_eq!(takes(), 0);
    target.stop().expect("no shard has failed");
}

// With one address a controller reports no states: it only refuses.
#[test]
fn what_is_refused_for_its_path_waits_for_it() {
    let target = serve(&memory(), None, "test");
    let loss_timeout = Duration::from_ms(700);
    let own = DiskConfig { loss_timeout, ..config(target.addresses()) };
    let (disk, events) = attach(own).expect("it is there");
    let (patient, _events) = attach(config(target.addresses())).expect("it is there");
    assert!(target.reach(0, AnaState::Inaccessible));
    let mut read = [0; 512];
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| patient.read_at(0, &mut read));
        // It is not done for as long as another disk waits.
        assert_eq!(disk.write_at(0, &[1; 512], false), Err(Failure::Lost));
        events.wait_for("Lost");
        assert!(!waiting.is_finished());
        assert!(target.reach(0, AnaState::Optimized));
        assert_eq!(waiting.join().expect("it ends"), Ok(()));
    });
    target.stop().expect("no shard has failed");
}

#[test]
fn writes_go_on_while_paths_come_and_go() {
    let backend = memory();
    let targets = [(); 2].map(|()| serve(&backend, None, "test"));
    let addresses = [0, 1].map(|at: usize| targets[at].addresses()[0]);
    let (disk, events) = attach(unproved(&addresses)).expect("it is there");
    let disk = Arc::new(disk);
    let mut targets = targets.map(Some);
    events.wait_for_each(&["PathUp { path: 0", "PathUp { path: 1"]);
    let writers = Writers::start(&disk);
    for round in 0..12 {
        let path = round % 2;
        std::thread::sleep(StdDuration::from_millis(50));
        targets[path].take().expect("it is there").stop().expect("no shard has failed");
        events.wait_for(&format!("PathDown {{ path: {path}"));
        targets[path] = Some(serve(&backend, Some(addresses[path]), "test"));
        events.wait_for(&format!("PathUp {{ path: {path}"));
    }
    assert!(writers.stop() > 12);
    assert!(!disk.is_lost());
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    let backend = memory();
    let target = serve(&backend, None, "test");
    let other = serve(&memory(), None, "other");
    let addresses = [target.addresses()[0], other.addresses()[0]];
    match attach(config(&addresses)).map(|_| ()) {
        Err(HostError::Protocol { reason, .. }) => {
            assert!(reason.contains("another than this disk"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let mut named = config(&addresses[..1]);
    let absent = "nvme+tcp://127.0.0.1:1/nqn.x:y".parse().expect("it is one");
    named.paths.push(DiskPath::Nvme(absent, host()));
    // Nobody is there: it is looked for, and the disk is there meanwhile.
    let (disk, events) = attach(named).expect("one is there");
    events.wait_for("PathDown { path: 1");
    disk.flush().expect("it is there");
    drop(disk);
    // Nor is it taken for the disk when the target comes back as another.
    let address = addresses[0];
    let (disk, events) = attach(config(&[address])).expect("it is there");
    target.stop().expect("no shard has failed");
    let wrong = serve(&memory(), Some(address), "wrong");
    events.wait_for("another than this disk");
    wrong.stop().expect("no shard has failed");
    let target = serve(&backend, Some(address), "test");
    disk.write_at(0, &[3; 512], false).expect("it is back");
    target.stop().expect("no shard has failed");
}

#[test]
fn a_controller_says_what_it_has() {
    let target = serve_at(&memory(), vec![any_port(); 2], "test");
    let [first, second] = [0, 1].map(|index| uri(&target.addresses()[index]));
    let found = identify(&second, &host()).expect("it answers");
    assert_eq!(found.controller.subsystem, NAME);
    assert!(found.controller.has_write_zeroes() && found.controller.ana.is_some());
    let [namespace] = &found.namespaces[..] else { panic!("{found:?}") };
    assert_eq!((namespace.id, namespace.state), (1, Some(AnaState::Optimized)));
    assert_eq!(namespace.found.block_count << namespace.found.block_shift, 16 << 20);
    assert!(!namespace.found.ids.is_unknown());
    assert!(target.reach(1, AnaState::NonOptimized));
    let again = identify(&second, &host()).expect("it answers");
    assert_eq!(again.namespaces[0].state, Some(AnaState::NonOptimized));
    assert_eq!(again.namespaces[0].found.ids, namespace.found.ids, "it is the same");
    let absent = NvmeUri { namespace: Some(9), ..first };
    match identify(&absent, &host()) {
        Err(HostError::Protocol { reason, .. }) => assert_eq!(reason, "namespace 9 is not there"),
        other => panic!("{other:?}"),
    }
    target.stop().expect("no shard has failed");
}
