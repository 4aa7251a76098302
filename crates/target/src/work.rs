//! The requests of a command of either protocol to its device, one after the other (NVM Command Set
//! 3.2, SBC-3 5).

use backend::{Failure, Operation, Request};

use super::meter::Kind;
use super::stripes::Hold;

/// Bytes of a repeated block that one request writes.
const REPEATED_BYTES: u64 = 1 << 20;

/// The kind of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Reads for the host.
    Read,
    /// Reads to check that the medium is readable; the data is dropped.
    Check,
    /// Compares the medium with the command's own data, repeated if it is shorter.
    Compare,
    /// Writes the command's own data.
    Write { forced: bool, is_alone: bool },
    /// Writes `sent` bytes that end within a block, of which the rest stays.
    Patch { forced: bool, sent: u64 },
    /// Writes to the medium (FUA) and reads again; compares the data, too, if `compares`.
    WriteAndVerify { compares: bool },
    /// Writes the command's own data, one block, repeatedly; zeros are deallocated if
    /// `deallocates`.
    Repeat { deallocates: bool },
    /// Compares the first half of the data with the medium, and writes the second half if they are
    /// equal.
    CompareAndWrite { forced: bool },
    /// Writes the bitwise OR of the medium and the data.
    OrWrite { forced: bool },
    /// Writes zeros.
    Zero { deallocates: bool, forced: bool },
    /// Deallocates these ranges, each an offset and a length above 0.
    Discard(Vec<[u64; 2]>),
    /// Puts everything written before on the medium.
    Flush,
}

/// The work of a command, and its range in whole blocks; length 0 for work on all of the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) deed: Deed,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// The memory that a request moves data to or from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The command's own data.
    Own,
    /// Scratch memory for what is read besides.
    Scratch,
    /// None.
    None,
}

/// The outcome of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The work is done.
    Done,
    /// A comparison failed at this byte first.
    Differs(u64),
    /// A request failed.
    Failed(Failure, Operation),
}

/// The next step of work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Submit this request to the device.
    Ask(Request, Side),
    /// The work has ended.
    End(Finding),
}

const DONE: Act = Act::End(Finding::Done);

impl Work {
    /// Work without a range, or whose deed lists its ranges.
    pub(crate) const fn of_device(deed: Deed) -> Self {
        Self { deed, offset: 0, length: 0 }
    }

    /// Bytes of scratch memory that it needs beside the `own_bytes` of the command's own data.
    pub(crate) fn scratch_bytes(&self, own_bytes: usize) -> usize {
        match self.deed {
            Deed::Check
            | Deed::Compare
            | Deed::WriteAndVerify { .. }
            | Deed::CompareAndWrite { .. }
            | Deed::OrWrite { .. } => index(self.length),
            Deed::Patch { .. } => self.last_block(),
            Deed::Repeat { .. } => index(self.piece(own_bytes as u64)),
            Deed::Read
            | Deed::Write { .. }
            | Deed::Zero { .. }
            | Deed::Discard(_)
            | Deed::Flush => 0,
        }
    }

    /// The range to hold: exclusively if nobody else may write meanwhile, shared if it only writes;
    /// `None` if it does not write.
    pub(crate) const fn hold(&self, device_bytes: u64) -> Option<Hold> {
        let (offset, length) = (self.offset, self.length);
        let is_alone = match self.deed {
            Deed::Read | Deed::Check | Deed::Compare | Deed::Flush => return None,
            Deed::Discard(ref ranges) if ranges.is_empty() => return None,
            Deed::Discard(_) => {
                return Some(Hold { offset: 0, length: device_bytes, is_alone: false });
            }
            Deed::Patch { .. } | Deed::CompareAndWrite { .. } | Deed::OrWrite { .. } => true,
            Deed::Write { is_alone, .. } => is_alone,
            Deed::WriteAndVerify { .. } | Deed::Repeat { .. } | Deed::Zero { .. } => false,
        };
        if length > 0 { Some(Hold { offset, length, is_alone }) } else { None }
    }

    /// Offset and length of its range, in bytes.
    pub(crate) const fn place(&self) -> [u64; 2] {
        [self.offset, self.length]
    }

    /// Whether it changes the medium.
    pub(crate) const fn writes(&self) -> bool {
        !matches!(self.deed, Deed::Read | Deed::Check | Deed::Compare | Deed::Flush)
    }

    /// The kind that it is counted as, and its bytes of data.
    pub(crate) const fn counted(&self) -> (Kind, u64) {
        match self.deed {
            Deed::Read => (Kind::Read, self.length),
            Deed::Write { .. } => (Kind::Write, self.length),
            Deed::Patch { sent, .. } => (Kind::Write, sent),
            _ => (Kind::Other, 0),
        }
    }

    /// A request for its whole range.
    pub(crate) const fn request(&self, operation: Operation) -> Request {
        Request { operation, offset: self.offset, length: self.length }
    }

