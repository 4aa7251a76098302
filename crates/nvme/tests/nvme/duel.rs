//! Both ends against each other: every cut of the stream, any order of completion, broken bytes.
//! No command ends twice or not at all, and no read that ends well brings what was not written.

use std::collections::BTreeMap;

use nvme::{
    Answer, Arrival, CONNECT_DATA_BYTES, Command, Completion, ConnectData, Digests, Fatal,
    HostQueue, Io, Nqn, Queue, QueueLimits, Range, Slot, Status, Transfer, data_digest,
};

const LIMITS: QueueLimits =
    QueueLimits { capsule_data_bytes: 8192, maxh2cdata: 4096, transfer_bytes: 1 << 20, entries: 9 };
const BLOCK: usize = 512;
const BLOCKS: usize = 64;
const DEPTH: u16 = 8;
const COMMANDS: usize = 40;

/// xorshift64*: the same from the same seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).expect("31 bits") % bound
    }
}

/// What the controller's side has: blocks, and commands that it has not done.
struct Disk {
    queue: Queue,
    blocks: Vec<u8>,
    open: Vec<(Slot, Io, Vec<u8>, Option<bool>)>,
}

/// What the host's side knows: what it wrote, and what is on its way.
struct Host {
    queue: HostQueue,
    blocks: Vec<u8>,
    open: BTreeMap<u16, (Io, Vec<u8>)>,
    left: usize,
    is_ready: bool,
    ended: usize,
}

fn entry(opcode: u8, sgl: u8, length: usize, fields: &[(usize, &[u8])]) -> [u8; 64] {
    let mut entry = [0; 64];
    (entry[0], entry[1], entry[39]) = (opcode, 0x40, sgl);
    entry[32..36].copy_from_slice(&u32::try_from(length).expect("short").to_le_bytes());
    for (at, field) in fields {
        entry[*at..*at + field.len()].copy_from_slice(field);
    }
    entry
}

fn span(range: Range) -> std::ops::Range<usize> {
    let first = usize::try_from(range.first).expect("small") * BLOCK;
    first..first + range.count as usize * BLOCK
}

const fn range(io: Io) -> Range {
    match io {
        Io::Read(range) | Io::Write(range) => range,
        _ => panic!("only these are sent"),
    }
}

impl Disk {
    fn take(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), Fatal> {
        let mut input = wire;
        while let Some(arrival) = self.queue.receive(&mut input, out)? {
            match arrival {
                Arrival::Connect(slot, request) => self.queue.accept(slot, &request, 1, out),
                Arrival::Command(slot, submission) => {
                    let Command::Io(io) = submission.command else { panic!("{submission:?}") };
                    let room = vec![0; span(range(io)).len()];
                    let by_pdus = matches!(submission.data, nvme::Data::Transport { .. });
                    let is_write = matches!(io, Io::Write(_));
                    if is_write && by_pdus {
                        self.queue.request_data(slot, out);
                    }
                    self.open.push((slot, io, room, (!is_write).then_some(true)));
                }
                Arrival::Data(slot, offset, bytes) => {
                    let place = self.place(slot);
                    let at = offset as usize;
                    place.2[at..at + bytes.len()].copy_from_slice(bytes);
                }
                Arrival::AllData(slot, is_intact) => self.place(slot).3 = Some(is_intact),
            }
        }
        Ok(())
    }

    fn place(&mut self, slot: Slot) -> &mut (Slot, Io, Vec<u8>, Option<bool>) {
        self.open.iter_mut().find(|open| open.0 == slot).expect("it is open")
    }

