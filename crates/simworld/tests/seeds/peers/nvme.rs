//! A host over NVMe/TCP: an admin queue, and one I/O queue.

use std::collections::BTreeMap;
use std::time::Duration;

use nvme::{
    Admin, Answer, Command, Completion, ConnectData, Data, Digests, Direction, Fabrics, Fused,
    HostQueue, Io, Nqn, Property, Range, Status, Submission, Transfer,
};
use sys::stream::Stream;
use sys::world::World;

use super::{BLOCK, DEPTH, Ended, Op, Peer, Reply, length};

/// One connection, on which something can be waited for.
struct Line {
    stream: Stream,
    queue: HostQueue,
    input: Vec<u8>,
    unread: [usize; 2],
}

/// What is under way.
struct Pending {
    data: Vec<u8>,
    read: Vec<u8>,
    number: u64,
    /// Its end says nothing: it is the first of two.
    is_first: bool,
}

pub(crate) struct NvmePeer {
    admin: Line,
    io: Line,
    pending: BTreeMap<u16, Pending>,
    begun: u64,
    /// Data is moved by PDUs of its own in half of the commands.
    in_capsules: bool,
}

const PATIENCE: Duration = Duration::from_secs(10);

fn name(text: &str) -> Nqn {
    Nqn::new(text).expect("it is a name")
}

impl Line {
    fn connect(world: &dyn World, address: &str) -> Option<Self> {
        let stream = world.dial(address, PATIENCE).ok()?;
        stream.wait_to_read(Some(PATIENCE)).ok()?;
        let mut out = Vec::new();
        let digests = Digests { header: false, data: false };
        let queue = HostQueue::begin(DEPTH, digests, &mut out);
        let mut line = Self { stream, queue, input: vec![0; 16 << 10], unread: [0, 0] };
        line.stream.write_all(&out).ok()?;
        while !matches!(line.next()?, Some(true)) {
            line.fill()?;
        }
        Some(line)
    }

    // Whether the connection is ready now; nothing is said before that.
    #[expect(clippy::option_option, reason = "nothing yet, or no more")]
    fn next(&mut self) -> Option<Option<bool>> {
        let [start, end] = self.unread;
        let mut rest = &self.input[start..end];
        let answer = self.queue.receive(&mut rest).ok()?;
        let is_ready = answer.map(|answer| matches!(answer, Answer::Ready { .. }));
        self.unread[0] = end - rest.len();
        Some(is_ready)
    }

    fn fill(&mut self) -> Option<()> {
        let count = self.stream.read(&mut self.input).ok().filter(|count| *count > 0)?;
        self.unread = [0, count];
        Some(())
    }

    // Asks, and waits for the end.
    fn ask(&mut self, submission: &Submission, sent: &[u8]) -> Option<Completion> {
        let mut out = Vec::new();
        let cid = self.queue.submit(submission.write(), sent, Transfer::None, &mut out)?;
        self.stream.write_all(&out).ok()?;
        loop {
            let [start, end] = self.unread;
            let mut rest = &self.input[start..end];
            let answer = self.queue.receive(&mut rest).ok()?;
            let ended = match answer {
                Some(Answer::Ended(completion)) if completion.cid == cid => Some(completion),
                _ => None,
            };
            let is_over = answer.is_none();
            self.unread[0] = end - rest.len();
            if ended.is_some() {
                return ended;
            }
            if is_over {
                self.fill()?;
            }
        }
    }

    fn connect_queue(&mut self, subsystem: &str, who: u8, ids: [u16; 2]) -> Option<u16> {
        let [queue, controller_id] = ids;
        let size = DEPTH;
        let connect =
            Fabrics::Connect { format: 0, queue, size, attributes: 0, keep_alive_ms: 2000 };
        let host = name(&format!("nqn.2026-11.example:peer{who}"));
        let subsystem = name(subsystem);
        let data = ConnectData { host_id: [who; 16], controller_id, subsystem, host }.write();
        let place = Data::InCapsule { offset: 0, length: length(&data) };
        let asked = submission(Command::Fabrics(connect), 0, place, Direction::ToController);
        let ended = self.ask(&asked, &data)?;
        ended.status.is_success().then(|| u16::try_from(ended.result & 0xffff).unwrap_or(0))
    }
}

const fn submission(command: Command, nsid: u32, data: Data, direction: Direction) -> Submission {
    Submission { cid: 0, fused: Fused::No, nsid, data, direction, command }
}

impl NvmePeer {
    pub(crate) fn connect(
        world: &dyn World,
        address: &str,
        subsystem: &str,
        who: u8,
    ) -> Option<Self> {
        let mut admin = Line::connect(world, address)?;
        let controller = admin.connect_queue(subsystem, who, [0, 0xffff])?;
        let property = Property { offset: 0x14, is_wide: false };
        let enable = Fabrics::PropertySet { property, value: 0x0046_0001 };
        let enable = submission(Command::Fabrics(enable), 0, Data::None, Direction::None);
        admin.ask(&enable, &[]).filter(|ended| ended.status.is_success())?;
        let mut io = Line::connect(world, address)?;
        io.connect_queue(subsystem, who, [1, controller])?;
        Some(Self { admin, io, pending: BTreeMap::new(), begun: 0, in_capsules: false })
    }

