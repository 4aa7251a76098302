//! First in, first out.

use super::{Links, List, Policy};
use crate::page::PageIndex;

/// Gives up the page that has been local longest, referenced or not: what `DiME` does (§2.1).
#[derive(Clone, Debug)]
pub struct Fifo {
    links: Links,
    queue: List,
}

impl Fifo {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            links: Links::default(),
            queue: List::new(),
        }
    }
}

impl Default for Fifo {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn wants_references(&self) -> bool {
        false
    }

    fn insert(&mut self, page: PageIndex) {
        if !self.contains(page) {
            self.queue.push_back(&mut self.links, page);
        }
    }

    fn touch(&mut self, _page: PageIndex) {}

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
