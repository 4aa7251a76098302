//! The transfers under way, by page and by time.

use std::collections::{BTreeMap, BTreeSet};

use measure::Instant;

use crate::page::PageIndex;

/// Fetches and write-backs that have been reserved on the link and are not over. A page has at
/// most one of them.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    fetches: BTreeMap<PageIndex, Instant>,
    write_backs: BTreeMap<PageIndex, Instant>,
    ends: BTreeSet<(Instant, End)>,
}

/// The end of one transfer. At the same instant a frame becomes free before another is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// The page's write-back is acknowledged.
    WrittenBack(PageIndex),
    /// The page is here.
    Fetched(PageIndex),
}

impl Transfers {
    pub(super) fn start_fetch(&mut self, page: PageIndex, ready_at: Instant) {
        debug_assert!(!self.is_under_way(page), "page {page} is on its way already");
        self.fetches.insert(page, ready_at);
        self.ends.insert((ready_at, End::Fetched(page)));
    }

    pub(super) fn start_write_back(&mut self, page: PageIndex, free_at: Instant) {
        debug_assert!(!self.is_under_way(page), "page {page} is on its way already");
        self.write_backs.insert(page, free_at);
        self.ends.insert((free_at, End::WrittenBack(page)));
    }

    /// Takes the earliest end that is due by `now`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, End)> {
        self.next_end().filter(|&time| time <= now)?;
        let (time, end) = self.ends.pop_first()?;
        match end {
            End::WrittenBack(page) => self.write_backs.remove(&page),
            End::Fetched(page) => self.fetches.remove(&page),
        };
        Some((time, end))
    }

    /// Ends the transfer of `page` before its time. Returns whether there was one.
    pub(super) fn abandon(&mut self, page: PageIndex) -> bool {
        let end = if let Some(time) = self.fetches.remove(&page) {
            (time, End::Fetched(page))
        } else if let Some(time) = self.write_backs.remove(&page) {
            (time, End::WrittenBack(page))
        } else {
            return false;
        };
        self.ends.remove(&end)
    }

    /// When `page` will be here, if it is being fetched.
    pub(super) fn fetch_of(&self, page: PageIndex) -> Option<Instant> {
        self.fetches.get(&page).copied()
    }

    /// Pages being fetched.
    pub(super) fn fetch_count(&self) -> usize {
        self.fetches.len()
    }

    /// Pages being written back.
    pub(super) fn write_back_count(&self) -> usize {
        self.write_backs.len()
    }

    /// When the next transfer ends; `None` if none is under way.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.ends.first().map(|&(time, _)| time)
    }

    fn is_under_way(&self, page: PageIndex) -> bool {
        self.fetches.contains_key(&page) || self.write_backs.contains_key(&page)
    }
}
