//! What hosts other than Linux find out: rows of docs/conformance.md that need a whole target.

use std::io::{Read, Write};
use std::sync::Arc;

use backend::{FileBackend, Opening};
use nvme::{Admin, Command, Data, Direction, Fused, Header, Io, Layout, Range, Status, Submission};
use target::Limits;

use crate::Scratch;
use crate::hostile::{answer, ic_req};
use crate::remote::{memory, serve};
use crate::reservations::{BLOCK, Raw};

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
