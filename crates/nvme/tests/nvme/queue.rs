//! A controller's end of a connection, beside a host that keeps to the rules and one that does not.

use nvme::{
    Arrival, CONNECT_DATA_BYTES, Completion, ConnectData, ConnectRequest, Decoder, End, Fatal,
    FatalStatus, Header, IcReq, Layout, Limits, Nqn, Queue, QueueLimits, Status, Submission,
    data_digest,
};

use crate::{Got, layout, pdu, read};

const LIMITS: QueueLimits =
    QueueLimits { capsule_data_bytes: 8192, maxh2cdata: 8192, transfer_bytes: 1 << 20, entries: 8 };

/// What arrived, with data of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Came {
    Connect(ConnectRequest),
    Command(Submission),
    Data(u32, Vec<u8>),
    AllData(bool),
}

/// A queue and the host that uses it.
struct Pair {
    queue: Queue,
    host: Decoder,
    layout: Layout,
    slots: Vec<nvme::Slot>,
}

impl Pair {
    /// After ICReq and ICResp.
    fn begin(layout: Layout) -> Self {
        let limits = Limits { capsule_data_bytes: 0, data_bytes: 1 << 20 };
        let host = Decoder::new(End::Host, limits);
        let mut pair = Self { queue: Queue::new(LIMITS), host, layout, slots: Vec::new() };
        let request = IcReq { hpda: layout.alignment, digests: layout.digests, maxr2t: 0 };
        let (came, answers) = pair.send_raw(&pdu(Header::IcReq(request), Layout::default(), &[]));
        assert_eq!(came, []);
        let [Got::Header(Header::IcResp(response), 0)] = answers[..] else {
            panic!("ICResp is the answer: {answers:?}");
        };
        assert_eq!((response.digests, response.cpda), (layout.digests, 0));
        assert_eq!(response.maxh2cdata, 8192);
        pair.host.agree(layout);
        pair
    }

    /// With queue 1 of 8 entries connected.
    fn connected(layout: Layout) -> Self {
        let mut pair = Self::begin(layout);
        let (came, _) = pair.send(connect(1, 7), &data().write());
        let [Came::Connect(request)] = &came[..] else { panic!("Connect arrives: {came:?}") };
        assert_eq!((request.queue, request.size, &request.data), (1, 7, &data()));
        let mut out = Vec::new();
        let slot = pair.slots.pop().expect("it has a slot");
        pair.queue.accept(slot, request, 0x77, &mut out);
        assert_eq!(pair.completions(&out), [(1, Status::SUCCESS, 0x77, 1)]);
        pair
    }

    fn send(&mut self, header: Header, data: &[u8]) -> (Vec<Came>, Vec<Got>) {
        let layout = Layout { alignment: 0, ..self.layout };
        self.send_raw(&pdu(header, layout, data))
    }

    fn send_raw(&mut self, bytes: &[u8]) -> (Vec<Came>, Vec<Got>) {
        self.try_send(bytes).expect("it may be sent")
    }

    /// What arrives of these bytes, and what is answered.
    fn try_send(&mut self, bytes: &[u8]) -> Result<(Vec<Came>, Vec<Got>), Fatal> {
        let (mut input, mut out, mut came) = (bytes, Vec::new(), Vec::new());
        while let Some(arrival) = self.queue.receive(&mut input, &mut out)? {
            let (slot, arrived) = match arrival {
                Arrival::Connect(slot, request) => (slot, Came::Connect(request)),
                Arrival::Command(slot, submission) => (slot, Came::Command(submission)),
                Arrival::Data(slot, offset, data) => (slot, Came::Data(offset, data.to_vec())),
                Arrival::AllData(slot, is_intact) => (slot, Came::AllData(is_intact)),
            };
            if matches!(arrived, Came::Connect(_) | Came::Command(_)) {
                self.slots.push(slot);
            }
            came.push(arrived);
        }
        assert!(input.is_empty());
        Ok((came, self.heard(&out)))
    }

