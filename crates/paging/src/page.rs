//! Pages by number, and the per-page tables every other module is made of.
//!
//! # Design notes
//!
//! A fault may cost tens of nanoseconds of bookkeeping, so the data of a page are at its own index:
//! no hashing, no allocation per fault. Two facts shape the tables:
//!
//! - A program uses little memory or much, and which is not known before, so a table is cut into
//!   chunks that appear when their first page does. The kernel populates a
//!   zero-filled chunk lazily too, which makes sparse use cost what it touches, and a copy for
//!   `fork` costs what is in use rather than what is reserved.
//! - Programs free huge, mostly empty ranges. `PageStates` counts the occupied pages of each
//!   block of 512, so such a range is skipped 512 pages at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use measure::Pages;

/// Pages per chunk of a [`PageMap`]: 128 MiB of 4 KiB pages.
const CHUNK_PAGES: usize = 1 << 15;

/// Pages per occupancy counter of [`PageStates`]: one last-level page table's worth.
const BLOCK_PAGES: u32 = 512;

/// The number of one page of one process. Numbers are dense: 512 pages that lie together have
/// numbers in a row, and what is used has lower ones than what is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageIndex(u32);

impl PageIndex {
    /// The last page that a process can have in use: 512 GiB of 4 KiB pages, which bounds what the
    /// tables have to tell apart.
    pub const MAX: Self = Self((1 << 27) - 1);

    /// Page number `index`.
    ///
    /// Numbers that were not checked go through [`TryFrom<u64>`] instead.
    ///
    /// # Panics
    ///
    /// If `index` is above [`PageIndex::MAX`].
    #[must_use]
    pub const fn new(index: u32) -> Self {
        assert!(index <= Self::MAX.0, "page index above PageIndex::MAX");
        Self(index)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The page `distance` pages further on (or back); `None` beyond either end.
    #[must_use]
    pub fn offset(self, distance: i64) -> Option<Self> {
        let index = i64::from(self.0).checked_add(distance)?;
        u64::try_from(index).ok().and_then(|index| Self::try_from(index).ok())
    }

    /// The number as an index.
    pub(crate) const fn slot(self) -> usize {
        self.0 as usize
    }
}

impl TryFrom<u64> for PageIndex {
    type Error = PageIndexError;

    fn try_from(index: u64) -> Result<Self, PageIndexError> {
        match u32::try_from(index) {
            Ok(small) if small <= Self::MAX.0 => Ok(Self(small)),
            _ => Err(PageIndexError { index }),
        }
    }
}

impl fmt::Display for PageIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A page number that no page can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "page {index} lies beyond the last page that a process can have in use, {}; use less memory",
    PageIndex::MAX
)]
pub struct PageIndexError {
    /// The number that was asked for.
    pub index: u64,
}

/// A dense table from page to `T`, in chunks that are allocated when first written.
#[derive(Clone, Default)]
pub(crate) struct PageMap<T> {
    // An empty box is a chunk that does not exist yet.
    chunks: Vec<Box<[T]>>,
}

impl<T: Copy + Default> PageMap<T> {
    /// The entry of `page`; the default value if it was never written.
    pub(crate) fn get(&self, page: PageIndex) -> T {
        let (chunk, entry) = split(page);
        self.chunks.get(chunk).and_then(|c| c.get(entry)).copied().unwrap_or_default()
    }

    /// The entry of `page`, to be written.
    pub(crate) fn slot(&mut self, page: PageIndex) -> &mut T {
        let (chunk, entry) = split(page);
        if self.chunks.get(chunk).is_none_or(|c| c.is_empty()) {
            self.add_chunk(chunk);
        }
        &mut self.chunks[chunk][entry]
    }

    /// The entries from `page` to the end of its chunk; empty if the chunk does not exist.
    fn tail(&self, page: PageIndex) -> &[T] {
        let (chunk, entry) = split(page);
        self.chunks.get(chunk).and_then(|c| c.get(entry..)).unwrap_or_default()
    }

    #[cold]
    fn add_chunk(&mut self, chunk: usize) {
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, Box::default);
        }
        self.chunks[chunk] = vec![T::default(); CHUNK_PAGES].into_boxed_slice();
    }
}

