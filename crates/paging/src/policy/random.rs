//! RANDOM: uniformly random victims.

use std::collections::VecDeque;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::{Policy, PolicyKind, Row, Stamps, only_line};
use crate::page::{PageIndex, PageMap};

/// Gives up any page with equal probability.
#[derive(Clone, Debug)]
pub struct Random {
    pages: Vec<PageIndex>,
    // Where in `pages` a page is, plus one; zero if it is not.
    position: PageMap<u32>,
    // Pages that were drawn and referenced: the draw still counts.
    drawn: VecDeque<(PageIndex, u64)>,
    stamps: Stamps,
    rng: Pcg32,
}

impl PolicyKind {
    /// [`Random`].
    pub const RANDOM: Self = Self::new(&RANDOM);
}

static RANDOM: Row = Row {
    name: "random",
    build: |_capacity, seed| Box::new(Random::new(seed)),
    line: only_line,
    draws: true,
    probation: None,
    away: Some(|stay| 1.0 / (1.0 + stay)),
};

impl Random {
    /// An empty set whose victims are drawn from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            pages: Vec::new(),
            position: PageMap::default(),
            drawn: VecDeque::new(),
            stamps: Stamps::default(),
            rng: Pcg32::seed_from_u64(seed),
        }
    }

    // The index of a page; `None` if it is not held.
    fn position_of(&self, page: PageIndex) -> Option<usize> {
        self.position.get(page).checked_sub(1).map(|position| position as usize)
    }

    fn set_position(&mut self, page: PageIndex, position: usize) {
        // There are fewer pages than `u32` values, so the position always fits.
        *self.position.slot(page) = u32::try_from(position + 1).unwrap_or(u32::MAX);
    }

    // Removes and returns the page at `position`.
    fn take(&mut self, position: usize) -> PageIndex {
        let page = self.pages.swap_remove(position);
        *self.position.slot(page) = 0;
        if let Some(&moved) = self.pages.get(position) {
            self.set_position(moved, position);
        }
        page
    }
}

impl Policy for Random {
    fn name(&self) -> &'static str {
        PolicyKind::RANDOM.name()
    }

    fn wants_references(&self) -> bool {
        false
    }

    fn insert(&mut self, page: PageIndex) {
        if !self.contains(page) {
            self.set_position(page, self.pages.len());
            self.pages.push(page);
        }
    }

    fn touch(&mut self, _page: PageIndex) {}

    /// The page is still the next to be given up.
    fn restore(&mut self, page: PageIndex) {
        self.insert(page);
        self.drawn.push_back((page, self.stamps.newest()));
    }

    fn remove(&mut self, page: PageIndex) {
        self.drawn.retain(|&(drawn, _)| drawn != page);
        if let Some(position) = self.position_of(page) {
            self.take(position);
        }
    }

    fn rename(&mut self, from: PageIndex, to: PageIndex) {
        if let Some(position) = self.position_of(from) {
            *self.position.slot(from) = 0;
            self.set_position(to, position);
            self.pages[position] = to;
            self.drawn.iter_mut().filter(|one| one.0 == from).for_each(|one| one.0 = to);
        }
    }

    fn victim(&mut self) -> Option<PageIndex> {
        self.victim_of(0, u64::MAX)
    }

    fn follow(&mut self, stamps: &Stamps) {
        self.stamps = stamps.clone();
    }

    fn heads(&mut self) -> [Option<u64>; 2] {
        [self.drawn.front().map(|&(_, stamp)| stamp), None]
    }

    /// Ignores `until`: pages that were not drawn have no age.
    fn victim_of(&mut self, _line: usize, _until: u64) -> Option<PageIndex> {
        if let Some((page, _)) = self.drawn.pop_front() {
            let position = self.position_of(page)?;
            return Some(self.take(position));
        }
        let len = u32::try_from(self.pages.len()).ok().filter(|&len| len > 0)?;
        // The high half of a 64-bit product maps a 32-bit draw onto `0..len`; the bias, at most
        // len / 2³², is far below what any run could show.
        let draw = (u64::from(self.rng.next_u32()) * u64::from(len)) >> 32;
        usize::try_from(draw).ok().map(|position| self.take(position))
    }

    fn len(&self) -> usize {
        self.pages.len()
    }

    fn contains(&self, page: PageIndex) -> bool {
        self.position.get(page) != 0
    }

    fn boxed_clone(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}
