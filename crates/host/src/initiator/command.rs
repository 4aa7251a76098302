//! What is asked of a logical unit for a request: one command, or several after one another.

use scsi::ask::{self, Cdb};
use scsi::{Extent, Lun};

use backend::{Operation, Request};

/// What has to be known of a logical unit to ask it for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) lun: Lun,
    /// A block has two to the power of this many bytes.
    pub(super) block_shift: u8,
    /// What is written may be kept where it does not last.
    pub(super) has_write_cache: bool,
    /// Writes can be forced to the medium.
    pub(super) has_forced: bool,
    /// Blocks of an UNMAP; 0 if there is none.
    pub(super) unmap_blocks: u32,
    /// Blocks of a WRITE SAME(16); 0 if there is none.
    pub(super) write_same_blocks: u32,
    /// It can give them back; they read as zeros then.
    pub(super) same_unmaps: bool,
    pub(super) reads_zeros: bool,
}

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// Bytes of it that are done.
    pub(super) done: u64,
    pub(super) is_synced: bool,
}

/// Data that goes with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Load {
    None,
    /// That of the request.
    Own,
    /// So many bytes come for the request.
    Comes(u32),
    /// This.
    These(Vec<u8>),
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) cdb: Cdb,
    pub(super) load: Load,
    /// How far the request is when it has been done.
    pub(super) then: Progress,
}

/// What comes next for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    Ask(Asked),
    /// All of it is done.
    Nothing,
    /// The logical unit cannot do it.
    Impossible,
}

impl Shape {
    /// Whether room can be given back.
    pub(super) const fn has_discard(&self) -> bool {
        self.unmap_blocks > 0 || self.same_unmaps && self.write_same_blocks > 0
    }

    fn extent(&self, request: &Request, done: u64, forced: bool, most: u32) -> (Extent, u64) {
        let blocks = (request.length - done) >> self.block_shift;
        let count = u32::try_from(blocks).unwrap_or(u32::MAX).min(most);
        let first = (request.offset + done) >> self.block_shift;
        (Extent { first, count, forced }, u64::from(count) << self.block_shift)
    }

    /// What is asked next for a request that is so far.
    pub(super) fn next(&self, request: &Request, progress: Progress) -> Next {
        let is_forced = matches!(
            request.operation,
            Operation::Write { forced: true } | Operation::Zero { forced: true, .. }
        );
        let is_flush = request.operation == Operation::Flush;
        if !is_flush && progress.done < request.length {
            return self.next_part(request, progress);
        }
        // What cannot be forced is flushed.
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