    /// The next step after `stage` requests have ended: `own` is the command's data, and `scratch`
    /// what was read besides.
    pub(crate) fn next(&self, stage: u64, own: &mut [u8], scratch: &mut [u8]) -> Act {
        let length = index(self.length);
        let ask = |operation, side| Act::Ask(self.request(operation), side);
        let write = |forced| ask(Operation::Write { forced }, Side::Own);
        match (&self.deed, stage) {
            (Deed::Read, 0) => ask(Operation::Read, Side::Own),
            (Deed::Write { forced, .. }, 0) => write(*forced),
            (Deed::WriteAndVerify { .. }, 0) => write(true),
            (Deed::Flush, 0) => ask(Operation::Flush, Side::None),
            (Deed::Zero { deallocates, forced }, 0) => {
                let (deallocates, forced) = (*deallocates, *forced);
                ask(Operation::Zero { deallocates, forced }, Side::None)
            }
            (Deed::WriteAndVerify { .. }, 1)
            | (
                Deed::Check | Deed::Compare | Deed::CompareAndWrite { .. } | Deed::OrWrite { .. },
                0,
            ) => ask(Operation::Read, Side::Scratch),
            (Deed::WriteAndVerify { compares: true }, 2) | (Deed::Compare, 1) => {
                differs(&scratch[..length], own).map_or(DONE, Act::End)
            }
            (Deed::CompareAndWrite { forced }, 1) => {
                if let Some(finding) = differs(&scratch[..length], &own[..length]) {
                    return Act::End(finding);
                }
                own.copy_within(length..2 * length, 0);
                write(*forced)
            }
            (Deed::OrWrite { forced }, 1) => {
                let both = own[..length].iter_mut().zip(&scratch[..length]);
                both.for_each(|(own, there)| *own |= there);
                write(*forced)
            }
            (Deed::Patch { forced, sent }, _) => {
                self.patch(stage, *forced, index(*sent), own, scratch)
            }
            (Deed::Repeat { deallocates }, _) => self.repeat(stage, *deallocates, own, scratch),
            (Deed::Discard(ranges), _) => match ranges.get(index(stage)) {
                None => DONE,
                Some(&[offset, length]) => {
                    let operation = Operation::Discard;
                    Act::Ask(Request { operation, offset, length }, Side::None)
                }
            },
            _ => DONE,
        }
    }

    // Steps of a patch: reads the last block, and writes with the rest of it unchanged.
    fn patch(&self, stage: u64, forced: bool, sent: usize, own: &mut [u8], there: &[u8]) -> Act {
        let (length, block) = (index(self.length), self.last_block());
        match stage {
            0 => {
                let offset = self.offset + self.length - block as u64;
                let operation = Operation::Read;
                Act::Ask(Request { operation, offset, length: block as u64 }, Side::Scratch)
            }
            1 => {
                own[sent..length].copy_from_slice(&there[block - (length - sent)..block]);
                Act::Ask(self.request(Operation::Write { forced }), Side::Own)
            }
            _ => DONE,
        }
    }

    // Bytes at the end of the range that contain the last block; blocks have 512 or 4096 bytes.
    fn last_block(&self) -> usize {
        index(self.length.min(if self.length.is_multiple_of(4096) { 4096 } else { 512 }))
    }

    // Steps of a repeated block: one request for zeros, or one for each piece.
    fn repeat(&self, stage: u64, deallocates: bool, own: &[u8], scratch: &mut [u8]) -> Act {
        if own.iter().all(|byte| *byte == 0) {
            let zero = Operation::Zero { deallocates, forced: false };
            return if stage == 0 { Act::Ask(self.request(zero), Side::None) } else { DONE };
        }
        let piece = self.piece(own.len() as u64);
        let done = stage * piece;
        if done >= self.length {
            return DONE;
        }
        if let Some(room) = scratch.get_mut(..index(piece)).filter(|_| stage == 0) {
            room.chunks_exact_mut(own.len()).for_each(|one| one.copy_from_slice(own));
        }
        let (offset, length) = (self.offset + done, piece.min(self.length - done));
        let operation = Operation::Write { forced: false };
        Act::Ask(Request { operation, offset, length }, Side::Scratch)
    }

    // Bytes of the repeated block that one request writes.
    const fn piece(&self, block: u64) -> u64 {
        let block = if block > 0 { block } else { 1 };
        let whole = REPEATED_BYTES / block * block;
        if whole < self.length { whole } else { self.length }
    }
}

