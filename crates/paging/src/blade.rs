//! Which page is at which place of a memory blade, and what is on its way.
//!
//! ```text
//!           leave: sent           left: is it untouched?
//!  local ──────────► on its way out ────────────────────► far ──► fetch: on its way in
//!    ▲                     │ touched, freed, moved          │              │
//!    ├─────────────────────┘                                │ freed        │ arrived: verified?
//!    └──────────────────────────────────────────────────────┴──────────────┘
//! ```
//!
//! A page has one owner: its frame, until the blade has acknowledged it, and then its place. A copy
//! that was not acknowledged is no copy.
//!
//! A page that was fetched keeps its place, as a copy, and so does one that was touched on its way
//! out. If it leaves with the same fingerprint, nothing is sent. Copies give way where the blade is
//! full.
//!
//! # Laws
//!
//! * A place is given out again only when nothing on its way names it. So a late write never comes
//!   upon the page of another.
//! * A page that arrives is the one that was acknowledged last: its checksum says so. If not, the
//!   error names what it is: nothing (the blade has lost it), an older page, or that of another
//!   place.
//! * A copy counts as its page only if all contents are equal: the fingerprint is keyed, of 64
//!   bits, and compared with that of one other content; the checksums are equal, too.
//! * After `fork` a place has several pages, and is freed with the last of them.
//!
//! Nothing here sends or reads a byte.

use std::collections::BTreeMap;

use thiserror::Error;

/// A page of a process: the slot of its process, and its address divided by the size of a page.
pub type Key = (usize, u64);

/// The number of a page of the blade, counted from 0.
pub type Place = u32;

/// The number of a transfer under way.
pub type Token = u64;

/// The checksum and the fingerprint that stand for the bytes of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The checksum that the page must have when it comes back.
    pub sum: u32,
    /// A keyed hash that no other content of the page has, but by chance of one in 2⁶⁴.
    pub print: u64,
}

/// How a page leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// The blade has the page already, and nothing is sent. It is on its way out until its transfer
    /// is [ended](Blade::left).
    Held(Token),
    /// The page is to be sent to this place.
    Sent(Token, Place),
}

/// Why a page that has arrived is not the one that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Lost {
    /// The page is zeros: the blade has restarted, or has dropped the page.
    #[error("the blade has lost it: it has zeros there")]
    Gone,
    /// The page is the one that was at this place before.
    #[error("the blade has an older page there: a write that it acknowledged is missing")]
    Stale,
    /// The page belongs to another place.
    #[error("the blade has there what belongs at place {0}")]
    Misdirected(Place),
    /// The page was never sent.
    #[error("its checksum is wrong")]
    Corrupt,
}

/// What has happened to a page since it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// The page is still on its way out, unchanged.
    Untouched,
    /// The page was touched, and is local.
    Touched,
    /// The page was freed or moved.
    Gone,
}

/// What becomes of a page that the blade has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The page is far: its frame may be freed.
    Far(Key),
    /// The page stays: it was touched, freed or moved meanwhile.
    Stays,
}

/// A page that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It belongs to this page.
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
    /// How many pages are at this place, or have a copy here.
    pages: u32,
    /// How many transfers name this place.
    transfers: u32,
    /// What is at this place, and the checksum of what was here before.
    content: Content,
    before: Option<u32>,
}

/// See the module's description.
#[derive(Debug)]
pub struct Blade {
    places: BTreeMap<Key, Place>,
    /// Places that still have a copy of a local page.
    copies: BTreeMap<Key, Place>,
    /// The transfer that a page on its way in waits for. A page that was moved or freed meanwhile
    /// waits for none, even if it is back at its address.
    awaited: BTreeMap<Key, Token>,
    entries: Vec<Entry>,
    free: Vec<Place>,
    capacity: Place,
    transfers: BTreeMap<Token, Transfer>,
    token: Token,
    peak: u32,
}

impl Blade {
    /// An empty blade with room for `capacity` pages.
    #[must_use]
    pub const fn new(capacity: Place) -> Self {
        Self {
            places: BTreeMap::new(),
            copies: BTreeMap::new(),
            awaited: BTreeMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            capacity,
            transfers: BTreeMap::new(),
            token: 0,
            peak: 0,
        }
    }

