//! An I/O queue of a controller, on one ring.
//!
//! Invariants:
//! - A request ends once. One whose connection was lost has ended as [`Failure::Lost`]: whether it
//!   was done is not known.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::nvme::{
    Answer, Command, Completion, Data, Direction, Fused, HostQueue, Io, Range, Status, Submission,
    Transfer,
};
use sys::block::Block;
use sys::ring::{Completed, Held, Ring};

use crate::backend::{Failure, Operation, Request};
use crate::jobs::Ended;

struct Pending<T> {
    request: Request,
    block: Option<Block>,
    tag: T,
}

/// See the module's description.
pub struct IoQueue<T> {
    socket: Arc<OwnedFd>,
    queue: HostQueue,
    namespace: u32,
    block_shift: u8,
    capsule_bytes: u32,
    /// By identifier.
    pending: Vec<Option<Pending<T>>>,
    input: Vec<u8>,
    out: Vec<u8>,
    spare: Vec<u8>,
    is_sending: bool,
    is_receiving: bool,
    is_lost: bool,
    /// The tokens of its receives and sends: this number, and the next.
    token: u64,
}

const INPUT_BYTES: usize = 256 << 10;
/// Bytes of a range of Dataset Management.
const RANGE_BYTES: usize = 16;

impl<T> IoQueue<T> {
    pub(super) fn new(
        socket: Arc<OwnedFd>,
        queue: HostQueue,
        (namespace, block_shift): (u32, u8),
        capsule_bytes: u32,
        token: u64,
    ) -> Self {
        Self {
            socket,
            queue,
            namespace,
            block_shift,
            capsule_bytes,
            pending: Vec::new(),
            input: vec![0; INPUT_BYTES],
            out: Vec::new(),
            spare: Vec::new(),
            is_sending: false,
            is_receiving: false,
            is_lost: false,
            token,
        }
    }

