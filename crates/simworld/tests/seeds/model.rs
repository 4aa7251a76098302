//! What a disk may answer: every write has a number, and fills its blocks with it.

use std::collections::BTreeMap;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 512;

/// A moment: moments are counted, not timed.
pub(crate) type Moment = u64;

/// A change of blocks.
#[derive(Debug, Clone, Copy)]
struct Change {
    began: Moment,
    /// When it was answered well.
    ended: Option<Moment>,
    /// When it was over, however it went.
    sealed: Option<Moment>,
    /// It was refused.
    is_none: bool,
    forced: bool,
}

/// The number of blocks that are zeros.
const ZEROS: u64 = 0;

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Model {
    now: Moment,
    changes: BTreeMap<u64, Change>,
    /// By block: numbers of changes of it, in the order in which they began.
    of: Vec<Vec<u64>>,
    /// Changes that may leave anything.
    wild: Vec<u64>,
    /// Flushes that were answered well: when they began, and ended.
    flushes: Vec<(Moment, Moment)>,
    /// When a target lost what it had not put on the medium.
    crashes: Vec<Moment>,
    last: u64,
}

/// What is wrong with a block that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It has parts of two changes.
    Torn,
    /// It has what no change has put there.
    Misplaced,
    /// It has what another change had replaced before.
    Stale,
}

impl Model {
    /// Of so many blocks, which are zeros.
    pub(crate) fn new(blocks: usize) -> Self {
        let mut model = Self { of: vec![Vec::new(); blocks], ..Self::default() };
        let zeros = Change { began: 0, ended: Some(0), sealed: None, is_none: false, forced: true };
        model.changes.insert(ZEROS, zeros);
        model.of.iter_mut().for_each(|of| of.push(ZEROS));
        model
    }

    fn tick(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// A read or a flush begins.
    pub(crate) fn begin(&mut self) -> Moment {
        self.tick()
    }

    /// A change begins; its number.
    pub(crate) fn change(&mut self, blocks: [usize; 2], forced: bool, is_wild: bool) -> u64 {
        self.last += 1;
        let began = self.tick();
        self.changes
            .insert(self.last, Change { began, ended: None, sealed: None, is_none: false, forced });
        for block in blocks[0]..blocks[0] + blocks[1] {
            self.of[block].push(self.last);
        }
        if is_wild {
            self.wild.push(self.last);
        }
        self.last
    }

    /// A change was answered well.
    pub(crate) fn changed(&mut self, number: u64) {
        let now = self.tick();
        if let Some(change) = self.changes.get_mut(&number).filter(|_| number > 0) {
            change.ended = Some(now);
        }
    }

    /// A change has been made, or never is.
    pub(crate) fn seal(&mut self, number: u64) {
        let now = self.tick();
        if let Some(change) = self.changes.get_mut(&number).filter(|_| number > 0) {
            change.sealed = Some(change.sealed.map_or(now, |sealed| sealed.min(now)));
        }
    }

    /// A change that began before a moment has been made, or never is.
    pub(crate) fn seal_if(&mut self, number: u64, before: Moment) {
        let now = self.now;
        let change = self.changes.get_mut(&number);
        if let Some(change) = change.filter(|one| one.began < before && one.sealed.is_none()) {
            change.sealed = Some(now);
        }
    }

    /// A change was refused.
    pub(crate) fn never(&mut self, number: u64) {
        if let Some(change) = self.changes.get_mut(&number).filter(|_| number > 0) {
            change.is_none = true;
        }
    }

    /// A flush was answered well.
    pub(crate) fn flushed(&mut self, began: Moment) {
        let now = self.tick();
        self.flushes.push((began, now));
    }

    /// A target has lost what was on no medium.
    pub(crate) fn crashed(&mut self) {
        let now = self.tick();
        self.crashes.push(now);
    }

    // Whether a change was certainly there from its end on until now.
    fn is_kept(&self, change: &Change) -> bool {
        let Some(ended) = change.ended else { return false };
        if change.forced {
            return true;
        }
        let kept_at = self.flushes.iter().filter(|(began, _)| *began > ended);
        let kept_at = kept_at.map(|(_, at)| *at).min().unwrap_or(Moment::MAX);
        !self.crashes.iter().any(|&crash| change.began < crash && crash < kept_at)
    }

    // Whether what one change has put there is certainly gone when a read begins.
    fn is_replaced(&self, block: usize, number: u64, read: Moment) -> bool {
        let Some(own) = self.changes.get(&number) else { return true };
        if own.is_none {
            return true;
        }
        let Some(own_end) = own.ended.into_iter().chain(own.sealed).min() else { return false };
        let others = self.of[block].iter().filter_map(|other| self.changes.get(other));
        let mut replacing = others
            .filter(|other| other.began > own_end && other.ended.is_some_and(|end| end < read));
        replacing.any(|other| self.is_kept(other))
    }

    /// What is wrong with blocks that a read has brought, which began at that moment.
    pub(crate) fn check(&mut self, first: usize, read: Moment, bytes: &[u8]) -> Option<Wrong> {
        self.tick();
        let mut blocks = (first..).zip(bytes.chunks_exact(BLOCK));
        blocks.find_map(|(number, bytes)| self.check_block(number, read, bytes))
    }

    fn check_block(&self, block: usize, read: Moment, bytes: &[u8]) -> Option<Wrong> {
        let (first, _) = bytes.split_first_chunk::<8>()?;
        let found = u64::from_le_bytes(*first);
        if bytes.chunks_exact(8).any(|word| word != first) {
            return Some(Wrong::Torn);
        }
        let is_wild = self
            .wild
            .iter()
            .any(|wild| self.of[block].contains(wild) && !self.is_replaced(block, *wild, read));
        if is_wild {
            return None;
        }
        // Zeros are put there by several changes.
        let zeroed = |number: &&u64| self.is_zeroing(**number);
        let candidates: Vec<u64> = match found {
            ZEROS => self.of[block].iter().filter(zeroed).copied().collect(),
            found => self.of[block].iter().filter(|number| **number == found).copied().collect(),
        };
        match candidates[..] {
            [] => Some(Wrong::Misplaced),
            _ if candidates.iter().all(|&one| self.is_replaced(block, one, read)) => {
                Some(Wrong::Stale)
            }
            _ => None,
        }
    }

    const fn is_zeroing(&self, number: u64) -> bool {
        // Changes that write zeros have even numbers.
        number.is_multiple_of(2)
    }

    /// The next change writes zeros if `zeroes`, and a number otherwise.
    pub(crate) fn choose(&mut self, zeroes: bool) {
        if (self.last + 1).is_multiple_of(2) != zeroes {
            self.last += 1;
        }
    }
}
