//! Least recently used.

use super::{Links, List, Policy};
use crate::page::PageIndex;

/// Gives up the page whose last reference is longest ago.
///
/// Exact when every access is a touch, as in a trace. In a running program only soft faults
/// reveal references, and the order is that of a segmented FIFO (Turner and Levy 1981): the
/// larger the share of pages on probation, the closer to LRU.
#[derive(Clone, Debug)]
pub struct Lru {
    links: Links,
    // From least to most recently used.
    queue: List,
}

impl Lru {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            links: Links::default(),
            queue: List::new(),
        }
    }
}

impl Default for Lru {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy for Lru {
    fn name(&self) -> &'static str {
        "lru"
    }

    fn wants_references(&self) -> bool {
        true
    }

    fn insert(&mut self, page: PageIndex) {
        self.remove(page);
        self.queue.push_back(&mut self.links, page);
    }

    fn touch(&mut self, page: PageIndex) {
        if self.contains(page) {
            self.insert(page);
        }
    }

    fn remove(&mut self, page: PageIndex) {
        if self.contains(page) {
            self.queue.unlink(&mut self.links, page);
        }
    }

    fn rename(&mut self, from: PageIndex, to: PageIndex) {
        if self.contains(from) {
            self.queue.replace(&mut self.links, from, to);
        }
    }

    fn victim(&mut self) -> Option<PageIndex> {
        self.queue.pop_front(&mut self.links)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn contains(&self, page: PageIndex) -> bool {
        self.links.is_linked(page)
    }

    fn boxed_clone(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
