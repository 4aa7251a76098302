//! Queues of pages that any page can leave at any time.
//!
//! # Design notes
//!
//! A queue is a ring of page numbers, and a table has each page's place in it. A page that leaves
//! early only changes the table; the ring keeps an entry that no longer agrees with the table and
//! is skipped when its turn comes; a ring with too many of those is rebuilt, at constant cost per
//! page that left.
//!
//! Lists linked through the table would need no stale entries, but each step to the next page
//! waits for memory, and the links take twice the room. With a million random pages they were
//! measured at 150 ns per admission and eviction, where rings take 50 ns.
//!
//! An entry bears the [stamp](super::Stamps) of when its page came to the queue, by which queues of
//! several processes are one.

use std::collections::VecDeque;

use super::Stamps;
use crate::page::{PageIndex, PageMap};

/// Stale entries that are never worth a rebuild.
const STALE_MIN: usize = 64;

// A place in the table: zero for a page in no queue; else, from the lowest bit, the number of the
// queue, a note, and the entry's sequence number modulo 2²⁸. That is unambiguous because a ring
// has fewer entries: at most one and a half for each of the 2²⁷ pages there can be.
const QUEUE_MASK: u32 = 0b11;
const NOTE_MASK: u32 = 0b1100;
const NOTE_SHIFT: u32 = 2;
const SEQUENCE_SHIFT: u32 = 4;
const _: () = assert!(PageIndex::MAX.get() < 1 << 27);

/// Where each page is. One table serves up to three queues, as a page is in one of them at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    words: PageMap<u32>,
}

/// One queue, oldest page first.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    id: u8,
    ring: VecDeque<Entry>,
    stamps: Stamps,
    // The sequence number of the first entry of the ring; they count up from there.
    first: u32,
    len: usize,
}

impl Places {
    /// The queue that `page` is in; zero for none.
    pub(crate) fn queue_of(&self, page: PageIndex) -> u8 {
        (self.words.get(page) & QUEUE_MASK) as u8
    }

    // Whether the table has the page of an entry at `place`.
    fn has(&self, entry: Entry, place: u32) -> bool {
        self.words.get(entry.page()) & !NOTE_MASK == place
    }

    /// Applies `change` to the note of `page`, a number up to 3 that is kept with it for as long
    /// as it is in a queue.
    pub(crate) fn change_note(&mut self, page: PageIndex, change: impl FnOnce(u8) -> u8) {
        let word = self.words.slot(page);
        debug_assert_ne!(*word, 0, "page {page} is in no queue");
        let note = change(note(*word));
        *word = *word & !NOTE_MASK | u32::from(note) << NOTE_SHIFT & NOTE_MASK;
    }
}

/// A page and a stamp, which takes the upper bits.
#[derive(Clone, Copy, Debug)]
struct Entry(u64);

const PAGE_BITS: u32 = u64::BITS - Stamps::BITS;
const _: () = assert!(PageIndex::MAX.get() as u64 >> PAGE_BITS == 0);

impl Entry {
    fn new(page: PageIndex, stamp: u64) -> Self {
        Self(stamp << PAGE_BITS | u64::from(page.get()))
    }

    const fn page(self) -> PageIndex {
        #[expect(clippy::cast_possible_truncation, reason = "a page has so few bits")]
        PageIndex::new(self.0 as u32 & PageIndex::MAX.get())
    }

    const fn stamp(self) -> u64 {
        self.0 >> PAGE_BITS
    }
}

fn note(word: u32) -> u8 {
    ((word & NOTE_MASK) >> NOTE_SHIFT) as u8
}

impl Queue {
    /// An empty queue, numbered 1 to 3 among those that share a table.
    pub(crate) fn new(id: u8) -> Self {
        assert!(0 < id && u32::from(id) <= QUEUE_MASK);
        Self { id, ring: VecDeque::new(), stamps: Stamps::default(), first: 0, len: 0 }
    }

