//! Stock: memory that is mapped before the program asks for it.
//!
//! ```text
//! mmap -> a piece of the stock -> answer
//!               └─ it runs low -> the helper maps more, and nobody waits
//! ```
//!
//! A call for which the helper maps memory takes four changes of threads, one that is answered from
//! the stock two. The stock is managed memory as all other, but that the program has not been given
//! it yet. Its traits say so: what the program unmaps, or maps over, is no stock any more. A forked
//! child has none.

mod steps;

use paging::regions::{Regions, Traits};

/// Bytes by which the stock is filled up.
const STOCK_BYTES: u64 = 16 << 20;
/// The stock is filled up when it has fewer bytes.
const LOW_BYTES: u64 = 4 << 20;
/// A larger mapping gets a place of its own, with room to grow.
const PIECE_MAX: u64 = 2 << 20;
/// Calls before the first stock: most programs make few.
const CALLS_MIN: u32 = 8;

/// The stock of a process.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    /// Start and end of each piece; the program may have unmapped some of it.
    pieces: Vec<(u64, u64)>,
    /// How many calls could have been answered from the stock.
    calls: u32,
    is_coming: bool,
    /// The stock has no room, or would count against a limit of the program.
    is_refused: bool,
}

impl Stock {
    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|(start, end)| end - start).sum()
    }

    // Takes `bytes` from the stock. Returns their address; `None` if no piece is large enough.
    fn take(&mut self, regions: &mut Regions, bytes: u64) -> Option<u64> {
        for (start, end) in std::mem::take(&mut self.pieces) {
            let there = regions.pieces(start, end).into_iter();
            let there = there.filter(|piece| piece.traits.in_stock);
            self.pieces.extend(there.map(|piece| (piece.start, piece.end)));
        }
        let fits = |&(start, end): &(u64, u64)| end - start >= bytes;
        let place = self.pieces.iter().position(fits)?;
        let (first, end) = self.pieces[place];
        let start = end - bytes;
        if start == first {
            self.pieces.remove(place);
        } else {
            self.pieces[place].1 = start;
        }
        regions.mark(start, end, |traits| *traits = Traits::default());
        Some(start)
    }
}

// Marks memory as stock.
const fn into_stock(traits: &mut Traits) {
    traits.in_stock = true;
    traits.not_on_fork = true;
}

#[cfg(test)]
mod tests {
    use paging::regions::PAGE;

    use super::*;

    // Sixteen pages in stock from page 16 on.
    fn stocked() -> (Regions, Stock) {
        let window = (0, 64 * PAGE);
        let mut regions = Regions::new(0, 64 * PAGE, [window; 3]);
        let (start, end) = (16 * PAGE, 32 * PAGE);
        regions.map(start, end, Traits::default());
        regions.mark(start, end, into_stock);
        (regions, Stock { pieces: vec![(start, end)], ..Stock::default() })
    }

    #[test]
    fn what_is_taken_is_the_programs_and_the_rest_is_not() {
        let (mut regions, mut stock) = stocked();
        assert_eq!(stock.take(&mut regions, 4 * PAGE), Some(28 * PAGE));
        assert_eq!(stock.take(&mut regions, 12 * PAGE), Some(16 * PAGE));
        assert_eq!((stock.take(&mut regions, PAGE), stock.bytes()), (None, 0));
        let pieces = regions.pieces(0, 64 * PAGE);
        assert!(pieces.iter().all(|piece| piece.traits == Traits::default()), "{pieces:?}");
        assert!(regions.covers(16 * PAGE, 32 * PAGE));
    }

    #[test]
    fn what_the_program_unmaps_or_maps_over_is_not_given_again() {
        let (mut regions, mut stock) = stocked();
        regions.unmap(30 * PAGE, 32 * PAGE);
        regions.map(20 * PAGE, 24 * PAGE, Traits::default());
        assert_eq!(stock.take(&mut regions, 8 * PAGE), None, "no piece is as long");
        assert_eq!(stock.bytes(), 10 * PAGE);
        assert_eq!(stock.take(&mut regions, 6 * PAGE), Some(24 * PAGE));
        assert_eq!(stock.take(&mut regions, 4 * PAGE), Some(16 * PAGE));
        assert_eq!(stock.take(&mut regions, PAGE), None);
    }
}