    /// Begins to write a page out. `None` if the blade is full.
    pub fn leave(&mut self, key: Key, content: Content) -> Option<Leave> {
        debug_assert!(!self.places.contains_key(&key), "a page that is far does not leave");
        if let Some(place) = self.copies.remove(&key) {
            if self.entries[place as usize].content == content {
                let token = self.begin(Transfer { key, place, is_out: true });
                self.vacate(place);
                self.note_peak();
                return Some(Leave::Held(token));
            }
            self.vacate(place);
        }
        let place = self.take_place()?;
        let entry = &mut self.entries[place as usize];
        entry.before = Some(entry.content.sum);
        entry.content = content;
        self.note_peak();
        Some(Leave::Sent(self.begin(Transfer { key, place, is_out: true }), place))
    }

    // Raises the peak of places in use, without copies.
    fn note_peak(&mut self) {
        let used = self.entries.len() - self.free.len();
        let wanted = used.saturating_sub(self.copies.len());
        self.peak = self.peak.max(u32::try_from(wanted).unwrap_or(u32::MAX));
    }

    // Takes a free place, or that of a copy; `None` if there is neither.
    fn take_place(&mut self) -> Option<Place> {
        loop {
            if let Some(place) = self.free.pop() {
                return Some(place);
            }
            let next = Place::try_from(self.entries.len()).ok()?;
            if next < self.capacity {
                self.entries.push(Entry::default());
                return Some(next);
            }
            let (_, place) = self.copies.pop_first()?;
            self.vacate(place);
        }
    }

    /// Ends the transfer of a page that the blade has acknowledged; `meanwhile` says what has
    /// happened to the page. `None` if `token` is not a page on its way out.
    pub fn left(
        &mut self,
        token: Token,
        meanwhile: impl FnOnce(Key) -> Meanwhile,
    ) -> Option<Outcome> {
        let Transfer { key, place, .. } = self.end(token, true)?;
        let outcome = match meanwhile(key) {
            Meanwhile::Untouched => {
                debug_assert!(!self.places.contains_key(&key), "a page that is far does not leave");
                // The copy of an earlier transfer that ended later.
                self.copies.remove(&key).into_iter().for_each(|copy| self.vacate(copy));
                self.entries[place as usize].pages += 1;
                self.places.insert(key, place);
                Outcome::Far(key)
            }
            // Another transfer may have made a copy since.
            Meanwhile::Touched
                if !self.places.contains_key(&key) && !self.copies.contains_key(&key) =>
            {
                self.entries[place as usize].pages += 1;
                self.copies.insert(key, place);
                Outcome::Stays
            }
            Meanwhile::Touched | Meanwhile::Gone => {
                self.give_back(place);
                Outcome::Stays
            }
        };
        Some(outcome)
    }

    /// Begins to fetch a page. `None` if it is not far.
    pub fn fetch(&mut self, key: Key) -> Option<(Token, Place)> {
        let place = *self.places.get(&key)?;
        let token = self.begin(Transfer { key, place, is_out: false });
        self.awaited.insert(key, token);
        Some((token, place))
    }

    /// Ends the transfer of a page that has come with checksum `sum`; it is no longer far. `None`
    /// if `token` is not a page on its way in.
    ///
    /// # Errors
    /// When it is not the page that was sent. The transfer then goes on: the page may come from
    /// another copy. Only then `is_zeros` is called, which says whether all bytes are 0.
    pub fn arrived(
        &mut self,
        token: Token,
        sum: u32,
        is_zeros: impl FnOnce() -> bool,
    ) -> Option<Result<Arrival, Lost>> {
        let transfer = self.transfers.get(&token).filter(|one| !one.is_out)?;
        let (key, place) = (transfer.key, transfer.place);
        let entry = self.entries[place as usize];
        let is_awaited = self.awaited.get(&key) == Some(&token);
        let result = if !is_awaited {
            self.end(token, false)?;
            self.give_back(place);
            Ok(Arrival::Nobody)
        } else if entry.content.sum == sum {
            self.end(token, false)?;
            self.keep_copy(key);
            Ok(Arrival::Page(key))
        } else if is_zeros() {
            Err(Lost::Gone)
        } else if entry.before == Some(sum) {
            Err(Lost::Stale)
        } else {
            let others =
                self.entries.iter().position(|other| other.pages > 0 && other.content.sum == sum);
            let other = others.and_then(|other| Place::try_from(other).ok());
            Err(other.map_or(Lost::Corrupt, Lost::Misdirected))
        };
        Some(result)
    }

