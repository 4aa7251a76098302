//! A host that has lost its way to a controller has another controller end it (TP8028).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::Duration as StdDuration;

use backend::{Backend, Operation, Request};
use host::HostConfig;
use measure::Duration;
use nvme::{Admin, Command, Data, Direction, FoundController, IDENTIFY_BYTES, Instance, Status};
use target::{Limits, Target};

use crate::disk::{attach, config_of, host, written};
use crate::hostile::answer;
use crate::proxy::Proxy;
use crate::remote::{memory, serve};
use crate::reservations::{Raw, Slow, ended, send};

const HOST: [u8; 16] = [1; 16];
const INVALID: Status = Status::INVALID_CONTROLLER.do_not_retry();

// Which instance of its controller there is.
fn instance(of: &mut Raw) -> Instance {
    let identify = Admin::Identify { structure: 1, controller_id: 0, command_set: 0 };
    let length = u32::try_from(IDENTIFY_BYTES).expect("it is short");
    send(
        &mut of.admin,
        Command::Admin(identify),
        Data::Transport { length },
        Direction::ToHost,
        &[],
    );
    // The header of the PDU that has it, and what follows.
    answer(&mut of.admin, 24);
    let page = answer(&mut of.admin, IDENTIFY_BYTES);
    assert_eq!(ended(&mut of.admin).0, Status::SUCCESS);
    let page: [u8; IDENTIFY_BYTES] = page.try_into().expect("all of it");
    let found = FoundController::read(&page);
    assert_eq!((found.resets_max, found.quiesce_ms), (4, 2000));
    found.instance
}

// Whether it is complete, or why not.
fn reset(by: &mut Raw, of: Instance) -> Result<bool, Status> {
    let reset = Command::Admin(Admin::CrossControllerReset(of));
    send(&mut by.admin, reset, Data::None, Direction::None, &[]);
    let (status, result) = ended(&mut by.admin);
    if status.is_success() { Ok(result & 1 == 1) } else { Err(status) }
}

fn slow(limits: Limits) -> (Arc<Slow>, Target) {
    let slow = Slow::new();
    let target = serve(Arc::clone(&slow) as Arc<dyn Backend>, 2, limits);
    (slow, target)
}

#[test]
fn a_controller_that_was_reset_by_way_of_another_has_ended_all_it_had() {
    let (slow, target) = slow(Limits::default());
    let [mut lost, mut other] = [(); 2].map(|()| Raw::connect(&target, HOST));
    let of = instance(&mut lost);
    assert_ne!(instance(&mut other), of);
    lost.begin_one();
    slow.wait_for_a_write();
    assert_eq!(reset(&mut other, of), Ok(true));
    assert!(slow.has_ended.load(Ordering::Acquire), "what the device had was waited for");
    assert!(lost.is_let_go());
    assert_eq!(other.write(), Status::SUCCESS, "it goes on");
    assert_eq!(reset(&mut other, of), Ok(true), "it is gone already");
    target.stop().expect("it has not failed");
}

// What a controller was before it was enabled anew is over when its queues are.
#[test]
fn another_life_of_a_controller_is_not_reset() {
    let (_slow, target) = slow(Limits::default());
    let [mut lost, mut other] = [(); 2].map(|()| Raw::connect(&target, HOST));
    let before = instance(&mut lost);
    assert_eq!([lost.enable(false), lost.enable(true)], [Status::SUCCESS; 2]);
    let now = instance(&mut lost);
    assert_eq!(now.controller, before.controller);
    assert!(now.uniquifier != before.uniquifier && now.random != before.random);
    assert_eq!(reset(&mut other, before), Ok(true));
    assert_eq!(instance(&mut lost), now, "it is there");
    assert_eq!(reset(&mut other, now), Ok(true));
    target.stop().expect("it has not failed");
}

