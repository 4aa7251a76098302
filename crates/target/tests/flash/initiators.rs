//! Initiators of a target, beside one another and beside NVMe/TCP hosts.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration as StdDuration;

use backend::{Backend, FileBackend, Opening};
use diskload::{Device, LoadConfig, Progress};
use host::initiator::{InitiatorConfig, LogicalUnit};
use measure::Duration;
use nvme::Status as NvmeStatus;
use scsi::iscsi::{
    Answer, Ended, Entered, Entry, EntryConfig, Initiator, Nonce, Request, Tag, Transfer, Wishes,
};
use scsi::{Extent, Sense, Status, ask};
use target::{IscsiAccess, Limits, Namespace, Reserved, Subsystem, Target, TargetConfig};

use crate::Scratch;
use crate::remote::{NAME, memory, nqn};
use crate::reservations::{BLOCK, CONFLICT, Raw, is_let_go};

pub(crate) const IQN: &str = "iqn.2026-11.example:disk";
const PATIENCE: StdDuration = StdDuration::from_secs(20);
const FIRST: Extent = Extent { first: 0, count: 1, forced: false };

/// One namespace for both protocols, each on a port of its own.
pub(crate) fn serve(shards: u16, limits: Limits) -> Target {
    serve_kept(shards, limits, None)
}

fn serve_kept(shards: u16, limits: Limits, kept: Option<&Scratch>) -> Target {
    let mut namespace = Namespace::new(1, memory(), crate::identity("test"));
    if let Some(kept) = kept {
        namespace.reserved = Reserved::kept(kept.path().to_owned()).expect("it can be read");
    }
    serve_namespace(namespace, shards, limits)
}

/// As [`serve`], of this namespace.
pub(crate) fn serve_namespace(namespace: Namespace, shards: u16, limits: Limits) -> Target {
    let subsystem = Subsystem::new(nqn(NAME), None, vec![namespace]);
    let name = IQN.to_owned();
    subsystem.set_iscsi(Some(IscsiAccess { name, ..IscsiAccess::default() }));
    let any = || vec!["127.0.0.1:0".parse().expect("an address")];
    let config =
        TargetConfig { nvme: any(), iscsi: any(), shards, limits, ..TargetConfig::default() };
    Target::start(&config, vec![subsystem]).expect("it can listen")
}

pub(crate) fn dial(target: &Target) -> TcpStream {
    dial_at(target, 0)
}

pub(crate) fn dial_at(target: &Target, place: usize) -> TcpStream {
    let stream = TcpStream::connect(target.iscsi_addresses()[place]).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream
}

/// An initiator that asks one thing at a time, by as many connections as it has.
pub(crate) struct Client {
    pub(crate) initiator: Initiator,
    pub(crate) streams: Vec<TcpStream>,
    pub(crate) tsih: u16,
    isid: [u8; 6],
}

/// Status, sense and data of a command.
pub(crate) type Told = (Option<Status>, Option<Sense>, Vec<u8>);

pub(crate) fn entry(isid: [u8; 6], tsih: u16, cid: u16, cmd_sn: u32) -> EntryConfig {
    EntryConfig {
        initiator: "iqn.2026-11.example:raw".to_owned(),
        target: Some(IQN.to_owned()),
        isid,
        tsih,
        cid,
        cmd_sn,
        wishes: Wishes { max_connections: 4, ..Wishes::default() },
        chap: None,
        algorithms: Vec::new(),
        nonce: Nonce { id: 0, challenge: [0; 32] },
    }
}

fn enter(stream: &mut TcpStream, config: EntryConfig) -> Option<Entered> {
    let mut out = Vec::new();
    let mut entry = Entry::begin(config, &mut out);
    let mut input = Vec::new();
    loop {
        stream.write_all(&std::mem::take(&mut out)).ok()?;
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
        input.extend_from_slice(&bytes[..count]);
        let mut rest = &input[..];
        let entered = entry.receive(&mut rest, &mut out).ok()?;
        let used = input.len() - rest.len();
        input.drain(..used);
        if entered.is_some() {
            return entered;
        }
    }
}

impl Client {
    pub(crate) fn log_in(target: &Target, number: u8) -> Self {
        Self::try_log_in(target, [0x40, 0, 0, 0, 0, number]).expect("it may")
    }

    /// As [`Client::log_in`], of one that sends no data before it is asked to.
    pub(crate) fn log_in_patient(target: &Target, number: u8) -> Self {
        let isid = [0x40, 0, 0, 0, 0, number];
        let mut config = entry(isid, 0, 0, 1);
        (config.wishes.immediate_data, config.wishes.initial_r2t) = (false, true);
        Self::enter(dial(target), config).expect("it may")
    }

