//! The use of an arena's addresses: mapped regions, and holes to place new ones in.
//!
//! Freed addresses are used again, smallest fitting hole first, so that a program that maps and
//! unmaps for ever stays within few page-table pages and few leaves of the page-state table. Large
//! regions get room to grow in place, because growing a region anywhere else means copying it.
//!
//! A program may map memory at any address it likes. What it leaves to us goes where no other
//! placement looks for room: between the memory of sanitisers, collectors and the kernel's own
//! choices.

use std::collections::{BTreeMap, BTreeSet};

/// Size of a page, the unit of everything here.
pub const PAGE: u64 = 4096;
// From this size on a region gets as much free room behind it as it is long.
const ROOM_FROM: u64 = 4 << 20;

/// The traits of a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traits {
    /// Mapped by the program from something else than our memory file: its pages are not managed.
    pub foreign: bool,
    /// A forked child sees zeros (`MADV_WIPEONFORK`).
    pub wipe_on_fork: bool,
    /// A forked child does not see it at all (`MADV_DONTFORK`).
    pub not_on_fork: bool,
    /// The region is stock: mapped, and not yet given to the program.
    pub in_stock: bool,
}

/// A piece of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// First address.
    pub start: u64,
    /// First address behind the piece.
    pub end: u64,
    /// Its traits.
    pub traits: Traits,
}

impl Piece {
    /// Length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// How many windows there are.
const WINDOWS_COUNT: usize = 3;

/// Where memory without an address of the program's choice goes, in order: the usual place, and
/// those for what is too much for it. All are whole gigabytes.
///
/// The usual place lies between executables and what sanitizers (address, memory, thread) keep for
/// themselves: they end a program that has memory elsewhere, or map over it.
pub const WINDOWS: [(u64, u64); WINDOWS_COUNT] = [
    (0x5660_0000_0000, 0x5680_0000_0000),
    (0x7c00_0000_0000, 0x7e00_0000_0000),
    (0x2000_0000_0000, 0x5000_0000_0000),
];

/// The address space of one process.
#[derive(Debug, Clone)]
pub struct Regions {
    windows: [(u64, u64); WINDOWS_COUNT],
    mapped: BTreeMap<u64, (u64, Traits)>,
    /// None reaches across the bounds of a window.
    holes: BTreeMap<u64, u64>,
    /// Those in windows: number of the window, size, start.
    holes_by_size: BTreeSet<(usize, u64, u64)>,
}

impl Regions {
    /// Addresses `start..end`, all free, with places for new memory in `windows`.
    pub fn new(start: u64, end: u64, windows: [(u64, u64); WINDOWS_COUNT]) -> Self {
        let mut regions = Self {
            windows,
            mapped: BTreeMap::new(),
            holes: BTreeMap::new(),
            holes_by_size: BTreeSet::new(),
        };
        regions.add_hole(start, end);
        regions
    }

    /// Finds room for `bytes` and maps it. Returns the address; `None` if the windows have no room.
    pub fn place(&mut self, bytes: u64) -> Option<u64> {
        let wanted = if bytes >= ROOM_FROM { bytes.checked_mul(2)? } else { bytes };
        let fitting = |window: usize, size: u64| {
            let holes = (window, size, 0)..(window + 1, 0, 0);
            self.holes_by_size.range(holes).next().map(|&(_, _, start)| start)
        };
        let in_window = |window| fitting(window, wanted).or_else(|| fitting(window, bytes));
        let start = (0..self.windows.len()).find_map(in_window)?;
        self.map(start, start + bytes, Traits::default());
        Some(start)
    }

    /// Maps `bytes` at `start` if nothing is there. Returns whether it did.
    pub fn place_at(&mut self, start: u64, bytes: u64) -> bool {
        let free = self.is_free(start, start + bytes);
        if free {
            self.map(start, start + bytes, Traits::default());
        }
        free
    }

