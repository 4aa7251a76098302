//! Requests to a disk, cut into pieces that each lie in one lane and fit one command.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::block::Block;

use backend::pool::{Account, Pool, Terms};
use backend::{Failure, Operation, Request};

use super::ghosts::Ghost;
use super::hazards::Span;

/// Consecutive bytes of a disk that belong to one lane.
pub(super) const STRIPE_BYTES: u64 = 4 << 20;
/// Bytes of freed memory that the pool keeps for reuse.
const POOL_KEEPS: usize = 8 << 20;

/// Called once with the result: the data that was read, empty for other operations.
pub type Done = Box<dyn FnOnce(Result<&[u8], Failure>) + Send>;

/// Memory for the data of pieces, shared by all threads.
pub(super) struct Memory(Mutex<Pool>);

/// Properties of a disk that shape its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// A block has two to the power of this many bytes.
    pub(crate) block_shift: u8,
    /// Bytes that a command transfers at most.
    pub(crate) transfer_bytes: u32,
    /// Write Zeroes (WRITE SAME) is supported; it can also deallocate.
    pub(crate) has_write_zeroes: bool,
    pub(crate) zeroes_deallocate: bool,
    /// Dataset Management (UNMAP) is supported; deallocated blocks read as zeros.
    pub(crate) has_dataset_management: bool,
    pub(crate) reads_zeros: bool,
}

/// The next command of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Read its blocks, because it changes only parts of them.
    Fetch,
    /// The requested operation.
    Do,
    /// Deallocate its blocks, which are zeros now.
    GiveBack,
}

/// A part of a request.
pub(crate) struct Piece {
    pub(super) operation: Operation,
    pub(super) step: Step,
    /// Its range in bytes; reads and writes need not be aligned to blocks.
    pub(super) span: Span,
    /// The range in bytes of the whole blocks around it.
    pub(super) blocks: Span,
    /// Memory for those blocks.
    pub(super) block: Option<Block>,
    /// Data to write that is not in `block` yet, for an unaligned write.
    patch: Option<Box<[u8]>>,
    /// Whether the blocks are deallocated after they were zeroed.
    gives_back: bool,
    whole: Arc<Whole>,
    /// When it was sent, by the monotonic clock.
    pub(super) sent_ns: u64,
    /// Copies of it that were lost and may still be done.
    pub(super) ghosts: Vec<Ghost>,
    pub(super) failure_count: u8,
}

/// The request that pieces belong to.
struct Whole(Mutex<Rest>);

struct Rest {
    /// How many pieces have not ended.
    left: usize,
    /// The failure of the first piece that failed.
    failure: Option<Failure>,
    /// The data of a read in several pieces, and the request's offset.
    read: Vec<u8>,
    offset: u64,
    done: Option<Done>,
}

impl Memory {
    pub(super) fn new() -> Self {
        // The callers' requests bound the memory.
        let terms = Terms { share: usize::MAX, common: 0, keeps: POOL_KEEPS };
        Self(Mutex::new(Pool::new(terms)))
    }

    // Locks the pool.
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for a span of bytes.
    pub(super) fn lend(&self, [start, end]: Span) -> Block {
        self.pool().lend_anyway(Account::NOBODY, length(end - start))
    }

    /// Frees memory.
    pub(super) fn give(&self, block: Option<Block>) {
        block.into_iter().for_each(|block| self.pool().give(Account::NOBODY, block));
    }
}

// A number of bytes as a length in memory.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a piece fits in memory")
}

/// The pieces of a request inside the disk, in order; `data` is what is written.
pub(super) fn pieces(
    request: &Request,
    data: &[u8],
    done: Done,
    shape: &Shape,
    memory: &Memory,
) -> Vec<Piece> {
    let spans = spans(request, shape);
    if spans.is_empty() {
        done(Ok(&[]));
        return Vec::new();
    }
    let is_read = request.operation == Operation::Read;
    let several = if is_read && spans.len() > 1 { length(request.length) } else { 0 };
    let rest = Rest {
        left: spans.len(),
        failure: None,
        read: vec![0; several],
        offset: request.offset,
        done: Some(done),
    };
    let whole = Arc::new(Whole(Mutex::new(rest)));
    let piece = |(operation, span): (Operation, Span)| {
        let from = length(span[0] - request.offset);
        let data = data.get(from..from + length(span[1] - span[0])).unwrap_or_default();
        Piece::new(operation, span, data, &whole, shape, memory)
    };
    spans.into_iter().map(piece).collect()
}