    /// Takes stamps from `stamps` from now on.
    pub(crate) fn follow(&mut self, stamps: &Stamps) {
        self.stamps = stamps.clone();
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Appends `page`, which is in no queue, with a note.
    pub(crate) fn push_back(&mut self, places: &mut Places, page: PageIndex, note: u8) {
        let word = places.words.slot(page);
        debug_assert_eq!(*word, 0, "page {page} is in a queue already");
        *word = self.place(self.ring.len()) | u32::from(note) << NOTE_SHIFT;
        self.ring.push_back(Entry::new(page, self.stamps.newest()));
        self.len += 1;
    }

    /// Puts `page`, which is in no queue, first, with a note.
    pub(crate) fn push_front(&mut self, places: &mut Places, page: PageIndex, note: u8) {
        self.first = self.first.wrapping_sub(1);
        let word = places.words.slot(page);
        debug_assert_eq!(*word, 0, "page {page} is in a queue already");
        *word = self.place(0) | u32::from(note) << NOTE_SHIFT;
        self.ring.push_front(Entry::new(page, self.stamps.oldest()));
        self.len += 1;
    }

    /// The first page's stamp and note; `None` if there is no page.
    pub(crate) fn head(&mut self, places: &Places) -> Option<(u64, u8)> {
        while let Some(&entry) = self.ring.front() {
            if places.has(entry, self.place(0)) {
                return Some((entry.stamp(), note(places.words.get(entry.page()))));
            }
            self.ring.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        None
    }

    /// Removes and returns the first page, with its note; `None` if the queue is empty.
    pub(crate) fn pop_front(&mut self, places: &mut Places) -> Option<(PageIndex, u8)> {
        self.pop_until(places, u64::MAX)
    }

    /// As [`pop_front`](Self::pop_front), but `None` if the page came after `until`.
    pub(crate) fn pop_until(&mut self, places: &mut Places, until: u64) -> Option<(PageIndex, u8)> {
        while let Some(&entry) = self.ring.front() {
            let place = self.place(0);
            let word = places.words.slot(entry.page());
            let is_here = *word & !NOTE_MASK == place;
            if is_here && entry.stamp() > until {
                return None;
            }
            self.ring.pop_front();
            self.first = self.first.wrapping_add(1);
            if is_here {
                self.len -= 1;
                return Some((entry.page(), note(std::mem::take(word))));
            }
        }
        None
    }

    /// Removes `page`, which is in this queue.
    pub(crate) fn remove(&mut self, places: &mut Places, page: PageIndex) {
        debug_assert_eq!(places.queue_of(page), self.id, "page {page} is not in this queue");
        *places.words.slot(page) = 0;
        self.len -= 1;
        if self.ring.len() > self.len + self.len / 2 + STALE_MIN {
            self.rebuild(places);
        }
    }

    /// Puts `new`, which is in no queue, in the place of `old`, which is in this queue.
    pub(crate) fn replace(&mut self, places: &mut Places, old: PageIndex, new: PageIndex) {
        debug_assert_eq!(places.queue_of(old), self.id, "page {old} is not in this queue");
        debug_assert_eq!(places.queue_of(new), 0, "page {new} is in a queue already");
        let word = std::mem::take(places.words.slot(old));
        *places.words.slot(new) = word;
        let ahead = (word >> SEQUENCE_SHIFT).wrapping_sub(self.first);
        let position = ahead & (u32::MAX >> SEQUENCE_SHIFT);
        let entry = &mut self.ring[position as usize];
        *entry = Entry::new(new, entry.stamp());
    }

    /// Gives `page` a new stamp if it is the last of this queue. Returns whether it is.
    pub(crate) fn renew_last(&mut self, places: &Places, page: PageIndex) -> bool {
        let last = self.ring.len().checked_sub(1);
        let is_last = last.is_some_and(|last| places.has(Entry::new(page, 0), self.place(last)));
        if is_last && let Some(entry) = self.ring.back_mut() {
            *entry = Entry::new(page, self.stamps.newest());
        }
        is_last
    }

    /// Drops the stale entries.
    #[cold]
    fn rebuild(&mut self, places: &mut Places) {
        let mut kept = VecDeque::with_capacity(self.len);
        for (position, &entry) in self.ring.iter().enumerate() {
            let word = places.words.slot(entry.page());
            if *word & !NOTE_MASK == self.place(position) {
                *word = *word & NOTE_MASK | self.place(kept.len());
                kept.push_back(entry);
            }
        }
        debug_assert_eq!(kept.len(), self.len);
        self.ring = kept;
    }

    /// The table's word for the page at `position` of the ring, without the note.
    fn place(&self, position: usize) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "a ring has fewer than 2²⁸ entries")]
        let sequence = self.first.wrapping_add(position as u32);
        sequence << SEQUENCE_SHIFT | u32::from(self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGES: u32 = 9;

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize, u32, u8),
        PushFront(usize, u32, u8),
        Pop(usize),
        Remove(u32),
        Replace(u32, u32),
        Note(u32, u8),
        // Leaves and comes back often enough to have a ring rebuilt.
        Churn(usize, u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        let page = 0..PAGES;
        prop_oneof![
            4 => (0..2_usize, page.clone(), 0..4_u8).prop_map(|(q, n, x)| Step::Push(q, n, x)),
            1 => (0..2_usize, page.clone(), 0..4_u8).prop_map(|(q, n, x)| Step::PushFront(q, n, x)),
            2 => (0..2_usize).prop_map(Step::Pop),
            1 => page.clone().prop_map(Step::Remove),
            1 => (page.clone(), page.clone()).prop_map(|(old, new)| Step::Replace(old, new)),
            1 => (page.clone(), 0..4_u8).prop_map(|(n, note)| Step::Note(n, note)),
            1 => (0..2_usize, page).prop_map(|(q, n)| Step::Churn(q, n)),
        ]
    }

