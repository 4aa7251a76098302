//! SCSI commands for a request to a disk: one, or several in sequence.

use scsi::ask::{self, Cdb};
use scsi::{Extent, Lun};

use backend::{Operation, Request};

/// Properties of a logical unit that shape its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) lun: Lun,
    /// A block has two to the power of this many bytes.
    pub(super) block_shift: u8,
    /// Writes may stay in a volatile cache.
    pub(super) has_write_cache: bool,
    /// Writes can be forced to the medium (FUA).
    pub(super) has_forced: bool,
    /// Blocks of an UNMAP at most; 0 if it is not supported.
    pub(super) unmap_blocks: u32,
    /// Blocks of a WRITE SAME(16) at most; 0 if it is not supported.
    pub(super) write_same_blocks: u32,
    /// WRITE SAME can deallocate blocks; deallocated blocks read as zeros.
    pub(super) same_unmaps: bool,
    pub(super) reads_zeros: bool,
}

/// The progress of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// Bytes that are done.
    pub(super) done: u64,
    /// Whether SYNCHRONIZE CACHE has been done.
    pub(super) is_synced: bool,
}

/// The data of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Load {
    None,
    /// The request's data is sent.
    Own,
    /// So many bytes are received for the request.
    Comes(u32),
    /// These bytes are sent.
    These(Vec<u8>),
}

/// A command of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) cdb: Cdb,
    pub(super) load: Load,
    /// The progress of the request after this command.
    pub(super) then: Progress,
}

/// The next step of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    Ask(Asked),
    /// The request is done.
    Nothing,
    /// The logical unit does not support it.
    Impossible,
}

impl Shape {
    /// Whether blocks can be deallocated.
    pub(super) const fn has_discard(&self) -> bool {
        self.unmap_blocks > 0 || self.same_unmaps && self.write_same_blocks > 0
    }

    // The blocks of the next command, at most `most`, and their bytes.
    fn extent(&self, request: &Request, done: u64, forced: bool, most: u32) -> (Extent, u64) {
        let blocks = (request.length - done) >> self.block_shift;
        let count = u32::try_from(blocks).unwrap_or(u32::MAX).min(most);
        let first = (request.offset + done) >> self.block_shift;
        (Extent { first, count, forced }, u64::from(count) << self.block_shift)
    }

    /// The next command of a request, after this progress.
    pub(super) fn next(&self, request: &Request, progress: Progress) -> Next {
        let is_forced = matches!(
            request.operation,
            Operation::Write { forced: true } | Operation::Zero { forced: true, .. }
        );
        let is_flush = request.operation == Operation::Flush;
        if !is_flush && progress.done < request.length {
            return self.next_part(request, progress);
        }
        // Without FUA, a forced operation ends with a flush of the cache.
        let is_done = match request.operation {
            Operation::Write { .. } if self.has_forced => true,
            _ => !(is_flush || is_forced && self.has_write_cache),
        };
        if is_done || progress.is_synced {
            return Next::Nothing;
        }
        let then = Progress { is_synced: true, ..progress };
        Next::Ask(Asked { cdb: ask::SYNCHRONIZE_CACHE, load: Load::None, then })
    }

