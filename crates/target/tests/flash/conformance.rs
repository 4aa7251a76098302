//! What hosts other than Linux find out: rows of docs/conformance.md that need a whole target.

use std::io::{Read, Write};
use std::sync::Arc;

use backend::{BackendUri, Claim, FileBackend, Opening};
use nvme::{Admin, Command, Data, Direction, Fused, Header, Io, Layout, Range, Status, Submission};
use target::{Limits, Namespace};

use crate::Scratch;
use crate::hostile::{answer, ic_req};
use crate::initiators::{Client, serve_namespace};
use crate::remote::{memory, serve};
use crate::reservations::{BLOCK, CONFLICT, Raw, Slow};

fn ask(raw: &mut Raw, cid: u16, command: Admin) {
    let (data, direction) = (Data::None, Direction::None);
    let command = Command::Admin(command);
    let submission = Submission { cid, fused: Fused::No, nsid: 0, data, direction, command };
    let mut capsule = Vec::new();
    Header::CapsuleCmd(submission.write()).encode(Layout::default(), 0, &mut capsule);
    raw.admin.write_all(&capsule).expect("it takes it");
}

// The next response: identifier, status, result.
fn told(raw: &mut Raw) -> (u16, Status, u32) {
    let capsule = answer(&mut raw.admin, 24);
    let half = |at: usize| u16::from_le_bytes([capsule[at], capsule[at + 1]]);
    let result = u32::from_le_bytes(capsule[8..12].try_into().expect("four"));
    (half(20), Status::from_bits(half(22) >> 1), result)
}

const FULL: Status = Status::ASYNC_EVENT_LIMIT.do_not_retry();

/// Two commands that are done together.
struct Both<'a> {
    range: Range,
    /// Where the second writes, if elsewhere.
    writes: Range,
    expected: &'a [u8],
    written: &'a [u8],
    /// Data comes in capsules, or else when it is asked for.
    in_capsule: bool,
}

const FIRST: Range = Range { first: 0, count: 1, forced: false };
const FAILED: Status = Status::ABORTED_FAILED_FUSED.do_not_retry();
const MISSING: Status = Status::ABORTED_MISSING_FUSED.do_not_retry();
const INVALID: Status = Status::INVALID_FIELD.do_not_retry();
const DIFFERENT: Status = Status::COMPARE_FAILURE.do_not_retry();

fn half(cid: u16, fused: Fused, io: Io, bytes: &[u8], in_capsule: bool) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("it is short");
    let (data, inside) = match in_capsule {
        true => (Data::InCapsule { offset: 0, length }, bytes),
        false => (Data::Transport { length }, &[][..]),
    };
    let (direction, command) = (Direction::ToController, Command::Io(io));
    let submission = Submission { cid, fused, nsid: 1, data, direction, command };
    let mut capsule = Vec::new();
    let header = Header::CapsuleCmd(submission.write());
    header.encode(Layout::default(), inside.len(), &mut capsule);
    capsule.extend_from_slice(inside);
    capsule
}

// How so many commands have ended, by identifier from 0; data is sent when it is asked for.
fn ends(host: &mut Raw, data: &[&[u8]], count: usize) -> Vec<Status> {
    let mut ended = vec![None; count];
    while ended.iter().any(Option::is_none) {
        let pdu = answer(&mut host.io, 24);
        let half = |at: usize| u16::from_le_bytes([pdu[at], pdu[at + 1]]);
        if pdu[0] == 0x09 {
            let (cid, ttag) = (half(8), half(10));
            let bytes = data[usize::from(cid)];
            let length = u32::try_from(bytes.len()).expect("it is short");
            let mut sent = Vec::new();
            let header = Header::H2cData { cid, ttag, offset: 0, length, last: true };
            header.encode(Layout::default(), bytes.len(), &mut sent);
            sent.extend_from_slice(bytes);
            host.io.write_all(&sent).expect("it takes it");
        } else {
            assert_eq!(pdu[0], 0x05, "a response");
            ended[usize::from(half(20))] = Some(Status::from_bits(half(22) >> 1));
        }
    }
    ended.into_iter().flatten().collect()
}

