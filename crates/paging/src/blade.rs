//! Where pages are that are far for real: which place of a memory blade has which page, and what is
//! on its way.
//!
//! ```text
//!           leave                 left: is it still leaving?
//!  local ──────────► on its way out ───────────────────────► far ──► fetch: on its way in
//!    ▲                     │ touched, freed, moved             │              │
//!    ├─────────────────────┘                                   │ freed        │ arrived: verified?
//!    └─────────────────────────────────────────────────────────┴──────────────┘
//! ```
//!
//! A page has one owner: its frame, until the blade has acknowledged it, and then its place. A copy
//! that was not acknowledged is no copy.
//!
//! # Laws
//!
//! * A place is given out again only when nothing on its way names it. So a late write never comes
//!   upon the page of another.
//! * What arrives is what was acknowledged last: its checksum says so. If not, the error names what
//!   it is: nothing (the blade has lost it), what was there before, what belongs elsewhere.
//! * After `fork` a place has several pages, and is given back with the last of them.
//!
//! Nothing here sends or reads a byte.

use std::collections::BTreeMap;

use thiserror::Error;

/// A page of a process: the slot of its process, and its address divided by the size of a page.
pub type Key = (usize, u64);

/// A page of the blade, from its first on.
pub type Place = u32;

/// A transfer under way.
pub type Token = u64;

/// What has arrived is not what was sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Lost {
    /// It is zeros: the blade has begun anew, or has given the page up.
    #[error("the blade has lost it: it has zeros there")]
    Gone,
    /// It is what was there before.
    #[error("the blade has an older page there: a write that it acknowledged is missing")]
    Stale,
    /// It is what belongs to another place.
    #[error("the blade has there what belongs at place {0}")]
    Misdirected(Place),
    /// It is nothing that was ever sent.
    #[error("its checksum is wrong")]
    Corrupt,
}

/// What becomes of a page that the blade has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is far: its frame may go.
    Far(Key),
    /// It stays: it was touched, freed or moved meanwhile.
    Stays,
}

/// A page that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is this page's.
    Page(Key),
    /// Its page was freed or moved meanwhile.
    Nobody,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    key: Key,
    place: Place,
    is_out: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Pages that are there.
    pages: u32,
    /// Transfers that name it.
    transfers: u32,
    /// Checksum of what is there, and of what was before.
    sum: u32,
    before: Option<u32>,
}

/// See the module's description.
#[derive(Debug)]
pub struct Blade {
    places: BTreeMap<Key, Place>,
    /// Which transfer a page on its way in waits for. One that was moved or freed meanwhile does
    /// not, even if it has come back to where it was.
    awaited: BTreeMap<Key, Token>,
    entries: Vec<Entry>,
    free: Vec<Place>,
    capacity: Place,
    transfers: BTreeMap<Token, Transfer>,
    token: Token,
    peak: u32,
}

impl Blade {
    /// A blade with room for so many pages.
    #[must_use]
    pub const fn new(capacity: Place) -> Self {
        Self {
            places: BTreeMap::new(),
            awaited: BTreeMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            capacity,
            transfers: BTreeMap::new(),
            token: 0,
            peak: 0,
        }
    }

    /// A page is sent away, with this checksum. None if the blade is full.
    pub fn leave(&mut self, key: Key, sum: u32) -> Option<(Token, Place)> {
        let place = self.free.pop().or_else(|| {
            let next = Place::try_from(self.entries.len()).ok()?;
            (next < self.capacity).then(|| self.entries.push(Entry::default()))?;
            Some(next)
        })?;
        let entry = &mut self.entries[place as usize];
        (entry.before, entry.sum) = (Some(entry.sum), sum);
        let used = self.entries.len() - self.free.len();
        self.peak = self.peak.max(u32::try_from(used).unwrap_or(u32::MAX));
        Some((self.begin(Transfer { key, place, is_out: true }), place))
    }

    /// The blade has acknowledged a page, or never will; `is_leaving` says whether its page is
    /// still on its way out. None if the transfer is no page's way out.
    pub fn left(&mut self, token: Token, is_leaving: impl FnOnce(Key) -> bool) -> Option<Outcome> {
        let Transfer { key, place, .. } = self.end(token, true)?;
        let outcome = if is_leaving(key) {
            debug_assert!(!self.places.contains_key(&key), "a page that is far does not leave");
            self.entries[place as usize].pages += 1;
            self.places.insert(key, place);
            Outcome::Far(key)
        } else {
            self.give_back(place);
            Outcome::Stays
        };
        Some(outcome)
    }

