//! CLOCK, also known as second chance and FIFO-reinsertion.

use super::{Links, List, Policy};
use crate::page::{PageIndex, PageMap};

/// Gives up the oldest page that was not referenced since the hand last passed it.
///
/// The dial is kept as a queue: a page the hand spares goes to the back with its bit cleared,
/// which is the same order. A page arrives with its bit clear; only a reference after the fault
/// that brought it earns the second round.
#[derive(Clone, Debug)]
pub struct Clock {
    links: Links,
    queue: List,
    // 1 if referenced since the hand last passed.
    referenced: PageMap<u8>,
}

impl Clock {
    /// An empty dial.
    #[must_use]
    pub fn new() -> Self {
        Self {
            links: Links::default(),
            queue: List::new(),
            referenced: PageMap::default(),
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn wants_references(&self) -> bool {
        true
    }

    fn insert(&mut self, page: PageIndex) {
        if self.contains(page) {
            self.touch(page);
        } else {
            *self.referenced.slot(page) = 0;
            self.queue.push_back(&mut self.links, page);
        }
    }

    fn touch(&mut self, page: PageIndex) {
        if self.contains(page) {
            *self.referenced.slot(page) = 1;
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
            *self.referenced.slot(to) = self.referenced.get(from);
        }
    }

    fn victim(&mut self) -> Option<PageIndex> {
        // Ends: each round clears a bit that a touch has set.
        loop {
            let page = self.queue.pop_front(&mut self.links)?;
            if std::mem::take(self.referenced.slot(page)) == 0 {
                return Some(page);
            }
            self.queue.push_back(&mut self.links, page);
        }
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