fn do_both(host: &mut Raw, both: &Both<'_>) -> Vec<Status> {
    let (compare, write) = (Io::Compare(both.range), Io::Write(both.writes));
    let mut halves = half(0, Fused::First, compare, both.expected, both.in_capsule);
    halves.extend(half(1, Fused::Second, write, both.written, both.in_capsule));
    host.io.write_all(&halves).expect("it takes it");
    ends(host, &[both.expected, both.written], 2)
}

fn block(byte: u8) -> Vec<u8> {
    vec![byte; BLOCK as usize]
}

// NVM Command Set 2.1.4: what is compared is written by nobody else in between.
#[test]
fn compare_and_write_is_done_as_one() {
    let target = serve(memory(), 2, Limits::default());
    let mut host = Raw::connect(&target, [1; 16]);
    let (zeros, ones, twos) = (block(0), block(1), block(2));
    for in_capsule in [true, false] {
        let both =
            |expected, written| Both { range: FIRST, writes: FIRST, expected, written, in_capsule };
        assert_eq!(do_both(&mut host, &both(&zeros, &ones)), [Status::SUCCESS; 2]);
        assert_eq!(do_both(&mut host, &both(&zeros, &twos)), [DIFFERENT, FAILED]);
        assert_eq!(do_both(&mut host, &both(&ones, &zeros)), [Status::SUCCESS; 2], "not written");
    }
    target.stop().expect("it has not failed");
}

// What was compared is held until the second has written: nobody else's write begins before.
#[test]
fn what_was_compared_is_held_until_it_is_written() {
    let slow = Slow::new();
    let target = serve(Arc::clone(&slow) as _, 2, Limits::default());
    let [mut a, mut b] = [[1; 16], [2; 16]].map(|id| Raw::connect(&target, id));
    let (zeros, ones) = (block(0), block(1));
    let (compare, write) = (Io::Compare(FIRST), Io::Write(FIRST));
    let mut halves = half(0, Fused::First, compare, &zeros, true);
    halves.extend(half(1, Fused::Second, write, &ones, true));
    a.io.write_all(&halves).expect("it takes it");
    slow.wait_for_a_write();
    assert_eq!(b.write(), Status::SUCCESS);
    assert_eq!(ends(&mut a, &[&zeros, &ones], 2), [Status::SUCCESS; 2]);
    assert_eq!(slow.writes(), ["begins", "ends", "begins", "ends"]);
    target.stop().expect("it has not failed");
}

// Base 3.4.2.
#[test]
fn halves_without_the_other_are_aborted() {
    let target = serve(memory(), 2, Limits::default());
    let mut host = Raw::connect(&target, [1; 16]);
    let (zeros, ones) = (block(0), block(1));
    for in_capsule in [true, false] {
        let mut part = |cid, fused, io, bytes: &[u8]| {
            let half = half(cid, fused, io, bytes, in_capsule);
            host.io.write_all(&half).expect("it takes it");
        };
        let (compare, write) = (Io::Compare(FIRST), Io::Write(FIRST));
        part(0, Fused::Second, write, &ones);
        part(1, Fused::First, compare, &zeros);
        part(2, Fused::No, compare, &zeros);
        // A first that cannot be, and what follows it.
        part(3, Fused::First, write, &ones);
        part(4, Fused::Second, write, &ones);
        // A second that cannot be, and what was before it.
        part(5, Fused::First, compare, &zeros);
        part(6, Fused::Second, compare, &ones);
        // Elsewhere, and more than is written as one.
        part(7, Fused::First, compare, &zeros);
        part(8, Fused::Second, Io::Write(Range { first: 1, ..FIRST }), &ones);
        let two = [&zeros[..], &zeros].concat();
        part(9, Fused::First, Io::Compare(Range { count: 2, ..FIRST }), &two);
        part(10, Fused::No, compare, &zeros);
        let sent =
            [&ones, &zeros, &zeros, &ones, &ones, &zeros, &ones, &zeros, &ones, &two, &zeros];
        let exceeds = Status::ATOMIC_UNIT_EXCEEDED.do_not_retry();
        let good = Status::SUCCESS;
        assert_eq!(
            ends(&mut host, &sent.map(|bytes| &bytes[..]), 11),
            [
                MISSING, MISSING, good, INVALID, FAILED, FAILED, INVALID, FAILED, INVALID, exceeds,
                good
            ]
        );
    }
    target.stop().expect("it has not failed");
}

