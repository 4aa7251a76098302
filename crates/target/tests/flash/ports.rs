//! Initiators that come through two ports, one of which is in another state.

use std::net::TcpStream;
use std::sync::Arc;

use backend::{Backend, BackendUri, Claim};
use host::initiator::{InitiatorConfig, IscsiUri, discover};
use nvme::log::AnaState;
use scsi::iscsi::Transfer;
use scsi::{Extent, Sense, SenseKey, ask};
use target::{IscsiAccess, Namespace, Subsystem, Target, TargetConfig};

use crate::initiators::{BARRED, Client, GOOD, IQN, Told, dial_at, entry};
use crate::remote::{NAME, memory, nqn};

const ISID: [u8; 6] = [0x40, 0, 0, 0, 0, 9];
const CHANGED: Sense = Sense::new(SenseKey::UnitAttention, 0x2a06);
const STANDBY: Sense = Sense::new(SenseKey::NotReady, 0x040b);
const EIGHT: Extent = Extent { first: 0, count: 8, forced: false };

fn serve(ports: usize) -> Target {
    serve_on(memory(), ports)
}

fn serve_on(backend: Arc<dyn Backend>, ports: usize) -> Target {
    let namespace = Namespace::new(1, backend, crate::identity("test"));
    let subsystem = Subsystem::new(nqn(NAME), None, vec![namespace]);
    subsystem.set_iscsi(Some(IscsiAccess { name: IQN.to_owned(), ..IscsiAccess::default() }));
    let iscsi = vec!["127.0.0.1:0".parse().expect("an address"); ports];
    let config = TargetConfig { iscsi, shards: 2, ..TargetConfig::default() };
    Target::start(&config, vec![subsystem]).expect("it can listen")
}

fn through(target: &Target, place: usize) -> Client {
    Client::enter(dial_at(target, place), entry(ISID, 0, 0, 1)).expect("it may")
}

fn ready(client: &mut Client) -> Option<Sense> {
    client.ask(0, ask::TEST_UNIT_READY, Transfer::None).1
}

fn writes(client: &mut Client) -> Told {
    let extent = Extent { count: 1, ..EIGHT };
    client.ask(0, ask::write(extent), Transfer::Send(&[7; 512]))
}

/// The state of each group, as REPORT TARGET PORT GROUPS has it.
fn states(client: &mut Client) -> Vec<u8> {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[9]) = (0xa3, 0x0a, 255);
    let (status, _, data) = client.ask(0, cdb, Transfer::Receive(255));
    assert_eq!(status, GOOD);
    data[4..].chunks(12).map(|group| group[0] & 0xf).collect()
}

/// Relative port and target port group, of page 83h.
fn designated(client: &mut Client) -> [u8; 2] {
    let (_, _, data) = client.ask(0, ask::inquiry(Some(0x83), 255), Transfer::Receive(255));
    let (mut rest, mut found) = (&data[4..], [0; 2]);
    while let [_, kind, _, length, ..] = *rest {
        let (designator, after) = rest[4..].split_at(usize::from(length));
        match kind & 0xf {
            4 => found[0] = designator[3],
            5 => found[1] = designator[3],
            _ => {}
        }
        rest = after;
    }
    found
}

#[test]
fn a_port_that_is_in_standby_refuses_what_the_other_does() {
    let target = serve(2);
    let (mut a, mut b) = (through(&target, 0), through(&target, 1));
    assert_eq!((writes(&mut a).0, writes(&mut b).0), (GOOD, GOOD), "one ISID, two sessions");
    let tpgs = a.ask(0, ask::inquiry(None, 96), Transfer::Receive(96)).2[5] >> 4;
    assert_eq!((tpgs, designated(&mut a), designated(&mut b)), (1, [1, 1], [2, 2]));
    assert!(!target.reach_iscsi(1, AnaState::Optimized), "it is already");
    for (state, number, code) in [
        (AnaState::Inaccessible, 2, 0x040b),
        (AnaState::PersistentLoss, 3, 0x040c),
        (AnaState::Change, 15, 0x040a),
    ] {
        assert!(target.reach_iscsi(1, state));
        assert_eq!((ready(&mut a), ready(&mut b)), (Some(CHANGED), Some(CHANGED)), "once");
        let refused = Some(Sense::new(SenseKey::NotReady, code));
        assert_eq!((writes(&mut b).1, ready(&mut b)), (refused, refused));
        assert_eq!((states(&mut a), states(&mut b)), (vec![0, number], vec![0, number]));
        assert_eq!((writes(&mut a).0, a.read().0), (GOOD, GOOD));
        assert_eq!(b.read().1, refused);
    }
    assert!(target.reach_iscsi(1, AnaState::NonOptimized));
    assert_eq!(ready(&mut b), Some(CHANGED));
    assert_eq!((states(&mut b), writes(&mut b).0), (vec![0, 1], GOOD));
    target.stop().expect("it has not failed");
}

