//! Two hosts and one namespace: what one has reserved, the other may not do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use backend::{Backend, BackendUri, Claim, Failure, Geometry, Operation, Request, Start};
use nvme::{
    Admin, Command, ConnectData, Data, Direction, Fabrics, Fused, Header, Io, Layout, Nqn,
    Property, Range, Status, Submission,
};
use target::{Limits, Namespace, Reserved, Subsystem, Target, TargetConfig};

use crate::Scratch;
use crate::hostile::{answer, dial, ic_req};
use crate::initiators::{Client, GOOD, serve_namespace};
use crate::remote::{NAME, memory, nqn, serve};

/// A host of a target, with one I/O queue.
pub(crate) struct Raw {
    pub(crate) io: TcpStream,
    pub(crate) admin: TcpStream,
    pub(crate) controller: u16,
}

pub(crate) const BLOCK: u32 = 512;
pub(crate) const CONFLICT: Status = Status::RESERVATION_CONFLICT.do_not_retry();
const ONE: Range = Range { first: 0, count: 1, forced: false };
/// The kind of PDU that asks for data.
const R2T: u8 = 0x09;

pub(crate) fn send(
    stream: &mut TcpStream,
    command: Command,
    data: Data,
    direction: Direction,
    bytes: &[u8],
) {
    let submission = Submission { cid: 0, fused: Fused::No, nsid: 1, data, direction, command };
    let mut capsule = Vec::new();
    Header::CapsuleCmd(submission.write()).encode(Layout::default(), bytes.len(), &mut capsule);
    capsule.extend_from_slice(bytes);
    stream.write_all(&capsule).expect("it takes it");
}

fn in_capsule(bytes: &[u8]) -> Data {
    Data::InCapsule { offset: 0, length: u32::try_from(bytes.len()).expect("it is short") }
}

/// Status and first dword of the result.
pub(crate) fn ended(stream: &mut TcpStream) -> (Status, u32) {
    let capsule = answer(stream, 24);
    let word = |at: usize| u32::from_le_bytes(capsule[at..at + 4].try_into().expect("four"));
    (Status::from_bits(u16::from_le_bytes([capsule[22], capsule[23]]) >> 1), word(8))
}

fn queue(target: &Target, host_id: [u8; 16], number: u16, controller_id: u16) -> (TcpStream, u16) {
    queue_of(target, NAME, host_id, [number, controller_id])
}

/// A host that asks a discovery controller nothing, and keeps it.
pub(crate) fn look_around(target: &Target) -> TcpStream {
    queue_of(target, Nqn::DISCOVERY, [9; 16], [0, 0xffff]).0
}

fn queue_of(
    target: &Target,
    subsystem: &str,
    host_id: [u8; 16],
    [number, controller_id]: [u16; 2],
) -> (TcpStream, u16) {
    let mut stream = dial(target);
    stream.write_all(&ic_req()).expect("it takes it");
    answer(&mut stream, 128);
    let connect =
        Fabrics::Connect { format: 0, queue: number, size: 31, attributes: 0, keep_alive_ms: 0 };
    let host = nqn("nqn.2026-11.example:raw");
    let data = ConnectData { host_id, controller_id, subsystem: nqn(subsystem), host }.write();
    let command = Command::Fabrics(connect);
    send(&mut stream, command, in_capsule(&data), Direction::ToController, &data);
    let (status, id) = ended(&mut stream);
    assert_eq!(status, Status::SUCCESS, "queue {number}");
    (stream, u16::try_from(id & 0xffff).expect("it has 16 bits"))
}

// Sets CC.EN.
fn enable(admin: &mut TcpStream, is_on: bool) -> Status {
    let property = Property { offset: 0x14, is_wide: false };
    let value = 0x0046_0000 | u64::from(is_on);
    let set = Command::Fabrics(Fabrics::PropertySet { property, value });
    send(admin, set, Data::None, Direction::None, &[]);
    ended(admin).0
}

impl Raw {
    pub(crate) fn connect(target: &Target, host_id: [u8; 16]) -> Self {
        let (mut admin, controller) = queue(target, host_id, 0, 0xffff);
        assert_eq!(enable(&mut admin, true), Status::SUCCESS);
        let (io, _) = queue(target, host_id, 1, controller);
        Self { io, admin, controller }
    }

    /// Sets CC.EN.
    pub(crate) fn enable(&mut self, is_on: bool) -> Status {
        enable(&mut self.admin, is_on)
    }

