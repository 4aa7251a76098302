//! Pages on their way to a memory blade, in order, and the frames that they still have.
//!
//! ```text
//! sent ─► acknowledged: kept until another page needs the frame ─► given ─► far
//!   │                          │                                     │
//!   └── touched, freed, moved ─┴─────────────────────────────────────┘ stays
//! ```
//!
//! A page that the blade has acknowledged keeps its frame until another page needs it. So no frame
//! is free while pages wait to leave, and a page that is touched meanwhile costs no fetch. Which
//! pages leave, and when, is the same as where far memory is emulated.
//!
//! Nothing here sends, maps or frees: the caller that takes the frame of a page says whether the
//! page is still untouched, and ends its transfer.

use std::collections::{BTreeMap, VecDeque};

use crate::blade::{Key, Token};
use crate::page::PageIndex;

/// A budget and a tier.
pub type Lane = (usize, usize);

/// A page on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaver {
    /// The transfer that takes it out.
    pub token: Token,
    /// The page.
    pub key: Key,
    /// The same page, as its residency numbers it.
    pub page: PageIndex,
    /// The budget and tier whose frame the page has.
    pub lane: Lane,
}

/// See the module's description.
#[derive(Debug, Default)]
pub struct Leavers {
    sent: BTreeMap<Token, Leaver>,
    lanes: BTreeMap<Lane, Kept>,
    /// Pages whose transfers are to be ended, and whether another page has the frame.
    given: Vec<(Leaver, bool)>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    pages: VecDeque<Leaver>,
    sent: u32,
}

impl Leavers {
    /// Adds a page that is on its way to the blade.
    pub fn send(&mut self, leaver: Leaver) {
        self.lanes.entry(leaver.lane).or_default().sent += 1;
        self.sent.insert(leaver.token, leaver);
    }

    /// Acts on the blade's acknowledgement of a page. Returns whose frame it has; `None` if `token`
    /// is not a page on its way out.
    pub fn acknowledged(&mut self, token: Token) -> Option<Lane> {
        let leaver = self.sent.remove(&token)?;
        self.lanes.entry(leaver.lane).or_default().sent -= 1;
        self.keep(leaver);
        Some(leaver.lane)
    }

    /// Adds a page that the blade has already, so that it need not be sent.
    pub fn keep(&mut self, leaver: Leaver) {
        self.lanes.entry(leaver.lane).or_default().pages.push_back(leaver);
    }

    /// Whether a frame of a lane can be had. Pages in front that are not `untouched` any more are
    /// taken out, to be ended.
    pub fn any(&mut self, lane: Lane, untouched: impl Fn(&Leaver) -> bool) -> bool {
        let Some(kept) = self.lanes.get_mut(&lane) else { return false };
        while let Some(&first) = kept.pages.front() {
            if untouched(&first) {
                return true;
            }
            kept.pages.pop_front();
            self.given.push((first, false));
        }
        false
    }

    /// Gives away the frame of the page that leaves next. Returns false if there is none.
    pub fn give(&mut self, lane: Lane, untouched: impl Fn(&Leaver) -> bool) -> bool {
        if !self.any(lane, untouched) {
            return false;
        }
        let next = self.lanes.get_mut(&lane).and_then(|kept| kept.pages.pop_front());
        self.given.extend(next.map(|next| (next, true)));
        next.is_some()
    }

    /// Takes the pages whose transfers are to be ended, each with whether another page has the
    /// frame.
    pub fn take_given(&mut self) -> Vec<(Leaver, bool)> {
        std::mem::take(&mut self.given)
    }

    /// Whether more frames can be had than were given away and not yet settled.
    #[must_use]
    pub fn is_plenty(&self) -> bool {
        let kept: usize = self.lanes.values().map(|kept| kept.pages.len()).sum();
        self.given.len() < kept
    }

    /// Takes out the pages of a process that has ended; their transfers are to be ended.
    pub fn end(&mut self, slot: usize) {
        for kept in self.lanes.values_mut() {
            let (ended, rest) = kept.pages.iter().partition(|leaver| leaver.key.0 == slot);
            kept.pages = rest;
            let ended: VecDeque<Leaver> = ended;
            self.given.extend(ended.into_iter().map(|leaver| (leaver, false)));
        }
    }

    /// How many pages of a lane still have their frames.
    #[must_use]
    pub fn count(&self, lane: Lane) -> u32 {
        let count = |kept: &Kept| u32::try_from(kept.pages.len()).unwrap_or(u32::MAX) + kept.sent;
        self.lanes.get(&lane).map_or(0, count)
    }

    /// Whether any page is sent and not acknowledged.
    #[must_use]
    pub fn is_any_sent(&self) -> bool {
        !self.sent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: Lane = (0, 0);

    fn leaver(token: Token) -> Leaver {
        let page = PageIndex::try_from(token).expect("few");
        Leaver { token, key: (usize::from(token % 2 == 1), token), page, lane: LANE }
    }

    #[test]
    fn frames_are_given_in_the_order_of_acknowledgements() {
        let mut leavers = Leavers::default();
        (1..=3).for_each(|token| leavers.send(leaver(token)));
        assert!(!leavers.give(LANE, |_| true), "the blade has nothing yet");
        assert_eq!([2, 1].map(|token| leavers.acknowledged(token)), [Some(LANE); 2]);
        assert_eq!(leavers.acknowledged(9), None, "it is no page's way out");
        assert_eq!(leavers.count(LANE), 3);
        assert!(leavers.give(LANE, |_| true) && leavers.give(LANE, |_| true));
        assert!(!leavers.give(LANE, |_| true));
        assert_eq!(leavers.take_given(), [(leaver(2), true), (leaver(1), true)]);
        assert_eq!((leavers.count(LANE), leavers.is_any_sent()), (1, true));
    }

    #[test]
    fn there_are_plenty_until_half_of_them_are_given_away() {
        let mut leavers = Leavers::default();
        assert!(!leavers.is_plenty());
        (1..=4).for_each(|token| leavers.keep(leaver(token)));
        assert!(leavers.is_plenty() && leavers.give(LANE, |_| true) && leavers.is_plenty());
        assert!(leavers.give(LANE, |_| true) && !leavers.is_plenty());
        leavers.take_given();
        assert!(leavers.is_plenty());
    }

    #[test]
    fn pages_that_were_touched_give_nothing_and_are_ended() {
        let mut leavers = Leavers::default();
        (1..=3).for_each(|token| leavers.keep(leaver(token)));
        let untouched = |leaver: &Leaver| leaver.token == 2;
        assert!(leavers.any(LANE, untouched) && leavers.any(LANE, untouched));
        assert!(leavers.give(LANE, untouched) && !leavers.give(LANE, untouched));
        let given = [(leaver(1), false), (leaver(2), true), (leaver(3), false)];
        assert_eq!(leavers.take_given(), given);
        assert_eq!(leavers.count(LANE), 0);
    }

    #[test]
    fn pages_of_an_ended_process_keep_no_frames() {
        let mut leavers = Leavers::default();
        (1..=4).for_each(|token| leavers.keep(leaver(token)));
        leavers.end(1);
        assert_eq!(leavers.take_given(), [(leaver(1), false), (leaver(3), false)]);
        assert_eq!(leavers.count(LANE), 2);
        assert!(!leavers.give((0, 1), |_| true), "a frame of another lane");
    }
}