// What is fenced off neither compares nor writes.
#[test]
fn compare_and_write_obeys_reservations() {
    let target = serve(memory(), 2, Limits::default());
    let [mut a, mut b] = [[1; 16], [2; 16]].map(|id| Raw::connect(&target, id));
    assert_eq!((a.register(7, 0), a.acquire([7, 0], 0)), (Status::SUCCESS, Status::SUCCESS));
    let (zeros, ones) = (block(0), block(1));
    for in_capsule in [true, false] {
        let both =
            Both { range: FIRST, writes: FIRST, expected: &zeros, written: &ones, in_capsule };
        assert_eq!(do_both(&mut b, &both), [CONFLICT, FAILED]);
    }
    target.stop().expect("it has not failed");
}

// Hosts and initiators count in one block: none of them loses what another has counted.
#[test]
fn hosts_and_initiators_count_in_one_block() {
    const EACH: u64 = 40;
    // What is read is some time old when it is compared.
    let uri: BackendUri = "fault:read=500us:memory:1MiB".parse().expect("it is one");
    let backend = uri.open(Claim::Alone).expect("it opens");
    let namespace = Namespace::new(1, backend, crate::identity("test"));
    let target = serve_namespace(namespace, 2, Limits::default());
    let count = |host: &mut Raw| loop {
        let before = host.read().expect("it may read");
        let number = u64::from_le_bytes(before[..8].try_into().expect("eight"));
        let mut after = before.clone();
        after[..8].copy_from_slice(&(number + 1).to_le_bytes());
        let both = Both {
            range: FIRST,
            writes: FIRST,
            expected: &before,
            written: &after,
            in_capsule: number % 2 == 0,
        };
        match do_both(host, &both)[..] {
            [Status::SUCCESS, Status::SUCCESS] => return,
            [DIFFERENT, FAILED] => {}
            ref other => panic!("{other:?}"),
        }
    };
    std::thread::scope(|scope| {
        for number in [1, 2] {
            let mut client = Client::log_in(&target, number);
            scope.spawn(move || (0..EACH).for_each(|_| client.count()));
            let mut host = Raw::connect(&target, [number; 16]);
            scope.spawn(move || (0..EACH).for_each(|_| count(&mut host)));
        }
    });
    let number = Raw::connect(&target, [9; 16]).read().expect("it may read");
    assert_eq!(u64::from_le_bytes(number[..8].try_into().expect("eight")), 4 * EACH);
    target.stop().expect("it has not failed");
}

// Base 5.1.1: a request for events is answered when it is aborted.
#[test]
fn requests_for_events_can_be_aborted() {
    let target = serve(memory(), 2, Limits::default());
    let mut host = Raw::connect(&target, [1; 16]);
    for cid in 10..14 {
        ask(&mut host, cid, Admin::AsyncEventRequest);
    }
    ask(&mut host, 14, Admin::AsyncEventRequest);
    assert_eq!(told(&mut host), (14, FULL, 0));
    ask(&mut host, 20, Admin::Abort { queue: 0, cid: 12 });
    assert_eq!(told(&mut host), (12, Status::ABORTED_BY_REQUEST, 0));
    assert_eq!(told(&mut host), (20, Status::SUCCESS, 0), "it was");
    ask(&mut host, 21, Admin::Abort { queue: 0, cid: 12 });
    assert_eq!(told(&mut host), (21, Status::SUCCESS, 1), "it is not there any more");
    ask(&mut host, 12, Admin::AsyncEventRequest);
    ask(&mut host, 14, Admin::AsyncEventRequest);
    assert_eq!(told(&mut host), (14, FULL, 0), "there was room for one");
    target.stop().expect("it has not failed");
}