    /// What the host reads in these bytes.
    fn heard(&mut self, out: &[u8]) -> Vec<Got> {
        let (got, result) = read(&mut self.host, [out]);
        result.expect("a controller keeps to the rules");
        got
    }

    fn completions(&mut self, out: &[u8]) -> Vec<(u16, Status, u64, u16)> {
        completions(&self.heard(out))
    }

    /// The status with which a capsule is answered at once.
    fn answered(&mut self, header: Header, data: &[u8]) -> Status {
        let (came, answers) = self.send(header, data);
        assert_eq!(came, [], "nobody is asked");
        let [(_, status, ..)] = completions(&answers)[..] else { panic!("{answers:?}") };
        status
    }

    fn fatal(&mut self, header: Header, data: &[u8]) -> (FatalStatus, u32) {
        let bytes = pdu(header, Layout { alignment: 0, ..self.layout }, data);
        let fatal = self.try_send(&bytes).expect_err("it may not be sent");
        let mut out = Vec::new();
        self.queue.terminate(fatal, &mut out);
        let heard = self.heard(&out);
        let [Got::Header(Header::C2hTermReq(term), _), Got::Data(about, true)] = &heard[..] else {
            panic!("the host is told: {heard:?}");
        };
        assert_eq!(term.status, fatal.status as u16);
        assert!(bytes.starts_with(about));
        (fatal.status, fatal.information)
    }
}

fn completions(got: &[Got]) -> Vec<(u16, Status, u64, u16)> {
    let of = |got: &Got| match got {
        Got::Header(Header::CapsuleResp(entry), 0) => {
            let Completion { cid, status, result, head } = Completion::read(entry);
            (cid, status, result, head)
        }
        other => panic!("{other:?} is no completion"),
    };
    got.iter().map(of).collect()
}

fn data() -> ConnectData {
    ConnectData {
        host_id: [1; 16],
        controller_id: 0xffff,
        subsystem: Nqn::new("nqn.2026-11.example:disk").expect("it can be one"),
        host: Nqn::new("nqn.2026-11.example:host").expect("it can be one"),
    }
}

/// A capsule: opcode, identifier, kind of descriptor, length of data, and further fields.
fn capsule(opcode: u8, cid: u16, sgl: u8, length: usize, fields: &[(usize, &[u8])]) -> Header {
    let mut entry = [0; 64];
    (entry[0], entry[1], entry[39]) = (opcode, 0x40, sgl);
    entry[2..4].copy_from_slice(&cid.to_le_bytes());
    let length = u32::try_from(length).expect("it is short here");
    entry[32..36].copy_from_slice(&length.to_le_bytes());
    for (at, field) in fields {
        entry[*at..*at + field.len()].copy_from_slice(field);
    }
    Header::CapsuleCmd(entry)
}

fn connect(queue: u8, size: u8) -> Header {
    capsule(0x7f, 1, 0x01, CONNECT_DATA_BYTES, &[(4, &[1]), (42, &[queue, 0, size, 0])])
}

const IN_CAPSULE: u8 = 0x01;
const TRANSPORT: u8 = 0x5a;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;

fn h2c(cid: u16, ttag: u16, offset: u32, length: u32, last: bool) -> Header {
    Header::H2cData { cid, ttag, offset, length, last }
}