    /// Does one of the commands whose data is there, in pieces if it is read.
    fn work(&mut self, draw: &mut Draw, out: &mut Vec<u8>) {
        let done: Vec<usize> =
            (0..self.open.len()).filter(|&index| self.open[index].3.is_some()).collect();
        if done.is_empty() {
            return;
        }
        let (slot, io, data, is_intact) = self.open.swap_remove(done[draw.below(done.len())]);
        let mut status = Status::SUCCESS;
        match io {
            Io::Write(_) if is_intact == Some(false) => status = Status::TRANSIENT_TRANSPORT_ERROR,
            Io::Write(range) => self.blocks[span(range)].copy_from_slice(&data),
            _ => {
                let data = &self.blocks[span(range(io))];
                let piece = BLOCK * (1 + draw.below(4));
                for (index, bytes) in data.chunks(piece).enumerate() {
                    let [offset, length] = [index * piece, bytes.len()]
                        .map(|number| u32::try_from(number).expect("short"));
                    let last = index * piece + bytes.len() == data.len();
                    self.queue.data_header(slot, offset, length, last, out);
                    out.extend_from_slice(bytes);
                    if self.queue.digests().data {
                        out.extend_from_slice(&data_digest(bytes));
                    }
                }
            }
        }
        self.queue.complete(slot, status, 0, out);
    }
}

impl Host {
    /// One more command, if there is room, over blocks that no other is about.
    fn ask(&mut self, draw: &mut Draw, out: &mut Vec<u8>) {
        let (first, count) = (draw.below(BLOCKS), 1 + draw.below(12));
        let count = count.min(BLOCKS - first);
        let range =
            Range { first: first as u64, count: u32::try_from(count).expect("few"), forced: false };
        let overlaps = |io: &Io| {
            let (one, other) = (span(self::range(*io)), span(range));
            one.start < other.end && other.start < one.end
        };
        if !self.is_ready || self.left == 0 || self.open.values().any(|open| overlaps(&open.0)) {
            return;
        }
        let length = count * BLOCK;
        let fields: [(usize, &[u8]); 2] =
            [(40, &(first as u64).to_le_bytes()), (48, &(range.count - 1).to_le_bytes())];
        let room = u32::try_from(length).expect("short");
        let (io, data, sent) = if draw.below(2) == 0 {
            let entry = entry(0x02, 0x5a, length, &fields);
            let sent = self.queue.submit(entry, &[], Transfer::Receive(room), out);
            (Io::Read(range), vec![0; length], sent)
        } else {
            let stamp = draw.below(256).to_le_bytes()[0];
            let data: Vec<u8> = (0..length).map(|at| stamp ^ at.to_le_bytes()[0]).collect();
            let sent = if draw.below(2) == 0 {
                self.queue.submit(entry(0x01, 0x01, length, &fields), &data, Transfer::None, out)
            } else {
                let entry = entry(0x01, 0x5a, length, &fields);
                self.queue.submit(entry, &[], Transfer::Send(room), out)
            };
            (Io::Write(range), data, sent)
        };
        if let Some(cid) = sent {
            self.left -= 1;
            assert!(self.open.insert(cid, (io, data)).is_none(), "{cid} is in use");
        }
    }