#[test]
fn data_that_comes_too_late_is_not_written() {
    let target = serve(2);
    let mut config = entry(ISID, 0, 0, 1);
    (config.wishes.immediate_data, config.wishes.initial_r2t) = (false, true);
    let mut client = Client::enter(dial_at(&target, 1), config).expect("it may");
    let bytes = [9; 8 * 512];
    client.send(0, ask::write(EIGHT), Transfer::Send(&bytes));
    let asked: &TcpStream = &client.streams[0];
    assert_eq!(asked.peek(&mut [0]).expect("it asks for the data"), 1);
    assert!(target.reach_iscsi(1, AnaState::Inaccessible));
    let ended = client.hear(0, &bytes, &mut Vec::new()).expect("it answers");
    assert_eq!(ended.sense, Some(STANDBY));
    assert_eq!(through(&target, 0).read().2[0], 0);
    target.stop().expect("it has not failed");
}

#[test]
fn what_waited_for_others_is_refused_when_its_turn_comes() {
    let slow: BackendUri = "fault:write=300ms:memory:1MiB".parse().expect("it is one");
    let target = serve_on(slow.open(Claim::Alone).expect("it opens"), 2);
    let (mut a, mut b) = (through(&target, 0), through(&target, 1));
    let mut compare_and_write = [0; 16];
    (compare_and_write[0], compare_and_write[13]) = (0x89, 1);
    let zeros = [0; 1024];
    a.send(0, compare_and_write, Transfer::Send(&zeros));
    std::thread::sleep(std::time::Duration::from_millis(50));
    let extent = Extent { count: 1, ..EIGHT };
    b.send(0, ask::write(extent), Transfer::Send(&[7; 512]));
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(target.reach_iscsi(1, AnaState::Inaccessible));
    let told = b.hear(0, &[7; 512], &mut Vec::new()).expect("it answers").sense;
    // On a slow machine it comes after the change, of which it is told first.
    assert!(told == Some(STANDBY) || told == Some(CHANGED), "{told:?}");
    let done = a.hear(0, &zeros, &mut Vec::new()).expect("it answers");
    assert_eq!((done.status, ready(&mut a), a.read().2[0]), (GOOD, Some(CHANGED), 0));
    target.stop().expect("it has not failed");
}

#[test]
fn a_session_stays_with_its_port() {
    let target = serve(2);
    let first = through(&target, 0);
    let joins = |place, cid| {
        Client::enter(dial_at(&target, place), entry(ISID, first.tsih, cid, 2)).is_some()
    };
    assert!(!joins(1, 1), "another portal group");
    let uri = IscsiUri::portal(None, target.iscsi_addresses()[0].to_string());
    let told =
        discover(&uri, &InitiatorConfig::named("iqn.2026-11.example:raw")).expect("it tells");
    let addresses: Vec<String> =
        (1..).zip(target.iscsi_addresses()).map(|(tag, one)| format!("{one},{tag}")).collect();
    assert_eq!(told[0].addresses, addresses);
    target.stop().expect("it has not failed");
}

#[test]
fn a_reservation_is_of_the_port_that_it_came_through() {
    let target = serve(2);
    let (mut a, mut b) = (through(&target, 0), through(&target, 1));
    // REGISTER under key 7, then RESERVE, write exclusive.
    for (action, key_at) in [(0, 15), (1, 7)] {
        let (mut cdb, mut parameters) = ([0; 16], [0; 24]);
        (cdb[0], cdb[1], cdb[2], cdb[8], parameters[key_at]) = (0x5f, action, action, 24, 7);
        assert_eq!(a.ask(0, cdb, Transfer::Send(&parameters)).0, GOOD);
    }
    assert_eq!((a.write(3), b.write(4)), (GOOD, BARRED), "one ISID, two nexuses");
    target.stop().expect("it has not failed");
}

#[test]
fn of_one_port_no_state_is_known_but_it_refuses() {
    let target = serve(1);
    let mut client = through(&target, 0);
    assert_eq!(client.ask(0, ask::inquiry(None, 96), Transfer::Receive(96)).2[5], 0);
    assert!(target.reach_iscsi(0, AnaState::Inaccessible));
    assert_eq!(writes(&mut client).1, Some(STANDBY), "and nothing is told before");
    assert!(!target.reach_iscsi(1, AnaState::Inaccessible), "there is none");
    target.stop().expect("it has not failed");
}