    /// Two queues that share a table, beside two plain ones.
    struct Pair {
        places: Places,
        queues: [Queue; 2],
        model: [VecDeque<(u32, u8)>; 2],
    }

    impl Pair {
        fn queue_of(&self, n: u32) -> Option<usize> {
            self.model.iter().position(|queue| queue.iter().any(|&(page, _)| page == n))
        }

        fn push(&mut self, q: usize, n: u32, note: u8) {
            if self.queue_of(n).is_none() {
                self.queues[q].push_back(&mut self.places, PageIndex::new(n), note);
                self.model[q].push_back((n, note));
            }
        }

        fn push_front(&mut self, q: usize, n: u32, note: u8) {
            if self.queue_of(n).is_none() {
                self.queues[q].push_front(&mut self.places, PageIndex::new(n), note);
                self.model[q].push_front((n, note));
            }
        }

        fn remove(&mut self, n: u32) {
            if let Some(q) = self.queue_of(n) {
                self.queues[q].remove(&mut self.places, PageIndex::new(n));
                self.model[q].retain(|&(page, _)| page != n);
            }
        }

        fn replace(&mut self, old: u32, new: u32) {
            if let (Some(q), None) = (self.queue_of(old), self.queue_of(new)) {
                let (old_page, new_page) = (PageIndex::new(old), PageIndex::new(new));
                self.queues[q].replace(&mut self.places, old_page, new_page);
                self.model[q].iter_mut().filter(|e| e.0 == old).for_each(|e| e.0 = new);
            }
        }

        fn note(&mut self, n: u32, note: u8) {
            if let Some(q) = self.queue_of(n) {
                self.places.change_note(PageIndex::new(n), |_| note);
                self.model[q].iter_mut().filter(|e| e.0 == n).for_each(|e| e.1 = note);
            }
        }

        fn apply(&mut self, step: &Step) {
            match *step {
                Step::Push(q, n, note) => self.push(q, n, note),
                Step::PushFront(q, n, note) => self.push_front(q, n, note),
                Step::Pop(q) => {
                    let first = self.queues[q].head(&self.places).map(|(_, note)| note);
                    assert_eq!(first, self.model[q].front().map(|&(_, note)| note));
                    let popped = self.queues[q].pop_front(&mut self.places);
                    let popped = popped.map(|(page, note)| (page.get(), note));
                    assert_eq!(popped, self.model[q].pop_front());
                }
                Step::Remove(n) => self.remove(n),
                Step::Replace(old, new) => self.replace(old, new),
                Step::Note(n, note) => self.note(n, note),
                Step::Churn(q, n) => {
                    for _ in 0..100 {
                        self.remove(n);
                        self.push(q, n, 0);
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn queues_are_deques(steps in prop::collection::vec(step(), 0..60)) {
            let mut pair = Pair {
                places: Places::default(),
                queues: [Queue::new(1), Queue::new(2)],
                model: Default::default(),
            };
            // Sequence numbers are about to wrap, both in the table and in the queue.
            pair.queues[0].first = u32::MAX - 20;
            pair.queues[1].first = (u32::MAX >> SEQUENCE_SHIFT) - 20;
            for step in steps {
                pair.apply(&step);
                for n in 0..PAGES {
                    let id = pair.queue_of(n).map_or(0, |q| pair.queues[q].id);
                    prop_assert_eq!(pair.places.queue_of(PageIndex::new(n)), id);
                    for q in 0..2 {
                        let last = pair.queues[q].renew_last(&pair.places, PageIndex::new(n));
                        let newest = pair.model[q].back().is_some_and(|&(page, _)| page == n);
                        prop_assert!(newest || !last);
                    }
                }
                for (queue, model) in pair.queues.iter().zip(&pair.model) {
                    prop_assert_eq!(queue.len(), model.len());
                    // Pops leave stale entries too, at most one for each of up to sixty steps.
                    let stale_max = queue.len() / 2 + STALE_MIN + 60;
                    prop_assert!(queue.ring.len() <= queue.len() + stale_max);
                }
            }
            for q in 0..2 {
                while !pair.model[q].is_empty() {
                    pair.apply(&Step::Pop(q));
                }
                pair.apply(&Step::Pop(q));
            }
        }
    }
}
