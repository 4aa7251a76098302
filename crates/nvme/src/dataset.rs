//! Data of Dataset Management: ranges of blocks (NVM Command Set 3.2.3).

use super::layout::entry::range::{BYTES, CATTR, NLB, SLBA};

/// Bytes of a range.
pub const DATASET_RANGE_BYTES: usize = BYTES;

/// Encodes a range: its first block and its number of blocks.
///
/// # Panics
/// When `range` is too short.
pub fn write_dataset_range(range: &mut [u8], first: u64, count: u32) {
    CATTR.put(range, 0);
    NLB.put(range, count);
    SLBA.put(range, first);
}

/// Decodes all complete ranges: first block and number of blocks of each.
pub fn read_dataset_ranges(data: &[u8]) -> impl Iterator<Item = (u64, u32)> {
    data.chunks_exact(BYTES).map(|range| (SLBA.get(range), NLB.get(range)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // As the figure of the standard has it: attributes, length in blocks, starting block.
    #[test]
    fn a_range_is_where_the_standard_has_it() {
        let bytes = [0, 0, 0, 0, 8, 7, 0, 0, 6, 5, 4, 3, 2, 1, 0, 0, 9];
        let range = (0x0102_0304_0506, 0x0708);
        assert_eq!(read_dataset_ranges(&bytes).collect::<Vec<_>>(), [range]);
        let mut written = [0xff; DATASET_RANGE_BYTES];
        write_dataset_range(&mut written, range.0, range.1);
        assert_eq!(written, bytes[..16]);
    }
}
