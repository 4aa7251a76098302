//! CLOCK, also known as second chance and FIFO-reinsertion.

use super::{Places, Policy, PolicyKind, Probation, Queue, Row, Stamps, only_line};
use crate::page::PageIndex;

/// Note of a page that was referenced since the hand last passed.
const REFERENCED: u8 = 1;

/// Gives up the oldest page that was not referenced since the hand last passed it.
///
/// The dial is kept as a queue: a page the hand spares goes to the back with its bit cleared,
/// which is the same order. A page arrives with its bit set, by the reference that brought it
/// (Corbató 1968; Tanenbaum, Modern Operating Systems, §3.4.5).
///
/// Where references are seen on probation alone, a page arrives with its bit clear, and one that
/// is touched on probation has it set. Probation is short beside a round of the hand, so few of
/// the pages that are referenced show it there; the second round of those makes up for the first
/// one of the others, and misses on skewed access are within 5 % of those above
/// ([`Probation`](crate::policy::Probation)).
#[derive(Clone, Debug)]
pub struct Clock {
    places: Places,
    queue: Queue,
}

impl PolicyKind {
    /// [`Clock`].
    pub const CLOCK: Self = Self::new(&CLOCK);
}

static CLOCK: Row = Row {
    name: "clock",
    build: |_capacity, _seed| Box::new(Clock::new()),
    line: only_line,
    draws: false,
    probation: Some(Probation { initial: 210, least: 80, most: 210, touches: 95 }),
    away: Some(|stay| 1.0 / (1.0 + stay * (1.0 + stay.exp()))),
};

impl Clock {
    /// An empty dial.
    #[must_use]
    pub fn new() -> Self {
        Self { places: Places::default(), queue: Queue::new(1) }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy for Clock {
    fn name(&self) -> &'static str {
        PolicyKind::CLOCK.name()
    }

    fn wants_references(&self) -> bool {
        true
    }

    fn insert(&mut self, page: PageIndex) {
        if self.contains(page) {
            self.touch(page);
        } else {
            self.queue.push_back(&mut self.places, page, REFERENCED);
        }
    }

    fn insert_unseen(&mut self, page: PageIndex) {
        if self.contains(page) {
            self.touch(page);
        } else {
            self.queue.push_back(&mut self.places, page, 0);
        }
    }

    fn touch(&mut self, page: PageIndex) {
        if self.contains(page) {
            self.places.change_note(page, |_| REFERENCED);
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
        // Ends: each round clears a bit that a touch has set.
        loop {
            let (page, referenced) = self.queue.pop_until(&mut self.places, until)?;
            if referenced != REFERENCED {
                return Some(page);
            }
            self.queue.push_back(&mut self.places, page, 0);
        }
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
