//! Peers that send what no host would, to a target that others use meanwhile.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration as StdDuration;

use measure::Duration;
use nvme::{
    Command, ConnectData, Data, Digests, Direction, Fabrics, Fused, Header, IcReq, Layout,
    Submission,
};
use target::{Limits, Target};

use crate::remote::{NAME, connect, memory, nqn, serve};

const PLAIN: Digests = Digests { header: false, data: false };
const PATIENCE: StdDuration = StdDuration::from_secs(20);

pub(crate) fn dial(target: &Target) -> TcpStream {
    let stream = TcpStream::connect(target.addresses()[0]).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.set_nodelay(true).expect("it is a TCP socket");
    stream
}

pub(crate) fn ic_req() -> Vec<u8> {
    let mut bytes = Vec::new();
    let request = IcReq { hpda: 0, digests: PLAIN, maxr2t: 0 };
    Header::IcReq(request).encode(Layout::default(), 0, &mut bytes);
    bytes
}

fn capsule(submission: &Submission, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = Header::CapsuleCmd(submission.write());
    header.encode(Layout::default(), data.len(), &mut bytes);
    bytes.extend_from_slice(data);
    bytes
}

/// Connect of a queue, to any controller or to this.
fn connect_queue(queue: u16, size: u16, controller_id: u16) -> Vec<u8> {
    let command = Fabrics::Connect { format: 0, queue, size, attributes: 0, keep_alive_ms: 0 };
    let submission = Submission {
        cid: 0,
        fused: Fused::No,
        nsid: 0,
        data: Data::InCapsule { offset: 0, length: 1024 },
        direction: Direction::ToController,
        command: Command::Fabrics(command),
    };
    let data = ConnectData {
        host_id: [1; 16],
        controller_id,
        subsystem: nqn(NAME),
        host: nqn("nqn.2026-11.example:hostile"),
    };
    capsule(&submission, &data.write())
}

// Everything until the target closes the connection.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => bytes,
        // A reset is an end, too.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => bytes,
        Err(error) => panic!("it is still open: {error}"),
    }
}

pub(crate) fn answer(stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut answer = vec![0; bytes];
    stream.read_exact(&mut answer).expect("it answers");
    answer
}

/// The status in a response capsule, without "do not retry".
fn status(capsule: &[u8]) -> u16 {
    u16::from_le_bytes([capsule[22], capsule[23]]) >> 1 & 0x7ff
}

fn quick() -> Limits {
    Limits { handshake: Duration::from_ms(200), ..Limits::default() }
}

/// The kind of PDU that ends a connection (TCP 3.6.2.4).
const C2H_TERM_REQ: u8 = 0x03;

#[test]
fn a_peer_that_says_nothing_is_let_go() {
    let target = serve(memory(), 1, quick());
    let mut silent = dial(&target);
    let mut slow = dial(&target);
    slow.write_all(&ic_req()[..7]).expect("it takes them");
    let mut greeted = dial(&target);
    greeted.write_all(&ic_req()).expect("it takes them");
    assert!(rest(&mut silent).is_empty());
    assert!(rest(&mut slow).is_empty());
    assert_eq!(rest(&mut greeted).len(), 128, "its greeting is answered, no more");
}

#[test]
fn a_greeting_may_come_byte_by_byte() {
    let target = serve(memory(), 1, Limits::default());
    let mut stream = dial(&target);
    for byte in ic_req() {
        stream.write_all(&[byte]).expect("it takes it");
    }
    assert_eq!(answer(&mut stream, 128)[0], 1);
}

#[test]
fn what_is_not_nvme_ends_the_connection_with_a_reason() {
    let target = serve(memory(), 1, Limits::default());
    let cases: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: disk\r\n\r\n",
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
        &[0xff; 4096],
        &[4, 0, 72, 0, 0xff, 0xff, 0xff, 0xff],
    ];
    for bytes in cases {
        let mut stream = dial(&target);
        stream.write_all(bytes).expect("it takes them");
        stream.shutdown(std::net::Shutdown::Write).expect("it is open");
        let answer = rest(&mut stream);
        assert!(answer.is_empty() || answer[0] == C2H_TERM_REQ, "{answer:?}");
    }
    connect(&target, PLAIN).expect("others are served");
}

// A peer that does not close after it was told why is closed.
#[test]
fn a_peer_that_stays_is_closed() {
    let target = serve(memory(), 1, Limits::default());
    let mut stream = dial(&target);
    stream.write_all(&[0x0f; 64]).expect("it takes them");
    assert_eq!(rest(&mut stream)[0], C2H_TERM_REQ);
}

#[test]
fn connections_that_come_and_go_leave_nothing() {
    let target = serve(memory(), 2, Limits::default());
    let port = target.addresses()[0].port();
    let before = sockets(port);
    assert!(before > 0, "it listens");
    let open = dial(&target);
    let seen = (0..500).any(|_| {
        std::thread::sleep(StdDuration::from_millis(20));
        sockets(port) > before
    });
    assert!(seen, "a connection counts");
    drop(open);
    for _ in 0..500 {
        let mut stream = dial(&target);
        stream.write_all(&ic_req()).expect("it takes it");
    }
    connect(&target, PLAIN).expect("it is served");
    for _ in 0..500 {
        if sockets(port) <= before {
            return;
        }
        std::thread::sleep(StdDuration::from_millis(20));
    }
    panic!("{} sockets are left of {before}", sockets(port));
}

/// Sockets of this machine that a process holds at the local port.
// Not the descriptors of the process: the tests beside this one have their own.
fn sockets(port: u16) -> usize {
    let port = format!(":{port:04X}");
    let mut table = std::fs::read_to_string("/proc/self/net/tcp").expect("it is there");
    table += &std::fs::read_to_string("/proc/self/net/tcp6").unwrap_or_default();
    let is_held = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.len() > 9 && fields[1].ends_with(&port) && fields[9] != "0"
    };
    table.lines().filter(is_held).count()
}

#[test]
fn queues_are_connected_once_and_as_they_may_be() {
    let target = serve(memory(), 2, Limits::default());
    // Sizes that cannot be: refused, and the connection lives.
    let mut stream = dial(&target);
    stream.write_all(&ic_req()).expect("it takes it");
    answer(&mut stream, 128);
    for size in [0, 0xffff, 1024] {
        stream.write_all(&connect_queue(0, size, 0xffff)).expect("it takes it");
        assert_eq!(status(&answer(&mut stream, 24)), 0x182, "size {size}");
    }
    stream.write_all(&connect_queue(0, 31, 0xffff)).expect("it takes it");
    let answered = answer(&mut stream, 24);
    assert_eq!(status(&answered), 0);
    let controller = u16::from_le_bytes([answered[8], answered[9]]);
    stream.write_all(&connect_queue(0, 31, 0xffff)).expect("it takes it");
    assert_eq!(status(&answer(&mut stream, 24)), 0x0c, "it is connected");
    // The controller is not enabled, the queue is beyond what there are, or the host is another.
    let mut other = dial(&target);
    other.write_all(&ic_req()).expect("it takes it");
    answer(&mut other, 128);
    for (queue, id, refused) in [(1, controller, 0x0c), (65, controller, 0x182), (1, 999, 0x182)] {
        other.write_all(&connect_queue(queue, 31, id)).expect("it takes it");
        assert_eq!(status(&answer(&mut other, 24)), refused, "queue {queue} of {id}");
    }
}