#[test]
fn a_read_is_answered_with_its_data() {
    for layout in [layout(false, false, 0), layout(true, true, 17), layout(false, true, 31)] {
        let mut pair = Pair::connected(layout);
        let (came, answers) = pair.send(capsule(READ, 9, TRANSPORT, 4096, &[]), &[]);
        assert!(matches!(came[..], [Came::Command(Submission { cid: 9, .. })]), "{came:?}");
        assert_eq!(answers, []);
        let (slot, block) = (pair.slots[0], vec![0xcd; 4096]);
        let mut out = Vec::new();
        pair.queue.data_header(slot, 0, 4096, true, &mut out);
        out.extend_from_slice(&block);
        if layout.digests.data {
            out.extend_from_slice(&data_digest(&block));
        }
        pair.queue.complete(slot, Status::SUCCESS, 0, &mut out);
        let heard = pair.heard(&out);
        let header =
            Header::C2hData { cid: 9, offset: 0, length: 4096, last: true, success: false };
        assert_eq!(heard[..2], [Got::Header(header, 4096), Got::Data(block, true)]);
        assert_eq!(completions(&heard[2..]), [(9, Status::SUCCESS, 0, 2)]);
        assert_eq!(pair.queue.outstanding(), 0);
    }
}

#[test]
fn data_of_a_write_is_asked_for_and_comes_in_order() {
    let mut pair = Pair::connected(layout(true, true, 0));
    let (came, answers) = pair.send(capsule(WRITE, 9, TRANSPORT, 20_000, &[]), &[]);
    assert!(matches!(came[..], [Came::Command(_)]) && answers.is_empty());
    let mut out = Vec::new();
    let slot = pair.slots[0];
    pair.queue.request_data(slot, &mut out);
    let heard = pair.heard(&out);
    let [Got::Header(Header::R2t { cid: 9, ttag, offset: 0, length: 20_000 }, 0)] = heard[..]
    else {
        panic!("one R2T for all: {heard:?}");
    };
    let (came, _) = pair.send(h2c(9, ttag, 0, 8192, false), &[1; 8192]);
    assert_eq!(came, [Came::Data(0, vec![1; 8192])]);
    let (came, _) = pair.send(h2c(9, ttag, 8192, 8192, false), &[2; 8192]);
    assert_eq!(came, [Came::Data(8192, vec![2; 8192])]);
    let (came, _) = pair.send(h2c(9, ttag, 16_384, 3616, true), &[3; 3616]);
    assert_eq!(came, [Came::Data(16_384, vec![3; 3616]), Came::AllData(true)]);
    let mut out = Vec::new();
    pair.queue.complete(slot, Status::SUCCESS, 0, &mut out);
    assert_eq!(pair.completions(&out), [(9, Status::SUCCESS, 0, 2)]);
}

#[test]
fn data_in_the_capsule_comes_at_once() {
    let mut pair = Pair::connected(layout(false, true, 0));
    let (came, _) = pair.send(capsule(WRITE, 2, IN_CAPSULE, 512, &[]), &[5; 512]);
    assert!(matches!(came[0], Came::Command(_)));
    assert_eq!(came[1..], [Came::Data(0, vec![5; 512]), Came::AllData(true)]);
    let bytes = pdu(capsule(WRITE, 3, IN_CAPSULE, 512, &[]), layout(false, true, 0), &[5; 512]);
    let mut wrong = bytes;
    wrong[100] ^= 1;
    let (came, _) = pair.send_raw(&wrong);
    assert_eq!(came.last(), Some(&Came::AllData(false)), "the command fails, not the queue");
}

#[test]
fn one_broken_piece_spoils_all_data_of_its_command() {
    let mut pair = Pair::connected(layout(false, true, 0));
    pair.send(capsule(WRITE, 9, TRANSPORT, 8, &[]), &[]);
    let (slot, ttag) = (pair.slots[0], pair.slots[0].number());
    pair.queue.request_data(slot, &mut Vec::new());
    let mut wrong = pdu(h2c(9, ttag, 0, 4, false), layout(false, true, 0), &[1; 4]);
    wrong[24] ^= 1;
    pair.send_raw(&wrong);
    let (came, _) = pair.send(h2c(9, ttag, 4, 4, true), &[1; 4]);
    assert_eq!(came, [Came::Data(4, vec![1; 4]), Came::AllData(false)]);
}