    /// A page is to come. None if it is not far.
    pub fn fetch(&mut self, key: Key) -> Option<(Token, Place)> {
        let place = *self.places.get(&key)?;
        let token = self.begin(Transfer { key, place, is_out: false });
        self.awaited.insert(key, token);
        Some((token, place))
    }

    /// A page has come, with this checksum; it is far no longer. None if the transfer is no page's
    /// way in.
    ///
    /// # Errors
    /// When it is not the page that was sent away.
    pub fn arrived(
        &mut self,
        token: Token,
        sum: u32,
        is_zeros: bool,
    ) -> Option<Result<Arrival, Lost>> {
        let Transfer { key, place, .. } = self.end(token, false)?;
        let entry = self.entries[place as usize];
        let is_awaited = self.awaited.get(&key) == Some(&token);
        let result = if !is_awaited {
            self.give_back(place);
            Ok(Arrival::Nobody)
        } else if entry.sum == sum {
            self.leave_place(key);
            Ok(Arrival::Page(key))
        } else if is_zeros {
            Err(Lost::Gone)
        } else if entry.before == Some(sum) {
            Err(Lost::Stale)
        } else {
            let others = self.entries.iter().position(|other| other.pages > 0 && other.sum == sum);
            let other = others.and_then(|other| Place::try_from(other).ok());
            Err(other.map_or(Lost::Corrupt, Lost::Misdirected))
        };
        Some(result)
    }

    /// The checksum of what is on its way out in a transfer.
    #[must_use]
    pub fn sum_of(&self, token: Token) -> Option<u32> {
        let transfer = self.transfers.get(&token).filter(|one| one.is_out)?;
        Some(self.entries[transfer.place as usize].sum)
    }

    /// Whether a page is far.
    #[must_use]
    pub fn is_far(&self, key: Key) -> bool {
        self.places.contains_key(&key)
    }

    /// The contents of `count` pages from `first` on are gone.
    pub fn forget(&mut self, (slot, first): Key, count: u64) {
        for key in self.within((slot, first), count) {
            self.leave_place(key);
        }
    }

    /// `count` pages from `from` on are at `to` on. Both are of one process, and what was at `to`
    /// has been forgotten.
    pub fn rename(&mut self, (slot, from): Key, to: u64, count: u64) {
        for key in self.within((slot, from), count) {
            self.awaited.remove(&key);
            if let Some(place) = self.places.remove(&key) {
                self.places.insert((slot, key.1 - from + to), place);
            }
        }
    }

    /// A child has the pages of its parent, those of `count` from `first` on that are far.
    pub fn share(&mut self, parent: Key, child: usize, count: u64) {
        for key in self.within(parent, count) {
            let place = self.places[&key];
            self.entries[place as usize].pages += 1;
            self.places.insert((child, key.1), place);
        }
    }

    /// Transfers under way: pages on their way out, and in.
    #[must_use]
    pub fn under_way(&self) -> (usize, usize) {
        let out = self.transfers.values().filter(|one| one.is_out).count();
        (out, self.transfers.len() - out)
    }

    /// Pages that are far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The most places that were in use at once.
    #[must_use]
    pub const fn peak(&self) -> u32 {
        self.peak
    }

    /// Which of `count` pages from `first` on are far, or on their way in.
    #[must_use]
    pub fn within(&self, (slot, first): Key, count: u64) -> Vec<Key> {
        let range = (slot, first)..(slot, first.saturating_add(count));
        self.places.range(range).map(|(&key, _)| key).collect()
    }

    fn begin(&mut self, transfer: Transfer) -> Token {
        self.token += 1;
        self.entries[transfer.place as usize].transfers += 1;
        self.transfers.insert(self.token, transfer);
        self.token
    }

    fn end(&mut self, token: Token, is_out: bool) -> Option<Transfer> {
        let transfer = self.transfers.get(&token).copied().filter(|one| one.is_out == is_out)?;
        self.transfers.remove(&token);
        self.entries[transfer.place as usize].transfers -= 1;
        Some(transfer)
    }

    fn leave_place(&mut self, key: Key) {
        self.awaited.remove(&key);
        if let Some(place) = self.places.remove(&key) {
            self.entries[place as usize].pages -= 1;
            self.give_back(place);
        }
    }

    // If nobody has it, and nothing that names it is on its way.
    fn give_back(&mut self, place: Place) {
        let entry = &self.entries[place as usize];
        if entry.pages == 0 && entry.transfers == 0 {
            self.free.push(place);
        }
    }
}