impl<T> fmt::Debug for PageMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chunks = self.chunks.iter().filter(|chunk| !chunk.is_empty()).count();
        f.debug_struct("PageMap").field("chunks", &chunks).finish_non_exhaustive()
    }
}

/// The page numbers of `count` pages from `first` on, as far as page numbers go.
pub(crate) fn span(first: PageIndex, count: Pages) -> Range<u32> {
    let past_last = PageIndex::MAX.0 + 1;
    let room = past_last - first.0;
    first.0..first.0 + u32::try_from(count.get()).map_or(room, |count| count.min(room))
}

// The chunk of a page, and its index there.
const fn split(page: PageIndex) -> (usize, usize) {
    (page.slot() / CHUNK_PAGES, page.slot() % CHUNK_PAGES)
}

/// A byte of state per page, where zero means "unknown". Pages with a state are counted per block
/// so that empty stretches are skipped.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageStates {
    states: PageMap<u8>,
    occupied: Vec<u16>,
}

impl PageStates {
    pub(crate) fn get(&self, page: PageIndex) -> u8 {
        self.states.get(page)
    }

    /// Sets the state of `page` and returns the one it had.
    pub(crate) fn set(&mut self, page: PageIndex, state: u8) -> u8 {
        let before = std::mem::replace(self.states.slot(page), state);
        if (before == 0) != (state == 0) {
            let block = (page.get() / BLOCK_PAGES) as usize;
            if block >= self.occupied.len() {
                self.occupied.resize(block + 1, 0);
            }
            if state == 0 {
                self.occupied[block] -= 1;
            } else {
                self.occupied[block] += 1;
            }
        }
        before
    }

    /// The first page in `from..end` that has a state; `None` if none has.
    pub(crate) fn next_occupied(&self, from: u32, end: u32) -> Option<PageIndex> {
        let mut at = from;
        while at < end {
            let block = (at / BLOCK_PAGES) as usize;
            let &count = self.occupied.get(block)?;
            let block_end = (at / BLOCK_PAGES).saturating_add(1).saturating_mul(BLOCK_PAGES);
            if count > 0 {
                let stop = block_end.min(end);
                let entries = self.states.tail(PageIndex(at));
                let found = entries.iter().take((stop - at) as usize).position(|&s| s != 0);
                // The position lies inside one block of 512.
                if let Some(page) = found.and_then(|n| u32::try_from(n).ok()) {
                    return Some(PageIndex(at + page));
                }
            }
            at = block_end;
        }
        None
    }
}

/// A set of numbers kept as ranges that neither overlap nor touch: for what covers few large
/// stretches, such as locked memory.
#[derive(Clone, Debug)]
pub struct Ranges<N> {
    // From the first number of a range to the one past its last.
    ends: BTreeMap<N, N>,
}

impl<N: Copy + Ord> Default for Ranges<N> {
    fn default() -> Self {
        Self { ends: BTreeMap::new() }
    }
}

impl<N: Copy + Ord> Ranges<N> {
    /// Whether the set has no number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether `number` is in the set.
    #[must_use]
    pub fn contains(&self, number: N) -> bool {
        self.ends.range(..=number).next_back().is_some_and(|(_, &end)| number < end)
    }

    /// Adds the numbers of `range`.
    pub fn insert(&mut self, range: Range<N>) {
        if range.is_empty() {
            return;
        }
        let mut merged = range;
        // Ranges that overlap or touch begin no later than `merged` ends.
        while let Some((&start, &end)) = self.ends.range(..=merged.end).next_back() {
            if end < merged.start {
                break;
            }
            self.ends.remove(&start);
            merged = merged.start.min(start)..merged.end.max(end);
        }
        self.ends.insert(merged.start, merged.end);
    }

    /// Takes the numbers of `range` out.
    pub fn remove(&mut self, range: Range<N>) {
        for cut in self.within(range) {
            let (&start, &end) = self
                .ends
                .range(..=cut.start)
                .next_back()
                .expect("a part of a range lies in that range");
            self.ends.remove(&start);
            if start < cut.start {
                self.ends.insert(start, cut.start);
            }
            if cut.end < end {
                self.ends.insert(cut.end, end);
            }
        }
    }

