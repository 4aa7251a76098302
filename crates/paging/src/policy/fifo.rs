//! First in, first out.

use super::{Places, Policy, PolicyKind, Queue, Row, Stamps, only_line};
use crate::page::PageIndex;

/// Gives up the page that has been local longest, referenced or not: what `DiME` does (§2.1).
#[derive(Clone, Debug)]
pub struct Fifo {
    places: Places,
    queue: Queue,
}

impl PolicyKind {
    /// [`Fifo`].
    pub const FIFO: Self = Self::new(&FIFO);
}

static FIFO: Row = Row {
    name: "fifo",
    build: |_capacity, _seed| Box::new(Fifo::new()),
    line: only_line,
    draws: false,
    probation: None,
    away: Some(|stay| 1.0 / (1.0 + stay)),
};

impl Fifo {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self { places: Places::default(), queue: Queue::new(1) }
    }
}

impl Default for Fifo {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        PolicyKind::FIFO.name()
    }

    fn wants_references(&self) -> bool {
        false
    }

    fn insert(&mut self, page: PageIndex) {
        if !self.contains(page) {
            self.queue.push_back(&mut self.places, page, 0);
        }
    }

    fn touch(&mut self, _page: PageIndex) {}

    /// A reference changes nothing: the page is still the one that has been local longest.
    fn restore(&mut self, page: PageIndex) {
        if !self.contains(page) {
            self.queue.push_front(&mut self.places, page, 0);
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