    /// Requests that have not ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.iter().flatten().count()
    }

    /// As many, counted by the protocol.
    pub(super) fn outstanding(&self) -> usize {
        self.queue.outstanding()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.outstanding() == 0
    }

    /// What those are known by to whoever asked.
    pub(super) fn tags(&self) -> impl Iterator<Item = &T> {
        self.pending.iter().flatten().map(|pending| &pending.tag)
    }

    /// The token of its receives, which is even; that of its sends is the next.
    pub(super) const fn token(&self) -> u64 {
        self.token
    }

    /// Whether the connection is gone.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Whether the kernel has nothing of it.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        !self.is_sending && !self.is_receiving
    }

    /// Asks for something, which [`IoQueue::flush`] sends; its end, if it cannot even be asked.
    /// A request moves as many bytes as the controller takes at most, and its block has them.
    pub fn submit(
        &mut self,
        request: Request,
        mut block: Option<Block>,
        tag: T,
    ) -> Option<Ended<T>> {
        let length = u32::try_from(request.length).unwrap_or(u32::MAX);
        let range = Range {
            first: request.offset >> self.block_shift,
            count: (length >> self.block_shift).max(1),
            forced: matches!(
                request.operation,
                Operation::Write { forced: true } | Operation::Zero { forced: true, .. }
            ),
        };
        let (command, bytes) = match request.operation {
            Operation::Read => (Io::Read(range), 0),
            Operation::Write { .. } => (Io::Write(range), length),
            Operation::Flush => (Io::Flush, 0),
            Operation::Zero { deallocates, .. } => (Io::WriteZeroes { range, deallocates }, 0),
            Operation::Discard => {
                name_range(block.get_or_insert_with(|| Block::new(RANGE_BYTES)), range);
                let one = Io::DatasetManagement { range_count: 1, deallocates: true };
                (one, u32::try_from(RANGE_BYTES).unwrap_or(0))
            }
        };
        let (data, transfer) = match (request.operation, bytes) {
            (Operation::Read, _) => (Data::Transport { length }, Transfer::Receive(length)),
            (_, 0) => (Data::None, Transfer::None),
            (_, length) if length <= self.capsule_bytes => {
                (Data::InCapsule { offset: 0, length }, Transfer::None)
            }
            (_, length) => (Data::Transport { length }, Transfer::Send(length)),
        };
        let submission = Submission {
            cid: 0,
            fused: Fused::No,
            nsid: self.namespace,
            data,
            direction: Direction::None,
            command: Command::Io(command),
        };
        let is_sent = matches!(data, Data::InCapsule { .. });
        let sent = match &block {
            Some(block) if is_sent => &block[..bytes as usize],
            _ => &[],
        };
        let cid = match self.is_lost {
            true => None,
            false => self.queue.submit(submission.write(), sent, transfer, &mut self.out),
        };
        let pending = Pending { request, block, tag };
        let Some(cid) = cid else { return Some(end(pending, Err(Failure::Lost))) };
        let place = usize::from(cid);
        if self.pending.len() <= place {
            self.pending.resize_with(place + 1, || None);
        }
        self.pending[place] = Some(pending);
        None
    }

    /// Lets the kernel have what is to be sent and room for what may come.
    pub fn flush(&mut self, ring: &mut Ring) {
        if self.is_lost {
            return;
        }
        if !self.is_sending && !self.out.is_empty() {
            let bytes = std::mem::replace(&mut self.out, std::mem::take(&mut self.spare));
            ring.send(&self.socket, self.token + 1, bytes, 0);
            self.is_sending = true;
        }
        if !self.is_receiving {
            let input = std::mem::take(&mut self.input);
            ring.receive(&self.socket, self.token, input, 0);
            self.is_receiving = true;
        }
    }

    /// Takes a completion of the ring that has one of its tokens.
    pub fn complete(&mut self, completed: Completed, ended: &mut Vec<Ended<T>>) {
        let Held::Bytes(bytes) = completed.held else { return };
        if completed.token == self.token {
            self.is_receiving = false;
            self.input = bytes;
            match completed.result {
                Ok(count) if count > 0 => self.read(count as usize, ended),
                _ => self.lose(ended),
            }
        } else {
            self.is_sending = false;
            let is_whole = matches!(completed.result, Ok(count) if count as usize == bytes.len());
            self.spare = bytes;
            self.spare.clear();
            if !is_whole {
                self.lose(ended);
            }
        }
    }

    fn read(&mut self, count: usize, ended: &mut Vec<Ended<T>>) {
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..count];
        loop {
            match self.queue.receive(&mut rest) {
                Ok(Some(answer)) => self.hear(answer, ended),
                Ok(None) => break,
                Err(fatal) => {
                    self.queue.terminate(fatal, &mut self.out);
                    self.lose(ended);
                    break;
                }
            }
        }
        self.input = input;
    }

    fn hear(&mut self, answer: Answer<'_>, ended: &mut Vec<Ended<T>>) {
        match answer {
            Answer::Data(cid, offset, bytes) => {
                let from = offset as usize;
                if let Some(Some(Pending { block: Some(block), .. })) =
                    self.pending.get_mut(usize::from(cid))
                    && let Some(room) = block.get_mut(from..from + bytes.len())
                {
                    room.copy_from_slice(bytes);
                }
            }
            Answer::Wants { cid, offset, length } => {
                if let Some(Some(Pending { block: Some(block), .. })) =
                    self.pending.get(usize::from(cid))
                    && let Some(data) = block.get(offset as usize..(offset + length) as usize)
                {
                    self.queue.send_data(cid, offset, data, &mut self.out);
                }
            }
            Answer::Ended(Completion { cid, status, .. }) => {
                if let Some(pending) = self.pending.get_mut(usize::from(cid)).and_then(Option::take)
                {
                    ended.push(end(pending, outcome(status)));
                }
            }
            Answer::Ready { .. } => {}
        }
    }

    /// Ends it. Nobody knows what became of requests that were not answered.
    pub(super) fn lose(&mut self, ended: &mut Vec<Ended<T>>) {
        if self.is_lost {
            return;
        }
        self.is_lost = true;
        // What has not left this machine is not to arrive later.
        if !self.is_empty() {
            sys::stream::forget_unsent(&self.socket);
        }
        sys::stream::shut(&self.socket);
        let lost = self.pending.iter_mut().filter_map(Option::take);
        ended.extend(lost.map(|pending| end(pending, Err(Failure::Lost))));
    }
}

// Attributes, blocks, the first (NVM Command Set 3.2.3).
fn name_range(block: &mut Block, Range { first, count, .. }: Range) {
    block[..4].fill(0);
    block[4..8].copy_from_slice(&count.to_le_bytes());
    block[8..16].copy_from_slice(&first.to_le_bytes());
}

fn end<T>(pending: Pending<T>, result: Result<(), Failure>) -> Ended<T> {
    let Pending { request, block, tag } = pending;
    Ended { request, result, block, tag }
}

const fn outcome(status: Status) -> Result<(), Failure> {
    if status.is_success() {
        return Ok(());
    }
    Err(match () {
        () if status.is(Status::CAPACITY_EXCEEDED) => Failure::NoSpace,
        () if status.is(Status::NAMESPACE_WRITE_PROTECTED) => Failure::WriteProtected,
        () if status.is(Status::LBA_OUT_OF_RANGE) => Failure::OutOfRange,
        () if status.is(Status::UNRECOVERED_READ_ERROR) || status.is(Status::WRITE_FAULT) => {
            Failure::Medium
        }
        () => Failure::Refused(status.bits()),
    })
}
