//! An I/O queue of a controller, on one ring.

use nvme::{
    Answer, Command, Completion, DATASET_RANGE_BYTES, Data, Direction, Fused, HostQueue, Io, Range,
    Status, Submission, Transfer, write_dataset_range,
};
use sys::block::Block;
use sys::ring::{Completed, Ring};

use backend::Ended;
use backend::{Failure, Operation, Request};

use super::pipe::{Moved, Pipe};
use super::reach::{Pending, Queue};

/// See the module's description.
pub(crate) struct IoQueue<T> {
    pipe: Pipe,
    queue: HostQueue,
    namespace: u32,
    block_shift: u8,
    capsule_bytes: u32,
    /// Commands under way, by CID.
    pending: Vec<Option<Pending<T>>>,
    is_lost: bool,
}

impl<T> IoQueue<T> {
    pub(super) const fn new(
        pipe: Pipe,
        queue: HostQueue,
        (namespace, block_shift): (u32, u8),
        capsule_bytes: u32,
    ) -> Self {
        let pending = Vec::new();
        Self { pipe, queue, namespace, block_shift, capsule_bytes, pending, is_lost: false }
    }

    // Decodes received bytes.
    fn read(&mut self, mut rest: &[u8], ended: &mut Vec<Ended<T>>) {
        loop {
            match self.queue.receive(&mut rest) {
                Ok(Some(answer)) => self.hear(answer, ended),
                Ok(None) => break,
                Err(fatal) => {
                    self.queue.terminate(fatal, &mut self.pipe.out);
                    self.lose_all(ended);
                    break;
                }
            }
        }
    }

    // Acts on an answer of the controller.
    fn hear(&mut self, answer: Answer<'_>, ended: &mut Vec<Ended<T>>) {
        match answer {
            Answer::Data(cid, offset, bytes) => {
                if let Some(Some(pending)) = self.pending.get_mut(usize::from(cid)) {
                    pending.fill(offset, bytes);
                }
            }
            Answer::Wants { cid, offset, length } => {
                if let Some(Some(pending)) = self.pending.get(usize::from(cid))
                    && let Some(data) = pending.bytes(offset, length)
                {
                    self.queue.send_data(cid, offset, data, &mut self.pipe.out);
                }
            }
            Answer::Ended(Completion { cid, status, .. }) => {
                if let Some(pending) = self.pending.get_mut(usize::from(cid)).and_then(Option::take)
                {
                    ended.push(pending.end(outcome(status)));
                }
            }
            Answer::Ready { .. } => {}
        }
    }

    // Closes the connection, and ends all commands as lost.
    fn lose_all(&mut self, ended: &mut Vec<Ended<T>>) {
        if self.is_lost {
            return;
        }
        self.is_lost = true;
        self.pipe.cut(self.queue.outstanding() > 0);
        let lost = self.pending.iter_mut().filter_map(Option::take);
        ended.extend(lost.map(|pending| pending.end(Err(Failure::Lost))));
    }
}

impl<T: Send> Queue<T> for IoQueue<T> {
    fn submit(&mut self, request: Request, mut block: Option<Block>, tag: T) -> Option<Ended<T>> {
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
                let block = block.get_or_insert_with(|| Block::new(DATASET_RANGE_BYTES));
                write_dataset_range(block, range.first, range.count);
                let one = Io::DatasetManagement { range_count: 1, deallocates: true };
                (one, u32::try_from(DATASET_RANGE_BYTES).unwrap_or(0))
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
            false => self.queue.submit(submission.write(), sent, transfer, &mut self.pipe.out),
        };
        let pending = Pending { request, block, tag };
        let Some(cid) = cid else { return Some(pending.end(Err(Failure::Lost))) };
        let place = usize::from(cid);
        if self.pending.len() <= place {
            self.pending.resize_with(place + 1, || None);
        }
        self.pending[place] = Some(pending);
        None
    }

    fn flush(&mut self, ring: &mut Ring) {
        if !self.is_lost {
            self.pipe.flush(ring);
        }
    }

    fn has(&self, token: u64) -> bool {
        self.pipe.has(token)
    }

    fn complete(&mut self, completed: Completed, _now_ns: u64, ended: &mut Vec<Ended<T>>) {
        match self.pipe.complete(completed) {
            Moved::Came(input, count) => {
                self.read(&input[..count], ended);
                self.pipe.give_back(input);
            }
            Moved::Went => {}
            Moved::Broken => self.lose_all(ended),
        }
    }

    fn outstanding(&self) -> usize {
        self.queue.outstanding()
    }

    fn any(&self, is_like: &dyn Fn(&T) -> bool) -> bool {
        self.pending.iter().flatten().any(|pending| is_like(&pending.tag))
    }

    fn lose(&mut self, ended: &mut Vec<Ended<T>>) {
        self.lose_all(ended);
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn is_idle(&self) -> bool {
        self.pipe.is_idle()
    }
}

// The result of a command with this status.
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
