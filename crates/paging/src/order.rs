//! The order in which pages were first fetched in one run, by which the next run fetches ahead.
//!
//! ```text
//! first run     fetched ─► list: (process, page), each once, as they first came
//! next run      demanded, or a watched page is used ─► the pages that follow it in the list
//!                                                          │
//!                                  fetched ahead: all mapped at once but the middle one
//!                                                          │
//!                              watched: used ─► goes on    └─► left before it was used
//! ```
//!
//! A process is numbered by its beginning, so that the next run finds it again whatever its process
//! id is; a program that executes another gets a new number. A page is its address, so addresses
//! must be the same in both runs.
//!
//! Pages that are mapped when they come cause no fault, so it is unknown whether they are used. So
//! one page of each window stays unmapped, in the middle. Its first touch says that the program
//! still follows the list, and the next window is fetched before this one has ended, as Linux reads
//! files ahead (`PG_readahead`). How many of these pages are used stands for all.
//!
//! Where the program does not keep to the list, a window is half as long each time that its watched
//! page leaves unused, down to one page: then no more than one page comes in vain for each that is
//! needed. It is twice as long, up to what was asked for, each time that one is used.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use measure::Remembered;

use crate::blade::Key;

/// Most pages of a list: 16 GiB of memory.
pub const PAGES_MAX: usize = 1 << 22;
/// Default number of pages ahead: as for [`stride`](crate::Prefetch::Stride).
pub const DEPTH_DEFAULT: u8 = 8;
/// For a window, so many times its pages are looked at: those that are local, or on their way, are
/// skipped.
const REACH: usize = 4;

/// A page of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The number of its process: how many began before it.
    pub process: u32,
    /// Its address divided by the size of a page.
    pub page: u64,
}

/// Records the order of first fetches, or replays it.
#[derive(Clone, Debug)]
pub struct FetchOrder {
    processes: BTreeMap<usize, u32>,
    slots: BTreeMap<u32, usize>,
    begun: u32,
    list: Vec<Place>,
    positions: HashMap<Place, usize>,
    /// `None` while the order is recorded.
    replay: Option<Replay>,
    counts: Remembered,
}

#[derive(Clone, Debug)]
struct Replay {
    depth: u8,
    depth_max: u8,
    /// By position in the list: whether the page was fetched in this run.
    is_fetched: Vec<bool>,
    /// Pages that were fetched ahead, and whose first touch will be seen.
    watched: BTreeSet<Key>,
}

/// The result of recording or replaying an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The list that was recorded, or replayed.
    pub list: Vec<Place>,
    /// Counts of pages fetched ahead and used.
    pub counts: Remembered,
}

impl FetchOrder {
    /// Begins to record an order.
    #[must_use]
    pub fn recorded() -> Self {
        Self {
            processes: BTreeMap::new(),
            slots: BTreeMap::new(),
            begun: 0,
            list: Vec::new(),
            positions: HashMap::new(),
            replay: None,
            counts: Remembered::default(),
        }
    }

    /// Begins to replay `list`: up to `depth` pages ahead, at least one.
    #[must_use]
    pub fn replayed(list: Vec<Place>, depth: u8) -> Self {
        let positions = list.iter().enumerate().map(|(at, &place)| (place, at)).collect();
        let is_fetched = vec![false; list.len()];
        let depth = depth.max(1);
        let watched = BTreeSet::new();
        let replay = Some(Replay { depth, depth_max: depth, is_fetched, watched });
        let counts = Remembered { is_replayed: true, ..Remembered::default() };
        Self { list, positions, replay, counts, ..Self::recorded() }
    }

    /// Notes that a process begins in `slot`.
    pub fn begins(&mut self, slot: usize) {
        self.ends(slot);
        self.processes.insert(slot, self.begun);
        self.slots.insert(self.begun, slot);
        self.begun += 1;
    }

    /// Notes that the process in `slot` has ended, or executes another program.
    pub fn ends(&mut self, slot: usize) {
        if let Some(process) = self.processes.remove(&slot) {
            self.slots.remove(&process);
        }
        if let Some(replay) = &mut self.replay {
            replay.watched.retain(|&(owner, _)| owner != slot);
        }
    }