    fn try_log_in(target: &Target, isid: [u8; 6]) -> Option<Self> {
        Self::enter(dial(target), entry(isid, 0, 0, 1))
    }

    pub(crate) fn enter(mut stream: TcpStream, config: EntryConfig) -> Option<Self> {
        let isid = config.isid;
        let Entered { tsih, link } = enter(&mut stream, config)?;
        let initiator = Initiator::new(64, link);
        let mut client = Self { initiator, streams: vec![stream], tsih, isid };
        // It is told that the logical unit is new to it.
        client.ask(0, ask::TEST_UNIT_READY, Transfer::None);
        Some(client)
    }

    /// Another connection in the stead of its only one (RFC 7143 6.3.6), which is closed then.
    pub(crate) fn replace(&mut self, target: &Target) {
        let mut stream = dial(target);
        let config = entry(self.isid, self.tsih, 0, self.initiator.cmd_sn());
        let entered = enter(&mut stream, config).expect("it takes the place of the first");
        assert_eq!(entered.tsih, self.tsih);
        assert!(self.is_let_go(), "the one before is closed");
        self.streams[0] = stream;
    }

    /// One connection more.
    fn join(&mut self, target: &Target) {
        let mut stream = dial(target);
        let cid = u16::try_from(self.streams.len()).expect("there are few");
        let config = entry(self.isid, self.tsih, cid, self.initiator.cmd_sn());
        let entered = enter(&mut stream, config).expect("it may join");
        assert_eq!(self.initiator.join(entered.link), cid);
        self.streams.push(stream);
    }

    pub(crate) fn send(&mut self, number: u16, cdb: ask::Cdb, transfer: Transfer<'_>) -> Tag {
        let mut out = Vec::new();
        let request = Request { lun: [0; 8], cdb, transfer };
        let tag = self.initiator.submit(number, request, &mut out).expect("there is room");
        self.streams[usize::from(number)].write_all(&out).expect("it takes it");
        tag
    }

    /// What comes on a connection until its command has ended.
    pub(crate) fn hear(&mut self, number: u16, sent: &[u8], data: &mut Vec<u8>) -> Option<Ended> {
        let stream = &mut self.streams[usize::from(number)];
        let (mut input, mut out, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let mut bytes = [0; 65536];
            let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
            input.extend_from_slice(&bytes[..count]);
            let mut rest = &input[..];
            let mut ended = None;
            while let Some(answer) =
                self.initiator.receive(number, &mut rest, &mut out).expect("it keeps to the rules")
            {
                match answer {
                    Answer::Data(_, offset, bytes) => {
                        let from = offset as usize;
                        data.resize(data.len().max(from + bytes.len()), 0);
                        data[from..from + bytes.len()].copy_from_slice(bytes);
                    }
                    Answer::Wants { tag, offset, length } => wanted.push((tag, offset, length)),
                    Answer::Ended(one) => ended = Some(one),
                    other => panic!("{other:?}"),
                }
            }
            let used = input.len() - rest.len();
            input.drain(..used);
            for (tag, offset, length) in wanted.drain(..) {
                let piece = &sent[offset as usize..(offset + length) as usize];
                self.initiator.send_data(tag, offset, piece, &mut out);
            }
            stream.write_all(&std::mem::take(&mut out)).expect("it takes it");
            if ended.is_some() {
                return ended;
            }
        }
    }

    /// Asks for as many reads or writes of so many blocks, of which it hears nothing: it sends no
    /// more data than comes unasked, and reads none.
    pub(crate) fn begin(&mut self, count: u16, blocks: u32, writes: bool) {
        let extent = Extent { first: 0, count: blocks, forced: false };
        let bytes = vec![0; (blocks * BLOCK) as usize];
        for _ in 0..count {
            match writes {
                true => self.send(0, ask::write(extent), Transfer::Send(&bytes)),
                false => self.send(0, ask::read(extent), Transfer::Receive(blocks * BLOCK)),
            };
        }
    }

    /// Whether the target ends its connection, after whatever it sends.
    pub(crate) fn is_let_go(&mut self) -> bool {
        is_let_go(&mut self.streams[0])
    }

