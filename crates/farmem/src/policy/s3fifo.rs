//! S3-FIFO: three static FIFO queues (Yang et al., "FIFO queues are all you need for cache
//! eviction", SOSP'23 §4).

use super::{Links, List, Policy};
use crate::page::{PageIndex, PageMap};

/// The small queue's share of all pages, as a divisor (§4.1: 10 %).
const SMALL_DIVISOR: usize = 10;
/// References while in the small queue that move a page to the main one (Algorithm 1: "freq >
/// 1").
const PROMOTE_AT: u8 = 2;
/// The largest count kept (§4.1: two bits).
const COUNT_MAX: u8 = 3;

/// Gives up pages that are not referenced again soon after they arrive, before they can displace
/// the ones that are: a scan passes through a tenth of the memory.
///
/// New pages enter the *small* queue. At its end, pages referenced twice move to the *main* queue
/// and the others are given up and remembered in the *ghost* queue; a page that comes back while
/// remembered enters the main queue directly. The main queue is a CLOCK with a count instead of
/// a bit.
///
/// A page is in at most one of the three queues, so all share one table of links and the ghost
/// queue costs neither hashing nor memory of its own. Shares are taken of the pages actually
/// held, so they follow a budget that changes and pages that are pinned; only the ghost queue
/// depends on the capacity.
#[derive(Clone, Debug)]
pub struct S3Fifo {
    links: Links,
    queues: [List; 3],
    entries: PageMap<u8>,
    ghost_capacity: usize,
}

/// Where a page is. The values are the low bits of an entry; the count is in the bits above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Small = 1,
    Main = 2,
    Ghost = 3,
}

const QUEUE_BITS: u32 = 2;

impl S3Fifo {
    /// Empty queues for `capacity` frames.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let mut policy = Self {
            links: Links::default(),
            queues: [List::new(), List::new(), List::new()],
            entries: PageMap::default(),
            ghost_capacity: 0,
        };
        policy.resize(capacity);
        policy
    }

    fn queue_of(&self, page: PageIndex) -> Option<Queue> {
        match self.entries.get(page) & ((1 << QUEUE_BITS) - 1) {
            1 => Some(Queue::Small),
            2 => Some(Queue::Main),
            3 => Some(Queue::Ghost),
            _ => None,
        }
    }

    fn queue_len(&self, queue: Queue) -> usize {
        self.queues[queue as usize - 1].len()
    }

    /// Appends `page`, which is in no queue, with `count` references.
    fn push(&mut self, queue: Queue, page: PageIndex, count: u8) {
        *self.entries.slot(page) = queue as u8 | count << QUEUE_BITS;
        self.queues[queue as usize - 1].push_back(&mut self.links, page);
    }

    /// Takes the oldest page of `queue`, with its count.
    fn pop(&mut self, queue: Queue) -> Option<(PageIndex, u8)> {
        let page = self.queues[queue as usize - 1].pop_front(&mut self.links)?;
        let entry = std::mem::take(self.entries.slot(page));
        Some((page, entry >> QUEUE_BITS))
    }

    fn victim_of_small(&mut self) -> Option<PageIndex> {
        while let Some((page, count)) = self.pop(Queue::Small) {
            if count < PROMOTE_AT {
                self.push(Queue::Ghost, page, 0);
                self.trim_ghost();
                return Some(page);
            }
            self.push(Queue::Main, page, 0);
        }
        None
    }

    fn victim_of_main(&mut self) -> Option<PageIndex> {
        // Ends: each round lowers a count.
        loop {
            let (page, count) = self.pop(Queue::Main)?;
            if count == 0 {
                return Some(page);
            }
            self.push(Queue::Main, page, count - 1);
        }
    }

    fn trim_ghost(&mut self) {
        while self.queue_len(Queue::Ghost) > self.ghost_capacity {
            self.pop(Queue::Ghost);
        }
    }

    /// Takes `page` out of whichever queue it is in.
    fn forget(&mut self, page: PageIndex) {
        if let Some(queue) = self.queue_of(page) {
            self.queues[queue as usize - 1].unlink(&mut self.links, page);
            *self.entries.slot(page) = 0;
        }
    }
}

impl Policy for S3Fifo {
    fn name(&self) -> &'static str {
        "s3fifo"
    }

    fn wants_references(&self) -> bool {
        true
    }

    fn insert(&mut self, page: PageIndex) {
        match self.queue_of(page) {
            None => self.push(Queue::Small, page, 0),
            Some(Queue::Ghost) => self.restore(page),
            Some(Queue::Small | Queue::Main) => self.touch(page),
        }
    }

    fn touch(&mut self, page: PageIndex) {
        if let Some(queue @ (Queue::Small | Queue::Main)) = self.queue_of(page) {
            let entry = self.entries.slot(page);
            let count = (*entry >> QUEUE_BITS).saturating_add(1).min(COUNT_MAX);
            *entry = queue as u8 | count << QUEUE_BITS;
        }
    }

    /// A page that proves its worth on probation belongs to the main queue, whichever it left.
    fn restore(&mut self, page: PageIndex) {
        self.forget(page);
        self.push(Queue::Main, page, 0);
    }

    fn remove(&mut self, page: PageIndex) {
        self.forget(page);
    }

    fn rename(&mut self, from: PageIndex, to: PageIndex) {
        // Content that moved on top of a remembered page is not that page coming back.
        self.forget(to);
        if let Some(queue) = self.queue_of(from) {
            self.queues[queue as usize - 1].replace(&mut self.links, from, to);
            *self.entries.slot(to) = std::mem::take(self.entries.slot(from));
        }
    }

    fn victim(&mut self) -> Option<PageIndex> {
        let small = self.queue_len(Queue::Small);
        // Algorithm 1 finds a victim before the newcomer is in the small queue; here it may be in
        // it already, and must not be given up while there is anything else.
        let from_small = small > 1 && small >= self.len() / SMALL_DIVISOR;
        let early = if from_small {
            self.victim_of_small()
        } else {
            None
        };
        early
            .or_else(|| self.victim_of_main())
            .or_else(|| self.victim_of_small())
            // The small queue may have moved its last page to the main one.
            .or_else(|| self.victim_of_main())
    }

    fn len(&self) -> usize {
        self.queue_len(Queue::Small) + self.queue_len(Queue::Main)
    }

    fn contains(&self, page: PageIndex) -> bool {
        matches!(self.queue_of(page), Some(Queue::Small | Queue::Main))
    }

    /// As many pages are remembered as the main queue has frames (§4.1).
    fn resize(&mut self, capacity: usize) {
        self.ghost_capacity = capacity - capacity / SMALL_DIVISOR;
        self.trim_ghost();
    }

    fn boxed_clone(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
