//! Connections that have not said what they are for, or cannot prove it, and what an operator hears
//! of them.

use std::net::TcpStream;
use std::time::{Duration as StdDuration, Instant};

use host::initiator::{InitiatorConfig, LogicalUnit};
use measure::{Bytes, Duration};
use scsi::iscsi::{Chap, Credentials, Secret};
use target::{Happening, IscsiAccess, Limits, Namespace, Subsystem, Target, TargetConfig};

use crate::fair::wait;
use crate::initiators::{Client, IQN, serve};
use crate::remote::{NAME, memory, nqn};
use crate::reservations::{BLOCK, Raw, is_let_go};

// How often this has happened, to hosts of this name.
fn count(target: &Target, host: &str, what: Happening) -> u64 {
    let counts = target.observer().witness().counts();
    let of_host = counts.iter().filter(|(name, _)| &**name == host).flat_map(|(_, all)| all);
    of_host.filter(|(kind, _)| *kind == what).map(|(_, count)| count).sum()
}

#[test]
fn those_that_are_silent_make_room() {
    const MOST: usize = 8;
    let target = serve(1, Limits { handshakes: 8, ..Limits::default() });
    let addresses = [target.addresses()[0], target.iscsi_addresses()[0]];
    let dial = |address| {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(StdDuration::from_secs(5))).expect("a time");
        stream
    };
    let evicted = || count(&target, "", Happening::Evicted);
    let mut silent: Vec<TcpStream> = (0..4 * MOST).map(|_| dial(addresses[0])).collect();
    assert!(silent[..3 * MOST].iter_mut().all(is_let_go), "those that came first are gone");
    silent.extend((0..4 * MOST).map(|_| dial(addresses[1])));
    assert!(silent[..7 * MOST].iter_mut().all(is_let_go), "of either protocol");
    wait("they are counted", || evicted() == 7 * MOST as u64);
    // Who says what it is for is not among them, however many come later.
    let mut host = Raw::connect(&target, [1; 16]);
    let mut initiator = Client::log_in(&target, 1);
    let more: Vec<_> = (0..4 * MOST).map(|_| TcpStream::connect(addresses[0])).collect();
    wait("they make room, too", || evicted() == 11 * MOST as u64);
    assert!(host.write().is_success());
    assert_eq!(initiator.write(1), crate::initiators::GOOD);
    drop(more);
}

fn secret(text: &str) -> Secret {
    Secret::new(text)
}

fn guarded(delay_ms: u64) -> Target {
    let namespace = Namespace::new(1, memory(), crate::identity("test"));
    let subsystem = Subsystem::new(nqn(NAME), None, vec![namespace]);
    let credentials = Credentials { name: "me".to_owned(), secret: secret("sesame, open up") };
    let chap = Some(Chap { initiator: credentials, target: None });
    let access = IscsiAccess { name: IQN.to_owned(), chap, ..IscsiAccess::default() };
    subsystem.set_iscsi(Some(access));
    let config = TargetConfig {
        iscsi: vec!["127.0.0.1:0".parse().expect("an address")],
        limits: Limits { wrong_secret: Duration::from_ms(delay_ms), ..Limits::default() },
        ..TargetConfig::default()
    };
    Target::start(&config, vec![subsystem]).expect("it can listen")
}

#[test]
fn a_wrong_secret_is_answered_late_and_told() {
    const NAME: &str = "iqn.2026-11.example:guesser";
    let target = guarded(400);
    let uri = format!("iscsi://me@{}/{IQN}/0", target.iscsi_addresses()[0]);
    let uri = uri.parse().expect("it is one");
    let try_it = |text: &str| {
        let mut config = InitiatorConfig::named(NAME);
        config.secret = Some(secret(text));
        LogicalUnit::connect(&uri, &config).map(drop)
    };
    for round in 1..=3 {
        let began = Instant::now();
        try_it("not what it is").expect_err("it is wrong");
        assert!(began.elapsed() >= StdDuration::from_millis(400), "{:?}", began.elapsed());
        assert_eq!(count(&target, NAME, Happening::WrongSecret), round);
    }
    try_it("sesame, open up").expect("it is right");
    assert_eq!(count(&target, NAME, Happening::LoggedIn), 1);
    let (events, untold) = target.observer().witness().take();
    let guesses = events.iter().filter(|event| event.what == Happening::WrongSecret);
    for event in guesses.clone() {
        assert_eq!(event.host.as_deref(), Some(NAME));
        assert!(event.peer.is_some_and(|peer| peer.ip().is_loopback()));
    }
    assert_eq!((guesses.count(), untold.len()), (3, 0));
}

// Many writes of which no data comes: memory is lent for as much as a host may be asked for, and
// the rest of what there is stays for others.
#[test]
fn a_host_that_sends_nothing_is_asked_for_no_more_than_its_share() {
    const MIB: u64 = 1 << 20;
    let limits = Limits {
        share: Bytes::from_kib(1280),
        data: Bytes::from_mib(64),
        stall: Duration::from_ms(600_000),
        ..Limits::default()
    };
    // Of what is in memory, reads take none.
    let target = serve(1, limits);
    let large = u32::try_from(MIB).expect("it is small") / BLOCK;
    let mut host = Raw::connect(&target, [1; 16]);
    // One sends the beginning of its data unasked, and one nothing.
    let mut initiators = [Client::log_in(&target, 1), Client::log_in_patient(&target, 2)];
    host.begin(24, large, true);
    initiators.iter_mut().for_each(|one| one.begin(24, large, true));
    let lent = || -> u64 {
        let lent = target.counters().iter().map(|one| &one.lent_bytes);
        lent.map(|one| one.load(std::sync::atomic::Ordering::Relaxed)).sum()
    };
    wait("each holds memory", || lent() >= 3 * MIB);
    for _ in 0..50 {
        assert!(lent() <= 3 * 1280 * 1024, "{}", lent());
        std::thread::sleep(StdDuration::from_millis(5));
    }
}

#[test]
fn what_hosts_do_is_told() {
    let target = serve(1, Limits { handshake: Duration::from_ms(100), ..Limits::default() });
    let witness = target.observer().witness().clone();
    let host = "nqn.2026-11.example:raw";
    drop(Raw::connect(&target, [1; 16]));
    wait("it has come and gone", || count(&target, host, Happening::Left) == 1);
    assert_eq!(count(&target, host, Happening::LoggedIn), 1);
    let mut stream = TcpStream::connect(target.addresses()[0]).expect("it listens");
    std::io::Write::write_all(&mut stream, &[0xff; 128]).expect("it takes that");
    wait("it broke a rule", || count(&target, "", Happening::Violation) == 1);
    let silent = TcpStream::connect(target.iscsi_addresses()[0]).expect("it listens");
    wait("it said nothing", || count(&target, "", Happening::Silent) == 1);
    drop((stream, silent));
    let (events, _) = witness.take();
    let violation = events.iter().find(|event| event.what == Happening::Violation);
    let why = violation.expect("it was noted").why.to_string();
    assert!(why.contains("header"), "{why}");
}

#[test]
fn a_session_outlives_its_only_connection_when_that_is_replaced() {
    let target = serve(2, Limits::default());
    let mut client = Client::log_in(&target, 1);
    (0..3).for_each(|_| client.replace(&target));
    drop(client);
    assert_eq!(Client::log_in(&target, 1).write(1), crate::initiators::GOOD);
}
