//! Giving up pages of several processes under one budget.

use super::{LEAVING, Residency, UNMAPPED};
use crate::common::Front;
use crate::page::PageIndex;
use crate::probation::Room;

impl Residency {
    /// The pages that can be given up. Of a process that `is_stuck` no further page can be
    /// unmapped.
    pub fn front(&mut self, is_stuck: bool) -> Front {
        let probation = self.probation.head(&self.probation_places);
        if is_stuck {
            let probation = probation.filter(|&(_, note)| note == UNMAPPED);
            let heads = [None, None, probation.map(|(stamp, _)| stamp)];
            return Front { heads, ..Front::default() };
        }
        let [first, second] = self.policy.heads();
        Front {
            heads: [first, second, probation.map(|(stamp, _)| stamp)],
            active: self.active(),
            waiting: self.on_probation().get(),
        }
    }

    /// How many pages are active, by line of the policy.
    pub(crate) fn active(&self) -> [u64; 2] {
        self.policy.sizes().map(|pages| pages as u64)
    }

    /// How many pages are to go on probation in the budget, whose residencies together have
    /// `active` and `waiting` pages.
    pub(crate) fn wanted(&self, room: Room, active: u64, waiting: u64) -> u64 {
        self.common.share.wanted(room, active, waiting)
    }

    /// Puts the next active page of a line of the policy on probation; `None` if it is newer than
    /// `until`.
    pub(crate) fn probe_next(&mut self, line: usize, until: u64) -> Option<PageIndex> {
        let page = self.policy.victim_of(line, until)?;
        self.put_on_probation(page);
        Some(page)
    }

    /// Moves the page longest on probation into the order of leaving; `None` if it is not unmapped,
    /// or newer than `until`.
    pub(crate) fn leave_next(&mut self, until: u64) -> Option<PageIndex> {
        let (stamp, note) = self.probation.head(&self.probation_places)?;
        if note != UNMAPPED || stamp > until {
            return None;
        }
        let (page, _) = self.probation.pop_front(&mut self.probation_places)?;
        self.states.set(page, LEAVING);
        self.leaving += 1;
        Some(page)
    }

    /// The stamp of the page that leaves next, and whether it is unmapped; `None` without pages.
    pub(crate) fn next_to_leave(&mut self) -> Option<(u64, bool)> {
        let head = self.probation.head(&self.probation_places);
        head.map(|(stamp, note)| (stamp, note == UNMAPPED))
    }
}