    /// Writes a block and does not wait for the end of that.
    pub(crate) fn begin_one(&mut self) {
        let (command, bytes) = (Command::Io(Io::Write(ONE)), [9; BLOCK as usize]);
        send(&mut self.io, command, in_capsule(&bytes), Direction::ToController, &bytes);
    }

    /// Asks for as many reads or writes of so many blocks, of which it hears nothing: it sends no
    /// data, and reads none.
    pub(crate) fn begin(&mut self, count: u16, blocks: u32, writes: bool) {
        let range = Range { first: 0, count: blocks, forced: false };
        let data = Data::Transport { length: blocks * BLOCK };
        let (io, direction) = match writes {
            true => (Io::Write(range), Direction::ToController),
            false => (Io::Read(range), Direction::ToHost),
        };
        for cid in 1..=count {
            let command = Command::Io(io);
            let submission =
                Submission { cid, fused: Fused::No, nsid: 1, data, direction, command };
            let mut capsule = Vec::new();
            Header::CapsuleCmd(submission.write()).encode(Layout::default(), 0, &mut capsule);
            self.io.write_all(&capsule).expect("it takes it");
        }
    }

    /// Whether the target ends the connection of its I/O queue, after whatever it sends.
    pub(crate) fn is_let_go(&mut self) -> bool {
        is_let_go(&mut self.io)
    }

    fn command(&mut self, io: Io, bytes: &[u8]) -> Status {
        send(&mut self.io, Command::Io(io), in_capsule(bytes), Direction::ToController, bytes);
        ended(&mut self.io).0
    }

    pub(crate) fn write(&mut self) -> Status {
        self.command(Io::Write(ONE), &[7; BLOCK as usize])
    }

    /// A write that ends when the medium has the data.
    pub(crate) fn write_forced(&mut self) -> Status {
        self.command(Io::Write(Range { forced: true, ..ONE }), &[7; BLOCK as usize])
    }

    pub(crate) fn flush(&mut self) -> Status {
        send(&mut self.io, Command::Io(Io::Flush), Data::None, Direction::None, &[]);
        ended(&mut self.io).0
    }

    /// The page of log 02h.
    pub(crate) fn health(&mut self) -> Vec<u8> {
        let (retains_event, is_index) = (false, false);
        let (length, offset) = (512, 0);
        let log =
            Admin::GetLogPage { page: 2, specific: 0, retains_event, length, offset, is_index };
        let data = Data::Transport { length: 512 };
        send(&mut self.admin, Command::Admin(log), data, Direction::ToHost, &[]);
        let mut first = [0; 24];
        self.admin.read_exact(&mut first).expect("it answers");
        let page = answer(&mut self.admin, 512);
        assert_eq!(ended(&mut self.admin).0, Status::SUCCESS);
        page
    }

    pub(crate) fn shut_down(&mut self) -> Status {
        let property = Property { offset: 0x14, is_wide: false };
        let leave = Command::Fabrics(Fabrics::PropertySet { property, value: 0x0046_4001 });
        send(&mut self.admin, leave, Data::None, Direction::None, &[]);
        ended(&mut self.admin).0
    }

    pub(crate) fn write_at(&mut self, first: u64) -> Status {
        self.command(Io::Write(Range { first, ..ONE }), &[7; BLOCK as usize])
    }

    /// The first block.
    pub(crate) fn read(&mut self) -> Result<Vec<u8>, Status> {
        self.asks(Io::Read(ONE), BLOCK)
    }

    /// Whether it may.
    pub(crate) fn reads(&mut self) -> bool {
        self.read().is_ok()
    }

    fn asks(&mut self, io: Io, length: u32) -> Result<Vec<u8>, Status> {
        let data = Data::Transport { length };
        send(&mut self.io, Command::Io(io), data, Direction::ToHost, &[]);
        let mut first = [0; 24];
        self.io.read_exact(&mut first).expect("it answers");
        if first[0] == 0x05 {
            return Err(Status::from_bits(u16::from_le_bytes([first[22], first[23]]) >> 1));
        }
        let bytes = answer(&mut self.io, length as usize);
        match ended(&mut self.io).0 {
            Status::SUCCESS => Ok(bytes),
            status => Err(status),
        }
    }

