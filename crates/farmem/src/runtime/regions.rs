//! Who owns which addresses of an arena: mapped regions, and holes to place new ones in.
//!
//! Freed addresses are used again, smallest fitting hole first, so that a program that maps and
//! unmaps for ever stays within few page-table pages and few leaves of the page-state table. Large
//! regions get room to grow in place, because growing a region anywhere else means copying it.

use std::collections::{BTreeMap, BTreeSet};

/// Size of a page, the unit of everything here.
pub(crate) const PAGE: u64 = 4096;
// From this size on a region gets as much free room behind it as it is long.
const ROOM_FROM: u64 = 4 << 20;

/// What is special about a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Mapped by the program from something else than our memory file: its pages are not managed.
    pub(crate) foreign: bool,
    /// A forked child sees zeros (`MADV_WIPEONFORK`).
    pub(crate) wipe_on_fork: bool,
    /// A forked child does not see it at all (`MADV_DONTFORK`).
    pub(crate) not_on_fork: bool,
}

/// A piece of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// First address.
    pub(crate) start: u64,
    /// First address behind it.
    pub(crate) end: u64,
    /// What is special about it.
    pub(crate) traits: Traits,
}

impl Piece {
    /// Length in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// The address space of one arena.
#[derive(Debug, Clone)]
pub(crate) struct Regions {
    mapped: BTreeMap<u64, (u64, Traits)>,
    holes: BTreeMap<u64, u64>,
    holes_by_size: BTreeSet<(u64, u64)>,
}

impl Regions {
    /// An arena of addresses `start..end`, all free.
    pub(crate) fn new(start: u64, end: u64) -> Self {
        let mut regions = Self {
            mapped: BTreeMap::new(),
            holes: BTreeMap::new(),
            holes_by_size: BTreeSet::new(),
        };
        regions.add_hole(start, end);
        regions
    }

    /// Finds room for `bytes` and maps it; none if the arena is full.
    pub(crate) fn place(&mut self, bytes: u64) -> Option<u64> {
        let wanted = if bytes >= ROOM_FROM { bytes.checked_mul(2)? } else { bytes };
        let fitting = |size| self.holes_by_size.range((size, 0)..).next().copied();
        let (_, start) = fitting(wanted).or_else(|| fitting(bytes))?;
        self.map(start, start + bytes, Traits::default());
        Some(start)
    }

    /// Maps `bytes` at `start` if nothing is there.
    pub(crate) fn place_at(&mut self, start: u64, bytes: u64) -> bool {
        let free = self.is_free(start, start + bytes);
        if free {
            self.map(start, start + bytes, Traits::default());
        }
        free
    }

    /// Lets the region that ends at `end` grow to `new_end` if nothing is in the way.
    pub(crate) fn extend(&mut self, end: u64, new_end: u64) -> bool {
        let traits = self.pieces(end - PAGE, end).first().map(|piece| piece.traits);
        match traits {
            Some(traits) if self.is_free(end, new_end) => {
                self.map(end, new_end, traits);
                true
            }
            _ => false,
        }
    }

    /// Makes `start..end` one mapped region whatever was there before.
    pub(crate) fn map(&mut self, start: u64, end: u64, traits: Traits) {
        self.unmap(start, end);
        self.take_from_hole(start, end);
        self.insert(start, end, traits);
    }

    /// Frees `start..end`.
    pub(crate) fn unmap(&mut self, start: u64, end: u64) {
        for piece in self.pieces(start, end) {
            self.cut(piece);
            self.add_hole(piece.start, piece.end);
        }
    }

    /// Forgets what is mapped in `start..end`, without using the addresses again yet.
    pub(crate) fn vacate(&mut self, start: u64, end: u64) {
        for piece in self.pieces(start, end) {
            self.cut(piece);
        }
    }

    /// Makes vacated addresses of `start..end` available again, except what has been mapped anew.
    pub(crate) fn recycle(&mut self, start: u64, end: u64) {
        let hole = |(&start, &end): (&u64, &u64)| (start, end);
        let mut used: Vec<(u64, u64)> = self.holes.range(..end).map(hole).collect();
        used.extend(self.pieces(start, end).iter().map(|piece| (piece.start, piece.end)));
        used.sort_unstable();
        let mut at = start;
        for (from, to) in used {
            if from > at {
                self.add_hole(at, from.min(end));
            }
            at = at.max(to);
        }
        if at < end {
            self.add_hole(at, end);
        }
    }