    /// Extends the region that ends at `end` to `new_end` if nothing is in the way. Returns whether
    /// it did.
    pub fn extend(&mut self, end: u64, new_end: u64) -> bool {
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
    pub fn map(&mut self, start: u64, end: u64, traits: Traits) {
        self.unmap(start, end);
        self.take_from_holes(start, end);
        self.insert(start, end, traits);
    }

    /// Frees `start..end`.
    pub fn unmap(&mut self, start: u64, end: u64) {
        for piece in self.pieces(start, end) {
            self.cut(piece);
            self.add_hole(piece.start, piece.end);
        }
    }

    /// Forgets what is mapped in `start..end`, without using the addresses again yet.
    pub fn vacate(&mut self, start: u64, end: u64) {
        for piece in self.pieces(start, end) {
            self.cut(piece);
        }
    }

    /// Frees vacated addresses of `start..end`, except where memory has been mapped anew.
    pub fn recycle(&mut self, start: u64, end: u64) {
        let hole = |(&start, &end): (&u64, &u64)| (start, end);
        let first = self.holes.range(..=start).next_back().map_or(start, |(&at, _)| at);
        let mut used: Vec<(u64, u64)> = self.holes.range(first..end).map(hole).collect();
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

    /// Changes the traits of the regions in `start..end`.
    pub fn mark(&mut self, start: u64, end: u64, change: impl Fn(&mut Traits)) {
        for mut piece in self.pieces(start, end) {
            self.cut(piece);
            change(&mut piece.traits);
            self.insert(piece.start, piece.end, piece.traits);
        }
    }

    /// The regions in `start..end`, in order, clipped to it.
    pub fn pieces(&self, start: u64, end: u64) -> Vec<Piece> {
        if start >= end {
            return Vec::new();
        }
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
    pub fn covers(&self, start: u64, end: u64) -> bool {
        let mapped: u64 = self.pieces(start, end).iter().map(Piece::bytes).sum();
        mapped == end - start
    }

    /// Bytes that are mapped and managed.
    #[cfg(test)]
    pub fn mapped_bytes(&self) -> u64 {
        self.mapped.iter().map(|(start, (end, _))| end - start).sum()
    }

    /// The neighbours of `start..end`, where nothing is mapped: the end of the region before and
    /// the start of the one behind; `None` if there is none.
    pub fn gap(&self, start: u64, end: u64) -> (Option<u64>, Option<u64>) {
        let before = self.mapped.range(..start).next_back().map(|(_, &(end, _))| end);
        (before, self.mapped.range(end..).next().map(|(&start, _)| start))
    }

    /// Whether `start..end` is free: nothing is mapped there, or vacated and not recycled yet.
    pub fn is_free(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        while at < end {
            match self.holes.range(..=at).next_back() {
                Some((_, &hole_end)) if hole_end > at => at = hole_end,
                _ => return false,
            }
        }
        true
    }

    /// The first piece of managed memory at or after `from`, clipped to that; `None` if there is
    /// none.
    pub fn next_managed(&self, from: u64) -> Option<Piece> {
        let before = self.mapped.range(..=from).next_back();
        before
            .into_iter()
            .chain(self.mapped.range(from.saturating_add(1)..))
            .map(|(&start, &(end, traits))| Piece { start: start.max(from), end, traits })
            .find(|piece| piece.end > from && !piece.traits.foreign)
    }

    /// All regions, in order.
    pub fn all(&self) -> Vec<Piece> {
        let piece = |(&start, &(end, traits)): (&u64, &(u64, Traits))| Piece { start, end, traits };
        self.mapped.iter().map(piece).collect()
    }

    /// Whether the page at `address` is mapped and managed.
    pub fn manages(&self, address: u64) -> bool {
        let before = self.mapped.range(..=address).next_back();
        before.is_some_and(|(_, (end, traits))| *end > address && !traits.foreign)
    }

    // Adds a region, joined with neighbours of the same traits.
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

    // Frees `start..end`, which may reach across the bounds of windows.
    fn add_hole(&mut self, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let bounds = self.windows.iter().flat_map(|&(from, to)| [from, to]);
            let stop = bounds.filter(|&bound| bound > at).min().unwrap_or(end).min(end);
            self.add_piece_of_hole(at, stop);
            at = stop;
        }
    }

    // Whether an address is a bound of a window, across which holes are not joined.
    fn is_bound(&self, address: u64) -> bool {
        self.windows.iter().any(|&(from, to)| address == from || address == to)
    }

    // The window of an address; `None` outside of all.
    fn window(&self, address: u64) -> Option<usize> {
        self.windows.iter().position(|&(from, to)| (from..to).contains(&address))
    }

    // Adds a hole within one window, joined with its neighbours.
    fn add_piece_of_hole(&mut self, mut start: u64, mut end: u64) {
        if let Some((&before, &before_end)) = self.holes.range(..start).next_back()
            && before_end == start
            && !self.is_bound(start)
        {
            self.remove_hole(before, before_end);
            start = before;
        }
        if let Some(&after_end) = self.holes.get(&end)
            && !self.is_bound(end)
        {
            self.remove_hole(end, after_end);
            end = after_end;
        }
        self.holes.insert(start, end);
        if let Some(window) = self.window(start) {
            self.holes_by_size.insert((window, end - start, start));
        }
    }

    // Takes `start..end` out of the holes.
    fn take_from_holes(&mut self, start: u64, end: u64) {
        let first = self.holes.range(..=start).next_back().map_or(start, |(&hole, _)| hole);
        let holes: Vec<(u64, u64)> = self
            .holes
            .range(first..end)
            .map(|(&hole, &hole_end)| (hole, hole_end))
            .filter(|&(_, hole_end)| hole_end > start)
            .collect();
        for (hole, hole_end) in holes {
            self.remove_hole(hole, hole_end);
            if hole < start {
                self.add_piece_of_hole(hole, start);
            }
            if end < hole_end {
                self.add_piece_of_hole(end, hole_end);
            }
        }
    }

    fn remove_hole(&mut self, start: u64, end: u64) {
        self.holes.remove(&start);
        if let Some(window) = self.window(start) {
            self.holes_by_size.remove(&(window, end - start, start));
        }
    }
}

/// Joins neighbouring pages into ranges: first address, bytes.
#[must_use]
pub fn runs(mut pages: Vec<u64>) -> Vec<(u64, u64)> {
    pages.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::with_capacity(pages.len());
    for page in pages {
        match runs.last_mut() {
            Some((start, bytes)) if *start + *bytes == page => *bytes += PAGE,
            _ => runs.push((page, PAGE)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: u64 = 1 << 40;

    const NOWHERE: (u64, u64) = (0, 0);

    fn arena() -> Regions {
        let end = BASE + (1 << 30);
        Regions::new(BASE, end, [(BASE, end), NOWHERE, NOWHERE])
    }

    #[test]
    fn place_takes_the_second_window_when_the_first_is_too_small() {
        let (gig, end) = (1 << 30, BASE + (1 << 40));
        let windows = [2..4, 8..64, 64..64]
            .map(|w: std::ops::Range<u64>| (BASE + w.start * gig, BASE + w.end * gig));
        let mut regions = Regions::new(BASE, end, windows);
        assert_eq!(regions.place(gig), Some(BASE + 2 * gig));
        assert_eq!(regions.place(3 * gig), Some(BASE + 8 * gig));
        assert_eq!(regions.place(60 * gig), None);
        // A place of the program's choice may be anywhere, across the bounds, too.
        assert!(regions.place_at(BASE + 3 * gig + PAGE, 5 * gig - 2 * PAGE));
        assert!(!regions.is_free(BASE + 3 * gig, BASE + 3 * gig + 2 * PAGE));
        assert_eq!(regions.place(2 * PAGE), Some(BASE + 11 * gig));
        regions.unmap(BASE, end);
        assert!(regions.is_free(BASE, end));
        assert_eq!(regions.place(2 * gig), Some(BASE + 2 * gig));
    }

    #[test]
    fn gap_and_next_managed_look_at_neighbours() {
        let mut regions = arena();
        regions.map(BASE + 4 * PAGE, BASE + 6 * PAGE, Traits::default());
        let foreign = Traits { foreign: true, ..Traits::default() };
        regions.map(BASE + 9 * PAGE, BASE + 10 * PAGE, foreign);
        let gap = regions.gap(BASE + 7 * PAGE, BASE + 8 * PAGE);
        assert_eq!(gap, (Some(BASE + 6 * PAGE), Some(BASE + 9 * PAGE)));
        assert_eq!(regions.gap(BASE, BASE + PAGE), (None, Some(BASE + 4 * PAGE)));
        let next = |from| regions.next_managed(from).map(|piece| (piece.start, piece.end));
        assert_eq!(next(0), Some((BASE + 4 * PAGE, BASE + 6 * PAGE)));
        assert_eq!(next(BASE + 5 * PAGE), Some((BASE + 5 * PAGE, BASE + 6 * PAGE)));
        assert_eq!(next(BASE + 6 * PAGE), None);
        assert!(regions.manages(BASE + 5 * PAGE) && !regions.manages(BASE + 9 * PAGE));
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
        let end = BASE + 4 * PAGE;
        let mut regions = Regions::new(BASE, end, [(BASE, end), NOWHERE, NOWHERE]);
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
            let page = |number: u64| BASE + number * PAGE;
            let windows = [(page(8), page(40)), (page(48), page(56)), (page(56), page(64))];
            let mut regions = Regions::new(BASE, BASE + 64 * PAGE, windows);
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
                let in_windows =
                    regions.holes.keys().filter(|&&hole| regions.window(hole).is_some()).count();
                prop_assert_eq!(in_windows, regions.holes_by_size.len());
                let across = |(&from, &to): (&u64, &u64)| {
                    let inside = |bound: u64| from < bound && bound < to;
                    windows.iter().any(|&(low, high)| inside(low) || inside(high))
                };
                prop_assert!(!regions.holes.iter().any(across));
            }
        }
    }

    #[test]
    fn runs_join_neighbours_whatever_their_order() {
        let pages = [7, 3, 4, 9, 8, 1].map(|page| page * PAGE).to_vec();
        let expected = [(1, 1), (3, 2), (7, 3)].map(|(page, count)| (page * PAGE, count * PAGE));
        assert_eq!(runs(pages), expected);
        assert_eq!(runs(vec![]), []);
    }
}