    fn submit(&mut self, io: Io, fused: Fused, data: &[u8], reads: u32) -> Option<()> {
        self.in_capsules = !self.in_capsules;
        let is_inside = self.in_capsules || !matches!(io, Io::Write(_)) || fused != Fused::No;
        let (place, transfer, direction) = match (reads, data.len()) {
            (0, 0) => (Data::None, Transfer::None, Direction::None),
            (0, _) if is_inside => (
                Data::InCapsule { offset: 0, length: length(data) },
                Transfer::None,
                Direction::ToController,
            ),
            (0, _) => (
                Data::Transport { length: length(data) },
                Transfer::Send(length(data)),
                Direction::ToController,
            ),
            _ => (Data::Transport { length: reads }, Transfer::Receive(reads), Direction::ToHost),
        };
        let asked = Submission { fused, ..submission(Command::Io(io), 1, place, direction) };
        let inside = if matches!(place, Data::InCapsule { .. }) { data } else { &[] };
        let mut out = Vec::new();
        let cid = self.io.queue.submit(asked.write(), inside, transfer, &mut out)?;
        let read = vec![0; reads as usize];
        let is_first = fused == Fused::First;
        let pending = Pending { data: data.to_vec(), read, number: self.begun, is_first };
        self.pending.insert(cid, pending);
        // What cannot be sent is not answered: the end of the connection is heard.
        let _gone = self.io.stream.write_all(&out);
        Some(())
    }

    fn take(&mut self) -> Option<Option<Ended>> {
        let [start, end] = self.io.unread;
        let mut rest = &self.io.input[start..end];
        let answer = self.io.queue.receive(&mut rest).ok()?;
        let left = rest.len();
        let mut wanted = None;
        let ended = match answer {
            None => {
                self.io.unread = [end, end];
                return Some(None);
            }
            Some(Answer::Data(cid, offset, bytes)) => {
                let pending = self.pending.get_mut(&cid)?;
                let from = offset as usize;
                pending.read[from..from + bytes.len()].copy_from_slice(bytes);
                None
            }
            Some(Answer::Wants { cid, offset, length }) => {
                wanted = Some((cid, offset, length));
                None
            }
            Some(Answer::Ended(completion)) => {
                let pending = self.pending.remove(&completion.cid).expect("it is answered once");
                (!pending.is_first)
                    .then(|| (pending.number, reply(completion.status, pending.read)))
            }
            Some(Answer::Ready { .. }) => None,
        };
        self.io.unread[0] = end - left;
        if let Some((cid, offset, length)) = wanted {
            let data = &self.pending.get(&cid)?.data;
            let piece = data[offset as usize..(offset + length) as usize].to_vec();
            let mut out = Vec::new();
            self.io.queue.send_data(cid, offset, &piece, &mut out);
            self.io.stream.write_all(&out).ok()?;
        }
        Some(Some(ended.unwrap_or((0, Reply::Aborted))))
    }
}

fn reply(status: Status, read: Vec<u8>) -> Reply {
    match status {
        _ if status.is_success() => Reply::Done(read),
        _ if status.is(Status::RESERVATION_CONFLICT) => Reply::Conflict,
        _ if status.is(Status::ABORTED_FAILED_FUSED) => Reply::Miscompare,
        _ if status.is(Status::ABORTED_BY_REQUEST) || status.is(Status::ABORTED_PREEMPT) => {
            Reply::Aborted
        }
        _ => Reply::Failed(format!("{status:?}")),
    }
}

fn keys(keys: [u64; 2]) -> Vec<u8> {
    keys.iter().flat_map(|key| key.to_le_bytes()).collect()
}

impl Peer for NvmePeer {
    fn begin(&mut self, op: &Op) -> Option<u64> {
        if self.pending.len() + 2 > usize::from(DEPTH) - 1 {
            return None;
        }
        self.begun += 1;
        let range = |first, count, forced| Range { first, count, forced };
        let blocks = |data: &[u8]| length(data) / BLOCK;
        match op {
            Op::Read { first, count } => {
                self.submit(Io::Read(range(*first, *count, false)), Fused::No, &[], count * BLOCK)
            }
            Op::Write { first, forced, data } => {
                let write = Io::Write(range(*first, blocks(data), *forced));
                self.submit(write, Fused::No, data, 0)
            }
            Op::Zero { first, count } => {
                let range = range(*first, *count, false);
                self.submit(Io::WriteZeroes { range, deallocates: false }, Fused::No, &[], 0)
            }
            Op::Flush => self.submit(Io::Flush, Fused::No, &[], 0),
            Op::Swap { block, old, new } => {
                let one = range(*block, 1, false);
                self.submit(Io::Compare(one), Fused::First, old, 0)?;
                self.submit(Io::Write(one), Fused::Second, new, 0)
            }
            Op::Register(key) => {
                let io = Io::ReservationRegister { action: 0, ignores_key: true, persistence: 0 };
                self.submit(io, Fused::No, &keys([0, *key]), 0)
            }
            Op::Acquire(key) => {
                let io = Io::ReservationAcquire { action: 0, ignores_key: false, kind: 3 };
                self.submit(io, Fused::No, &keys([*key, 0]), 0)
            }
            Op::Preempt { own, other } => {
                let io = Io::ReservationAcquire { action: 2, ignores_key: false, kind: 3 };
                self.submit(io, Fused::No, &keys([*own, *other]), 0)
            }
        }?;
        Some(self.begun)
    }

    fn hear(&mut self) -> Option<Vec<Ended>> {
        let mut all = Vec::new();
        self.io.fill()?;
        while let Some(ended) = self.take()? {
            all.extend(Some(ended).filter(|(number, _)| *number > 0));
        }
        Some(all)
    }

    fn abort(&mut self, number: u64) -> bool {
        let cid = self.pending.iter().find(|(_, one)| one.number == number).map(|(cid, _)| *cid);
        let Some(cid) = cid else { return true };
        let abort = Command::Admin(Admin::Abort { queue: 1, cid });
        self.admin.ask(&submission(abort, 0, Data::None, Direction::None), &[]).is_some()
    }

    fn stream(&self) -> &Stream {
        &self.io.stream
    }
}