    /// Notes that a page is fetched from its blade, on demand or ahead of it.
    pub fn fetched(&mut self, (slot, page): Key, is_ahead: bool) {
        let Some(&process) = self.processes.get(&slot) else { return };
        let place = Place { process, page };
        match (&mut self.replay, self.positions.get(&place)) {
            (None, Some(_)) => {}
            (None, None) if self.list.len() == PAGES_MAX => self.counts.dropped_count += 1,
            (None, None) => {
                self.positions.insert(place, self.list.len());
                self.list.push(place);
            }
            (Some(_), None) => {}
            (Some(replay), Some(&at)) => {
                let first = !std::mem::replace(&mut replay.is_fetched[at], true);
                self.counts.ahead_count += u64::from(first && is_ahead);
                self.counts.demand_count += u64::from(first && !is_ahead);
            }
        }
    }

    /// How many pages are currently fetched ahead at once.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.replay.as_ref().map_or(0, |replay| replay.depth.into())
    }

    /// The pages of live processes that follow one in the list: more than [`depth`](Self::depth),
    /// as some may be local. `None` if the list does not have the page.
    #[must_use]
    pub fn after(&self, (slot, page): Key) -> Option<Vec<Key>> {
        self.replay.as_ref()?;
        let place = Place { process: *self.processes.get(&slot)?, page };
        let from = self.positions.get(&place)? + 1;
        let until = (from + self.depth() * REACH).min(self.list.len());
        let key = |place: &Place| Some((*self.slots.get(&place.process)?, place.page));
        Some(self.list[from..until].iter().filter_map(key).collect())
    }

    /// Notes that `pages` of the list are fetched ahead. The middle one will be watched.
    pub fn asked(&mut self, pages: &[Key]) {
        self.counts.prefetch_count += pages.len() as u64;
        if let (Some(replay), Some(&middle)) = (&mut self.replay, pages.get(pages.len() / 2))
            && replay.watched.insert(middle)
        {
            self.counts.watched_count += 1;
        }
    }

    /// Whether a page is watched: its first touch must be a fault.
    #[must_use]
    pub fn watches(&self, page: Key) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.watched.contains(&page))
    }

    /// Notes that a page is touched. Returns whether this is the first touch of a watched page.
    pub fn used(&mut self, page: Key) -> bool {
        let is_first = self.unwatch(page);
        if let Some(replay) = self.replay.as_mut().filter(|_| is_first) {
            self.counts.used_count += 1;
            replay.depth = replay.depth.saturating_mul(2).min(replay.depth_max);
        }
        is_first
    }

    /// Notes that a page has left local memory.
    pub fn left(&mut self, page: Key) {
        let is_unused = self.unwatch(page);
        if let Some(replay) = self.replay.as_mut().filter(|_| is_unused) {
            self.counts.unused_count += 1;
            replay.depth = (replay.depth / 2).max(1);
        }
    }

    // Stops watching a page. Returns whether it was watched.
    fn unwatch(&mut self, page: Key) -> bool {
        self.replay.as_mut().is_some_and(|replay| replay.watched.remove(&page))
    }

    /// Ends the run.
    #[must_use]
    pub fn finish(self) -> Ended {
        let page_count = self.list.len() as u64;
        Ended { list: self.list, counts: Remembered { page_count, ..self.counts } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn place(process: u32, page: u64) -> Place {
        Place { process, page }
    }

    fn replayed(pages: std::ops::Range<u64>, depth: u8) -> FetchOrder {
        let mut order = FetchOrder::replayed(pages.map(|page| place(0, page)).collect(), depth);
        order.begins(3);
        order
    }

    #[test]
    fn a_list_has_each_page_once_as_it_first_came() {
        let mut order = FetchOrder::recorded();
        order.begins(3);
        for (page, is_ahead) in [(7, false), (9, true), (7, false), (8, false), (9, false)] {
            order.fetched((3, page), is_ahead);
        }
        // Nobody's, and of a process that has the slot of one that has ended.
        order.fetched((5, 1), false);
        order.begins(3);
        order.fetched((3, 7), false);
        let ended = order.finish();
        assert_eq!(ended.list, [place(0, 7), place(0, 9), place(0, 8), place(1, 7)]);
        assert_eq!(ended.counts, Remembered { page_count: 4, ..Remembered::default() });
    }

    #[test]
    fn what_is_recorded_is_not_replayed() {
        let mut order = FetchOrder::recorded();
        order.begins(0);
        order.fetched((0, 1), false);
        order.fetched((0, 2), false);
        assert_eq!((order.after((0, 1)), order.depth()), (None, 0));
        assert!(!order.watches((0, 2)) && !order.used((0, 2)));
    }

    #[test]
    fn pages_that_follow_in_the_list_are_named_and_no_others() {
        let order = replayed(10..100, 2);
        let pages = |page: u64| (page..page + 8).map(|page| (3, page)).collect::<Vec<_>>();
        assert_eq!(order.after((3, 10)), Some(pages(11)));
        assert_eq!(order.after((3, 97)), Some(vec![(3, 98), (3, 99)]));
        assert_eq!(order.after((3, 99)), Some(Vec::new()));
        assert_eq!(order.after((3, 9)), None, "not in the list");
        assert_eq!(order.after((4, 10)), None, "of another process");
    }

    #[test]
    fn a_process_is_known_by_when_it_began() {
        let list = vec![place(0, 1), place(1, 1), place(2, 1), place(0, 2)];
        let mut order = FetchOrder::replayed(list, 4);
        order.begins(8);
        // The third has not begun.
        order.begins(2);
        assert_eq!(order.after((8, 1)), Some(vec![(2, 1), (8, 2)]));
        order.ends(2);
        assert_eq!(order.after((8, 1)), Some(vec![(8, 2)]));
        order.begins(2);
        assert_eq!(order.after((8, 1)), Some(vec![(2, 1), (8, 2)]), "it is the third now");
        assert_eq!(order.after((2, 1)), Some(vec![(8, 2)]));
    }

    #[test]
    fn the_middle_of_a_window_is_watched_until_it_is_used_or_has_left() {
        let mut order = replayed(0..64, 4);
        order.asked(&[(3, 1), (3, 2), (3, 3), (3, 4)]);
        let watched: Vec<u64> = (0..64).filter(|&page| order.watches((3, page))).collect();
        assert_eq!(watched, [3]);
        assert!(!order.used((3, 2)) && order.used((3, 3)) && !order.used((3, 3)));
        order.asked(&[(3, 5)]);
        order.left((3, 4));
        order.left((3, 5));
        order.left((3, 5));
        order.asked(&[]);
        order.asked(&[(3, 6), (3, 7)]);
        order.ends(3);
        assert!(!order.used((3, 7)), "its process has ended");
        let Remembered { prefetch_count, watched_count, used_count, unused_count, .. } =
            order.finish().counts;
        assert_eq!((prefetch_count, watched_count, used_count, unused_count), (7, 3, 1, 1));
    }

    #[test]
    fn a_window_is_shorter_where_its_pages_leave_unused_and_longer_where_they_are_used() {
        let mut order = replayed(0..64, 12);
        let mut depths = Vec::new();
        for (page, is_used) in (0..64).zip([false, false, false, false, true, true, true, true]) {
            order.asked(&[(3, page)]);
            match is_used {
                true => assert!(order.used((3, page))),
                false => order.left((3, page)),
            }
            // Of pages that are not watched nothing is concluded.
            order.left((3, 63));
            depths.push(order.depth());
        }
        assert_eq!(depths, [6, 3, 1, 1, 2, 4, 8, 12]);
        assert_eq!(order.after((3, 0)).map(|pages| pages.len()), Some(12 * REACH));
    }

    #[test]
    fn a_page_is_counted_when_it_is_first_fetched() {
        let mut order = replayed(0..10, 4);
        order.fetched((3, 0), false);
        order.fetched((3, 1), true);
        // Again, and not in the list.
        order.fetched((3, 1), false);
        order.fetched((3, 0), true);
        order.fetched((3, 77), false);
        let counts = order.finish().counts;
        let wanted = Remembered {
            is_replayed: true,
            page_count: 10,
            ahead_count: 1,
            demand_count: 1,
            ..Remembered::default()
        };
        assert_eq!(counts, wanted);
    }
}
