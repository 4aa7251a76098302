//! Giving up pages of several processes under one budget.

use super::{LEAVING, Residency, UNMAPPED};
use crate::common::Front;
use crate::page::PageIndex;
use crate::probation::Room;

impl Residency {
    /// What there is to give. From one that `is_stuck` nothing more is unmapped for now.
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

    /// Active pages, by line of the policy.
    pub(crate) fn active(&self) -> [u64; 2] {
        self.policy.sizes().map(|pages| pages as u64)
    }

    /// How many pages are to go on probation in the budget, whose residencies have so many active
    /// and waiting pages.
    pub(crate) fn wanted(&self, room: Room, active: u64, waiting: u64) -> u64 {
        self.common.share.wanted(room, active, waiting)
    }

    /// Puts the next active page of a line of the policy on probation, if it is no newer than
    /// `until`.
    pub(crate) fn probe_next(&mut self, line: usize, until: u64) -> Option<PageIndex> {
        let page = self.policy.victim_of(line, until)?;
        self.put_on_probation(page);
        Some(page)
    }

    /// Puts the page longest on probation in order of leaving, if it is unmapped and has been there
    /// since `until` at the latest.
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

    /// Since when the page that leaves next is on probation, and whether it is unmapped.
    pub(crate) fn next_to_leave(&mut self) -> Option<(u64, bool)> {
        let head = self.probation.head(&self.probation_places);
        head.map(|(stamp, note)| (stamp, note == UNMAPPED))
    }
}