#[test]
fn data_that_nobody_asked_for_ends_the_connection() {
    let sequence = |byte| (FatalStatus::Sequence, byte);
    let out_of_range = |byte| (FatalStatus::DataOutOfRange, byte);
    type Case = (&'static str, Header, &'static [u8], (FatalStatus, u32));
    let cases: [Case; 9] = [
        ("another tag", h2c(9, 1, 0, 8, true), &[0; 8], sequence(10)),
        ("the largest tag", h2c(9, 0xffff, 0, 8, true), &[0; 8], sequence(10)),
        ("another command", h2c(8, 0, 0, 8, true), &[0; 8], sequence(10)),
        ("a gap", h2c(9, 0, 4, 4, true), &[0; 4], out_of_range(12)),
        ("too much", h2c(9, 0, 0, 12, true), &[0; 12], out_of_range(16)),
        ("no end", h2c(9, 0, 0, 8, false), &[0; 8], sequence(1)),
        ("an early end", h2c(9, 0, 0, 4, true), &[0; 4], sequence(1)),
        ("nothing", h2c(9, 0, 0, 0, true), &[], out_of_range(16)),
        ("a wrap", h2c(9, 0, u32::MAX, 4, true), &[0; 4], out_of_range(12)),
    ];
    for (name, header, data, expected) in cases {
        let mut pair = Pair::connected(Layout::default());
        pair.send(capsule(WRITE, 9, TRANSPORT, 8, &[]), &[]);
        assert_eq!(pair.slots[0].number(), 0);
        pair.queue.request_data(pair.slots[0], &mut Vec::new());
        assert_eq!(pair.fatal(header, data), expected, "{name}");
    }
    // Not asked for yet; of a read; of a command that has been answered.
    let mut pair = Pair::connected(Layout::default());
    pair.send(capsule(WRITE, 9, TRANSPORT, 8, &[]), &[]);
    assert_eq!(pair.fatal(h2c(9, 0, 0, 8, true), &[0; 8]), sequence(10));
    let mut pair = Pair::connected(Layout::default());
    pair.send(capsule(READ, 9, TRANSPORT, 8, &[]), &[]);
    assert_eq!(pair.fatal(h2c(9, 0, 0, 8, true), &[0; 8]), sequence(10));
    let mut pair = Pair::connected(Layout::default());
    pair.send(capsule(READ, 9, TRANSPORT, 8, &[]), &[]);
    pair.queue.complete(pair.slots[0], Status::SUCCESS, 0, &mut Vec::new());
    assert_eq!(pair.fatal(h2c(9, 0, 0, 8, true), &[0; 8]), sequence(10));
}

#[test]
fn connect_comes_first_and_once_and_whole() {
    let sequence = Status::SEQUENCE_ERROR.do_not_retry();
    let mut pair = Pair::begin(Layout::default());
    let log_page = capsule(0x02, 4, TRANSPORT, 512, &[]);
    assert_eq!(pair.answered(log_page, &[]), sequence);
    let get = capsule(0x7f, 4, TRANSPORT, 0, &[(4, &[4])]);
    assert_eq!(pair.answered(get, &[]), sequence);
    for length in [1, 1023, 1025] {
        let header = capsule(0x7f, 1, IN_CAPSULE, length, &[(4, &[1]), (44, &[7])]);
        let status = pair.answered(header, &vec![0; length]);
        assert_eq!(status, Status::SGL_LENGTH_INVALID.do_not_retry(), "{length}");
    }
    let by_pdus = capsule(0x7f, 1, TRANSPORT, 1024, &[(4, &[1]), (44, &[7])]);
    assert_eq!(pair.answered(by_pdus, &[]), Status::SGL_LENGTH_INVALID.do_not_retry());
    let invalid = Status::CONNECT_INVALID_PARAMETERS.do_not_retry();
    for size in [0, 8, 255] {
        assert_eq!(pair.answered(connect(1, size), &data().write()), invalid, "{size}");
    }
    assert_eq!(pair.answered(connect(1, 7), &[0; 1024]), invalid, "no names");
    let mut pair = Pair::connected(Layout::default());
    assert_eq!(pair.answered(connect(1, 7), &data().write()), sequence);
}