// Cuts a request at stripes; data also at the size of a command; zeros into whole blocks and
// written edges.
fn spans(request: &Request, shape: &Shape) -> Vec<(Operation, Span)> {
    let Request { operation, offset, length } = *request;
    let end = offset + length;
    if operation == Operation::Flush {
        return vec![(operation, [offset, offset])];
    }
    let cut = |operation: Operation, [start, end]: Span, bytes: u64| {
        let first = start / bytes;
        let pieces = (first..end.div_ceil(bytes).max(first))
            .map(move |at| [start.max(at * bytes), end.min((at + 1) * bytes)]);
        pieces.filter(|[start, end]| start < end).map(move |span| (operation, span))
    };
    let data_bytes = STRIPE_BYTES.min(u64::from(shape.transfer_bytes));
    let written = |forced| Operation::Write { forced };
    match operation {
        Operation::Zero { forced, .. } if !shape.has_write_zeroes => {
            cut(written(forced), [offset, end], data_bytes).collect()
        }
        Operation::Zero { forced, .. } => {
            let [first, last] = shape.inner([offset, end]);
            let edge = |span| cut(written(forced), span, data_bytes);
            let inner = cut(operation, [first, last], STRIPE_BYTES);
            edge([offset, first]).chain(inner).chain(edge([last, end])).collect()
        }
        // Parts of blocks cannot be deallocated.
        Operation::Discard => cut(operation, shape.inner([offset, end]), STRIPE_BYTES).collect(),
        _ => cut(operation, [offset, end], data_bytes).collect(),
    }
}

impl Shape {
    /// The properties that both have.
    pub(super) fn and(self, other: &Self) -> Self {
        Self {
            block_shift: self.block_shift,
            transfer_bytes: self.transfer_bytes.min(other.transfer_bytes),
            has_write_zeroes: self.has_write_zeroes && other.has_write_zeroes,
            zeroes_deallocate: self.zeroes_deallocate && other.zeroes_deallocate,
            has_dataset_management: self.has_dataset_management && other.has_dataset_management,
            reads_zeros: self.reads_zeros && other.reads_zeros,
        }
    }

    /// Whether it has all properties of another.
    pub(super) fn has_all_of(&self, other: &Self) -> bool {
        other.and(self) == *other
    }

    const fn block_bytes(&self) -> u64 {
        1 << self.block_shift
    }

    // The whole blocks inside a span; an empty span at its end if there are none.
    fn inner(&self, [start, end]: Span) -> Span {
        let (first, last) =
            (start.next_multiple_of(self.block_bytes()), end & !(self.block_bytes() - 1));
        if first < last { [first, last] } else { [end, end] }
    }

    // The blocks that lie at least partly inside a span.
    const fn outer(&self, [start, end]: Span) -> Span {
        [start & !(self.block_bytes() - 1), end.next_multiple_of(self.block_bytes())]
    }
}

impl Piece {
    fn new(
        operation: Operation,
        span: Span,
        data: &[u8],
        whole: &Arc<Whole>,
        shape: &Shape,
        memory: &Memory,
    ) -> Self {
        let blocks = shape.outer(span);
        let bytes = length(span[1] - span[0]);
        let is_partial = blocks != span;
        let (mut block, mut patch) = (None, None);
        match operation {
            Operation::Read => block = Some(memory.lend(blocks)),
            Operation::Write { .. } => {
                let mut room = memory.lend(blocks);
                if is_partial {
                    let mut bytes = vec![0; bytes].into_boxed_slice();
                    bytes[..data.len()].copy_from_slice(data);
                    patch = Some(bytes);
                } else {
                    // Without data the piece writes zeros.
                    room[..data.len()].copy_from_slice(data);
                    room[data.len()..bytes].fill(0);
                }
                block = Some(room);
            }
            Operation::Flush | Operation::Zero { .. } | Operation::Discard => {}
        }
        let deallocates = matches!(operation, Operation::Zero { deallocates: true, .. });
        // If Write Zeroes cannot deallocate, the zeroed blocks are deallocated afterwards, provided
        // that they then still read as zeros.
        let gives_back = deallocates
            && !shape.zeroes_deallocate
            && shape.reads_zeros
            && shape.has_dataset_management;
        Self {
            operation,
            step: if patch.is_some() { Step::Fetch } else { Step::Do },
            span,
            blocks,
            block,
            patch,
            gives_back,
            whole: Arc::clone(whole),
            sent_ns: 0,
            ghosts: Vec::new(),
            failure_count: 0,
        }
    }

