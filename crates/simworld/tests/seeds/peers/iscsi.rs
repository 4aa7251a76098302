//! An initiator over iSCSI, with one connection.

use std::collections::BTreeMap;
use std::time::Duration;

use scsi::iscsi::{
    Answer, Ended as TaskEnded, Entry, EntryConfig, Initiator, Nonce, Request, Tag, Transfer,
    Wishes,
};
use scsi::{Extent, Sense, Status, ask};
use sys::stream::Stream;
use sys::world::World;

use super::{BLOCK, DEPTH, Ended, Op, Peer, Reply, length};

/// What is under way.
struct Pending {
    data: Vec<u8>,
    read: Vec<u8>,
    number: u64,
}

pub(crate) struct IscsiPeer {
    stream: Stream,
    initiator: Initiator,
    input: Vec<u8>,
    pending: BTreeMap<Tag, Pending>,
    /// Commands that are being aborted, by the tags of the requests.
    aborts: BTreeMap<Tag, Tag>,
    begun: u64,
    told: Vec<Ended>,
}

const PATIENCE: Duration = Duration::from_secs(10);
/// Tags of requests to manage tasks begin here: no command has them.
const MANAGING: u32 = 0x4000_0000;

impl IscsiPeer {
    pub(crate) fn connect(world: &dyn World, address: &str, target: &str, who: u8) -> Option<Self> {
        let stream = world.dial(address, PATIENCE).ok()?;
        stream.wait_to_read(Some(PATIENCE)).ok()?;
        let config = EntryConfig {
            initiator: format!("iqn.2026-11.example:peer{who}"),
            target: Some(target.to_owned()),
            isid: [0x40, 0, 0, 0, 0, who],
            tsih: 0,
            cid: 0,
            cmd_sn: 1,
            wishes: Wishes::default(),
            chap: None,
            algorithms: Vec::new(),
            nonce: Nonce { id: 0, challenge: [0; 32] },
        };
        let mut out = Vec::new();
        let mut entry = Entry::begin(config, &mut out);
        let mut input = Vec::new();
        let entered = loop {
            stream.write_all(&std::mem::take(&mut out)).ok()?;
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
            input.extend_from_slice(&bytes[..count]);
            let mut rest = &input[..];
            let entered = entry.receive(&mut rest, &mut out).ok()?;
            let used = input.len() - rest.len();
            input.drain(..used);
            if let Some(entered) = entered {
                break entered;
            }
        };
        let initiator = Initiator::new(DEPTH, entered.link);
        let (pending, aborts, told) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut peer = Self { stream, initiator, input, pending, aborts, begun: 0, told };
        // It is told what has happened before.
        peer.begin_cdb(ask::TEST_UNIT_READY, &[], 0)?;
        while !peer.pending.is_empty() {
            peer.hear()?;
        }
        peer.told.clear();
        Some(peer)
    }

    fn begin_cdb(&mut self, cdb: ask::Cdb, data: &[u8], reads: u32) -> Option<u64> {
        let transfer = match (reads, data.len()) {
            (0, 0) => Transfer::None,
            (0, _) => Transfer::Send(data),
            _ => Transfer::Receive(reads),
        };
        let mut out = Vec::new();
        let tag = self.initiator.submit(0, Request { lun: [0; 8], cdb, transfer }, &mut out)?;
        self.begun += 1;
        let read = vec![0; reads as usize];
        self.pending.insert(tag, Pending { data: data.to_vec(), read, number: self.begun });
        let _gone = self.stream.write_all(&out);
        Some(self.begun)
    }

