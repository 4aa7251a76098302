//! S3-FIFO: three static FIFO queues (Yang et al., "FIFO queues are all you need for cache
//! eviction", SOSP'23 §4).

use super::{Places, Policy, PolicyKind, Probation, Queue, Row, Stamps};
use crate::page::PageIndex;

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
/// A page is in at most one of the three queues, so all share one table and the ghost queue costs
/// neither hashing nor a table of its own. Shares are taken of the pages actually held, so they
/// follow a budget that changes and pages that are pinned; only the ghost queue depends on the
/// capacity.
#[derive(Clone, Debug)]
pub struct S3Fifo {
    // The note of a page is its count.
    places: Places,
    small: Queue,
    main: Queue,
    ghost: Queue,
    ghost_capacity: usize,
}

const SMALL: u8 = 1;
const MAIN: u8 = 2;
const GHOST: u8 = 3;

impl PolicyKind {
    /// [`S3Fifo`].
    pub const S3FIFO: Self = Self::new(&S3FIFO);
}

static S3FIFO: Row = Row {
    name: "s3fifo",
    build: |capacity, _seed| Box::new(S3Fifo::new(capacity)),
    line: S3Fifo::line,
    draws: false,
    probation: Some(Probation { initial: 100, least: 100, most: 100, touches: 100 }),
    away: None,
};

impl S3Fifo {
    /// Empty queues for `capacity` frames.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let mut policy = Self {
            places: Places::default(),
            small: Queue::new(SMALL),
            main: Queue::new(MAIN),
            ghost: Queue::new(GHOST),
            ghost_capacity: 0,
        };
        policy.resize(capacity);
        policy
    }

    // The next victim of the small queue; moves pages that were referenced twice to the main one.
    fn victim_of_small(&mut self, until: u64) -> Option<PageIndex> {
        while let Some((page, count)) = self.small.pop_until(&mut self.places, until) {
            if count < PROMOTE_AT {
                self.ghost.push_back(&mut self.places, page, 0);
                self.trim_ghost();
                return Some(page);
            }
            self.main.push_back(&mut self.places, page, 0);
        }
        None
    }

    // The next victim of the main queue; spares pages with a count.
    fn victim_of_main(&mut self, until: u64) -> Option<PageIndex> {
        // Ends: each round lowers a count.
        loop {
            let (page, count) = self.main.pop_until(&mut self.places, until)?;
            if count == 0 {
                return Some(page);
            }
            self.main.push_back(&mut self.places, page, count - 1);
        }
    }

    /// The queue of the next victim, 0 for the small one, with `small` and `main` pages in them;
    /// `begun` is the one in which the search began. `None` without pages.
    pub(super) fn line([small, main]: [usize; 2], begun: Option<usize>) -> Option<usize> {
        // Algorithm 1 finds a victim before the newcomer is in the small queue; here it may be in
        // it already, and must not be given up while there is anything else.
        let from_small = match begun {
            Some(line) => line == 0 && small > 0,
            None => small > 1 && small >= (small + main) / SMALL_DIVISOR,
        };
        match (from_small || main == 0, small + main) {
            (_, 0) => None,
            (true, _) => Some(0),
            (false, _) => Some(1),
        }
    }

    fn trim_ghost(&mut self) {
        while self.ghost.len() > self.ghost_capacity {
            self.ghost.pop_front(&mut self.places);
        }
    }
}

impl Policy for S3Fifo {
    fn name(&self) -> &'static str {
        PolicyKind::S3FIFO.name()
    }

    fn wants_references(&self) -> bool {
        true
    }

    fn insert(&mut self, page: PageIndex) {
        match self.places.queue_of(page) {
            SMALL | MAIN => self.touch(page),
            GHOST => self.restore(page),
            _ => self.small.push_back(&mut self.places, page, 0),
        }
    }

    fn touch(&mut self, page: PageIndex) {
        if self.contains(page) {
            self.places.change_note(page, |count| (count + 1).min(COUNT_MAX));
        }
    }

    /// A page that proves its worth on probation belongs to the main queue, whichever it left.
    fn restore(&mut self, page: PageIndex) {
        self.remove(page);
        self.main.push_back(&mut self.places, page, 0);
    }

    fn remove(&mut self, page: PageIndex) {
        match self.places.queue_of(page) {
            SMALL => self.small.remove(&mut self.places, page),
            MAIN => self.main.remove(&mut self.places, page),
            GHOST => self.ghost.remove(&mut self.places, page),
            _ => {}
        }
    }

    fn rename(&mut self, from: PageIndex, to: PageIndex) {
        // Content that moved on top of a remembered page is not that page coming back.
        self.remove(to);
        match self.places.queue_of(from) {
            SMALL => self.small.replace(&mut self.places, from, to),
            MAIN => self.main.replace(&mut self.places, from, to),
            GHOST => self.ghost.replace(&mut self.places, from, to),
            _ => {}
        }
    }

    fn victim(&mut self) -> Option<PageIndex> {
        let mut begun = None;
        loop {
            let line = Self::line(self.sizes(), begun)?;
            begun = Some(line);
            let victim = self.victim_of(line, u64::MAX);
            if victim.is_some() {
                return victim;
            }
        }
    }

    fn follow(&mut self, stamps: &Stamps) {
        for queue in [&mut self.small, &mut self.main, &mut self.ghost] {
            queue.follow(stamps);
        }
    }

    fn sizes(&self) -> [usize; 2] {
        [self.small.len(), self.main.len()]
    }

    fn heads(&mut self) -> [Option<u64>; 2] {
        [&mut self.small, &mut self.main]
            .map(|queue| queue.head(&self.places).map(|(stamp, _)| stamp))
    }

    fn victim_of(&mut self, line: usize, until: u64) -> Option<PageIndex> {
        if line == 0 { self.victim_of_small(until) } else { self.victim_of_main(until) }
    }

    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }

    fn contains(&self, page: PageIndex) -> bool {
        matches!(self.places.queue_of(page), SMALL | MAIN)
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