    pub(crate) fn register(&mut self, key: u64, persistence: u8) -> Status {
        let io = Io::ReservationRegister { action: 0, ignores_key: false, persistence };
        self.command(io, &keys(0, key))
    }

    pub(crate) fn acquire(&mut self, [key, other]: [u64; 2], action: u8) -> Status {
        let io = Io::ReservationAcquire { action, ignores_key: false, kind: 1 };
        self.command(io, &keys(key, other))
    }
}

/// Whether what comes has an end.
pub(crate) fn is_let_go(stream: &mut TcpStream) -> bool {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

fn keys(current: u64, other: u64) -> Vec<u8> {
    [current, other].iter().flat_map(|key| key.to_le_bytes()).collect()
}

#[test]
fn one_host_reserves_and_the_other_only_reads() {
    let target = serve(memory(), 2, Limits::default());
    let [mut a, mut b] = [[1; 16], [2; 16]].map(|id| Raw::connect(&target, id));
    assert_eq!((a.register(7, 0), a.acquire([7, 0], 0)), (Status::SUCCESS, Status::SUCCESS));
    assert_eq!((a.write(), b.write()), (Status::SUCCESS, CONFLICT));
    assert_eq!(b.asks(Io::Read(ONE), BLOCK), Ok(vec![7; BLOCK as usize]));
    assert_eq!(
        b.command(Io::ReservationRelease { action: 0, ignores_key: false, kind: 1 }, &[0; 8]),
        CONFLICT
    );
    let report = b.asks(Io::ReservationReport { length: 128, is_extended: true }, 128);
    let report = report.expect("anybody may ask");
    assert_eq!((report[4], report[5], report[64 + 2]), (1, 1, 1));
    assert_eq!(report[64 + 16..64 + 32], [1; 16], "A holds it");
    // Nothing is kept of memory; keys are 16 bytes.
    assert_eq!(b.register(8, 3), Status::INVALID_FIELD.do_not_retry());
    let io = Io::ReservationRegister { action: 0, ignores_key: false, persistence: 0 };
    assert_eq!(b.command(io, &[0; 12]), Status::SGL_LENGTH_INVALID.do_not_retry());
    target.stop().expect("it has not failed");
}

// A host that is fenced off while its data is on its way does not write it any more.
#[test]
fn data_that_comes_too_late_is_not_written() {
    let target = serve(memory(), 2, Limits::default());
    let [mut a, mut b] = [[1; 16], [2; 16]].map(|id| Raw::connect(&target, id));
    assert_eq!((a.register(7, 0), a.acquire([7, 0], 0)), (Status::SUCCESS, Status::SUCCESS));
    assert_eq!(b.register(8, 0), Status::SUCCESS);
    let data = Data::Transport { length: BLOCK };
    send(&mut a.io, Command::Io(Io::Write(ONE)), data, Direction::ToController, &[]);
    let asked = answer(&mut a.io, 24);
    assert_eq!(asked[0], R2T, "the holder may write");
    assert_eq!(b.acquire([8, 7], 1), Status::SUCCESS, "it knows A's key");
    let mut late = Vec::new();
    let ttag = u16::from_le_bytes([asked[10], asked[11]]);
    let header = Header::H2cData { cid: 0, ttag, offset: 0, length: BLOCK, last: true };
    header.encode(Layout::default(), BLOCK as usize, &mut late);
    late.extend_from_slice(&[9; BLOCK as usize]);
    a.io.write_all(&late).expect("it takes it");
    assert_eq!(ended(&mut a.io).0, CONFLICT);
    assert_eq!(b.asks(Io::Read(ONE), BLOCK), Ok(vec![0; BLOCK as usize]));
    target.stop().expect("it has not failed");
}

/// A device whose writes take their time.
pub(crate) struct Slow {
    inner: Arc<dyn Backend>,
    has_begun: AtomicBool,
    pub(crate) has_ended: AtomicBool,
    /// How long a write takes.
    pub(crate) take_ns: AtomicU64,
    /// Of each write when it begins, and when it ends.
    writes: Mutex<Vec<&'static str>>,
}

impl Slow {
    pub(crate) fn new() -> Arc<Self> {
        let [has_begun, has_ended] = [(); 2].map(|()| AtomicBool::new(false));
        let take_ns = AtomicU64::new(300_000_000);
        let writes = Mutex::default();
        Arc::new(Self { inner: memory(), has_begun, has_ended, take_ns, writes })
    }

    fn note(&self, what: &'static str) {
        self.writes.lock().expect("nobody panics with it").push(what);
    }

    /// What has become of writes, in order.
    pub(crate) fn writes(&self) -> Vec<&'static str> {
        self.writes.lock().expect("nobody panics with it").clone()
    }

    pub(crate) fn wait_for_a_write(&self) {
        while !self.has_begun.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

impl Backend for Slow {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn is_immediate(&self) -> bool {
        false
    }

    fn start(&self, request: &Request, data: &mut [u8], now_ns: u64) -> Start {
        let start = self.inner.start(request, data, now_ns);
        if !matches!(request.operation, Operation::Write { .. }) {
            return start;
        }
        self.note("begins");
        self.has_begun.store(true, Ordering::Release);
        Start { not_before_ns: now_ns + self.take_ns.load(Ordering::Acquire), ..start }
    }

    fn end(
        &self,
        request: &Request,
        result: Result<(), Failure>,
        _now_ns: u64,
    ) -> Result<(), Failure> {
        if matches!(request.operation, Operation::Write { .. }) {
            self.note("ends");
        }
        self.has_ended.store(true, Ordering::Release);
        result
    }
}

// Base 7.4: who is fenced off writes nothing any more once the command that fences has ended.
#[test]
fn a_fence_waits_for_what_it_fences_off() {
    let kept = Scratch::new(std::env::temp_dir().to_str().expect("paths here are text"));
    fences(Reserved::default());
    fences(Reserved::kept(kept.path().to_owned()).expect("it can be read"));
}

fn fences(reserved: Reserved) {
    let slow = Slow::new();
    let target = serve_reserved(Arc::clone(&slow) as Arc<dyn Backend>, reserved);
    let [mut a, mut b] = [[1; 16], [2; 16]].map(|id| Raw::connect(&target, id));
    assert_eq!((a.register(7, 0), a.acquire([7, 0], 0)), (Status::SUCCESS, Status::SUCCESS));
    assert_eq!(b.register(8, 0), Status::SUCCESS);
    a.begin_one();
    slow.wait_for_a_write();
    assert_eq!(b.acquire([8, 7], 2), Status::SUCCESS, "preempt and abort");
    assert!(slow.has_ended.load(Ordering::Acquire), "the write was still under way");
    assert_eq!(ended(&mut a.io).0, Status::SUCCESS);
    assert_eq!((a.write(), b.write()), (CONFLICT, Status::SUCCESS));
    target.stop().expect("it has not failed");
}

// A write that was lost sight of could otherwise undo what its host writes when it is back.
#[test]
fn a_host_that_comes_back_waits_for_what_it_wrote_before() {
    for path in ["its admin connection is lost", "all are", "it resets its controller"] {
        let slow = Slow::new();
        let target = serve(Arc::clone(&slow) as Arc<dyn Backend>, 2, Limits::default());
        let mut before = Raw::connect(&target, [1; 16]);
        before.begin_one();
        slow.wait_for_a_write();
        let mut again = match path {
            "all are" => {
                drop(before);
                Raw::connect(&target, [1; 16])
            }
            "its admin connection is lost" => {
                before.admin.shutdown(std::net::Shutdown::Both).expect("it is there");
                Raw::connect(&target, [1; 16])
            }
            _ => {
                assert_eq!([before.enable(false), before.enable(true)], [Status::SUCCESS; 2]);
                before.io = queue(&target, [1; 16], 2, before.controller).0;
                before
            }
        };
        assert!(slow.has_ended.load(Ordering::Acquire), "{path}");
        assert_eq!(again.write(), Status::SUCCESS, "{path}");
        target.stop().expect("it has not failed");
    }
}

// RFC 7143 6.3.5: the session before is over, with its tasks, when the new one begins.
#[test]
fn an_initiator_that_comes_back_waits_for_what_it_wrote_before() {
    for is_replaced in [true, false] {
        let slow = Slow::new();
        let namespace = Namespace::new(1, Arc::clone(&slow) as _, crate::identity("test"));
        let target = serve_namespace(namespace, 2, Limits::default());
        let mut before = Client::log_in(&target, 1);
        before.begin(1, 1, true);
        slow.wait_for_a_write();
        let kept = is_replaced.then_some(before);
        let mut again = Client::log_in(&target, 1);
        assert!(slow.has_ended.load(Ordering::Acquire), "replaced: {is_replaced}");
        assert_eq!(again.write(3), GOOD);
        drop(kept);
        target.stop().expect("it has not failed");
    }
}

// Base 3.6.1: a shutdown is complete when what was written is on the medium.
#[test]
fn a_shutdown_whose_flush_has_failed_is_not_complete() {
    for (rules, status, csts) in [
        ("fault:flush=eio:memory:1MiB", Status::INTERNAL_ERROR.do_not_retry(), 1 | 1 << 1 | 1 << 2),
        ("memory:1MiB", Status::SUCCESS, 1 | 2 << 2),
    ] {
        let uri: BackendUri = rules.parse().expect("it is one");
        let target = serve(uri.open(Claim::Alone).expect("it opens"), 2, Limits::default());
        let mut a = Raw::connect(&target, [1; 16]);
        assert_eq!(a.shut_down(), status, "{rules}");
        let property = Property { offset: 0x1c, is_wide: false };
        let get = Command::Fabrics(Fabrics::PropertyGet(property));
        send(&mut a.admin, get, Data::None, Direction::None, &[]);
        assert_eq!(ended(&mut a.admin), (Status::SUCCESS, csts), "{rules}");
        target.stop().expect("it has not failed");
    }
}

/// A target of one namespace with these reservations.
fn serve_reserved(backend: Arc<dyn Backend>, reserved: Reserved) -> Target {
    let mut namespace = Namespace::new(1, backend, crate::identity("test"));
    namespace.reserved = reserved;
    let subsystem = Subsystem::new(nqn(NAME), None, vec![namespace]);
    let config = TargetConfig {
        nvme: vec!["127.0.0.1:0".parse().expect("an address")],
        ..TargetConfig::default()
    };
    Target::start(&config, vec![subsystem]).expect("it can listen")
}

// A medium that takes nothing makes those wait who change what is kept on it, and nobody else.
#[test]
fn nobody_waits_for_what_others_keep() {
    let kept = Scratch::new(std::env::temp_dir().to_str().expect("paths here are text"));
    let mut beside = kept.path().as_os_str().to_owned();
    beside.push(".new");
    let made = std::process::Command::new("mkfifo").arg(&beside).status().expect("it can run");
    assert!(made.success());
    let reserved = Reserved::kept(kept.path().to_owned()).expect("it can be read");
    let target = serve_reserved(memory(), reserved);
    let [mut a, mut b] = [[1; 16], [2; 16]].map(|id| Raw::connect(&target, id));
    let io = Io::ReservationRegister { action: 0, ignores_key: false, persistence: 3 };
    let data = keys(0, 7);
    send(&mut a.io, Command::Io(io), in_capsule(&data), Direction::ToController, &data);
    for _ in 0..100 {
        assert_eq!(b.write(), Status::SUCCESS);
    }
    assert!(b.reads());
    // It is a pipe, whose writer waits for a reader; what is written there is on no medium.
    let pipe = std::fs::File::open(&beside).expect("it is there");
    assert_eq!(ended(&mut a.io).0, Status::INTERNAL_ERROR.do_not_retry());
    drop(pipe);
    std::fs::remove_file(&beside).expect("it is there");
    assert_eq!(a.register(7, 3), Status::SUCCESS);
    target.stop().expect("it has not failed");
}

#[test]
fn what_persists_is_reserved_by_the_next_target() {
    let kept = Scratch::new(std::env::temp_dir().to_str().expect("paths here are text"));
    let start = || {
        let mut namespace = Namespace::new(1, memory(), crate::identity("test"));
        namespace.reserved = Reserved::kept(kept.path().to_owned()).expect("it can be read");
        let subsystem = Subsystem::new(nqn(NAME), None, vec![namespace]);
        let config = TargetConfig {
            nvme: vec!["127.0.0.1:0".parse().expect("an address")],
            ..TargetConfig::default()
        };
        Target::start(&config, vec![subsystem]).expect("it can listen")
    };
    let target = start();
    let mut a = Raw::connect(&target, [1; 16]);
    assert_eq!((a.register(7, 3), a.acquire([7, 0], 0)), (Status::SUCCESS, Status::SUCCESS));
    drop((a, target));
    let target = start();
    let [mut a, mut b] = [[1; 16], [2; 16]].map(|id| Raw::connect(&target, id));
    assert_eq!((a.write(), b.write()), (Status::SUCCESS, CONFLICT));
    drop(target);
}