    /// The checksum of the page that transfer `token` writes out; `None` if it writes none.
    #[must_use]
    pub fn sum_of(&self, token: Token) -> Option<u32> {
        let transfer = self.transfers.get(&token).filter(|one| one.is_out)?;
        Some(self.entries[transfer.place as usize].content.sum)
    }

    /// The transfer that a page on its way in waits for; `None` if it waits for none.
    #[must_use]
    pub fn awaited(&self, key: Key) -> Option<Token> {
        self.awaited.get(&key).copied()
    }

    /// Whether a page is far.
    #[must_use]
    pub fn is_far(&self, key: Key) -> bool {
        self.places.contains_key(&key)
    }

    /// Forgets `count` pages from `first` on, whose contents are gone.
    pub fn forget(&mut self, (slot, first): Key, count: u64) {
        for key in self.within((slot, first), count) {
            self.leave_place(key);
        }
        for key in within(&self.copies, (slot, first), count) {
            self.copies.remove(&key).into_iter().for_each(|place| self.vacate(place));
        }
    }

    /// Renames `count` pages from `from` to `to`, in one process. What was at `to` was forgotten
    /// before.
    pub fn rename(&mut self, (slot, from): Key, to: u64, count: u64) {
        for key in self.within((slot, from), count) {
            self.awaited.remove(&key);
            if let Some(place) = self.places.remove(&key) {
                self.places.insert((slot, key.1 - from + to), place);
            }
        }
        for key in within(&self.copies, (slot, from), count) {
            if let Some(place) = self.copies.remove(&key) {
                self.copies.insert((slot, key.1 - from + to), place);
            }
        }
    }

    /// Shares the far ones among `count` pages of a parent with its child.
    pub fn share(&mut self, parent: Key, child: usize, count: u64) {
        for key in self.within(parent, count) {
            let place = self.places[&key];
            self.entries[place as usize].pages += 1;
            self.places.insert((child, key.1), place);
        }
    }

    /// How many pages are on their way out, and in.
    #[must_use]
    pub fn under_way(&self) -> (usize, usize) {
        let out = self.transfers.values().filter(|one| one.is_out).count();
        (out, self.transfers.len() - out)
    }

    /// How many pages are far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// The most places that were in use at once, without copies.
    #[must_use]
    pub const fn peak(&self) -> u32 {
        self.peak
    }

    /// Those of `count` pages from `first` on that are far, or on their way in.
    #[must_use]
    pub fn within(&self, first: Key, count: u64) -> Vec<Key> {
        within(&self.places, first, count)
    }

    // Adds a transfer.
    fn begin(&mut self, transfer: Transfer) -> Token {
        self.token += 1;
        self.entries[transfer.place as usize].transfers += 1;
        self.transfers.insert(self.token, transfer);
        self.token
    }

    // Removes a transfer in the direction `is_out`; `None` if there is none.
    fn end(&mut self, token: Token, is_out: bool) -> Option<Transfer> {
        let transfer = self.transfers.get(&token).copied().filter(|one| one.is_out == is_out)?;
        self.transfers.remove(&token);
        self.entries[transfer.place as usize].transfers -= 1;
        Some(transfer)
    }

    // Forgets where a far page is.
    fn leave_place(&mut self, key: Key) {
        self.awaited.remove(&key);
        self.places.remove(&key).into_iter().for_each(|place| self.vacate(place));
    }

    // Makes the place of a page that has come its copy.
    fn keep_copy(&mut self, key: Key) {
        self.awaited.remove(&key);
        if let Some(place) = self.places.remove(&key) {
            self.copies.insert(key, place);
        }
    }

    // Takes one page off a place.
    fn vacate(&mut self, place: Place) {
        self.entries[place as usize].pages -= 1;
        self.give_back(place);
    }

    // Frees a place if it has no page and no transfer names it.
    fn give_back(&mut self, place: Place) {
        let entry = &self.entries[place as usize];
        if entry.pages == 0 && entry.transfers == 0 {
            self.free.push(place);
        }
    }
}

fn within(pages: &BTreeMap<Key, Place>, (slot, first): Key, count: u64) -> Vec<Key> {
    let range = (slot, first)..(slot, first.saturating_add(count));
    pages.range(range).map(|(&key, _)| key).collect()
}