    /// The parts of the set that lie in `range`, ascending.
    #[must_use]
    pub fn within(&self, range: Range<N>) -> Vec<Range<N>> {
        if range.is_empty() {
            return Vec::new();
        }
        let before = self.ends.range(..range.start).next_back();
        before
            .into_iter()
            .chain(self.ends.range(range.clone()))
            .map(|(&start, &end)| start.max(range.start)..end.min(range.end))
            .filter(|part| !part.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn page_index_bounds() {
        assert_eq!(PageIndex::try_from((1 << 27) - 1), Ok(PageIndex::MAX));
        for index in [1 << 27, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            assert_eq!(PageIndex::try_from(index), Err(PageIndexError { index }));
        }
        assert_eq!(PageIndex::new(3).offset(-3), Some(PageIndex::new(0)));
        assert_eq!(PageIndex::new(3).offset(-4), None);
        assert_eq!(PageIndex::MAX.offset(1), None);
        assert_eq!(PageIndex::MAX.offset(i64::MAX), None);
    }

    #[test]
    fn page_map_unwritten_entries_read_as_default() {
        let mut map = PageMap::<u32>::default();
        *map.slot(PageIndex::new(100_000)) = 7;
        assert_eq!(map.get(PageIndex::new(100_000)), 7);
        for page in [0, 99_999, 100_001, 4_000_000] {
            assert_eq!(map.get(PageIndex::new(page)), 0);
        }
    }

    #[test]
    fn next_occupied_finds_every_page_across_blocks_and_chunks() {
        let mut states = PageStates::default();
        let pages = [0, 511, 512, 513, 32_767, 32_768, 1_000_000];
        for &page in &pages {
            assert_eq!(states.set(PageIndex::new(page), 1), 0);
        }
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(page) = states.next_occupied(from, u32::MAX) {
            found.push(page.get());
            from = page.get() + 1;
        }
        assert_eq!(found, pages);
        assert_eq!(states.next_occupied(514, 32_767), None);
        assert_eq!(states.next_occupied(1, 511), None);
        assert_eq!(states.next_occupied(1, 512), Some(PageIndex::new(511)));
    }

    #[test]
    fn next_occupied_skips_a_block_whose_states_were_cleared() {
        let mut states = PageStates::default();
        states.set(PageIndex::new(9), 2);
        assert_eq!(states.set(PageIndex::new(9), 1), 2);
        assert_eq!(states.occupied, [1]);
        assert_eq!(states.set(PageIndex::new(9), 0), 1);
        assert_eq!(states.next_occupied(0, u32::MAX), None);
        assert_eq!(states.occupied, [0]);
    }

    #[test]
    fn span_stops_at_the_last_page() {
        assert_eq!(span(PageIndex::new(5), Pages::new(3)), 5..8);
        assert_eq!(span(PageIndex::new(5), Pages::ZERO), 5..5);
        for count in [1, 2, u64::MAX] {
            let end = PageIndex::MAX.get() + 1;
            assert_eq!(span(PageIndex::MAX, Pages::new(count)), end - 1..end);
        }
    }

    proptest! {
        #[test]
        fn ranges_are_a_set(
            steps in prop::collection::vec((any::<bool>(), 0..40_u32, 0..12_u32), 0..40),
            probe in (0..40_u32, 0..12_u32),
        ) {
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            for (add, first, count) in steps {
                let range = first..first + count;
                if add {
                    model.extend(range.clone());
                    ranges.insert(range);
                } else {
                    model.retain(|page| !range.contains(page));
                    ranges.remove(range);
                }
            }
            for page in 0..60 {
                prop_assert_eq!(ranges.contains(page), model.contains(&page));
            }
            let probe = probe.0..probe.0 + probe.1;
            let within: Vec<u32> = ranges.within(probe.clone()).into_iter().flatten().collect();
            let expected: Vec<u32> = model.iter().copied().filter(|p| probe.contains(p)).collect();
            prop_assert_eq!(within, expected);
            // Neither overlapping nor touching.
            let whole = ranges.within(0..u32::MAX);
            prop_assert!(whole.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert_eq!(ranges.is_empty(), model.is_empty());
        }
    }
}