#[test]
fn capsules_that_cannot_be_are_answered_and_the_queue_goes_on() {
    let mut pair = Pair::connected(Layout::default());
    let status = |pair: &mut Pair, header, data: &[u8]| pair.answered(header, data);
    let length = Status::SGL_LENGTH_INVALID.do_not_retry();
    let cases = [
        (capsule(WRITE, 4, IN_CAPSULE, 513, &[]), 512, length),
        (capsule(WRITE, 4, IN_CAPSULE, 511, &[]), 512, length),
        (capsule(WRITE, 4, IN_CAPSULE, usize::MAX >> 32, &[]), 512, length),
        (capsule(WRITE, 4, IN_CAPSULE, 512, &[]), 0, length),
        (capsule(WRITE, 4, TRANSPORT, 512, &[]), 512, length),
        (
            capsule(WRITE, 4, IN_CAPSULE, 512, &[(24, &[1])]),
            512,
            Status::SGL_OFFSET_INVALID.do_not_retry(),
        ),
        (capsule(READ, 4, IN_CAPSULE, 512, &[]), 512, Status::INVALID_FIELD.do_not_retry()),
        (capsule(READ, 4, TRANSPORT, (1 << 20) + 1, &[]), 0, Status::INVALID_FIELD.do_not_retry()),
    ];
    for (header, data, expected) in cases {
        assert_eq!(status(&mut pair, header, &vec![0; data]), expected, "{header:?}");
    }
    pair.send(capsule(READ, 4, TRANSPORT, 512, &[]), &[]);
    let conflict = Status::COMMAND_ID_CONFLICT.do_not_retry();
    assert_eq!(status(&mut pair, capsule(READ, 4, TRANSPORT, 512, &[]), &[]), conflict);
    let mut out = Vec::new();
    pair.queue.complete(pair.slots[0], Status::SUCCESS, 0, &mut out);
    // Eight capsules were refused, one taken, one refused: the head is told modulo 8.
    assert_eq!(pair.completions(&out), [(4, Status::SUCCESS, 0, 11 % 8)]);
    let (came, _) = pair.send(capsule(READ, 4, TRANSPORT, 512, &[]), &[]);
    assert_eq!(came.len(), 1, "the identifier is free again");
}

#[test]
fn more_commands_than_entries_end_the_connection() {
    let mut pair = Pair::connected(Layout::default());
    for cid in 0..8 {
        pair.send(capsule(READ, cid, TRANSPORT, 512, &[]), &[]);
    }
    assert_eq!(pair.queue.outstanding(), 8);
    assert_eq!(pair.fatal(capsule(READ, 8, TRANSPORT, 512, &[]), &[]), (FatalStatus::Sequence, 0));
}

#[test]
fn an_early_answer_swallows_the_rest_of_the_capsule() {
    let mut pair = Pair::connected(Layout::default());
    let bytes = pdu(capsule(WRITE, 4, IN_CAPSULE, 512, &[]), Layout::default(), &[7; 512]);
    let (came, _) = pair.send_raw(&bytes[..172]);
    assert_eq!(came.len(), 2);
    let mut out = Vec::new();
    pair.queue.complete(pair.slots[0], Status::INVALID_NAMESPACE, 0, &mut out);
    assert_eq!(pair.completions(&out), [(4, Status::INVALID_NAMESPACE, 0, 2)]);
    let (came, answers) = pair.send_raw(&bytes[172..]);
    assert_eq!((came, answers), (vec![], vec![]));
}

#[test]
fn the_end_of_a_host_is_noticed() {
    let mut pair = Pair::connected(Layout::default());
    let term = nvme::TermReq { status: 1, information: 0 };
    pair.send(Header::H2cTermReq(term), &[0; 24]);
    assert!(pair.queue.has_ended());
}