    // Takes what has come whole.
    fn take_all(&mut self) -> Option<()> {
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        let (mut out, mut wanted) = (Vec::new(), Vec::new());
        while let Some(answer) = self.initiator.receive(0, &mut rest, &mut out).ok()? {
            match answer {
                Answer::Data(tag, offset, bytes) => {
                    let from = offset as usize;
                    let pending = self.pending.get_mut(&tag)?;
                    pending.read[from..from + bytes.len()].copy_from_slice(bytes);
                }
                Answer::Wants { tag, offset, length } => wanted.push((tag, offset, length)),
                Answer::Ended(ended) => {
                    let pending = self.pending.remove(&ended.tag).expect("it is answered once");
                    self.told.push((pending.number, reply(&ended, pending.read)));
                }
                Answer::Managed { tag, .. } => {
                    // The command was answered before, or never is (RFC 7143 11.5.1).
                    let of = self.aborts.remove(&tag)?;
                    if let Some(pending) = self.pending.remove(&of) {
                        self.initiator.forget(of);
                        self.told.push((pending.number, Reply::Aborted));
                    }
                }
                Answer::LoggedOut { .. } | Answer::Rejected { .. } => return None,
                Answer::Event(_) | Answer::Pong | Answer::Targets(_) => {}
            }
        }
        self.input = rest.to_vec();
        for (tag, offset, length) in wanted {
            if let Some(pending) = self.pending.get(&tag) {
                let piece = &pending.data[offset as usize..(offset + length) as usize];
                self.initiator.send_data(tag, offset, piece, &mut out);
            }
        }
        self.stream.write_all(&out).ok()
    }

    fn reserve(&mut self, action: u8, kind: u8, [own, other]: [u64; 2]) -> Option<u64> {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[2], cdb[8]) = (0x5f, action, kind, 24);
        let mut parameters = [0; 24];
        parameters[..8].copy_from_slice(&own.to_be_bytes());
        parameters[8..16].copy_from_slice(&other.to_be_bytes());
        self.begin_cdb(cdb, &parameters, 0)
    }
}

fn reply(ended: &TaskEnded, read: Vec<u8>) -> Reply {
    match (ended.status, ended.sense) {
        _ if ended.is_good() => Reply::Done(read),
        (Some(Status::ReservationConflict), _) => Reply::Conflict,
        (Some(Status::TaskAborted), _) => Reply::Aborted,
        (_, Some(sense)) if sense.code == Sense::MISCOMPARE.code => Reply::Miscompare,
        // Something has happened before; this was not done (SAM-5 5.14).
        (_, Some(sense)) if sense.key == scsi::SenseKey::UnitAttention => Reply::Conflict,
        (status, sense) => Reply::Failed(format!("{status:?}, {sense:?}")),
    }
}

impl Peer for IscsiPeer {
    fn begin(&mut self, op: &Op) -> Option<u64> {
        if self.pending.len() + 1 >= usize::from(DEPTH) {
            return None;
        }
        let extent = |first: u64, count, forced| Extent { first, count, forced };
        match op {
            Op::Read { first, count } => {
                self.begin_cdb(ask::read(extent(*first, *count, false)), &[], count * BLOCK)
            }
            Op::Write { first, forced, data } => {
                let extent = extent(*first, length(data) / BLOCK, *forced);
                self.begin_cdb(ask::write(extent), data, 0)
            }
            Op::Zero { first, count } => {
                let zeros = [0; BLOCK as usize];
                self.begin_cdb(ask::write_same(extent(*first, *count, false), false), &zeros, 0)
            }
            Op::Flush => self.begin_cdb(ask::SYNCHRONIZE_CACHE, &[], 0),
            Op::Swap { block, old, new } => {
                let mut cdb = [0; 16];
                (cdb[0], cdb[13]) = (0x89, 1);
                cdb[2..10].copy_from_slice(&block.to_be_bytes());
                self.begin_cdb(cdb, &[&old[..], &new[..]].concat(), 0)
            }
            // 06h: whatever it was registered with; 5: registrants only.
            Op::Register(key) => self.reserve(6, 0, [0, *key]),
            Op::Acquire(key) => self.reserve(1, 5, [*key, 0]),
            Op::Preempt { own, other } => self.reserve(5, 5, [*own, *other]),
        }
    }

    fn hear(&mut self) -> Option<Vec<Ended>> {
        let mut bytes = [0; 16 << 10];
        let count = self.stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
        self.input.extend_from_slice(&bytes[..count]);
        self.take_all()?;
        Some(std::mem::take(&mut self.told))
    }

    fn abort(&mut self, number: u64) -> bool {
        let tag = self.pending.iter().find(|(_, one)| one.number == number).map(|(tag, _)| *tag);
        let Some(tag) = tag else { return true };
        self.begun += 1;
        let own = Tag(MANAGING + u32::try_from(self.begun).unwrap_or(0));
        self.aborts.insert(own, tag);
        let mut out = Vec::new();
        // 1: ABORT TASK.
        self.initiator.manage(0, own, [1, 0], Some(tag), &mut out);
        self.stream.write_all(&out).is_ok()
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }
}
