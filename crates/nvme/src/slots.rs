//! The outstanding commands of a queue.

use super::command::Submission;

/// A place for one command, from its capsule to its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub(super) u16);

/// What a command waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its in-capsule data.
    Capsule,
    /// Its owner, who executes it.
    Owner,
    /// Its requested data: `arrived` bytes have come, and `is_intact` says whether all digests were
    /// right.
    Transfer { arrived: u32, is_intact: bool },
}

/// An outstanding command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outstanding {
    pub(crate) submission: Submission,
    pub(crate) stage: Stage,
}

/// Places for outstanding commands.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Places, added when needed, up to `count`.
    places: Vec<Option<Outstanding>>,
    count: u16,
    free: Vec<u16>,
    /// CIDs in use, one bit each; grows to 8 KiB at most.
    used: Vec<u64>,
}

impl Slot {
    /// The number of the place, below the size of the queue; also the transfer tag of its data.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl Slots {
    pub(crate) fn new(count: u16) -> Self {
        let mut slots = Self { places: Vec::new(), count: 0, free: Vec::new(), used: Vec::new() };
        slots.grow(count);
        slots
    }

    /// Raises the number of places to `count`; it never falls.
    pub(crate) fn grow(&mut self, count: u16) {
        self.count = self.count.max(count);
    }

    /// Whether an outstanding command has this CID.
    pub(crate) fn is_used(&self, cid: u16) -> bool {
        let (word, bit) = place(cid);
        self.used.get(word).is_some_and(|bits| bits >> bit & 1 == 1)
    }

    /// Gives a command a place; its CID must not be in use. `None` if all places are taken.
    pub(crate) fn take(&mut self, submission: Submission, stage: Stage) -> Option<Slot> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u16::try_from(self.places.len()).ok()?;
                if slot >= self.count {
                    return None;
                }
                self.places.push(None);
                slot
            }
        };
        let (word, bit) = place(submission.cid);
        if word >= self.used.len() {
            self.used.resize(word + 1, 0);
        }
        self.used[word] |= 1 << bit;
        self.places[usize::from(slot)] = Some(Outstanding { submission, stage });
        Some(Slot(slot))
    }

    /// The command of a place.
    pub(crate) fn get(&self, slot: Slot) -> Option<&Outstanding> {
        self.places.get(usize::from(slot.0))?.as_ref()
    }

    /// As [`Slots::get`], mutable, for changes of its stage.
    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut Outstanding> {
        self.places.get_mut(usize::from(slot.0))?.as_mut()
    }

    /// The place with this transfer tag, if it has a command.
    pub(crate) fn tagged(&self, ttag: u16) -> Option<Slot> {
        self.get(Slot(ttag)).map(|_| Slot(ttag))
    }

    /// The place of the command with this CID.
    pub(crate) fn find(&self, cid: u16) -> Option<Slot> {
        let of = |place: &Option<Outstanding>| {
            place.is_some_and(|outstanding| outstanding.submission.cid == cid)
        };
        let index = self.places.iter().position(of)?;
        u16::try_from(index).ok().map(Slot)
    }

    /// Frees a place. Returns the command.
    pub(crate) fn release(&mut self, slot: Slot) -> Option<Outstanding> {
        let outstanding = self.places.get_mut(usize::from(slot.0))?.take()?;
        let (word, bit) = place(outstanding.submission.cid);
        self.used[word] &= !(1 << bit);
        self.free.push(slot.0);
        Some(outstanding)
    }

    /// How many commands are outstanding.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

// The word and the bit of a CID in `Slots::used`.
fn place(cid: u16) -> (usize, u32) {
    (usize::from(cid / 64), u32::from(cid % 64))
}