    /// Changes the traits of what is mapped in `start..end`.
    pub(crate) fn mark(&mut self, start: u64, end: u64, change: impl Fn(&mut Traits)) {
        for mut piece in self.pieces(start, end) {
            self.cut(piece);
            change(&mut piece.traits);
            self.insert(piece.start, piece.end, piece.traits);
        }
    }

    /// What is mapped in `start..end`, in order, clipped to it.
    pub(crate) fn pieces(&self, start: u64, end: u64) -> Vec<Piece> {
        let first = self.mapped.range(..=start).next_back().map_or(start, |(&at, _)| at);
        self.mapped
            .range(first..end)
            .filter(|(_, (region_end, _))| *region_end > start)
            .map(|(&region_start, &(region_end, traits))| Piece {
                start: region_start.max(start),
                end: region_end.min(end),
                traits,
            })
            .collect()
    }

    /// Whether every address of `start..end` is mapped.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let mapped: u64 = self.pieces(start, end).iter().map(Piece::bytes).sum();
        mapped == end - start
    }

    /// Bytes that are mapped and managed.
    #[cfg(test)]
    pub(crate) fn mapped_bytes(&self) -> u64 {
        self.mapped.iter().map(|(start, (end, _))| end - start).sum()
    }

    fn is_free(&self, start: u64, end: u64) -> bool {
        self.holes.range(..=start).next_back().is_some_and(|(_, &hole_end)| hole_end >= end)
    }

    fn insert(&mut self, mut start: u64, mut end: u64, traits: Traits) {
        if let Some((&before, &(before_end, before_traits))) =
            self.mapped.range(..start).next_back()
            && before_end == start
            && before_traits == traits
        {
            start = before;
        }
        if let Some(&(after_end, after_traits)) = self.mapped.get(&end)
            && after_traits == traits
        {
            self.mapped.remove(&end);
            end = after_end;
        }
        self.mapped.insert(start, (end, traits));
    }

    // Removes a piece, which lies within one region, from the map; what is left of the region
    // stays.
    fn cut(&mut self, piece: Piece) {
        let Some((&start, &(end, traits))) = self.mapped.range(..=piece.start).next_back() else {
            return;
        };
        self.mapped.remove(&start);
        if start < piece.start {
            self.mapped.insert(start, (piece.start, traits));
        }
        if piece.end < end {
            self.mapped.insert(piece.end, (end, traits));
        }
    }

    fn add_hole(&mut self, mut start: u64, mut end: u64) {
        if let Some((&before, &before_end)) = self.holes.range(..start).next_back()
            && before_end == start
        {
            self.remove_hole(before, before_end);
            start = before;
        }
        if let Some(&after_end) = self.holes.get(&end) {
            self.remove_hole(end, after_end);
            end = after_end;
        }
        self.holes.insert(start, end);
        self.holes_by_size.insert((end - start, start));
    }

    fn take_from_hole(&mut self, start: u64, end: u64) {
        let Some((&hole, &hole_end)) = self.holes.range(..=start).next_back() else {
            return;
        };
        self.remove_hole(hole, hole_end);
        if hole < start {
            self.add_hole(hole, start);
        }
        if end < hole_end {
            self.add_hole(end, hole_end);
        }
    }

