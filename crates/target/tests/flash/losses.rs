//! A device that has lost what it took promises nothing any more, to nobody.

use backend::{BackendUri, Claim};
use nvme::Status;
use scsi::iscsi::Transfer;
use scsi::{Extent, Sense, ask};
use target::{Happening, Limits, Namespace, Why};

use crate::initiators::{Client, GOOD, serve_namespace};
use crate::reservations::{BLOCK, Raw};

const FAULT: Status = Status::WRITE_FAULT.do_not_retry();
/// Critical warning: reliability is degraded (Base 5.1.12.1.3).
const UNRELIABLE: u8 = 1 << 2;

fn namespace(uri: &str) -> Namespace {
    let uri: BackendUri = uri.parse().expect("it is one");
    let backend = uri.open(Claim::Alone).expect("it opens");
    Namespace::new(1, backend, crate::identity("test"))
}

/// A page of the log (SPC-4 7.3).
fn log(client: &mut Client, page: u8) -> Vec<u8> {
    let mut cdb = [0; 16];
    (cdb[0], cdb[2], cdb[8]) = (0x4d, 0x40 | page, 255);
    let (status, _, data) = client.ask(0, cdb, Transfer::Receive(255));
    assert_eq!(status, GOOD);
    data
}

/// Additional sense code and qualifier of the informational exceptions page.
fn exception(client: &mut Client) -> [u8; 2] {
    let data = log(client, 0x2f);
    [data[8], data[9]]
}

#[test]
fn what_everybody_has_done_is_logged() {
    let target = serve_namespace(namespace("memory:1MiB"), 2, Limits::default());
    let mut host = Raw::connect(&target, [1; 16]);
    let mut client = Client::log_in(&target, 1);
    assert_eq!((client.write(1), client.write(2), client.read().0), (GOOD, GOOD, GOOD));
    assert_eq!((host.write(), host.reads()), (Status::SUCCESS, true));
    let data = log(&mut client, 0x19);
    let value = |at: usize| u64::from_be_bytes(data[at..at + 8].try_into().expect("eight"));
    assert_eq!([8, 16, 24, 32].map(value), [2, 3, 3, 2], "reads, writes; blocks of writes, reads");
    target.stop().expect("it has not failed");
}

// fsync(2) tells of a loss once: so does this device.
#[test]
fn a_failed_flush_is_not_forgotten_by_either_protocol() {
    let target =
        serve_namespace(namespace("fault:flush=eio@once:memory:1MiB"), 2, Limits::default());
    let [mut a, mut b] = [[1; 16], [2; 16]].map(|id| Raw::connect(&target, id));
    let mut client = Client::log_in(&target, 1);
    assert_eq!((a.write(), a.health()[0]), (Status::SUCCESS, 0));
    assert_eq!(exception(&mut client), [0, 0]);
    assert_eq!(a.flush(), FAULT, "the loss itself");
    assert_eq!((a.flush(), b.flush()), (FAULT, FAULT), "what is gone has not come back");
    assert_eq!((a.write_forced(), b.write_forced()), (FAULT, FAULT));
    assert_eq!((a.write(), a.reads()), (Status::SUCCESS, true), "they promise nothing");
    assert_eq!((a.health()[0], b.health()[0]), (UNRELIABLE, UNRELIABLE));
    assert_eq!(exception(&mut client), [0x5d, 0], "failure prediction threshold exceeded");
    let told = client.ask(0, ask::SYNCHRONIZE_CACHE, Transfer::None);
    assert_eq!(told.1, Some(Sense::WRITE_ERROR), "nor to an initiator");
    let forced = Extent { first: 0, count: 1, forced: true };
    let told = client.ask(0, ask::write(forced), Transfer::Send(&[9; BLOCK as usize]));
    assert_eq!(told.1, Some(Sense::WRITE_ERROR));
    assert_eq!((client.write(3), client.read().0), (GOOD, GOOD));
    let (events, _) = target.observer().witness().take();
    let lost: Vec<Why> = events
        .iter()
        .filter(|event| event.what == Happening::Lost)
        .map(|event| event.why)
        .collect();
    assert_eq!(lost, [Why::Namespace(1)], "an operator hears of it once");
    // Base 3.6.1: all is not on the medium.
    assert_eq!(a.shut_down(), Status::INTERNAL_ERROR.do_not_retry());
    target.stop().expect("it has not failed");
}

// What an initiator hears holds for hosts; opened anew, the device begins anew.
#[test]
fn a_forced_write_that_the_medium_failed_is_a_loss_until_it_is_opened_anew() {
    let uri = "fault:write=eio@once:memory:1MiB";
    let target = serve_namespace(namespace(uri), 1, Limits::default());
    let (mut host, mut client) = (Raw::connect(&target, [1; 16]), Client::log_in(&target, 1));
    let forced = Extent { first: 0, count: 1, forced: true };
    let told = client.ask(0, ask::write(forced), Transfer::Send(&[9; BLOCK as usize]));
    assert_eq!(told.1, Some(Sense::WRITE_ERROR));
    assert_eq!((host.flush(), host.write_forced()), (FAULT, FAULT));
    target.stop().expect("it has not failed");

    let target = serve_namespace(namespace("memory:1MiB"), 1, Limits::default());
    let mut host = Raw::connect(&target, [1; 16]);
    assert_eq!((host.flush(), host.health()[0]), (Status::SUCCESS, 0));
    target.stop().expect("it has not failed");
}