    /// Resets the logical unit; the response.
    fn reset(&mut self) -> u8 {
        let mut out = Vec::new();
        self.initiator.manage(0, Tag(77), [5, 0], None, &mut out);
        self.streams[0].write_all(&out).expect("it takes it");
        let mut bytes = [0; 48];
        self.streams[0].read_exact(&mut bytes).expect("it answers");
        match self.initiator.receive(0, &mut &bytes[..], &mut out) {
            Ok(Some(Answer::Managed { tag: Tag(77), response })) => response,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn ask(&mut self, number: u16, cdb: ask::Cdb, transfer: Transfer<'_>) -> Told {
        self.send(number, cdb, transfer);
        let sent = match transfer {
            Transfer::Send(bytes) => bytes,
            _ => &[],
        };
        let mut data = Vec::new();
        let ended = self.hear(number, sent, &mut data).expect("it answers");
        (ended.status, ended.sense, data)
    }

    pub(crate) fn write(&mut self, byte: u8) -> Option<Status> {
        let bytes = [byte; BLOCK as usize];
        self.ask(0, ask::write(FIRST), Transfer::Send(&bytes)).0
    }

    pub(crate) fn read(&mut self) -> Told {
        self.ask(0, ask::read(FIRST), Transfer::Receive(BLOCK))
    }

    /// PERSISTENT RESERVE OUT: service action, type, keys, and whether it is kept.
    fn reserve(&mut self, action: u8, kind: u8, keys: [u64; 2], kept: bool) -> Option<Status> {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[2], cdb[8]) = (0x5f, action, kind, 24);
        let mut parameters = [0; 24];
        parameters[..8].copy_from_slice(&keys[0].to_be_bytes());
        parameters[8..16].copy_from_slice(&keys[1].to_be_bytes());
        parameters[20] = u8::from(kept);
        self.ask(0, cdb, Transfer::Send(&parameters)).0
    }

    /// Adds one to the number in the first block, as nobody else does meanwhile.
    pub(crate) fn count(&mut self) {
        loop {
            let before = self.read().2;
            let number = u64::from_le_bytes(before[..8].try_into().expect("eight"));
            let mut after = before.clone();
            after[..8].copy_from_slice(&(number + 1).to_le_bytes());
            let mut cdb = [0; 16];
            (cdb[0], cdb[13]) = (0x89, 1);
            let both = [before, after].concat();
            match self.ask(0, cdb, Transfer::Send(&both)) {
                (Some(Status::Good), ..) => return,
                (_, Some(sense), _) if sense.code == Sense::MISCOMPARE.code => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

pub(crate) const GOOD: Option<Status> = Some(Status::Good);
pub(crate) const BARRED: Option<Status> = Some(Status::ReservationConflict);

#[test]
fn two_initiators_count_in_one_block_while_hosts_write_beside_it() {
    const EACH: u64 = 500;
    let target = serve(2, Limits::default());
    let mut raw = Raw::connect(&target, [1; 16]);
    std::thread::scope(|scope| {
        let counting = [1, 2, 3].map(|number| {
            let mut client = Client::log_in(&target, number);
            scope.spawn(move || (0..EACH).for_each(|_| client.count()))
        });
        // Another block of the same stripe, by the other protocol.
        while counting.iter().any(|one| !one.is_finished()) {
            assert_eq!(raw.write_at(8), NvmeStatus::SUCCESS);
        }
    });
    let number = Client::log_in(&target, 4).read().2;
    assert_eq!(u64::from_le_bytes(number[..8].try_into().expect("eight")), 3 * EACH);
    target.stop().expect("it has not failed");
}

#[test]
fn what_initiators_reserve_bars_hosts_and_the_other_way_round() {
    let target = serve(2, Limits::default());
    let [mut a, mut b] = [1, 2].map(|number| Client::log_in(&target, number));
    let mut host = Raw::connect(&target, [1; 16]);
    assert_eq!(a.reserve(0, 0, [0, 7], false), GOOD);
    assert_eq!(host.register(9, 0), CONFLICT, "initiators are registered");
    assert_eq!(a.reserve(1, 1, [7, 0], false), GOOD, "write exclusive");
    assert_eq!((a.write(3), b.write(4), host.write()), (GOOD, BARRED, CONFLICT));
    assert_eq!((b.read().2[0], host.reads()), (3, true));
    assert_eq!(a.reserve(3, 0, [7, 0], false), GOOD, "all is cleared");
    assert_eq!(host.write(), NvmeStatus::SUCCESS);
    assert_eq!(host.register(9, 0), NvmeStatus::SUCCESS);
    assert_eq!(a.reserve(0, 0, [0, 7], false), BARRED, "a host is registered");
    assert_eq!(host.acquire([9, 0], 0), NvmeStatus::SUCCESS);
    assert_eq!((a.write(5), b.write(5), host.write()), (BARRED, BARRED, NvmeStatus::SUCCESS));
    assert_eq!(a.read().0, GOOD);
    target.stop().expect("it has not failed");
}

#[test]
fn what_an_initiator_reserves_outlives_the_target() {
    let kept = Scratch::new(std::env::temp_dir().to_str().expect("paths here are text"));
    let target = serve_kept(1, Limits::default(), Some(&kept));
    let mut a = Client::log_in(&target, 1);
    let asked = (a.reserve(0, 0, [0, 7], true), a.reserve(1, 1, [7, 0], false));
    assert_eq!(asked, (GOOD, GOOD));
    drop((a, target));
    let target = serve_kept(1, Limits::default(), Some(&kept));
    // Hosts that come before any initiator are barred, too.
    let mut host = Raw::connect(&target, [1; 16]);
    assert_eq!(host.write(), CONFLICT);
    let [mut a, mut b] = [1, 2].map(|number| Client::log_in(&target, number));
    assert_eq!((a.write(1), b.write(2), host.write()), (GOOD, BARRED, CONFLICT));
    assert_eq!(a.reserve(0, 0, [7, 0], false), GOOD, "it leaves");
    assert_eq!((b.write(2), host.write()), (GOOD, NvmeStatus::SUCCESS));
    target.stop().expect("it has not failed");
    let beside = kept.path().with_file_name(format!(
        "{}.scsi",
        kept.path().file_name().and_then(|name| name.to_str()).expect("paths here are text")
    ));
    assert!(!beside.exists(), "nothing is kept of what is over");
}

// One that is fenced off while its data is on its way does not write it any more.
#[test]
fn data_that_comes_too_late_is_not_written() {
    let target = serve(2, Limits::default());
    let [mut a, mut b] = [1, 2].map(|number| Client::log_in(&target, number));
    assert_eq!(a.reserve(0, 0, [0, 7], false), GOOD);
    assert_eq!(a.reserve(1, 1, [7, 0], false), GOOD);
    assert_eq!(b.reserve(0, 0, [0, 8], false), GOOD);
    // Longer than what goes unasked.
    let bytes = vec![9; 512 << 10];
    let extent = Extent { count: 1024, ..FIRST };
    a.send(0, ask::write(extent), Transfer::Send(&bytes));
    std::thread::sleep(StdDuration::from_millis(100));
    assert_eq!(b.reserve(4, 1, [8, 7], false), GOOD, "it preempts A");
    let ended = a.hear(0, &bytes, &mut Vec::new()).expect("it answers");
    assert_eq!(ended.status, BARRED);
    assert_eq!(b.read().2[0], 0);
    target.stop().expect("it has not failed");
}

#[test]
fn a_session_has_several_connections() {
    let target = serve(2, Limits::default());
    let mut client = Client::log_in(&target, 1);
    (0..3).for_each(|_| client.join(&target));
    for round in 0..50 {
        for number in 0..4 {
            let bytes = vec![round ^ u8::try_from(number).expect("few"); 128 << 10];
            let extent = Extent { first: u64::from(number) * 256, count: 256, forced: false };
            assert_eq!(client.ask(number, ask::write(extent), Transfer::Send(&bytes)).0, GOOD);
            let told = client.ask(3 - number, ask::read(extent), Transfer::Receive(128 << 10));
            assert!(told.2 == bytes, "round {round}, connection {number}");
        }
    }
    // With error recovery level 0 the session ends with any of them.
    client.streams[2].shutdown(Shutdown::Both).expect("it is open");
    let mut byte = [0];
    assert!(matches!(client.streams[0].read(&mut byte), Ok(0) | Err(_)));
    target.stop().expect("it has not failed");
}

// Commands of a session come by any of its connections, and are done in their order.
#[test]
fn loads_spread_over_the_connections_of_a_session() {
    let target = serve(2, Limits::default());
    for (connections, bytes, depth) in
        [(1, 4096, 64), (2, 512, 200), (2, 64 << 10, 16), (4, 4096, 64), (4, 1 << 20, 6)]
    {
        let portal = target.iscsi_addresses()[0];
        let uri = format!("iscsi://{portal}/{IQN}/0?connections={connections}");
        let config = InitiatorConfig::named("iqn.2026-11.example:load");
        let unit = LogicalUnit::connect(&uri.parse().expect("it is one"), &config);
        let device = Device::Iscsi(Arc::new(unit.expect("it is there")));
        let load = LoadConfig {
            read_percent: 50,
            request_bytes: bytes,
            depth,
            jobs: 2,
            runtime: Some(Duration::from_ms(60_000)),
            request_count: Some(300),
            verifies: true,
            reads_back: true,
            ..LoadConfig::reads(16 << 20)
        };
        let tally = diskload::run(&load, &device, &Progress::default());
        let tally = tally.expect("it can be loaded");
        let what = format!("{bytes} bytes, {connections} connections");
        assert_eq!(tally.first_failure, None, "{what}");
        assert_eq!((tally.count(), tally.checks.wrong_count()), (600, 0), "{what}");
    }
    target.stop().expect("it has not failed");
}

#[test]
fn a_login_of_the_same_initiator_takes_the_place_of_its_session() {
    let target = serve(2, Limits::default());
    let mut old = Client::log_in(&target, 1);
    assert_eq!(old.write(1), GOOD);
    for round in 0..100 {
        let mut new = Client::log_in(&target, 1);
        assert_eq!(new.write(round), GOOD);
        let mut byte = [0];
        assert!(matches!(old.streams[0].read(&mut byte), Ok(0) | Err(_)), "round {round}");
        old = new;
    }
    target.stop().expect("it has not failed");
}

#[test]
fn a_reset_ends_what_others_have_asked_for() {
    let target = serve(2, Limits::default());
    let [mut a, mut b] = [1, 2].map(|number| Client::log_in(&target, number));
    let bytes = vec![9; 512 << 10];
    let extent = Extent { count: 1024, ..FIRST };
    // It waits for data that never comes.
    a.send(0, ask::write(extent), Transfer::Send(&bytes));
    std::thread::sleep(StdDuration::from_millis(100));
    assert_eq!(b.reset(), 0, "done");
    let told = b.ask(0, ask::TEST_UNIT_READY, Transfer::None);
    assert_eq!(told.1.map(|sense| sense.code), Some(0x2903), "it was reset");
    assert_eq!(b.read().2[0], 0, "nothing was written");
    target.stop().expect("it has not failed");
}

#[test]
fn initiators_hear_of_another_size_and_of_other_units() {
    let scratch = Scratch::new(std::env::temp_dir().to_str().expect("paths here are text"));
    sys::disk::Disk::create(scratch.path(), 16 << 20).expect("it can be made");
    let backend = Arc::new(
        FileBackend::open(scratch.path(), None, Opening::default()).expect("it can be opened"),
    );
    let namespace =
        Namespace::new(1, Arc::clone(&backend) as Arc<dyn Backend>, crate::identity("test"));
    let subsystem = Subsystem::new(nqn(NAME), None, vec![namespace]);
    let name = IQN.to_owned();
    subsystem.set_iscsi(Some(IscsiAccess { name, ..IscsiAccess::default() }));
    let iscsi = vec!["127.0.0.1:0".parse().expect("an address")];
    let config = TargetConfig { iscsi, shards: 2, ..TargetConfig::default() };
    let target = Target::start(&config, vec![subsystem]).expect("it can listen");
    let mut client = Client::log_in(&target, 1);
    let last = |client: &mut Client| {
        let data = client.ask(0, ask::READ_CAPACITY, Transfer::Receive(8)).2;
        u32::from_be_bytes(data[..4].try_into().expect("four"))
    };
    assert_eq!(last(&mut client), (32 << 10) - 1);
    let file = std::fs::File::options().write(true).open(scratch.path()).expect("it is there");
    file.set_len(32 << 20).expect("there is room");
    backend.refresh();
    let served = Arc::clone(&target.subsystems()[0]);
    target.changed(&served, &[1]);
    let told = client.ask(0, ask::TEST_UNIT_READY, Transfer::None);
    assert_eq!(told.1.map(|sense| sense.code), Some(0x2a09), "another size");
    assert_eq!(last(&mut client), (64 << 10) - 1);
    let end = Extent { first: (64 << 10) - 1, ..FIRST };
    assert_eq!(client.ask(0, ask::read(end), Transfer::Receive(BLOCK)).0, GOOD);
    // A second logical unit.
    let mut namespaces: Vec<_> = served.namespaces().to_vec();
    namespaces.push(Arc::new(Namespace::new(2, memory(), crate::identity("more"))));
    served.replace(namespaces);
    target.changed(&served, &[2]);
    let told = client.ask(0, ask::TEST_UNIT_READY, Transfer::None);
    assert_eq!(told.1.map(|sense| sense.code), Some(0x3f0e), "others");
    // The shard hears of it by mail.
    let luns = |client: &mut Client| {
        let list = client.ask(0, ask::report_luns(64), Transfer::Receive(64)).2;
        u32::from_be_bytes(list[..4].try_into().expect("four")) / 8
    };
    let found = (0..200).any(|_| {
        std::thread::sleep(StdDuration::from_millis(10));
        luns(&mut client) == 2
    });
    assert!(found, "there are two");
    target.stop().expect("it has not failed");
}