// Where `there` first differs from `data`, which is repeated if it is shorter; `None` if nowhere.
fn differs(there: &[u8], data: &[u8]) -> Option<Finding> {
    let length = data.len().max(1);
    let pieces = there.chunks(length).enumerate();
    let mut first = pieces.filter_map(|(number, piece)| {
        let at = piece.iter().zip(data).position(|(one, other)| one != other)?;
        Some(number * length + at)
    });
    first.next().map(|at| Finding::Differs(at as u64))
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 512;

    fn work(deed: Deed, blocks: u64) -> Work {
        Work { deed, offset: 0, length: blocks * BLOCK }
    }

    // Does it with a device of these bytes; how it went, and how many requests that took.
    fn act(work: &Work, device: &mut [u8], own: &mut [u8]) -> (Finding, u64) {
        let mut scratch = vec![0xee; work.scratch_bytes(own.len())];
        for stage in 0.. {
            let (request, side) = match work.next(stage, own, &mut scratch) {
                Act::End(finding) => return (finding, stage),
                Act::Ask(request, side) => (request, side),
            };
            let (from, length) = (index(request.offset), index(request.length));
            let there = &mut device[from..from + length];
            let memory = match side {
                Side::Own => &mut own[..length],
                Side::Scratch => &mut scratch[..length],
                Side::None => &mut [],
            };
            match request.operation {
                Operation::Read => memory.copy_from_slice(there),
                Operation::Write { .. } => there.copy_from_slice(memory),
                Operation::Zero { .. } => there.fill(0),
                Operation::Discard => there.fill(0xdd),
                Operation::Flush => assert_eq!(side, Side::None),
            }
        }
        unreachable!("it ends")
    }

    #[test]
    fn what_differs_is_told_and_not_written() {
        let mut device = vec![7; 1024];
        device[700] = 8;
        let mut same = [vec![7; 1024], vec![1; 1024]].concat();
        let both = work(Deed::CompareAndWrite { forced: false }, 2);
        assert_eq!(act(&both, &mut device, &mut same), (Finding::Differs(700), 1));
        assert_eq!(device[0], 7);
        device[700] = 7;
        assert_eq!(act(&both, &mut device, &mut same), (Finding::Done, 2));
        assert_eq!(device, vec![1; 1024]);
        // One block stands for all.
        let compare = work(Deed::Compare, 2);
        assert_eq!(act(&compare, &mut device, &mut [1; 512]), (Finding::Done, 1));
        device[1000] = 2;
        assert_eq!(act(&compare, &mut device, &mut [1; 512]), (Finding::Differs(1000), 1));
        let verify = work(Deed::WriteAndVerify { compares: true }, 2);
        assert_eq!(act(&verify, &mut device, &mut [3; 1024]), (Finding::Done, 2));
    }

    #[test]
    fn the_rest_of_a_patched_block_stays() {
        let mut device = vec![7; 1024];
        let mut own = vec![1; 1024];
        let patch = work(Deed::Patch { forced: false, sent: 600 }, 2);
        assert_eq!(act(&patch, &mut device, &mut own), (Finding::Done, 2));
        assert_eq!(device, [vec![1; 600], vec![7; 424]].concat());
        let or = work(Deed::OrWrite { forced: false }, 2);
        assert_eq!(act(&or, &mut device, &mut [8; 1024]), (Finding::Done, 2));
        assert_eq!(device, [vec![9; 600], vec![15; 424]].concat());
    }

    #[test]
    fn a_block_is_repeated_in_pieces_and_zeros_are_not() {
        let blocks = 2 * REPEATED_BYTES / BLOCK + 3;
        let mut device = vec![7; index(blocks * BLOCK)];
        let mut block: Vec<u8> = (0..BLOCK).map(|at| u8::try_from(at % 251).unwrap_or(0)).collect();
        let repeat = work(Deed::Repeat { deallocates: true }, blocks);
        assert_eq!(act(&repeat, &mut device, &mut block), (Finding::Done, 3));
        assert!(device.chunks_exact(512).all(|one| one == block));
        assert_eq!(act(&repeat, &mut device, &mut [0; 512]), (Finding::Done, 1));
        assert!(device.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn what_changes_bytes_holds_them() {
        for (deed, is_alone) in [
            (Deed::Read, None),
            (Deed::Check, None),
            (Deed::Compare, None),
            (Deed::Flush, None),
            (Deed::Write { forced: true, is_alone: false }, Some(false)),
            (Deed::Write { forced: true, is_alone: true }, Some(true)),
            (Deed::Zero { deallocates: true, forced: false }, Some(false)),
            (Deed::Repeat { deallocates: false }, Some(false)),
            (Deed::WriteAndVerify { compares: false }, Some(false)),
            (Deed::OrWrite { forced: false }, Some(true)),
            (Deed::CompareAndWrite { forced: false }, Some(true)),
            (Deed::Patch { forced: false, sent: 1 }, Some(true)),
            (Deed::Discard(vec![[512, 512]]), Some(false)),
        ] {
            let hold = work(deed.clone(), 1).hold(1 << 30);
            assert_eq!(hold.map(|hold| hold.is_alone), is_alone, "{deed:?}");
            let all = matches!(deed, Deed::Discard(_));
            assert!(hold.is_none_or(|hold| (hold.length == 1 << 30) == all), "{deed:?}");
        }
    }
}