// Base 5.1.1: a command that waits is ended, one whose data was asked for is not.
#[test]
fn commands_that_wait_can_be_aborted() {
    const LAST: u16 = 20;
    let target = serve(memory(), 2, Limits::default());
    let mut host = Raw::connect(&target, [1; 16]);
    host.begin(LAST, 2048, true);
    // The first has been asked for.
    assert_eq!(answer(&mut host.io, 24)[0], 0x09, "R2T");
    let mut abort = |cid, of| {
        ask(&mut host, cid, Admin::Abort { queue: 1, cid: of });
        assert!(matches!(told(&mut host), (own, Status::SUCCESS, _) if own == cid));
    };
    abort(1, LAST);
    let ended = loop {
        let pdu = answer(&mut host.io, 24);
        if pdu[0] == 0x05 {
            break [20, 22].map(|at: usize| u16::from_le_bytes([pdu[at], pdu[at + 1]]));
        }
    };
    let aborted = Status::ABORTED_BY_REQUEST.do_not_retry();
    assert_eq!((ended[0], Status::from_bits(ended[1] >> 1)), (LAST, aborted));
    for (cid, of, queue) in [(2, LAST, 1), (3, 1, 1), (4, 1, 9)] {
        ask(&mut host, cid, Admin::Abort { queue, cid: of });
        assert_eq!(told(&mut host), (cid, Status::SUCCESS, 1), "{of} of queue {queue}");
    }
    ask(&mut host, 5, Admin::Abort { queue: 1, cid: LAST - 1 });
    assert_eq!(told(&mut host), (5, Status::SUCCESS, 0), "it was");
    target.stop().expect("it has not failed");
}

// Base 3.7.2: what was outstanding is gone without an answer, and so is its identifier.
#[test]
fn identifiers_are_free_after_a_reset() {
    let target = serve(memory(), 2, Limits::default());
    let mut host = Raw::connect(&target, [1; 16]);
    for _ in 0..30 {
        for cid in 10..14 {
            ask(&mut host, cid, Admin::AsyncEventRequest);
        }
        assert_eq!([host.enable(false), host.enable(true)], [Status::SUCCESS; 2]);
    }
    ask(&mut host, 10, Admin::AsyncEventRequest);
    ask(&mut host, 11, Admin::KeepAlive);
    assert_eq!(told(&mut host), (11, Status::SUCCESS, 0), "no identifier is in use twice");
    target.stop().expect("it has not failed");
}

// TCP 3.6.2.9: the PDU that says why the connection ends is the last, also where reads end while it
// is on its way.
#[test]
fn nothing_follows_the_reason_why_a_connection_ends() {
    let scratch = Scratch::new(std::env::temp_dir().to_str().expect("paths here are text"));
    sys::disk::Disk::create(scratch.path(), 1 << 20).expect("it can be made");
    let backend = FileBackend::open(scratch.path(), None, Opening::default());
    let target = serve(Arc::new(backend.expect("it can be opened")), 2, Limits::default());
    for round in 0..100 {
        let mut host = Raw::connect(&target, [1; 16]);
        let mut bytes = Vec::new();
        for cid in 0..20 {
            let range = Range { first: 0, count: 1, forced: false };
            let (data, direction) = (Data::Transport { length: BLOCK }, Direction::ToHost);
            let command = Command::Io(Io::Read(range));
            let read = Submission { cid, fused: Fused::No, nsid: 1, data, direction, command };
            Header::CapsuleCmd(read.write()).encode(Layout::default(), 0, &mut bytes);
        }
        bytes.extend(ic_req());
        host.io.write_all(&bytes).expect("it takes it");
        let mut told = Vec::new();
        // The target closes the connection.
        let _closed = host.io.read_to_end(&mut told);
        let mut rest = &told[..];
        let mut last = None;
        while let Some(header) = rest.get(..8) {
            last = Some(header[0]);
            let length = u32::from_le_bytes(header[4..8].try_into().expect("four"));
            rest = rest.get(length as usize..).unwrap_or_default();
        }
        assert_eq!(last, Some(0x03), "round {round}: C2HTermReq");
    }
    target.stop().expect("it has not failed");
}
