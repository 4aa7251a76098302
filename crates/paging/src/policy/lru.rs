//! Least recently used.

use super::{Places, Policy, PolicyKind, Probation, Queue, Row, Stamps, only_line};
use crate::page::PageIndex;

/// Gives up the page whose last reference is longest ago.
///
/// Exact when every access is a touch, as in a trace. In a running program only soft faults
/// reveal references, and the order is that of a segmented FIFO (Turner and Levy 1981): the
/// larger the share of pages on probation, the closer to LRU.
#[derive(Clone, Debug)]
pub struct Lru {
    places: Places,
    // From least to most recently used.
    queue: Queue,
}

impl PolicyKind {
    /// [`Lru`].
    pub const LRU: Self = Self::new(&LRU);
}

static LRU: Row = Row {
    name: "lru",
    build: |_capacity, _seed| Box::new(Lru::new()),
    line: only_line,
    draws: false,
    probation: Some(Probation { initial: 500, least: 40, most: 750, touches: 250 }),
    away: Some(|stay| (-stay).exp()),
};

impl Lru {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self { places: Places::default(), queue: Queue::new(1) }
    }
}

impl Default for Lru {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy for Lru {
    fn name(&self) -> &'static str {
        PolicyKind::LRU.name()
    }

    fn wants_references(&self) -> bool {
        true
    }

    fn insert(&mut self, page: PageIndex) {
        self.remove(page);
        self.queue.push_back(&mut self.places, page, 0);
    }

    fn touch(&mut self, page: PageIndex) {
        if self.contains(page) && !self.queue.renew_last(&self.places, page) {
            self.insert(page);
        }
    }

    fn remove(&mut self, page: PageIndex) {
        if self.contains(page) {
            self.queue.remove(&mut self.places, page);
        }
    }

    fn rename(&mut self, from: PageIndex, to: PageIndex) {
        if self.contains(from) {
            self.queue.replace(&mut self.places, from, to);
        }
    }

    fn victim(&mut self) -> Option<PageIndex> {
        self.victim_of(0, u64::MAX)
    }

    fn follow(&mut self, stamps: &Stamps) {
        self.queue.follow(stamps);
    }

    fn heads(&mut self) -> [Option<u64>; 2] {
        [self.queue.head(&self.places).map(|(stamp, _)| stamp), None]
    }

    fn victim_of(&mut self, _line: usize, until: u64) -> Option<PageIndex> {
        self.queue.pop_until(&mut self.places, until).map(|(page, _)| page)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn contains(&self, page: PageIndex) -> bool {
        self.places.queue_of(page) != 0
    }

    fn boxed_clone(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
