use super::hash::ByPage;

/// Pages in the order of their last access, with stack distances.
///
/// It needs memory for the pages, not for the stream: when the tree is full, the pages in it are
/// compacted.
#[derive(Debug, Default)]
pub struct Recency {
    // Where each page was accessed last, as a position in the tree.
    positions: ByPage<usize>,
    // Which page is, or was, at a position.
    pages: Vec<u64>,
    // Which positions are a last access, as a tree of sums (Fenwick 1994).
    sums: Vec<u32>,
}

/// Positions of the smallest tree.
const POSITIONS_MIN: usize = 1024;

impl Recency {
    /// An order without pages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many different pages were accessed and not removed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there is no page.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Accesses `page` and returns its stack distance (Mattson et al. 1970): how many different
    /// pages were accessed since its last access, itself included; `None` for a first access.
    pub fn access(&mut self, page: u64) -> Option<usize> {
        if self.pages.len() == self.sums.len() {
            self.compact();
        }
        let position = self.pages.len();
        self.pages.push(page);
        let distance = self.positions.insert(page, position).map(|last| {
            // The page still counts at its last position, and there alone.
            let distance = self.len() - self.before(last);
            self.add(last, -1);
            distance
        });
        self.add(position, 1);
        distance
    }

    /// Forgets `page`. Returns whether it was there.
    pub fn remove(&mut self, page: u64) -> bool {
        let position = self.positions.remove(&page);
        if let Some(position) = position {
            self.add(position, -1);
        }
        position.is_some()
    }

    /// Makes room for as many accesses as there are pages, by dropping positions that are not a
    /// page's last.
    fn compact(&mut self) {
        let old = std::mem::take(&mut self.pages);
        for (position, page) in old.into_iter().enumerate() {
            if let Some(last) = self.positions.get_mut(&page)
                && *last == position
            {
                *last = self.pages.len();
                self.pages.push(page);
            }
        }
        let live = self.pages.len();
        self.sums = vec![0; (live * 2).max(POSITIONS_MIN)];
        for position in 0..live {
            self.add(position, 1);
        }
    }

    // Adds `change` to the count at `position` of the tree.
    fn add(&mut self, position: usize, change: i32) {
        let mut at = position;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum = sum.wrapping_add_signed(change);
            at |= at + 1;
        }
    }

    /// How many pages have their last access before position `end`.
    fn before(&self, end: usize) -> usize {
        let mut sum = 0;
        let mut at = end;
        while at > 0 {
            sum += self.sums[at - 1] as usize;
            at &= at - 1;
        }
        sum
    }
}