    // The command for the next blocks of a request.
    fn next_part(&self, request: &Request, progress: Progress) -> Next {
        let done = progress.done;
        let part = |forced, most| self.extent(request, done, forced, most);
        let (cdb, load, bytes) = match request.operation {
            Operation::Read => {
                let (extent, bytes) = part(false, u32::MAX);
                let comes = u32::try_from(bytes).unwrap_or(u32::MAX);
                (ask::read(extent), Load::Comes(comes), bytes)
            }
            Operation::Write { forced } => {
                let (extent, bytes) = part(forced && self.has_forced, u32::MAX);
                (ask::write(extent), Load::Own, bytes)
            }
            Operation::Discard if self.unmap_blocks > 0 => {
                let (extent, bytes) = part(false, self.unmap_blocks);
                (ask::unmap(), Load::These(ask::unmap_range(extent).to_vec()), bytes)
            }
            Operation::Discard if !self.has_discard() => return Next::Impossible,
            Operation::Zero { .. } if self.write_same_blocks == 0 => return Next::Impossible,
            operation => {
                let (extent, bytes) = part(false, self.write_same_blocks);
                let wants = !matches!(operation, Operation::Zero { deallocates: false, .. });
                let unmaps = wants && self.same_unmaps && self.reads_zeros
                    || operation == Operation::Discard;
                let zeros = vec![0; 1 << self.block_shift];
                (ask::write_same(extent, unmaps), Load::These(zeros), bytes)
            }
        };
        Next::Ask(Asked { cdb, load, then: Progress { done: done + bytes, ..progress } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        lun: Lun::FIRST,
        block_shift: 9,
        has_write_cache: true,
        has_forced: true,
        unmap_blocks: 10,
        write_same_blocks: 10,
        same_unmaps: true,
        reads_zeros: true,
    };

    // Opcodes and second bytes, and blocks of those that have them.
    fn all(shape: Shape, operation: Operation, length: u64) -> Option<Vec<(u8, u8, u64)>> {
        let request = Request { operation, offset: 512, length };
        let (mut asked, mut progress) = (Vec::new(), Progress::default());
        loop {
            match shape.next(&request, progress) {
                Next::Nothing => return Some(asked),
                Next::Impossible => return None,
                Next::Ask(one) => {
                    let blocks = (one.then.done - progress.done) >> 9;
                    asked.push((one.cdb[0], one.cdb[1], blocks));
                    progress = one.then;
                }
            }
        }
    }

    const FORCED: Operation = Operation::Write { forced: true };
    const ZERO: Operation = Operation::Zero { deallocates: true, forced: true };

    #[test]
    fn what_is_forced_is_on_the_medium_one_way_or_another() {
        assert_eq!(all(SHAPE, FORCED, 1024), Some(vec![(0x2a, 8, 2)]));
        let unforced = Shape { has_forced: false, ..SHAPE };
        assert_eq!(all(unforced, FORCED, 1024), Some(vec![(0x2a, 0, 2), (0x35, 0, 0)]));
        let through = Shape { has_write_cache: false, ..unforced };
        assert_eq!(all(through, FORCED, 1024), Some(vec![(0x2a, 0, 2)]));
        assert_eq!(all(SHAPE, Operation::Flush, 0), Some(vec![(0x35, 0, 0)]));
        assert_eq!(all(SHAPE, ZERO, 1024), Some(vec![(0x93, 8, 2), (0x35, 0, 0)]));
    }

    #[test]
    fn much_is_asked_for_in_parts() {
        let parts = vec![(0x42, 0, 10), (0x42, 0, 10), (0x42, 0, 5)];
        assert_eq!(all(SHAPE, Operation::Discard, 25 * 512), Some(parts));
        let kept = Operation::Zero { deallocates: false, forced: false };
        assert_eq!(all(SHAPE, kept, 11 * 512), Some(vec![(0x93, 0, 10), (0x93, 0, 1)]));
        assert_eq!(all(SHAPE, Operation::Read, 25 * 512), Some(vec![(0x28, 0, 25)]));
    }

    #[test]
    fn what_cannot_be_done_is_done_otherwise_or_not_at_all() {
        let same = Shape { unmap_blocks: 0, ..SHAPE };
        assert_eq!(all(same, Operation::Discard, 512), Some(vec![(0x93, 8, 1)]));
        let none = Shape { write_same_blocks: 0, ..same };
        assert_eq!(all(none, Operation::Discard, 512), None);
        assert_eq!(all(none, ZERO, 512), None);
        // Blocks that hold anything when they were given back are not zeros.
        let unknown = Shape { reads_zeros: false, ..SHAPE };
        assert_eq!(all(unknown, ZERO, 512), Some(vec![(0x93, 0, 1), (0x35, 0, 0)]));
    }
}
