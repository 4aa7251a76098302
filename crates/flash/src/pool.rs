//! Memory for the data of commands, kept for the next when one has ended.

use sys::block::Block;

/// The smallest block, and how often it doubles.
const SMALLEST: usize = 4096;
const CLASSES: usize = 12;

/// Blocks of 4 KiB, 8 KiB and so on to 8 MiB.
#[derive(Debug)]
pub(crate) struct Pool {
    spare: [Vec<Block>; CLASSES],
    /// Bytes that are spare, and how many may be.
    kept_bytes: usize,
    keeps_bytes: usize,
    /// Bytes that are handed out, and how many may be before there are no more.
    lent_bytes: usize,
    lends_bytes: usize,
}

impl Pool {
    /// Lends `lends_bytes` at a time and keeps `keeps_bytes` for later.
    #[must_use]
    pub(crate) const fn new(lends_bytes: usize, keeps_bytes: usize) -> Self {
        const NONE: Vec<Block> = Vec::new();
        Self { spare: [NONE; CLASSES], kept_bytes: 0, keeps_bytes, lent_bytes: 0, lends_bytes }
    }

    /// A block of at least `bytes`, whatever is in it; `None` when too much is lent.
    pub(crate) fn lend(&mut self, bytes: usize) -> Option<Block> {
        // One block is always lent, so that none is too large for ever.
        let fits = self.lent_bytes + bytes <= self.lends_bytes || self.lent_bytes == 0;
        fits.then(|| self.lend_anyway(bytes))
    }

    /// As [`Pool::lend`], for data that something else bounds.
    pub(crate) fn lend_anyway(&mut self, bytes: usize) -> Block {
        let class = class(bytes);
        let block = match self.spare.get_mut(class).and_then(Vec::pop) {
            Some(block) => {
                self.kept_bytes -= block.len();
                block
            }
            None => Block::new((SMALLEST << class).max(bytes)),
        };
        self.lent_bytes += block.len();
        block
    }

    /// Takes a block back.
    pub(crate) fn give(&mut self, block: Block) {
        self.lent_bytes = self.lent_bytes.saturating_sub(block.len());
        let fits = self.kept_bytes + block.len() <= self.keeps_bytes;
        let class = class(block.len());
        if let Some(spare) = self.spare.get_mut(class)
            && fits
            && block.len() == SMALLEST << class
        {
            self.kept_bytes += block.len();
            spare.push(block);
        }
    }
}

fn class(bytes: usize) -> usize {
    let pages = bytes.div_ceil(SMALLEST).next_power_of_two();
    pages.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_bounded_and_used_again() {
        let mut pool = Pool::new(16 << 10, 8 << 10);
        let first = pool.lend(5000).expect("there is room");
        assert_eq!(first.len(), 8192);
        let place = first.as_ptr();
        let second = pool.lend(4096).expect("there is room");
        assert!(pool.lend(4097).is_none(), "12 KiB are lent");
        pool.give(first);
        let again = pool.lend(8000).expect("there is room");
        assert_eq!(again.as_ptr(), place);
        pool.give(again);
        pool.give(second);
        assert_eq!(pool.kept_bytes, 8 << 10, "the second is not kept");
        assert_eq!(pool.lent_bytes, 0);
        assert_eq!(pool.lend(1 << 20).expect("one is always lent").len(), 1 << 20);
    }
}