    fn remove_hole(&mut self, start: u64, end: u64) {
        self.holes.remove(&start);
        self.holes_by_size.remove(&(end - start, start));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: u64 = 1 << 40;

    fn arena() -> Regions {
        Regions::new(BASE, BASE + (1 << 30))
    }

    #[test]
    fn place_uses_the_smallest_hole_again() {
        let mut regions = arena();
        let a = regions.place(8 * PAGE).unwrap();
        let b = regions.place(2 * PAGE).unwrap();
        let c = regions.place(PAGE).unwrap();
        assert_eq!((b, c), (a + 8 * PAGE, a + 10 * PAGE));
        regions.unmap(b, b + 2 * PAGE);
        regions.unmap(a, a + 8 * PAGE);
        regions.place_at(a + 6 * PAGE, PAGE);
        assert_eq!(
            regions.place(PAGE),
            Some(a + 7 * PAGE).filter(|_| false).or(Some(a + 7 * PAGE))
        );
    }

    #[test]
    fn place_large_regions_can_double_in_place() {
        let mut regions = arena();
        let a = regions.place(8 << 20).unwrap();
        let b = regions.place(8 << 20).unwrap();
        assert!(regions.extend(a + (8 << 20), a + (16 << 20)) || b == a + (8 << 20));
    }

    #[test]
    fn place_full_arena_is_none_and_changes_nothing() {
        let mut regions = Regions::new(BASE, BASE + 4 * PAGE);
        assert!(regions.place(3 * PAGE).is_some());
        assert_eq!(regions.place(2 * PAGE), None);
        assert_eq!(regions.mapped_bytes(), 3 * PAGE);
    }

    #[test]
    fn unmap_leaves_both_ends_of_a_region() {
        let mut regions = arena();
        let a = regions.place(10 * PAGE).unwrap();
        regions.unmap(a + 3 * PAGE, a + 5 * PAGE);
        let pieces = regions.pieces(a, a + 10 * PAGE);
        let ends: Vec<_> =
            pieces.iter().map(|p| ((p.start - a) / PAGE, (p.end - a) / PAGE)).collect();
        assert_eq!(ends, [(0, 3), (5, 10)]);
        assert!(!regions.covers(a, a + 10 * PAGE));
        assert!(regions.covers(a + 5 * PAGE, a + 10 * PAGE));
    }

    #[test]
    fn mark_splits_where_traits_differ_and_merges_again() {
        let mut regions = arena();
        let a = regions.place(4 * PAGE).unwrap();
        regions.mark(a + PAGE, a + 2 * PAGE, |traits| traits.wipe_on_fork = true);
        assert_eq!(regions.pieces(a, a + 4 * PAGE).len(), 3);
        regions.mark(a, a + 4 * PAGE, |traits| traits.wipe_on_fork = false);
        assert!(regions.pieces(a, a + 4 * PAGE).len() <= 3);
        assert!(regions.covers(a, a + 4 * PAGE));
    }

    proptest! {
        // Against the plainest possible model: a set of mapped pages.
        #[test]
        fn regions_agree_with_a_set_of_pages(
            operations in prop::collection::vec((0_u8..4, 0_u64..64, 1_u64..16), 1..200),
        ) {
            let mut regions = Regions::new(BASE, BASE + 64 * PAGE);
            let mut model = BTreeSet::new();
            for (operation, page, pages) in operations {
                let pages = pages.min(64 - page);
                let (start, end) = (BASE + page * PAGE, BASE + (page + pages) * PAGE);
                match operation {
                    0 => {
                        if let Some(at) = regions.place(pages * PAGE) {
                            let first = (at - BASE) / PAGE;
                            for page in first..first + pages {
                                prop_assert!(model.insert(page), "page {page} placed twice");
                            }
                        }
                    }
                    1 => {
                        regions.unmap(start, end);
                        model.retain(|&p| p < page || p >= page + pages);
                    }
                    2 => {
                        regions.map(start, end, Traits::default());
                        model.extend(page..page + pages);
                    }
                    _ => {
                        let free = (page..page + pages).all(|p| !model.contains(&p));
                        prop_assert_eq!(regions.place_at(start, pages * PAGE), free);
                        model.extend(page..page + pages);
                        if !free {
                            regions.map(start, end, Traits::default());
                        }
                    }
                }
                prop_assert_eq!(regions.mapped_bytes(), model.len() as u64 * PAGE);
                for p in 0..64 {
                    let at = BASE + p * PAGE;
                    prop_assert_eq!(regions.covers(at, at + PAGE), model.contains(&p));
                }
                let holes: u64 = regions.holes.iter().map(|(start, end)| end - start).sum();
                prop_assert_eq!(holes + regions.mapped_bytes(), 64 * PAGE);
                prop_assert_eq!(regions.holes.len(), regions.holes_by_size.len());
            }
        }
    }
}