    /// Whether the piece changes blocks.
    pub(super) const fn is_change(&self) -> bool {
        !matches!(self.operation, Operation::Read | Operation::Flush)
    }

    /// The request for the current step.
    pub(super) const fn request(&self, shape: &Shape) -> Request {
        let [offset, end] = self.blocks;
        let operation = match (self.step, self.operation) {
            (Step::Fetch, _) => Operation::Read,
            (Step::GiveBack, _) => Operation::Discard,
            (Step::Do, Operation::Zero { deallocates, forced }) => {
                Operation::Zero { deallocates: deallocates && shape.zeroes_deallocate, forced }
            }
            (Step::Do, operation) => operation,
        };
        Request { operation, offset, length: end - offset }
    }

    /// Goes to the next step after one has succeeded. Returns whether there is one.
    pub(super) fn advance(&mut self) -> bool {
        match self.step {
            Step::Fetch => {
                if let (Some(block), Some(patch)) = (&mut self.block, self.patch.take()) {
                    let from = length(self.span[0] - self.blocks[0]);
                    block[from..from + patch.len()].copy_from_slice(&patch);
                }
                self.step = Step::Do;
                true
            }
            Step::Do if self.gives_back => {
                self.step = Step::GiveBack;
                true
            }
            Step::Do | Step::GiveBack => false,
        }
    }

