//! The initiator, beside a target of the protocol's other end, and beside some that are none.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant};

use diskload::{Device, LoadConfig, Progress};
use host::initiator::{InitiatorConfig, IscsiUri, LogicalUnit, discover, identify};
use host::{Disk, DiskConfig, DiskPath, HostError};
use measure::Duration;
use scsi::iscsi::{DigestWish, Digests, Wishes};
use workload::Draw;

use crate::little::{BYTES, Little, TARGET};

fn wishes(connections: u16, is_lavish: bool) -> Wishes {
    Wishes {
        header_digest: DigestWish::Possible,
        data_digest: DigestWish::Possible,
        max_connections: connections,
        initial_r2t: !is_lavish,
        immediate_data: is_lavish,
        data_bytes: if is_lavish { 64 << 10 } else { 4096 },
        ..Wishes::default()
    }
}

fn initiator() -> InitiatorConfig {
    InitiatorConfig::named("iqn.2026-11.example:host")
}

fn parsed(text: &str) -> IscsiUri {
    text.parse().expect("it is one")
}

#[test]
fn what_is_written_is_read_over_any_number_of_connections() {
    for (connections, is_lavish, digests) in
        [(1, true, false), (1, false, true), (3, true, true), (4, false, false)]
    {
        let little = Little::start(wishes(8, is_lavish));
        let uri = parsed(&little.uri(&format!("?connections={connections}")));
        let digests = Digests { header: digests, data: digests };
        let config = InitiatorConfig { digests, ..initiator() };
        let unit = LogicalUnit::connect(&uri, &config).expect("it is there");
        assert_eq!(unit.geometry().bytes(), BYTES as u64);
        let device = Device::Iscsi(Arc::new(unit));
        // More at a time than the target's window has room for.
        for (bytes, depth) in [(512, 64), (8192, 8), (100 << 10, 8), (1 << 20, 3)] {
            let length = BYTES as u64 / u64::from(bytes) * u64::from(bytes);
            let load = LoadConfig {
                read_percent: 50,
                request_bytes: bytes,
                region: [0, length],
                depth,
                jobs: 2,
                runtime: Some(Duration::from_ms(60_000)),
                request_count: Some(100),
                verifies: true,
                reads_back: true,
                ..LoadConfig::reads(0)
            };
            let tally = diskload::run(&load, &device, &Progress::default());
            let tally = tally.expect("it can be loaded");
            let what = format!("{bytes} bytes, {connections} connections");
            assert_eq!(tally.first_failure, None, "{what}");
            assert_eq!((tally.count(), tally.checks.wrong_count()), (200, 0), "{what}");
        }
    }
}

fn disk(uri: &IscsiUri, config: InitiatorConfig) -> Result<Disk, HostError> {
    let config = DiskConfig {
        paths: vec![DiskPath::Iscsi(uri.clone(), config)],
        queues: 2,
        depth: 8,
        reconnect_delay: Duration::from_ms(100),
        loss_timeout: Duration::from_ms(60_000),
        io_timeout: Duration::from_ms(30_000),
        trusts_identity: false,
    };
    Disk::attach(config, Box::new(|_| {}))
}

#[test]
fn any_bytes_are_read_and_written_as_in_memory() {
    let little = Little::start(wishes(4, true));
    let disk = disk(&parsed(&little.uri("?connections=2")), initiator()).expect("it is there");
    let mut held = vec![0; BYTES];
    let mut draw = Draw::new(9);
    for round in 0..400 {
        let most = if round % 10 == 0 { 3 << 20 } else { 10_000 };
        let offset = draw.below(BYTES as u64 - most);
        let length = 1 + draw.below(most);
        let [from, bytes] = [offset, length].map(|at| usize::try_from(at).expect("small"));
        let range = from..from + bytes;
        match draw.below(5) {
            0 => {
                disk.zero(offset, length, round % 2 == 0).expect("it can");
                held[range].fill(0);
            }
            1 | 2 => {
                let byte = draw.bits().to_le_bytes()[0];
                held[range.clone()].fill(byte);
                disk.write_at(offset, &held[range], round % 3 == 0).expect("it can");
            }
            _ => {
                let mut read = vec![1; bytes];
                disk.read_at(offset, &mut read).expect("it can");
                assert!(read == held[range], "round {round}");
            }
        }
    }
    disk.flush().expect("it can");
    disk.discard(0, 1 << 20).expect("it can");
    held[..1 << 20].fill(0);
    drop(disk);
    assert!(*little.memory.lock().expect("nobody has panicked") == held);
}

