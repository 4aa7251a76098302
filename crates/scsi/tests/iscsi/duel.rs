//! Both ends against each other over connections that delay, cut and break: any order of delivery
//! and completion, one to three connections. No command ends twice or not at all, and no read that
//! ends well brings what was not written.

use std::collections::BTreeMap;

use scsi::iscsi::{
    Answer, Arrival, DigestWish, Ended, Expectation, Fatal, Initiator, Logout, Request,
    ScsiCommand, Session, SessionLimits, Tag, Task, Transfer, Wishes, trailer,
};
use scsi::{
    BlockLimits, LogicalUnit, Nexus, Operation, PersistentReservations, Plan, Residual, Sense,
    Status, Step, TransportId, UnitData, UnitPort,
};

use crate::{Handshake, INITIATOR, TARGET, entry_config};

pub(crate) const BLOCK: usize = 512;
const BLOCKS: usize = 64;
const DEPTH: u16 = 8;
const COMMANDS: usize = 40;
const NEXUS: Nexus = Nexus(1);

/// xorshift64*: the same from the same seed.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).expect("31 bits") % bound
    }

    fn is(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

/// A command that a target has not done, its data, and whether that is there.
struct Open {
    command: ScsiCommand,
    plan: Plan,
    data: Vec<u8>,
    ready: Option<Result<(), Sense>>,
}

/// What the target's side has.
struct Disk {
    session: Session,
    unit: LogicalUnit,
    blocks: Vec<u8>,
    open: BTreeMap<Task, Open>,
    /// Bytes that have come on each connection and were not read.
    input: Vec<Vec<u8>>,
}

/// What the initiator's side knows: of each block, what may be in it, and what is on its way.
struct Host {
    session: Initiator,
    blocks: Vec<Vec<u32>>,
    open: BTreeMap<Tag, (usize, usize, Option<u32>, Vec<u8>)>,
    /// Requests to end a command, by their own tags.
    aborts: BTreeMap<Tag, Tag>,
    left: usize,
    ended: usize,
    stamp: u32,
    has_left: bool,
}

/// Bytes on their way, of each connection: to the target, to the initiator.
type Wires = Vec<[Vec<u8>; 2]>;

pub(crate) fn unit_data() -> UnitData {
    let most = u32::try_from(BLOCKS).expect("few");
    UnitData {
        block_shift: 9,
        block_count: BLOCKS as u64,
        physical_shift: 9,
        id: [1; 16],
        vendor: [b' '; 8],
        product: [b' '; 16],
        revision: [b' '; 4],
        is_thin: false,
        has_write_cache: false,
        is_read_only: false,
        limits: BlockLimits {
            transfer_blocks: most,
            optimal_blocks: most,
            unmap_blocks: 0,
            unmap_ranges: 0,
            write_same_blocks: most,
            compare_blocks: 1,
        },
        atomic_blocks: 0,
        ports: 1,
        opening: [0; 16],
    }
}

fn blocks_of(stamp: u32, count: usize) -> Vec<u8> {
    stamp.to_le_bytes().repeat(count * BLOCK / 4)
}

impl Disk {
    fn take(&mut self, number: u16, out: &mut Vec<u8>) -> Result<(), Fatal> {
        let bytes = std::mem::take(&mut self.input[usize::from(number)]);
        let mut input = &bytes[..];
        while let Some(arrival) = self.session.receive(number, &mut input, out)? {
            match arrival {
                Arrival::Command(task, command) => self.begin(task, command, out),
                Arrival::Data(task, offset, bytes) => {
                    let open = self.open.get_mut(&task).expect("it is open");
                    let at = offset as usize;
                    open.data[at..at + bytes.len()].copy_from_slice(bytes);
                }
                Arrival::AllData(task, result) => {
                    let open = self.open.get_mut(&task).expect("it is open");
                    assert!(open.ready.replace(result).is_none(), "it is told once");
                }
                Arrival::Manage(management, request) => {
                    let tasks = self.session.affected(&request);
                    for task in &tasks {
                        self.session.abort(*task);
                        self.open.remove(task).expect("it is open");
                        self.session.respond(*task, Status::Good, &[], 0, out);
                    }
                    let response = u8::from(tasks.is_empty());
                    self.session.answer_management(management, response, out);
                }
                Arrival::Logout(Logout::Session) => {
                    assert!(self.open.is_empty());
                    assert_eq!(self.session.finish_logout(number, out), Some(Logout::Session));
                }
                Arrival::Logout(_) | Arrival::SendTargets(_) | Arrival::Pong => {
                    panic!("nobody asks for that")
                }
            }
        }
        self.input[usize::from(number)] = input.to_vec();
        Ok(())
    }

    fn begin(&mut self, task: Task, command: ScsiCommand, out: &mut Vec<u8>) {
        let port = UnitPort { target: TARGET, group: 1, relative: 1, states: &[] };
        let sent = if command.writes { command.expected_bytes } else { 0 };
        let Step::Device(plan) = self.unit.begin(NEXUS, &command.cdb, sent, port) else {
            panic!("only reads and writes are sent");
        };
        let wanted = match plan.transfer {
            scsi::Transfer::Out(bytes) => u32::try_from(bytes).expect("short"),
            _ => 0,
        };
        let ready = match self.session.expect(task, wanted, out) {
            Expectation::Met => Some(Ok(())),
            Expectation::Coming => None,
            Expectation::Failed(sense) => Some(Err(sense)),
        };
        let data = vec![0; wanted as usize];
        assert!(self.open.insert(task, Open { command, plan, data, ready }).is_none());
    }

    /// The session is gone: what was under way is done or not.
    fn crash(&mut self, draw: &mut Draw) {
        for (_, open) in std::mem::take(&mut self.open) {
            let at = usize::try_from(open.plan.offset).expect("small");
            if open.ready == Some(Ok(())) && open.command.writes && draw.is(2) {
                self.blocks[at..at + open.data.len()].copy_from_slice(&open.data);
            }
        }
    }

    /// Does one of the commands whose data is there.
    fn work(&mut self, draw: &mut Draw, wires: &mut Wires) {
        let done: Vec<Task> = self
            .open
            .iter()
            .filter(|(_, open)| open.ready.is_some())
            .map(|(task, _)| *task)
            .collect();
        if done.is_empty() {
            return;
        }
        let task = done[draw.below(done.len())];
        let open = self.open.remove(&task).expect("it is there");
        let number = self.session.connection_of(task).expect("it is there");
        let out = &mut wires[usize::from(number)][1];
        let at = usize::try_from(open.plan.offset).expect("small");
        let span = at..at + usize::try_from(open.plan.length).expect("small");
        if let Some(Err(sense)) = open.ready {
            self.session.respond(task, Status::CheckCondition, &sense.write(false), 0, out);
            return;
        }
        let about = open.plan.about_bytes;
        match open.plan.operation {
            Operation::Write { .. } => {
                self.blocks[span].copy_from_slice(&open.data);
                self.session.respond(task, Status::Good, &[], about, out);
            }
            _ => {
                assert!(open.command.reads);
                let data = self.blocks[span].to_vec();
                // Some of it ahead, the rest with the status.
                let ahead = if draw.is(2) { draw.below(data.len()) } else { 0 };
                let digests = self.session.digests(number);
                let mut sent = 0;
                while sent < ahead {
                    let length = u32::try_from(ahead - sent).expect("short");
                    let piece = self.session.data_header(task, length, None, out) as usize;
                    out.extend_from_slice(&data[sent..sent + piece]);
                    trailer(&data[sent..sent + piece], digests, out);
                    sent += piece;
                }
                self.session.send_data(task, &data[sent..], about, out);
            }
        }
    }
}

impl Host {
    /// One more command, if there is room, over blocks that no other is about.
    fn ask(&mut self, draw: &mut Draw, wires: &mut Wires) {
        let first = draw.below(BLOCKS);
        let count = (1 + draw.below(12)).min(BLOCKS - first);
        let overlaps = |(from, many, ..): &(usize, usize, Option<u32>, Vec<u8>)| {
            *from < first + count && first < from + many
        };
        if self.left == 0 || !self.session.can_submit() || self.open.values().any(overlaps) {
            return;
        }
        let [of_first, of_count] = [first, count].map(|number| number.to_le_bytes()[0]);
        let mut cdb = [0; 16];
        (cdb[5], cdb[8]) = (of_first, of_count);
        let number = draw.below(wires.len());
        let out = &mut wires[number][0];
        let number = u16::try_from(number).expect("few");
        let lun = [0; 8];
        let (tag, stamp, data) = if draw.is(2) {
            cdb[0] = 0x28;
            let room = u32::try_from(count * BLOCK).expect("short");
            let request = Request { lun, cdb, transfer: Transfer::Receive(room) };
            (self.session.submit(number, request, out), None, vec![0; count * BLOCK])
        } else {
            cdb[0] = 0x2a;
            self.stamp += 1;
            let data = blocks_of(self.stamp, count);
            let request = Request { lun, cdb, transfer: Transfer::Send(&data) };
            (self.session.submit(number, request, out), Some(self.stamp), data)
        };
        let Some(tag) = tag else { return };
        self.left -= 1;
        assert!(self.open.insert(tag, (first, count, stamp, data)).is_none(), "{tag:?} is in use");
        if draw.is(30) {
            let own = Tag(1 << 30 | u32::try_from(self.left).expect("few"));
            self.session.manage(number, own, [1, 0], Some(tag), out);
            self.aborts.insert(own, tag);
        }
    }

    fn take(&mut self, number: u16, wire: &[u8], out: &mut Vec<u8>) -> Result<(), Fatal> {
        let mut input = wire;
        while let Some(answer) = self.session.receive(number, &mut input, out)? {
            match answer {
                Answer::Wants { tag, offset, length } => {
                    let at = offset as usize;
                    let data = self.open[&tag].3[at..at + length as usize].to_vec();
                    self.session.send_data(tag, offset, &data, out);
                }
                Answer::Data(tag, offset, bytes) => {
                    let at = offset as usize;
                    let open = self.open.get_mut(&tag).expect("it is open");
                    open.3[at..at + bytes.len()].copy_from_slice(bytes);
                }
                Answer::Ended(ended) => self.end(ended),
                Answer::Managed { tag, response } => {
                    let meant = self.aborts.remove(&tag).expect("it was asked for");
                    assert_eq!(response == 0, self.open.contains_key(&meant));
                    if response == 0 {
                        self.session.forget(meant);
                        self.lose(meant);
                    }
                }
                Answer::LoggedOut { response } => {
                    assert_eq!(response, 0);
                    self.has_left = true;
                }
                Answer::Rejected { reason } => assert_eq!(reason, 2, "data that was broken"),
                other => panic!("nobody has asked for {other:?}"),
            }
        }
        Ok(())
    }

    fn end(&mut self, ended: Ended) {
        let (first, count, stamp, data) = self.open.remove(&ended.tag).expect("it ends once");
        self.ended += 1;
        if !ended.is_good() {
            // What was broken on its way is never written.
            let is_told = ended.status == Some(Status::CheckCondition);
            assert!(is_told || !ended.is_intact, "{ended:?}");
            return;
        }
        assert_eq!(ended.residual, Residual::None);
        for (index, block) in (first..first + count).zip(data.chunks(BLOCK)) {
            let there = u32::from_le_bytes(block[..4].try_into().expect("four"));
            assert!(block == blocks_of(there, 1), "block {index} is torn");
            match stamp {
                Some(stamp) => self.blocks[index] = vec![stamp],
                None => {
                    assert!(self.blocks[index].contains(&there), "block {index} has {there}");
                    self.blocks[index] = vec![there];
                }
            }
        }
    }

    fn lose_all(&mut self) {
        self.aborts.clear();
        let open: Vec<Tag> = self.open.keys().copied().collect();
        open.into_iter().for_each(|tag| self.lose(tag));
    }

    /// A command has neither succeeded nor failed.
    fn lose(&mut self, tag: Tag) {
        let (first, count, stamp, _) = self.open.remove(&tag).expect("it ends once");
        self.ended += 1;
        if let Some(stamp) = stamp {
            self.blocks[first..first + count].iter_mut().for_each(|may| may.push(stamp));
        }
    }
}

/// Both ends of a new session, of so many connections.
fn connect(draw: &mut Draw, has_digests: bool) -> (Session, Initiator, usize) {
    let mut wishes = || Wishes {
        header_digest: if has_digests { DigestWish::Required } else { DigestWish::Possible },
        data_digest: if has_digests { DigestWish::Required } else { DigestWish::Possible },
        data_bytes: 512 << draw.below(4),
        max_connections: 3,
        initial_r2t: draw.is(2),
        immediate_data: draw.is(2),
        max_burst_bytes: 512 << draw.below(5),
        first_burst_bytes: 512 << draw.below(4),
        max_outstanding_r2t: 2,
    };
    let (own, other) = (wishes(), wishes());
    let count = 1 + draw.below(3);
    let handshake = Handshake::default();
    let (link, entered) = handshake.run(entry_config(own), other).expect("they agree");
    let limits = SessionLimits { commands: DEPTH - 2, immediate: 4 };
    let (mut target, mut initiator) =
        (Session::new(limits, link), Initiator::new(DEPTH, entered.link));
    for cid in 1..count {
        let mut config = entry_config(own);
        config.cid = u16::try_from(cid).expect("few");
        (config.tsih, config.cmd_sn) = (entered.tsih, initiator.cmd_sn());
        let handshake = Handshake { window: Some(target.window()), ..Handshake::default() };
        let (link, entered) = handshake.run(config, other).expect("they agree");
        assert_eq!(target.join(link), initiator.join(entered.link));
    }
    (target, initiator, count)
}

/// Some bytes off the front of a stream, now and then with one changed.
fn piece(draw: &mut Draw, stream: &mut Vec<u8>, breaks: bool) -> Vec<u8> {
    let most = [1, 7, 100, 5000][draw.below(4)];
    let length = draw.below(most + 1).min(stream.len());
    let mut piece: Vec<u8> = stream.drain(..length).collect();
    if breaks && !piece.is_empty() && draw.is(200) {
        let at = draw.below(piece.len());
        piece[at] ^= 1 << draw.below(8);
    }
    piece
}

/// One conversation, of as many sessions as it takes; how many that were.
fn duel(seed: u64, breaks: bool) -> usize {
    let mut draw = Draw(seed * 2 + 1);
    let mut unit = LogicalUnit::new(unit_data(), PersistentReservations::new(false));
    unit.attach(NEXUS, TransportId::iscsi(INITIATOR, [0; 6]).through(1));
    let port = UnitPort { target: TARGET, group: 1, relative: 1, states: &[] };
    let _power_on = unit.begin(NEXUS, &[0; 16], 0, port);
    let (session, initiator, count) = connect(&mut draw, breaks);
    let blocks = vec![0; BLOCKS * BLOCK];
    let input = vec![Vec::new(); count];
    let mut disk = Disk { session, unit, blocks, open: BTreeMap::new(), input };
    let mut host = Host {
        session: initiator,
        blocks: vec![vec![0]; BLOCKS],
        open: BTreeMap::new(),
        aborts: BTreeMap::new(),
        left: COMMANDS,
        ended: 0,
        stamp: 0,
        has_left: false,
    };
    let mut wires: Wires = vec![<[Vec<u8>; 2]>::default(); count];
    let (mut sessions, mut is_leaving) = (1, false);
    for turn in 0.. {
        assert!(turn < 400_000, "seed {seed}: it does not end");
        host.ask(&mut draw, &mut wires);
        let result = turn_of(&mut draw, &mut disk, &mut host, &mut wires, breaks);
        if let Err(fatal) = result {
            assert!(breaks, "seed {seed}: an intact stream was refused: {fatal}");
        }
        if host.has_left {
            break;
        }
        // A broken length may have an end wait for what never comes, until it waits no longer.
        if result.is_err() || (breaks || !is_leaving) && draw.is(2000) {
            disk.crash(&mut draw);
            host.lose_all();
            let (session, initiator, count) = connect(&mut draw, breaks);
            (disk.session, host.session) = (session, initiator);
            disk.input = vec![Vec::new(); count];
            wires = vec![<[Vec<u8>; 2]>::default(); count];
            (sessions, is_leaving) = (sessions + 1, false);
        }
        if host.ended == COMMANDS && host.aborts.is_empty() && !is_leaving {
            is_leaving = true;
            host.session.logout(0, &mut wires[0][0]);
        }
    }
    assert!(host.open.is_empty() && disk.open.is_empty(), "seed {seed}");
    assert_eq!((host.session.outstanding(), disk.session.outstanding()), (0, 0), "seed {seed}");
    sessions
}

fn turn_of(
    draw: &mut Draw,
    disk: &mut Disk,
    host: &mut Host,
    wires: &mut Wires,
    breaks: bool,
) -> Result<(), Fatal> {
    let number = draw.below(wires.len());
    let index = u16::try_from(number).expect("few");
    let [to_target, to_initiator] = &mut wires[number];
    let bytes = piece(draw, to_target, breaks);
    disk.input[number].extend(bytes);
    disk.take(index, to_initiator)?;
    while let Some(ready) = disk.session.ready() {
        disk.take(ready, &mut wires[usize::from(ready)][1])?;
    }
    disk.work(draw, wires);
    let [to_target, to_initiator] = &mut wires[number];
    let bytes = piece(draw, to_initiator, breaks);
    host.take(index, &bytes, to_target)
}

#[test]
fn every_command_ends_once_and_well() {
    let sessions: usize = (0..5000).map(|seed| duel(seed, false)).sum();
    assert!(sessions > 5500, "some are cut: {sessions}");
}

// A broken byte fails its command or ends the session; it never passes for data.
#[test]
fn broken_bytes_are_never_data() {
    let sessions: usize = (0..5000).map(|seed| duel(seed, true)).sum();
    assert!(sessions > 5500, "some headers are broken: {sessions}");
}