    /// Ends the piece, and the request if it was the last one.
    pub(super) fn end(mut self, result: Result<(), Failure>, memory: &Memory) {
        let block = self.block.take();
        let is_read = self.operation == Operation::Read;
        let from = length(self.span[0] - self.blocks[0]);
        let bytes = length(self.span[1] - self.span[0]);
        let read = block.as_deref().filter(|_| is_read).and_then(|all| all.get(from..from + bytes));
        let read = read.unwrap_or_default();
        let mut rest = self.whole.0.lock().unwrap_or_else(PoisonError::into_inner);
        rest.left -= 1;
        let result = rest.failure.map_or(result, Err);
        rest.failure = result.err();
        let at = length(self.span[0] - rest.offset);
        if let Some(room) = rest.read.get_mut(at..at + read.len()) {
            room.copy_from_slice(read);
        }
        if rest.left == 0
            && let Some(done) = rest.done.take()
        {
            let all = std::mem::take(&mut rest.read);
            // `done` may submit the next request, so the lock is released first.
            drop(rest);
            done(result.map(|()| if all.is_empty() { read } else { &all }));
        } else {
            drop(rest);
        }
        memory.give(block);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const SHAPE: Shape = Shape {
        block_shift: 9,
        transfer_bytes: 1 << 20,
        has_write_zeroes: true,
        zeroes_deallocate: true,
        has_dataset_management: true,
        reads_zeros: true,
    };
    const WRITE: Operation = Operation::Write { forced: false };
    const ZERO: Operation = Operation::Zero { deallocates: true, forced: false };

    fn spans_of(operation: Operation, offset: u64, length: u64) -> Vec<(Operation, Span)> {
        spans(&Request { operation, offset, length }, &SHAPE)
    }

    #[test]
    fn pieces_follow_one_another_and_fit() {
        let mut draw = workload::Draw::new(3);
        for operation in [Operation::Read, WRITE, ZERO] {
            for _ in 0..2000 {
                let (offset, length) = (draw.below(1 << 24), 1 + draw.below(10 << 20));
                let mut at = offset;
                for (of, [start, end]) in spans_of(operation, offset, length) {
                    assert_eq!(start, at);
                    assert!(start < end, "nothing is asked for nothing");
                    assert_eq!(start / STRIPE_BYTES, (end - 1) / STRIPE_BYTES);
                    let [first, last] = SHAPE.outer([start, end]);
                    let most = if of == ZERO { STRIPE_BYTES } else { 1 << 20 };
                    assert!(last - first <= most);
                    assert!(of == operation || operation == ZERO && of == WRITE);
                    assert!(of != ZERO || [first, last] == [start, end], "whole blocks");
                    at = end;
                }
                assert_eq!(at, offset + length);
            }
        }
    }

    #[test]
    fn zeros_are_written_around_whole_blocks() {
        assert_eq!(spans_of(ZERO, 512, 1024), [(ZERO, [512, 1536])]);
        assert_eq!(spans_of(ZERO, 500, 20), [(WRITE, [500, 520])]);
        assert_eq!(
            spans_of(ZERO, 500, 1100),
            [(WRITE, [500, 512]), (ZERO, [512, 1536]), (WRITE, [1536, 1600])]
        );
        assert_eq!(spans_of(Operation::Discard, 500, 1100), [(Operation::Discard, [512, 1536])]);
        assert_eq!(spans_of(Operation::Discard, 500, 20), []);
        let none = Shape { has_write_zeroes: false, ..SHAPE };
        let request = Request { operation: ZERO, offset: 512, length: 1024 };
        assert_eq!(spans(&request, &none), [(WRITE, [512, 1536])]);
        assert_eq!(spans_of(Operation::Flush, 0, 0).len(), 1);
    }

    fn asked(request: Request, data: &[u8]) -> (Vec<Piece>, std::sync::mpsc::Receiver<Told>) {
        let (sender, told) = channel();
        let done: Done = Box::new(move |result| {
            let _gone = sender.send(result.map(<[u8]>::to_vec));
        });
        (pieces(&request, data, done, &SHAPE, &Memory::new()), told)
    }

    type Told = Result<Vec<u8>, Failure>;

    #[test]
    fn what_is_read_is_put_together() {
        let memory = Memory::new();
        let request = Request { operation: Operation::Read, offset: (1 << 20) - 700, length: 1000 };
        let (mut pieces, told) = asked(request, &[]);
        assert_eq!(pieces.len(), 2);
        for (piece, byte) in pieces.iter_mut().zip(1..) {
            piece.block.as_mut().expect("it has memory").fill(byte);
            assert!(!piece.advance());
        }
        for piece in pieces.into_iter().rev() {
            assert!(told.try_recv().is_err(), "not before the last");
            piece.end(Ok(()), &memory);
        }
        let all = told.recv().expect("it is told").expect("nothing failed");
        assert_eq!(all, [vec![1; 700], vec![2; 300]].concat());
    }

    #[test]
    fn one_failure_is_the_failure_of_the_whole() {
        let memory = Memory::new();
        for failed in 0..3 {
            let request = Request { operation: WRITE, offset: 0, length: 3 << 20 };
            let (pieces, told) = asked(request, &vec![7; 3 << 20]);
            for (index, piece) in pieces.into_iter().enumerate() {
                assert_eq!(piece.step, Step::Do, "whole blocks");
                piece.end(if index == failed { Err(Failure::Medium) } else { Ok(()) }, &memory);
            }
            assert_eq!(told.recv(), Ok(Err(Failure::Medium)));
        }
    }

    #[test]
    fn parts_of_blocks_are_fetched_first() {
        let request = Request { operation: WRITE, offset: 510, length: 4 };
        let (mut pieces, told) = asked(request, b"abcd");
        let mut piece = pieces.pop().expect("there is one");
        assert!(pieces.is_empty());
        assert_eq!(piece.request(&SHAPE).operation, Operation::Read);
        assert_eq!((piece.span, piece.blocks), ([510, 514], [0, 1024]));
        piece.block.as_mut().expect("it has memory").fill(b'.');
        assert!(piece.advance());
        let written = Request { operation: WRITE, offset: 0, length: 1024 };
        assert_eq!(piece.request(&SHAPE), written);
        assert_eq!(&piece.block.as_ref().expect("it has memory")[508..516], b"..abcd..");
        assert!(!piece.advance());
        piece.end(Ok(()), &Memory::new());
        assert_eq!(told.recv(), Ok(Ok(Vec::new())));
    }

    // What lies there before is not in the memory that is lent.
    #[test]
    fn zeros_are_zeros_whatever_memory_held() {
        let memory = Memory::new();
        let mut old = memory.lend([0, 4096]);
        old.fill(9);
        memory.give(Some(old));
        let shape = Shape { has_write_zeroes: false, ..SHAPE };
        let request = Request { operation: ZERO, offset: 0, length: 1024 };
        let pieces = pieces(&request, &[], Box::new(|_| {}), &shape, &memory);
        let block = pieces[0].block.as_ref().expect("it has memory");
        assert!(block[..1024].iter().all(|&byte| byte == 0));
    }
}