/// Does the same to whoever connects.
fn none(act: impl Fn(&mut TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
    let address = listener.local_addr().expect("it has one");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (act, mut stream) = (act.clone(), stream.expect("it is open"));
            std::thread::spawn(move || act(&mut stream));
        }
    });
    address
}

#[test]
fn what_is_no_target_is_said_to_be_none_in_time() {
    let hold = |stream: &mut TcpStream| {
        // Until the other end is gone.
        let _end = stream.read_to_end(&mut Vec::new());
    };
    let silent = none(hold);
    let closed = none(|stream| drop(stream.read(&mut [0; 1024])));
    let nonsense = none(move |stream| {
        let _gone =
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\nand what else there is to say");
        hold(stream);
    });
    let partial = none(move |stream| {
        // A header that says it goes on.
        let _gone = stream.write_all(&[0x23, 0x87, 0, 0, 0, 0, 1, 0]);
        hold(stream);
    });
    // As much text as there can be, a byte at a time.
    let endless = none(|stream| {
        let mut bytes = vec![0; 48];
        (bytes[0], bytes[5], bytes[6]) = (0x23, 0, 0xff);
        while stream.write_all(&bytes).is_ok() {
            bytes = vec![b'x'];
        }
    });
    let login_timeout = Duration::from_ms(400);
    let config = InitiatorConfig { login_timeout, ..initiator() };
    for (address, what) in [
        (silent, "silent"),
        (closed, "closed"),
        (nonsense, "nonsense"),
        (partial, "partial"),
        (endless, "endless"),
    ] {
        let began = Instant::now();
        let uri = parsed(&format!("iscsi://{address}/{TARGET}/0"));
        let failed = [
            LogicalUnit::connect(&uri, &config).map(|_| ()),
            identify(&uri, &config).map(|_| ()),
            discover(&uri, &config).map(|_| ()),
            disk(&uri, config.clone()).map(|_| ()),
        ];
        for result in failed {
            match result {
                Err(HostError::Network { .. } | HostError::Protocol { .. }) => {}
                other => panic!("{what}: {other:?}"),
            }
        }
        assert!(began.elapsed() < StdDuration::from_secs(30), "{what}: {:?}", began.elapsed());
    }
}

#[test]
fn a_target_that_takes_one_connection_only_says_so() {
    let little = Little::start(wishes(1, true));
    match LogicalUnit::connect(&parsed(&little.uri("?connections=2")), &initiator()).map(|_| ()) {
        Err(HostError::Protocol { reason, .. }) => {
            assert_eq!(reason, "it grants a session 1 of 2 connections");
        }
        other => panic!("{other:?}"),
    }
}

/// What a target says, with a bit now and then that it has not said; not at the beginning, where
/// there are no digests yet.
fn noisy(target: SocketAddr) -> SocketAddr {
    const EVERY: usize = 200_000;
    none(move |near| {
        let mut far = TcpStream::connect(target).expect("it listens");
        let (mut to, mut from) = (far.try_clone().expect("open"), near.try_clone().expect("open"));
        std::thread::spawn(move || {
            let _gone = std::io::copy(&mut from, &mut to);
            let _gone = to.shutdown(Shutdown::Both);
        });
        let (mut bytes, mut passed) = (vec![0; 16 << 10], 0);
        while let Ok(count @ 1..) = far.read(&mut bytes) {
            if (passed + count) / EVERY > passed / EVERY {
                bytes[passed % count] ^= 0x10;
            }
            passed += count;
            if near.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _gone = near.shutdown(Shutdown::Both);
    })
}

#[test]
fn what_was_changed_on_its_way_is_not_taken_for_what_was_sent() {
    let little = Little::start(wishes(4, true));
    let address = noisy(little.address);
    let uri = parsed(&format!("iscsi://{address}/{TARGET}/0?connections=2"));
    let digests = Digests { header: true, data: true };
    let config = InitiatorConfig { digests, ..initiator() };
    let unit = LogicalUnit::connect(&uri, &config).expect("it is there");
    let load = LoadConfig {
        read_percent: 50,
        region: [0, BYTES as u64],
        depth: 8,
        runtime: Some(Duration::from_ms(60_000)),
        request_count: Some(4000),
        reconnect: Duration::from_ms(30_000),
        verifies: true,
        ..LoadConfig::reads(0)
    };
    let device = Device::Iscsi(Arc::new(unit));
    let tally = diskload::run(&load, &device, &Progress::default()).expect("it can be loaded");
    assert_eq!(tally.checks.wrong_count(), 0, "{:?}", tally.first_failure);
    let noticed = tally.losses.reconnect_count + tally.reads.failure_count;
    assert!(noticed > 0 && tally.count() > 3000, "{noticed} of {}", tally.count());
}