#[test]
fn only_its_own_other_controllers_are_a_host_s_to_reset() {
    let limits = Limits { controller_ids: [10, 20], ..Limits::default() };
    let (_slow, target) = slow(limits);
    let [mut one, mut other] = [(); 2].map(|()| Raw::connect(&target, HOST));
    let mut stranger = Raw::connect(&target, [2; 16]);
    let of = instance(&mut one);
    assert_eq!(reset(&mut stranger, of), Err(INVALID));
    assert_eq!(reset(&mut one, of), Err(Status::INVALID_FIELD.do_not_retry()));
    // Another target of the subsystem may have one of this number, of which this one knows nothing.
    assert_eq!(reset(&mut other, Instance { controller: 21, ..of }), Err(INVALID));
    assert_eq!(reset(&mut other, Instance { controller: 9, ..of }), Err(INVALID));
    assert_eq!(one.write(), Status::SUCCESS, "nobody has ended it");
    target.stop().expect("it has not failed");
}

#[test]
fn what_takes_longer_is_asked_for_again() {
    let (slow, target) = slow(Limits::default());
    let [mut lost, mut other] = [(); 2].map(|()| Raw::connect(&target, HOST));
    let of = instance(&mut lost);
    slow.take_ns.store(1_200_000_000, Ordering::Release);
    lost.begin_one();
    slow.wait_for_a_write();
    let mut still = 0;
    let complete = loop {
        match reset(&mut other, of) {
            Err(Status::RESET_IN_PROGRESS) => still += 1,
            result => break result,
        }
        assert!(!slow.has_ended.load(Ordering::Acquire) || still < 4);
    };
    assert_eq!(complete, Ok(true));
    assert!(still > 0 && slow.has_ended.load(Ordering::Acquire), "{still}");
    target.stop().expect("it has not failed");
}

// A write is lost on its way, and is sent again; what is written there next does not wait until the
// target has given the host up.
fn is_free_at_once(through: impl Fn(SocketAddr, SocketAddr) -> Vec<SocketAddr>) {
    let target = serve(memory(), 2, Limits::default());
    let proxy = Proxy::start(target.addresses()[0]);
    let patient = HostConfig { keep_alive_ms: 600_000, ..host() };
    let paths = through(proxy.address(), target.addresses()[0]);
    let mut config = config_of(&paths, &patient);
    config.io_timeout = Duration::from_ms(300);
    let (disk, events) = attach(config).expect("it is there");
    // What is held back is the first path, which lanes take once they know of it.
    let up: Vec<String> = (0..paths.len()).map(|path| format!("PathUp {{ path: {path}")).collect();
    events.wait_for_each(&up.iter().map(String::as_str).collect::<Vec<_>>());
    disk.write_at(0, &[1; 512], false).expect("it is there");
    proxy.hold();
    disk.write_at(0, &[2; 512], false).expect("it is done in the end");
    let (sender, told) = channel();
    let request = Request { operation: Operation::Write { forced: false }, offset: 0, length: 512 };
    disk.submit(request, &[3; 512], Box::new(move |result| _ = sender.send(result.is_ok())));
    assert_eq!(told.recv_timeout(StdDuration::from_secs(60)), Ok(true));
    events.wait_for_each(&["PathDown { path: 0", "Fenced { path: 0 }"]);
    proxy.release();
    disk.write_at(4096, &[9; 512], false).expect("it is there");
    let mut read = [0; 512];
    disk.read_at(0, &mut read).expect("it is there");
    assert_eq!(read, [3; 512]);
    assert_eq!(written(&target), 4, "the first copy was not done");
    drop(disk);
    target.stop().expect("no shard has failed");
}

#[test]
fn blocks_of_a_lost_write_are_free_when_its_controller_was_reset_by_the_next() {
    is_free_at_once(|lost, _| vec![lost]);
}

#[test]
fn blocks_of_a_lost_write_are_free_when_its_controller_was_reset_over_another_path() {
    is_free_at_once(|lost, other| vec![lost, other]);
}