    fn take(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), Fatal> {
        let mut input = wire;
        while let Some(answer) = self.queue.receive(&mut input)? {
            match answer {
                Answer::Ready { .. } => {
                    let name = |name| Nqn::new(name).expect("it can be one");
                    let data = ConnectData {
                        host_id: [1; 16],
                        controller_id: 1,
                        subsystem: name("nqn.x:disk"),
                        host: name("nqn.x:host"),
                    };
                    let fields: [(usize, &[u8]); 2] =
                        [(4, &[1]), (42, &[1, 0, DEPTH.to_le_bytes()[0], 0])];
                    let entry = entry(0x7f, 0x01, CONNECT_DATA_BYTES, &fields);
                    self.queue.submit(entry, &data.write(), Transfer::None, out);
                }
                Answer::Wants { cid, offset, length } => {
                    let at = offset as usize;
                    let data = self.open[&cid].1[at..at + length as usize].to_vec();
                    self.queue.send_data(cid, offset, &data, out);
                }
                Answer::Data(cid, offset, bytes) => {
                    let at = offset as usize;
                    let (_, data) = self.open.get_mut(&cid).expect("it is open");
                    data[at..at + bytes.len()].copy_from_slice(bytes);
                }
                Answer::Ended(completion) if self.is_ready => self.end(completion),
                Answer::Ended(completion) => {
                    assert_eq!(completion.status, Status::SUCCESS, "Connect");
                    self.is_ready = true;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, Completion { cid, status, .. }: Completion) {
        let (io, data) = self.open.remove(&cid).expect("it ends once");
        self.ended += 1;
        match io {
            Io::Write(range) if status.is_success() => {
                self.blocks[span(range)].copy_from_slice(&data);
            }
            Io::Read(range) if status.is_success() => {
                assert!(self.blocks[span(range)] == data, "{range:?} is not what was written");
            }
            _ => assert!(status.is(Status::TRANSIENT_TRANSPORT_ERROR), "{status:?}"),
        }
    }
}

/// Some bytes off the front of a stream, now and then with one changed.
fn piece(draw: &mut Draw, stream: &mut Vec<u8>, breaks: bool) -> Vec<u8> {
    let most = [1, 7, 100, 5000][draw.below(4)];
    let length = draw.below(most + 1).min(stream.len());
    let mut piece: Vec<u8> = stream.drain(..length).collect();
    if breaks && !piece.is_empty() && draw.below(200) == 0 {
        let at = draw.below(piece.len());
        piece[at] ^= 1 << draw.below(8);
    }
    piece
}

/// One conversation; `None` if a broken header ended it, which only broken bytes may do.
fn duel(seed: u64, breaks: bool) -> Option<usize> {
    let mut draw = Draw(seed * 2 + 1);
    let digests =
        Digests { header: breaks || draw.below(2) == 0, data: breaks || draw.below(2) == 0 };
    let (mut to_disk, mut to_host) = (Vec::new(), Vec::new());
    let queue = HostQueue::begin(DEPTH, digests, &mut to_disk);
    let blocks = vec![0; BLOCKS * BLOCK];
    let mut disk = Disk { queue: Queue::new(LIMITS), blocks: blocks.clone(), open: Vec::new() };
    let mut host =
        Host { queue, blocks, open: BTreeMap::new(), left: COMMANDS, is_ready: false, ended: 0 };
    for turn in 0.. {
        assert!(turn < 200_000, "seed {seed}: it does not end");
        host.ask(&mut draw, &mut to_disk);
        // Until digests are agreed on nothing would show what is broken.
        let breaks = breaks && host.is_ready;
        let bytes = piece(&mut draw, &mut to_disk, breaks);
        disk.take(&bytes, &mut to_host).map_err(|fatal| refused(fatal, breaks)).ok()?;
        disk.work(&mut draw, &mut to_host);
        let bytes = piece(&mut draw, &mut to_host, breaks);
        host.take(&bytes, &mut to_disk).map_err(|fatal| refused(fatal, breaks)).ok()?;
        if host.ended == COMMANDS {
            break;
        }
    }
    assert!(host.open.is_empty() && disk.open.is_empty());
    assert_eq!((host.queue.outstanding(), disk.queue.outstanding()), (0, 0));
    Some(host.ended)
}

fn refused(fatal: Fatal, breaks: bool) {
    assert!(breaks, "an intact stream was refused: {fatal}");
}

#[test]
fn every_command_ends_once_and_well() {
    for seed in 0..5000 {
        assert_eq!(duel(seed, false), Some(COMMANDS), "seed {seed}");
    }
}

// A broken byte fails its command or ends the connection; it never passes for data.
#[test]
fn broken_bytes_are_never_data() {
    let ended = (0..5000).filter_map(|seed| duel(seed, true)).count();
    assert!((1..5000).contains(&ended), "some go on, some do not: {ended}");
}
